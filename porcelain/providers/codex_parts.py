"""The parts that Codex's messages, calls and results become."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from porcelain.providers.codex_items import Content, Item
from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import NONE, name, size, text_part
from porcelain.providers.records import Changes, Dropped, Part

_RAW_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_RAW_ITEMS = msgspec.json.Decoder(list[Raw])
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,")
#: How the shell's answer states the exit code, by version; it stands before the output.
_EXIT = re.compile(r"\A(?:Exit code: |(?:[^\n]*\n){0,3}?Process exited with code )(-?\d+)\n")


class ShellDetails(Struct):
    exit_code: int | None = None


class ShellOutput(Struct):
    """What a shell call returned before 0.5: JSON in a string."""

    output: str
    metadata: ShellDetails


class _Answer(Struct):
    """A structured tool output."""

    content: Any = None
    success: bool | None = None


class _File(Struct):
    """One file of a patch."""

    type: str | None = None
    content: str | None = None
    unified_diff: str | None = None


_SHELL = msgspec.json.Decoder(ShellOutput)
_ANSWER = msgspec.json.Decoder(_Answer)
_FILES = msgspec.json.Decoder(dict[str, _File])


def changes(stated: Raw) -> Changes | UnsetType:
    """Files touched, lines added and removed, of the files of a patch."""
    try:
        files = _FILES.decode(stated)
    except msgspec.DecodeError:
        return UNSET
    added = removed = 0
    for file in files.values():
        if file.unified_diff is not None:
            for line in file.unified_diff.split("\n"):
                added += line.startswith("+") and not line.startswith("+++ ")
                removed += line.startswith("-") and not line.startswith("--- ")
        elif file.content:
            lines = file.content.count("\n") + (not file.content.endswith("\n"))
            if file.type == "add":
                added += lines
            elif file.type == "delete":
                removed += lines
    return Changes(added=added, files=len(files), removed=removed)


class Parts:
    """Collects the parts of the item whose source is ``payload``, and what is ``dropped`` of it."""

    def __init__(self, payload: bytes, sink: ContentSink) -> None:
        self.parts: list[Part] = []
        self.dropped: list[Dropped] = []
        self._payload = payload
        self._sink = sink

    def message(self, content: list[Content | str] | str | None) -> None:
        if isinstance(content, str):
            self.parts.append(text_part(content, self._sink))
            return
        for index, one in enumerate(content or ()):
            if isinstance(one, str):
                self.parts.append(text_part(one, self._sink))
            elif one.text is not None:
                self.parts.append(text_part(one.text, self._sink))
            elif one.type == "input_image":
                self.parts.append(self._image(one.image_url))
            elif one.encrypted_content is not None:
                self.drop("encrypted content", one.encrypted_content)
            else:
                source = str(_RAW_ITEMS.decode(_RAW_FIELDS.decode(self._payload)["content"])[index], "utf-8")
                self.parts.append(Part(k="unknown", data=self._sink.text(source), bytes=size(source)))

    def reasoning(self, item: Item) -> None:
        """The reasoning itself where it is readable, else its summary, else that there was some."""
        blocks = item.content if isinstance(item.content, list) and item.content else item.summary
        for block in blocks or ():
            text = block if isinstance(block, str) else block.text
            if text is not None:
                self.parts.append(Part(k="reasoning", content=self._sink.text(text), bytes=size(text)))
        if not self.parts:
            self.parts.append(Part(k="reasoning", state="unavailable"))
        if item.encrypted_content:
            self.drop("encrypted reasoning", item.encrypted_content)

    def call(self, item: Item) -> None:
        """A tool call: JSON arguments as data, free text as content."""
        called = item.name or (item.function.name if item.function is not None else None)
        called = called or (item.type or "").removesuffix("_call")
        server: str | UnsetType = UNSET
        tool: str | UnsetType = UNSET
        spaces = (item.namespace or "").split("__")
        names = called.split("__")
        if names[0] == "mcp" and len(names) == 3 and all(names):
            server, tool = name(names[1]), name(names[2])
        elif spaces[0] == "mcp" and len(spaces) == 2 and spaces[1]:
            server, tool = name(spaces[1]), name(called)
        sent = item.arguments or item.input or item.action
        text = data = None
        if bytes(sent)[:1] == b'"':
            text = msgspec.json.decode(sent, type=str)
            if item.arguments:
                text, data = None, text
        elif sent:
            data = str(sent, "utf-8")
        self.parts.append(
            Part(
                k="call",
                id=name(item.call_id or item.id),
                name=name(called),
                server=server,
                server_tool=tool,
                content=self._sink.text(text) if text else UNSET,
                data=self._sink.text(data) if data else UNSET,
                bytes=size(text or data or ""),
            )
        )

    def server_result(self, item: Item) -> None:
        """The result of a call that the provider carried out itself, in the item of the call."""
        if item.status in ("in_progress", "failed") or not item.id:
            return
        text = msgspec.json.decode(item.result, type=str) if bytes(item.result)[:1] == b'"' else ""
        self.parts.append(Part(k="result", of=name(item.id), state="available" if text else "unavailable"))
        if text:
            self.parts.append(self._bytes(text, "image/png"))

    def result(self, item: Item) -> None:
        """A tool's result: one part, then the images in it."""
        source = item.output or item.result or item.tools
        shown: Any = msgspec.json.decode(source) if source else None
        failed: bool | None = None
        if isinstance(shown, dict) and "content" in shown:
            answer = _ANSWER.decode(source)
            failed = None if answer.success is None else not answer.success
            shown = answer.content
        elif isinstance(shown, dict) and isinstance(shown.get("text"), str):
            shown = shown["text"]
        texts: list[str] = []
        images: list[Part] = []
        data = ""
        if isinstance(shown, str):
            texts.append(shown)
        elif isinstance(shown, list) and item.tools == NONE:
            for one in shown:
                if isinstance(one, dict) and isinstance(one.get("text"), str):
                    texts.append(one["text"])
                elif isinstance(one, dict) and one.get("type") == "input_image":
                    url = one.get("image_url")
                    images.append(self._image(url if isinstance(url, str) else None))
                else:
                    data = str(source, "utf-8")
        elif source:
            data = str(source, "utf-8")
        text = "\n".join(texts)
        if failed is None:
            failed = _failed(text)
        self.parts.append(
            Part(
                k="result",
                of=name(item.call_id),
                failed=UNSET if failed is None else failed,
                content=self._sink.text(text) if text else UNSET,
                data=self._sink.text(data) if data else UNSET,
                bytes=size(text) + size(data),
            )
        )
        self.parts += images

    def drop(self, what: str, text: str) -> None:
        self.dropped.append(Dropped(what=what, bytes=size(text)))

    def _image(self, url: str | None) -> Part:
        if url is None:
            return Part(k="media", state="unavailable")
        named = _DATA_URL.match(url)
        if named is None:
            place = msgspec.json.encode(url).decode("utf-8")
            return Part(k="media", state="omitted", data=self._sink.text(place), why="kept elsewhere")
        return self._bytes(url[named.end() :], named.group(1))

    def _bytes(self, encoded: str, media: str) -> Part:
        try:
            image = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return Part(k="media", media=media, state="unavailable", bytes=size(encoded))
        return Part(k="media", media=media, content=self._sink.blob(image, media), bytes=len(image))


def _failed(text: str) -> bool | None:
    """Whether the shell's answer states a failure; None when it states no exit code."""
    if text.startswith('{"output"'):
        try:
            code = _SHELL.decode(text).metadata.exit_code
        except msgspec.DecodeError:
            return None
        return None if code is None else code != 0
    stated = _EXIT.match(text)
    return None if stated is None else int(stated.group(1)) != 0
