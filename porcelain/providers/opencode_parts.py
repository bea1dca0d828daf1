"""Parts of OpenCode's messages as parts of records, and the results of its tools as records of their own."""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import NONE, Shape, count, line_part, name, size
from porcelain.providers.opencode_tree import Times
from porcelain.providers.records import Changes, Dropped, Part, Record
from porcelain.providers.times import from_milliseconds

#: What a part of any kind states and what its record states already, or copies state differently.
_PART_ONLY = ("id", "sessionID", "messageID", "type")
#: What of a tool's state stands in a record by itself.
_STATE_ONLY = ("input", "output", "error", "status", "time", "attachments")
_WAITING = frozenset({"pending", "running"})
_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.DOTALL)
_FIELDS = msgspec.json.Decoder(dict[str, Raw])


class Cache(Struct, gc=False):
    read: int | None = None
    write: int | None = None


class TokenCounts(Struct, gc=False):
    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache: Cache | None = None


class Message(Struct):
    role: str | None = None
    parent: str | None = field(default=None, name="parentID")
    model: str | None = field(default=None, name="modelID")
    time: Times | None = None
    tokens: TokenCounts | None = None
    finish: str | None = None
    error: dict[str, Raw] | None = None
    summary: Raw = NONE


class ToolTimes(Struct):
    start: int | None = None
    end: int | None = None


class Attachment(Struct):
    mime: str | None = None
    url: str | None = None


class State(Struct):
    status: str | None = None
    input: Raw = NONE
    output: str | None = None
    error: str | None = None
    metadata: Raw = NONE
    time: ToolTimes | None = None
    attachments: list[Attachment] | None = None


class SourcePart(Struct):
    """One part as OpenCode writes it."""

    type: str | None = None
    text: str | None = None
    synthetic: bool | None = None
    metadata: Raw = NONE
    call: str | None = field(default=None, name="callID")
    tool: str | None = None
    state: State | None = None
    mime: str | None = None
    url: str | None = None


class FileDiff(Struct, gc=False):
    additions: int | None = None
    deletions: int | None = None


class Edit(Struct):
    diff: FileDiff | None = field(default=None, name="filediff")


class Metadata(Struct):
    child: str | None = field(default=None, name="sessionId")
    caller: str | None = field(default=None, name="parentSessionId")
    diff: FileDiff | None = field(default=None, name="filediff")
    files: list[FileDiff] | None = None
    results: list[Edit] | None = None
    exists: bool | None = None


class Written(Struct):
    content: str | None = None


MESSAGE = Shape(Message, nested={"time": Times, "tokens": TokenCounts, "cache": Cache})
PART = Shape(SourcePart, nested={"state": State, "time": ToolTimes}, items={"attachments": Attachment})
_METADATA = Shape(Metadata, nested={"diff": FileDiff}, items={"files": FileDiff, "results": Edit})
_WRITTEN = Shape(Written)


class Parts:
    """The parts of one message of ``session``, added in order of their ids. ``parts`` belong to the message's record,
    ``results`` are records of tools that came to an end, each with the id of its part; ``dropped`` is what is left
    out."""

    def __init__(self, message: str, session: str | None, sink: ContentSink) -> None:
        self.parts: list[Part] = []
        self.results: list[tuple[str, Record]] = []
        self.dropped: list[Dropped] = []
        self._message = message
        self._session = session
        self._sink = sink

    def add(self, part_id: str, data: bytes, part: SourcePart) -> None:
        """Add the part that the JSON text ``data`` states."""
        sink = self._sink
        match part.type:
            case "text" if part.text is not None:
                self.parts.append(
                    Part(
                        k="text",
                        content=sink.text(part.text),
                        bytes=size(part.text),
                        why="synthetic" if part.synthetic else UNSET,
                    )
                )
            case "reasoning":
                if part.metadata:
                    self.dropped.append(Dropped(what="reasoning metadata", bytes=len(part.metadata)))
                if part.text:
                    self.parts.append(
                        Part(k="reasoning", content=sink.text(part.text), bytes=size(part.text))
                    )
                else:
                    self.parts.append(Part(k="reasoning", state="unavailable"))
            case "tool":
                self._tool(part_id, data, part)
            case "file" if (media := self._media(part.mime, part.url)) is not None:
                self.parts.append(media)
            case _:
                named = line_part(data, _PART_ONLY, sink)
                self.parts.append(msgspec.structs.replace(named, name=name(part.type)))

    def _tool(self, part_id: str, data: bytes, part: SourcePart) -> None:
        state = part.state or State()
        sent = str(state.input, "utf-8")
        self.parts.append(
            Part(
                k="call",
                id=name(part.call),
                name=name(part.tool),
                data=self._sink.text(sent) if sent else UNSET,
                bytes=size(sent),
            )
        )
        if not state.status or state.status in _WAITING:
            return
        failed = state.status == "error"
        text = (state.error if failed else state.output) or ""
        rest = _FIELDS.decode(_FIELDS.decode(data)["state"])
        for key in _STATE_ONLY:
            rest.pop(key, None)
        more = msgspec.json.encode(rest).decode() if rest else ""
        result = Part(
            k="result",
            of=name(part.call),
            name=name(part.tool),
            failed=failed,
            content=self._sink.text(text) if text else UNSET,
            data=self._sink.text(more) if more else UNSET,
            bytes=size(text) + size(more),
        )
        parts = [result]
        for one in state.attachments or ():
            media = self._media(one.mime, one.url)
            parts.append(media if media is not None else Part(k="media", state="unavailable"))
        metadata = _METADATA.decode(state.metadata) if bytes(state.metadata)[:1] == b"{" else Metadata()
        # In a fork the copied task still names the session that started the child.
        is_copy = metadata.caller is not None and metadata.caller != self._session
        child = UNSET if is_copy else name(metadata.child)
        ended = state.time.end if state.time is not None else None
        record = Record(
            changes=UNSET if failed else _changes(state, metadata),
            child=child,
            entry="part/tool",
            flags=["child_result"] if child and not failed else UNSET,
            from_="external",
            id=name(part_id),
            parent=name(self._message),
            parts=parts,
            time=(from_milliseconds(ended) if ended else None) or UNSET,
            tool=name(part.call) if child else UNSET,
        )
        self.results.append((part_id, record))

    def _media(self, mime: str | None, url: str | None) -> Part | None:
        """The bytes that a ``data:`` address holds; None for any other address."""
        head = _DATA_URL.match(url) if url else None
        if head is None or url is None:
            return None
        body = url[head.end() :]
        try:
            is_base64 = ";base64" in head.group(2)
            data = base64.b64decode(body, validate=True) if is_base64 else unquote_to_bytes(body)
        except (binascii.Error, ValueError):
            return None
        kind = name(mime) or name(head.group(1))
        media = kind if isinstance(kind, str) else "application/octet-stream"
        return Part(k="media", media=media, content=self._sink.blob(data, media), bytes=len(data))


def _changes(state: State, metadata: Metadata) -> Changes | UnsetType:
    """Lines added and removed, as the tool's result counts them; a new file counts its lines as added."""
    diffs = [metadata.diff] if metadata.diff is not None else []
    diffs += [edit.diff for edit in metadata.results or () if edit.diff is not None]
    diffs += metadata.files or []
    if diffs:
        return Changes(
            added=sum(count(diff.additions) for diff in diffs),
            files=len(diffs),
            removed=sum(count(diff.deletions) for diff in diffs),
        )
    if metadata.exists is not False or bytes(state.input)[:1] != b"{":
        return UNSET
    written = _WRITTEN.decode(state.input).content
    if written is None:
        return UNSET
    return Changes(added=written.count("\n") + (not written.endswith("\n") and bool(written)), files=1)
