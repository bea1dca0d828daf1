"""Factory Droid: its lines as landed records (dialect ``factory/1``).

The first line is the header (``session_start``, without a time), every other one a record. Messages have an ``id`` and
a ``parentId``; a fork copies them with their ids and says in its header whose they are. What the header says (session,
folder, version, origin) is surroundings. Tokens stand in the settings beside a transcript, as totals of the session.

What becomes what:

==================================  =========================================================================
entry                               record
==================================  =========================================================================
``message`` user, typed             external, trigger external, flag ``external_input``; opens a run
``message`` user, hidden or of the  external, flag ``injected``
program's own making
``message`` user, tool results      external; one ``result`` part each; changed lines from ``linesAdded``
``message`` assistant               agent; call = id of the response, else of the message
``compaction_state``                runtime, flags ``context_reset reset_summary``
``agent_turn_outcome``              runtime, flag ``notice``; of the run that it closes
``session_end``                     runtime, flag ``notice``
anything else                       runtime; one data part
settings                            runtime; the session's usage; what started a child
==================================  =========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import UNSET, Raw, Struct, UnsetType, field

from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import (
    NONE,
    PATH_LENGTH,
    Shape,
    count,
    line_part,
    name,
    text_part,
)
from porcelain.providers.factory_blocks import Block, Blocks, Image, text_of
from porcelain.providers.factory_discover import PARSER, Tag, caller, discover, recognise
from porcelain.providers.jsonlines import read_entries
from porcelain.providers.reader import Entry, ReaderState, Source
from porcelain.providers.records import Part, Record, Usage
from porcelain.providers.times import from_milliseconds, instant

__all__ = [
    "DIALECT",
    "NAME",
    "PARSER",
    "TITLE_ENTRY",
    "discover",
    "read_line",
    "recognise",
]

NAME = "factory"
DIALECT = "factory/1"
TITLE_ENTRY = "session_start"


class Message(Struct):
    role: str | None = None
    content: list[Block | str] | str | None = None
    visibility: str | None = None
    model: str | None = field(default=None, name="modelId")
    response: str | None = field(default=None, name="openaiMessageId")


class TokenCounts(Struct, gc=False):
    input: int | None = field(default=None, name="inputTokens")
    output: int | None = field(default=None, name="outputTokens")
    cache_write: int | None = field(default=None, name="cacheCreationTokens")
    cache_read: int | None = field(default=None, name="cacheReadTokens")
    reasoning: int | None = field(default=None, name="thinkingTokens")


class Line(Struct):
    type: str | None = None
    id: str | None = None
    parent: str | None = field(default=None, name="parentId")
    timestamp: str | int | None = None
    message: Message | None = None
    visibility: str | None = None
    role: str | None = None
    text: str | None = None
    session: str | None = field(default=None, name="session_id")
    title: str | None = None
    session_title: str | None = field(default=None, name="sessionTitle")
    title_given: bool | None = field(default=None, name="isSessionTitleManuallySet")
    version: str | int | None = None
    cwd: str | None = None
    forked_from: Raw = field(default=NONE, name="parent")
    forked_at: str | None = field(default=None, name="forkedAtMessageId")
    turn: str | None = field(default=None, name="turnId")
    summary_text: str | None = field(default=None, name="summaryText")
    summary: Raw = NONE
    model: str | None = None
    usage: TokenCounts | None = field(default=None, name="tokenUsage")
    tags: list[Tag] | None = None


_LINE = Shape(
    Line,
    nested={"message": Message, "usage": TokenCounts, "source": Image},
    items={"content": Block, "tags": Tag},
)
_HEADER_ONLY = (
    "id",
    "cwd",
    "version",
    "parent",
    "forkedAtMessageId",
    "hostId",
    "owner",
    "title",
    "sessionTitle",
    "isSessionTitleManuallySet",
)
#: What the program itself puts before a prompt, or in the place of one.
_REMINDERS = re.compile(r"(?:\s*<system-(reminder|notification)>.*?</system-\1>)*\s*", re.DOTALL)
_HIDDEN = "llm_only"
_FLAGS: dict[str, list[str]] = {
    "compaction_state": ["context_reset", "reset_summary"],
    "agent_turn_outcome": ["notice"],
    "session_end": ["notice"],
}


def read_line(
    line: bytes, source: Source, state: ReaderState, sink: ContentSink, *, fit: bool = False
) -> Iterable[Entry]:
    """The entries of one line of a transcript, or of the whole settings of a session."""

    def read(data: bytes) -> tuple[Record, Mapping[str, str]]:
        stated = _LINE.decode(data)
        if source.kind != "transcript":
            return _settings(data, stated, source, sink), state.values
        if stated.type == "session_start":
            return _header(data, stated, state, sink), state.values
        if stated.type == "message":
            if stated.session and "session" not in state.values:
                state.values = {"session": stated.session}
            return _message(data, stated, source, sink), state.values
        return _other(data, stated, sink), state.values

    return read_entries(line, read, _is_entry, fit=fit)


def _is_entry(fields: Mapping[str, Raw]) -> bool:
    return "type" in fields and bool(fields.keys() & {"id", "timestamp", "turnId", "todos", "session_id"})


def _header(data: bytes, line: Line, state: ReaderState, sink: ContentSink) -> Record:
    origin = text_of(line.forked_from)
    stated = {
        "session": line.id,
        "cwd": line.cwd,
        "version": str(line.version) if line.version is not None else None,
        "forked_from": origin,
        "forked_at": line.forked_at,
    }
    state.values = {key: value for key, value in stated.items() if value and len(value) <= PATH_LENGTH}
    title = line.session_title or line.title
    given = bool(title) and line.title_given is True
    # A title that no person gave is the first prompt, or a model's.
    return Record(
        entry="session_start",
        label=name(title) if given else UNSET,
        label_content=sink.text(title) if title and not given else UNSET,
        parts=[line_part(data, _HEADER_ONLY, sink)],
    )


def _message(data: bytes, line: Line, source: Source, sink: ContentSink) -> Record:
    message = line.message or Message(role=line.role, content=line.text)
    role = message.role or ""
    blocks = Blocks(data, sink)
    parts = blocks.parts(message.content)
    flags: list[str] = []
    trigger = run = None
    from_ = "agent" if role == "assistant" else "external"
    if role == "user" and not any(part.k == "result" for part in parts):
        hidden = _HIDDEN in (message.visibility, line.visibility)
        if hidden or not _is_typed(message.content):
            flags.append("injected")
        elif source.stream == "main":
            trigger, run = "external", line.id
            flags.append("external_input")
        else:
            # A child's prompt comes from the agent that started it.
            run = line.id
    return Record(
        call=(name(message.response) or name(line.id)) if role == "assistant" else UNSET,
        changes=blocks.changes,
        dropped=blocks.dropped or UNSET,
        entry=name(f"message/{role}" if role else "message"),
        flags=flags or UNSET,
        from_=from_,
        id=name(line.id),
        model=name(message.model) if role == "assistant" else UNSET,
        parent=name(line.parent),
        parts=parts or UNSET,
        role=name(role),
        run=name(run),
        time=_time(line),
        trigger=trigger or UNSET,
    )


def _is_typed(content: list[Block | str] | str | None) -> bool:
    """Whether something is left of a user's message without what the program put into it."""
    blocks = [content] if isinstance(content, str) else content or ()
    for block in blocks:
        text = block if isinstance(block, str) else block.text
        if text is None or _REMINDERS.sub("", text, count=1):
            return True
    return False


def _other(data: bytes, line: Line, sink: ContentSink) -> Record:
    kind = line.type or ""
    parts: list[Part] = []
    if kind == "compaction_state":
        summary = line.summary_text or text_of(line.summary)
        if summary:
            parts.append(text_part(summary, sink))
        parts.append(line_part(data, ("summaryText", "summary") if summary else (), sink))
    else:
        parts.append(line_part(data, (), sink))
    return Record(
        entry=name(kind),
        flags=_FLAGS.get(kind) or UNSET,
        id=name(line.id),
        parent=name(line.parent),
        parts=parts,
        run=name(line.turn),
        time=_time(line),
    )


def _settings(data: bytes, line: Line, source: Source, sink: ContentSink) -> Record:
    """The settings of a session: a new version of them is a new record with the same id."""
    started = caller(line.tags)
    is_child = source.stream is not None
    owner = source.src.rpartition("/")[2].removesuffix(".settings.json")
    return Record(
        child=name(source.stream) if is_child else UNSET,
        entry="settings",
        id=name(f"{owner}/settings"),
        model=name(line.model),
        parts=[line_part(data, (), sink)],
        started_by=name(started.session) if started is not None and is_child else UNSET,
        tool=name(started.tool) if started is not None and is_child else UNSET,
        usage=_usage(line.usage) if line.usage is not None else UNSET,
    )


def _usage(stated: TokenCounts) -> Usage:
    return Usage(
        in_=count(stated.input),
        out=count(stated.output),
        cache_read=count(stated.cache_read),
        cache_write=count(stated.cache_write),
        reasoning=count(stated.reasoning),
    )


def _time(line: Line) -> str | UnsetType:
    stated = line.timestamp
    if isinstance(stated, int):
        return from_milliseconds(stated) or UNSET
    return stated if stated and instant(stated) else UNSET
