"""Content blocks of Factory Droid's messages as parts of records."""

from __future__ import annotations

import base64
import binascii

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import NONE, Shape, count, data_part, name, size, text_part
from porcelain.providers.records import Changes, Dropped, Part


class Image(Struct):
    type: str | None = None
    media: str | None = field(default=None, name="media_type")
    data: str | None = None


class Block(Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = NONE
    of: str | None = field(default=None, name="tool_use_id")
    failed: bool | None = field(default=None, name="is_error")
    content: Raw = NONE
    source: Image | None = None


class Edited(Struct, gc=False):
    added: int | None = field(default=None, name="linesAdded")
    removed: int | None = field(default=None, name="linesRemoved")


_BLOCK = Shape(Block, nested={"source": Image})
_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_ITEMS = msgspec.json.Decoder(list[Raw])
_TEXT = msgspec.json.Decoder(str)
_EDITED = msgspec.json.Decoder(Edited)


def text_of(value: Raw) -> str | None:
    """The string that ``value`` is, or None."""
    try:
        return _TEXT.decode(value)
    except msgspec.DecodeError:
        return None


class Blocks:
    """Parts of the content blocks of the message on the line ``data``; ``dropped`` is what is left out of them,
    ``changes`` what their results say about edited files."""

    def __init__(self, data: bytes, sink: ContentSink) -> None:
        self.dropped: list[Dropped] = []
        self.changes: Changes | UnsetType = UNSET
        self._data = data
        self._sink = sink

    def parts(self, content: list[Block | str] | str | None) -> list[Part]:
        if isinstance(content, str):
            return [text_part(content, self._sink)]
        found: list[Part] = []
        for index, block in enumerate(content or ()):
            if isinstance(block, str):
                found.append(text_part(block, self._sink))
            elif block.type == "tool_result":
                found += self._result(block)
            else:
                found.append(self._part(block, index))
        return found

    def _part(self, block: Block, index: int | None) -> Part:
        match block.type:
            case "text" if block.text is not None:
                return text_part(block.text, self._sink)
            case "thinking":
                if block.signature:
                    self.dropped.append(Dropped(what="reasoning signature", bytes=size(block.signature)))
                if not block.thinking:
                    return Part(k="reasoning", state="unavailable")
                return Part(
                    k="reasoning", content=self._sink.text(block.thinking), bytes=size(block.thinking)
                )
            case "tool_use":
                sent = str(block.input, "utf-8")
                return Part(
                    k="call",
                    id=name(block.id),
                    name=name(block.name),
                    data=self._sink.text(sent) if sent else UNSET,
                    bytes=size(sent),
                )
            case "image" if block.source is not None and block.source.data:
                image = self._image(block.source)
                if image is not None:
                    return image
        return self._unknown(index)

    def _result(self, block: Block) -> list[Part]:
        """One result part, then the images that came with it."""
        texts: list[str] = []
        rest: list[Part] = []
        data = ""
        shown = bytes(block.content)
        match shown[:1]:
            case b'"':
                texts.append(_TEXT.decode(shown))
            case b"[":
                for item in _ITEMS.decode(shown):
                    inner = _BLOCK.decode(item) if bytes(item)[:1] == b"{" else None
                    if inner is not None and inner.type == "text" and inner.text is not None:
                        texts.append(inner.text)
                    elif inner is not None and inner.type == "image":
                        rest.append(self._part(inner, None))
                    else:
                        rest.append(data_part(str(item, "utf-8"), self._sink))
            case b"{":
                data = str(block.content, "utf-8")
        text = "\n".join(texts)
        if block.failed is not True:
            self._count_changes(data or text)
        result = Part(
            k="result",
            of=name(block.of),
            failed=UNSET if block.failed is None else block.failed,
            content=self._sink.text(text) if text else UNSET,
            data=self._sink.text(data) if data else UNSET,
            bytes=size(text) + size(data),
        )
        return [result, *rest]

    def _count_changes(self, text: str) -> None:
        """Add the lines that an edit's result, itself JSON text, says it added and removed."""
        if not text.startswith("{") or '"linesAdded"' not in text:
            return
        try:
            edited = _EDITED.decode(text)
        except msgspec.DecodeError:
            return
        before = self.changes if isinstance(self.changes, Changes) else Changes()
        self.changes = Changes(
            added=before.added + count(edited.added),
            files=before.files + 1,
            removed=before.removed + count(edited.removed),
        )

    def _image(self, source: Image) -> Part | None:
        try:
            image = base64.b64decode(source.data or "", validate=True)
        except (binascii.Error, ValueError):
            return None
        kind = name(source.media)
        media = kind if isinstance(kind, str) else "application/octet-stream"
        return Part(k="media", media=media, content=self._sink.blob(image, media), bytes=len(image))

    def _unknown(self, index: int | None) -> Part:
        if index is None:
            return Part(k="unknown", state="omitted")
        content = _FIELDS.decode(_FIELDS.decode(self._data)["message"])["content"]
        source = str(_ITEMS.decode(content)[index], "utf-8")
        return Part(k="unknown", data=self._sink.text(source), bytes=size(source))
