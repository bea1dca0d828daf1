"""oh-my-pi: its lines as landed records (dialect ``oh-my-pi/1``).

The format is Pi's third version with more in it, and is read by Pi's reader; this module adds what is different. The
title may stand in a slot of its own on the first line, which the agent rewrites in place; the header is then the second
line. Sub-agents write files of their own into a folder named after the session's file.

What becomes what, beside Pi's table:

==================================  =========================================================================
entry                               record
==================================  =========================================================================
``title`` (slot), ``title_change``  runtime; the title, in clear only if a person gave it
``session``                         as in Pi; the title likewise; files that it was moved from to the surroundings
``message`` user of an agent        runtime, flag ``injected``: another agent or the program wrote it
``message`` toolResult of a task    as in Pi; child = the sub-agent that it started, one more record for each further
``message`` pythonExecution         external, flag ``command``; the message is data
``compaction``                      as in Pi
``reset_boundary``                  runtime, flag ``context_reset``; continues its parent
``session_init``, ``ttsr_...``      runtime, flag ``injected``; one data part
``credential_pin``                  runtime; the hash of the account is dropped
==================================  =========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from porcelain.providers import pi
from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import NAME_LENGTH, NONE, PATH_LENGTH, Shape, line_part, name
from porcelain.providers.jsonlines import parse, read_entries
from porcelain.providers.omp_discover import PARSER, discover, recognise
from porcelain.providers.reader import Entry, ReaderState, Source
from porcelain.providers.records import Dropped, Part, Record

__all__ = ["DIALECT", "NAME", "PARSER", "TITLE_ENTRY", "discover", "read_line", "recognise"]

NAME = "oh-my-pi"
DIALECT = "oh-my-pi/1"
TITLE_ENTRY = "session title title_change"

_HEADER_ONLY = (
    "id",
    "cwd",
    "parentSession",
    "previousSessionFiles",
    "version",
    "title",
    "titleSource",
    "timestamp",
)
_FLAGS: dict[str, list[str]] = {
    "reset_boundary": ["context_reset"],
    "session_init": ["injected"],
    "ttsr_injection": ["injected"],
}


class _Message(Struct):
    role: str | None = None
    attribution: str | None = None
    tool: str | None = field(default=None, name="toolName")
    call: str | None = field(default=None, name="toolCallId")
    details: Raw = NONE


class _Line(Struct):
    type: str | None = None
    id: str | None = None
    parent: str | None = field(default=None, name="parentId")
    timestamp: str | None = None
    updated: str | None = field(default=None, name="updatedAt")
    version: int | None = None
    cwd: str | None = None
    parent_session: str | None = field(default=None, name="parentSession")
    previous: list[str] | None = field(default=None, name="previousSessionFiles")
    title: str | None = None
    title_source: str | None = field(default=None, name="titleSource")
    source: str | None = None
    message: _Message | None = None


class _Result(Struct):
    id: str | None = None


class _Details(Struct):
    results: list[_Result] = field(default_factory=list)


_LINE = Shape(_Line, nested={"message": _Message})
_DETAILS = msgspec.json.Decoder(_Details)


def read_line(
    line: bytes, source: Source, state: ReaderState, sink: ContentSink, *, fit: bool = False
) -> Iterable[Entry]:
    """The entries of one line."""
    further: list[Entry] = []

    def read(data: bytes) -> tuple[Record, Mapping[str, str]]:
        stated = _LINE.decode(data)
        kind = stated.type or ""
        if kind == "session":
            record = _header(data, stated, state, sink)
        elif kind in ("title", "title_change"):
            record = _title(stated, sink)
        elif kind == "credential_pin":
            record = _entry(stated, state, dropped=[Dropped(what="account hash", bytes=len(data))])
        elif kind in _FLAGS:
            record = _entry(stated, state, parts=[line_part(data, (), sink)])
        else:
            before = state.values.get("_run")
            record = pi.read_object(data, state, sink)
            if before and _is_delegated(stated.message):
                state.values = {**state.values, "_run": before}
            if stated.message is not None and kind == "message":
                record, children = _message(record, stated, stated.message, before, source)
                further.extend(Entry(child, 0, len(line), pi.surroundings(state)) for child in children)
        return record, pi.surroundings(state)

    found = read_entries(line, read, _is_entry, fit=fit)
    return [*found, *further] if len(found) == 1 else found


def _is_entry(fields: Mapping[str, Raw]) -> bool:
    return "type" in fields and ("timestamp" in fields or "updatedAt" in fields)


def _header(data: bytes, line: _Line, state: ReaderState, sink: ContentSink) -> Record:
    stated = {
        "session": line.id,
        "cwd": line.cwd,
        "version": str(line.version or 1),
        "forked_from": line.parent_session,
        "moved_from": "\n".join(line.previous or ()),
    }
    state.values = {key: value for key, value in stated.items() if value and len(value) <= PATH_LENGTH}
    label, hidden = _label(line.title, line.title_source, sink)
    return Record(
        entry="session",
        label=label,
        label_content=hidden,
        parts=[line_part(data, _HEADER_ONLY, sink)],
        time=name(line.timestamp) if pi.is_time(line.timestamp) else UNSET,
    )


def _title(line: _Line, sink: ContentSink) -> Record:
    label, hidden = _label(line.title, line.source or line.title_source, sink)
    time = line.timestamp or line.updated
    return Record(
        entry=name(line.type),
        id=name(line.id),
        label=label,
        label_content=hidden,
        parent=name(line.parent),
        time=name(time) if pi.is_time(time) else UNSET,
    )


def _label(
    title: str | None, source: str | None, sink: ContentSink
) -> tuple[str | UnsetType, str | UnsetType]:
    if not title:
        return UNSET, UNSET
    if source == "user" and len(title) <= NAME_LENGTH:
        return title, UNSET
    return UNSET, sink.text(title)


def _entry(
    line: _Line,
    state: ReaderState,
    *,
    parts: list[Part] | UnsetType = UNSET,
    dropped: list[Dropped] | UnsetType = UNSET,
) -> Record:
    kind = line.type or ""
    return Record(
        continues=name(line.parent) if kind == "reset_boundary" else UNSET,
        dropped=dropped,
        entry=name(kind),
        flags=_FLAGS.get(kind, UNSET),
        id=name(line.id),
        parent=name(line.parent),
        parts=parts,
        run=name(state.values.get("_run")),
        time=name(line.timestamp) if pi.is_time(line.timestamp) else UNSET,
    )


def _message(
    record: Record, line: _Line, message: _Message, before: str | None, source: Source
) -> tuple[Record, list[Record]]:
    """What Pi's record of a message becomes, and the records that name further sub-agents. ``before`` is the run that
    the message found."""
    if _is_delegated(message):
        change = {"flags": ["injected"], "from_": "runtime", "trigger": UNSET, "run": before or record.run}
        return msgspec.structs.replace(record, **change), []
    if message.role == "pythonExecution":
        return msgspec.structs.replace(record, flags=["command"], from_="external"), []
    if message.role != "toolResult":
        return record, []
    children = _children(message, source)
    if not children:
        return record, []
    further = [
        Record(
            child=child,
            entry=record.entry,
            parent=name(line.id),
            run=record.run,
            time=record.time,
            tool=name(message.call),
        )
        for child in children[1:]
    ]
    return msgspec.structs.replace(record, child=children[0]), further


def _is_delegated(message: _Message | None) -> bool:
    """Whether another agent or the program wrote what stands in a user message."""
    return message is not None and message.role == "user" and message.attribution not in (None, "user")


def _children(message: _Message, source: Source) -> list[str]:
    """The streams of the sub-agents that a tool's result names."""
    if not message.details:
        return []
    try:
        results = parse(_DETAILS, bytes(message.details)).results
    except msgspec.DecodeError:
        return []
    above = "" if source.stream in (None, "main") else f"{source.stream}/"
    return [f"{above}{one.id}" for one in results if one.id and len(above) + len(one.id) <= NAME_LENGTH]
