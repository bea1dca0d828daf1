"""Pi: its lines as landed records (dialect ``pi/1``).

The first line is the header, every other one an entry. Since version 2 entries have an ``id`` and a ``parentId`` and
form a tree inside the file; version 1 is linear, has neither, and its records have none either: their order in the page
is all there is. What the header says (session, folder, version, the file it was forked from) is surroundings. A run is
what follows one prompt, and is named after it.

What becomes what:

==================================  =========================================================================
entry                               record
==================================  =========================================================================
``message`` user                    external, trigger external, flag ``external_input``
``message`` assistant               agent; call = response id, else entry id, else time; usage; flag ``finished`` or
                                    ``error``
``message`` toolResult              external; one ``result`` part; changed lines counted from ``details.diff``
``message`` bashExecution           external, flag ``command`` (a person ran it); the message is data
``message`` of any other role       runtime, flag ``injected``
``compaction``                      runtime, flags ``context_reset reset_summary``; continues its parent
``branch_summary``                  runtime, flag ``notice``
``custom_message``                  runtime, flag ``injected``
``session_info``                    runtime; the name, which a person gave, is the label
``label``                           runtime; the label, given by a person, and a data part ``of`` its target
anything else                       runtime; one data part
==================================  =========================================================================
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import (
    NONE,
    PATH_LENGTH,
    Shape,
    count,
    data_part,
    line_part,
    name,
    size,
    text_part,
)
from porcelain.providers.jsonlines import read_entries
from porcelain.providers.pi_discover import PARSER, discover, recognise
from porcelain.providers.reader import Entry, ReaderState, Source
from porcelain.providers.records import Changes, Dropped, Part, Record, Usage
from porcelain.providers.times import from_milliseconds, instant

__all__ = ["DIALECT", "NAME", "PARSER", "TITLE_ENTRY", "discover", "read_line", "recognise"]

NAME = "pi"
DIALECT = "pi/1"
TITLE_ENTRY = "session_info"


class Block(Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = field(default=None, name="thinkingSignature")
    id: str | None = None
    name: str | None = None
    arguments: Raw = NONE
    data: str | None = None
    media: str | None = field(default=None, name="mimeType")


class TokenCounts(Struct, gc=False):
    input: int | None = None
    output: int | None = None
    cache_read: int | None = field(default=None, name="cacheRead")
    cache_write: int | None = field(default=None, name="cacheWrite")
    reasoning: int | None = None
    #: What oh-my-pi calls it.
    reasoning_tokens: int | None = field(default=None, name="reasoningTokens")


class Message(Struct):
    role: str | None = None
    content: list[Block | str] | str | None = None
    model: str | None = None
    usage: TokenCounts | None = None
    stop_reason: str | None = field(default=None, name="stopReason")
    response: str | None = field(default=None, name="responseId")
    call: str | None = field(default=None, name="toolCallId")
    tool: str | None = field(default=None, name="toolName")
    failed: bool | None = field(default=None, name="isError")
    details: Raw = NONE
    milliseconds: int | None = field(default=None, name="timestamp")


class Details(Struct, gc=False):
    diff: str | None = None


class Line(Struct):
    type: str | None = None
    id: str | None = None
    parent: str | None = field(default=None, name="parentId")
    timestamp: str | None = None
    message: Message | None = None
    version: int | None = None
    cwd: str | None = None
    parent_session: str | None = field(default=None, name="parentSession")
    branched_from: str | None = field(default=None, name="branchedFrom")
    model: str | None = None
    model_id: str | None = field(default=None, name="modelId")
    usage: TokenCounts | None = None
    summary: str | None = None
    first_kept: str | None = field(default=None, name="firstKeptEntryId")
    from_id: str | None = field(default=None, name="fromId")
    target: str | None = field(default=None, name="targetId")
    label: str | None = None
    name: str | None = None
    content: list[Block | str] | str | None = None


_LINE = Shape(
    Line,
    nested={"message": Message, "usage": TokenCounts},
    items={"content": Block},
)
_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_ITEMS = msgspec.json.Decoder(list[Raw])
_DETAILS = msgspec.json.Decoder(Details)
_HEADER_ONLY = ("id", "cwd", "parentSession", "branchedFrom", "version")
_STOPPED = frozenset({"stop", "toolUse", "length"})
_FAILED = frozenset({"error", "aborted"})
_FLAGS: dict[str, list[str]] = {
    "compaction": ["context_reset", "reset_summary"],
    "branch_summary": ["notice"],
    "custom_message": ["injected"],
}


def read_line(
    line: bytes, source: Source, state: ReaderState, sink: ContentSink, *, fit: bool = False
) -> Iterable[Entry]:
    """The entries of one line."""

    def read(data: bytes) -> tuple[Record, Mapping[str, str]]:
        return read_object(data, state, sink), surroundings(state)

    return read_entries(line, read, _is_entry, fit=fit)


def read_object(data: bytes, state: ReaderState, sink: ContentSink) -> Record:
    """The record of one whole object, fit for any JSON parser. Raises ``msgspec.DecodeError`` for what is none."""
    stated = _LINE.decode(data)
    if stated.type == "session":
        return _header(data, stated, state, sink)
    if stated.message is not None and stated.type == "message":
        return _message(data, stated, stated.message, run_of(stated, state), sink)
    return _other(data, stated, run_of(stated, state), sink)


def run_of(line: Line, state: ReaderState) -> str | UnsetType:
    """The run that an entry belongs to: what follows one prompt, under the prompt's id or, without one, its number."""
    if line.type == "message" and line.message is not None and line.message.role == "user":
        number = str(int(state.values.get("_prompts", "0")) + 1)
        state.values = {**state.values, "_prompts": number, "_run": line.id or f"prompt-{number}"}
    return name(state.values.get("_run"))


def surroundings(state: ReaderState) -> dict[str, str]:
    """What the header said, without what the reader keeps for itself; the very dict of the line before when nothing
    changed."""
    if state.shown is None or state.shown[0] is not state.values:
        found = {key: value for key, value in state.values.items() if key[0] != "_"}
        if state.shown is not None and state.shown[1] == found:
            found = state.shown[1]
        state.shown = state.values, found
    return state.shown[1]


def _is_entry(fields: Mapping[str, Raw]) -> bool:
    return "type" in fields and "timestamp" in fields


def _header(data: bytes, line: Line, state: ReaderState, sink: ContentSink) -> Record:
    stated = {
        "session": line.id,
        "cwd": line.cwd,
        "version": str(line.version or 1),
        "forked_from": line.parent_session or line.branched_from,
    }
    state.values = {key: value for key, value in stated.items() if value and len(value) <= PATH_LENGTH}
    return Record(
        entry="session",
        model=name(line.model_id or line.model),
        parts=[line_part(data, _HEADER_ONLY, sink)],
        time=_time(line),
    )


def _moment(line: Line, message: Message) -> str | UnsetType:
    """A call of version 1, which has no name of its own, by its time: copies of the entry share it."""
    moment = message.milliseconds if message.milliseconds is not None else line.timestamp
    return UNSET if moment is None else name(f"at-{moment}")


def _message(data: bytes, line: Line, message: Message, run: str | UnsetType, sink: ContentSink) -> Record:
    role = message.role or ""
    flags: list[str] = []
    from_, trigger = "runtime", None
    call: str | UnsetType = UNSET
    changes: Changes | UnsetType = UNSET
    blocks = _Blocks(data, ("message", "content"), sink)
    if role == "toolResult":
        from_ = "external"
        changes = _changes(message)
        parts = blocks.result(message)
    elif role in ("user", "assistant"):
        parts = blocks.parts(message.content)
        if role == "user":
            from_, trigger = "external", "external"
            flags.append("external_input")
        else:
            from_ = "agent"
            call = name(message.response) or name(line.id) or _moment(line, message)
            if message.stop_reason in _STOPPED:
                flags.append("finished")
            elif message.stop_reason in _FAILED:
                flags.append("error")
    elif role == "bashExecution":
        from_ = "external"
        flags.append("command")
        parts = [data_part(str(_FIELDS.decode(data)["message"], "utf-8"), sink)]
    else:
        flags.append("injected")
        parts = [data_part(str(_FIELDS.decode(data)["message"], "utf-8"), sink)]
    return Record(
        call=call,
        changes=changes,
        dropped=blocks.dropped or UNSET,
        entry=name(f"message/{role}" if role else "message"),
        flags=flags or UNSET,
        from_=from_,
        id=name(line.id),
        model=name(message.model) if role == "assistant" else UNSET,
        parent=name(line.parent),
        parts=parts or UNSET,
        role=name(role),
        run=run,
        time=_time(line),
        trigger=trigger or UNSET,
        usage=_usage(message.usage) if message.usage is not None else UNSET,
    )


def _other(data: bytes, line: Line, run: str | UnsetType, sink: ContentSink) -> Record:
    kind = line.type or ""
    label = line.name if kind == "session_info" else line.label if kind == "label" else None
    blocks = _Blocks(data, ("content",), sink)
    if kind == "custom_message":
        parts = blocks.parts(line.content)
    elif kind in ("compaction", "branch_summary"):
        parts = [text_part(line.summary, sink)] if line.summary else []
        parts.append(line_part(data, ("summary",), sink, of=line.first_kept or line.from_id))
    elif kind == "session_info":
        parts = []
    else:
        parts = [line_part(data, (), sink, of=line.target)]
    return Record(
        continues=name(line.parent) if kind == "compaction" else UNSET,
        dropped=blocks.dropped or UNSET,
        entry=name(kind),
        flags=_FLAGS.get(kind) or UNSET,
        id=name(line.id),
        # An empty name takes the name away.
        label="" if label == "" else name(label),
        model=name(line.model_id or line.model),
        parent=name(line.parent),
        parts=parts or UNSET,
        run=run,
        time=_time(line),
        usage=_usage(line.usage) if line.usage is not None else UNSET,
    )


def is_time(text: str | None) -> bool:
    """Whether an entry states a time that can be understood."""
    return text is not None and instant(text) is not None


def _time(line: Line) -> str | UnsetType:
    if line.timestamp and is_time(line.timestamp):
        return line.timestamp
    counted = line.message.milliseconds if line.message is not None else None
    return (from_milliseconds(counted) if counted is not None else None) or UNSET


def _usage(stated: TokenCounts) -> Usage:
    return Usage(
        in_=count(stated.input),
        out=count(stated.output),
        cache_read=count(stated.cache_read),
        cache_write=count(stated.cache_write),
        reasoning=count(stated.reasoning or stated.reasoning_tokens),
    )


def _changes(message: Message) -> Changes | UnsetType:
    """Lines added and removed, from the diff that an edit's result carries (each line begins with ``+``, ``-`` or a
    space and the line number)."""
    if not message.details or message.failed:
        return UNSET
    try:
        diff = _DETAILS.decode(message.details).diff
    except msgspec.ValidationError:
        return UNSET
    if diff is None:
        return UNSET
    lines = diff.split("\n")
    return Changes(
        added=sum(line.startswith("+") for line in lines),
        files=1,
        removed=sum(line.startswith("-") for line in lines),
    )


class _Blocks:
    """Parts of the blocks that stand at ``path`` of the line ``data``; ``dropped`` is what is left out of them."""

    def __init__(self, data: bytes, path: tuple[str, ...], sink: ContentSink) -> None:
        self.dropped: list[Dropped] = []
        self._data = data
        self._path = path
        self._sink = sink

    def parts(self, content: list[Block | str] | str | None) -> list[Part]:
        if isinstance(content, str):
            return [text_part(content, self._sink)]
        return [self._part(block, index) for index, block in enumerate(content or ())]

    def result(self, message: Message) -> list[Part]:
        """One result part, then its images."""
        shown = message.content
        blocks: list[Any] = [shown] if isinstance(shown, str) else list(shown or ())
        texts: list[str] = []
        rest: list[Part] = []
        for index, block in enumerate(blocks):
            if isinstance(block, str):
                texts.append(block)
            elif block.type == "text" and block.text is not None:
                texts.append(block.text)
            else:
                rest.append(self._part(block, index))
        text = "\n".join(texts)
        data = str(message.details, "utf-8")
        if data in ("{}", "null"):
            data = ""
        result = Part(
            k="result",
            of=name(message.call),
            name=name(message.tool),
            failed=UNSET if message.failed is None else message.failed,
            content=self._sink.text(text) if text else UNSET,
            data=self._sink.text(data) if data else UNSET,
            bytes=size(text) + size(data),
        )
        return [result, *rest]

    def _part(self, block: Block | str, index: int) -> Part:
        if isinstance(block, str):
            return text_part(block, self._sink)
        match block.type:
            case "text" if block.text is not None:
                return text_part(block.text, self._sink)
            case "thinking":
                return self._thinking(block)
            case "toolCall":
                sent = str(block.arguments, "utf-8")
                return Part(
                    k="call",
                    id=name(block.id),
                    name=name(block.name),
                    data=self._sink.text(sent) if sent else UNSET,
                    bytes=size(sent),
                )
            case "image" if block.data:
                return self._image(block, index)
            case _:
                return self._unknown(index)

    def _thinking(self, block: Block) -> Part:
        if block.signature:
            self.dropped.append(Dropped(what="reasoning signature", bytes=size(block.signature)))
        if not block.thinking:
            return Part(k="reasoning", state="unavailable")
        return Part(k="reasoning", content=self._sink.text(block.thinking), bytes=size(block.thinking))

    def _image(self, block: Block, index: int) -> Part:
        if block.data and block.data.startswith("blob:"):
            # oh-my-pi keeps large images apart, under their SHA-256.
            return Part(k="media", id=name(block.data), media=name(block.media), state="omitted")
        try:
            image = base64.b64decode(block.data or "", validate=True)
        except (binascii.Error, ValueError):
            return self._unknown(index)
        kind = name(block.media)
        media = kind if isinstance(kind, str) else "application/octet-stream"
        return Part(k="media", media=media, content=self._sink.blob(image, media), bytes=len(image))

    def _unknown(self, index: int) -> Part:
        value = Raw(self._data)
        for key in self._path:
            value = _FIELDS.decode(value)[key]
        source = str(_ITEMS.decode(value)[index], "utf-8")
        return Part(k="unknown", data=self._sink.text(source), bytes=size(source))
