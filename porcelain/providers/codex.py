"""Codex: the lines of its rollouts as landed records (dialect ``codex/1``).

A conversation is the rollout of one thread and, as child streams, those of the sub-agents it started. Four generations
of the file are read: one JSON document (the first, TypeScript program), bare lines, lines in an envelope, and these
with ordinals. What the program states twice lands twice and counts once: ``response_item`` is the message, call or
result; ``event_msg`` shows it once more and lands as a runtime record with no mark on it.

What a copy of a line would state differently (a fork repeats its parent's lines with new envelope times and ordinals)
is in no record: the time of the envelope goes to ``Entry.values`` unless the line itself states one, session, folder,
version, branch and origin with it.

What becomes what:

======================================  =====================================================================
line                                    record
======================================  =====================================================================
``session_meta``                        runtime; instructions as text; the first one is the thread's own
user message that a person wrote        external, trigger external, flag ``external_input``
user message of the program             runtime, flag ``injected`` (or trigger notification, flag ``command``)
developer or system message             runtime, flag ``injected``
assistant message, reasoning, call      agent; call = turn and number of the model call in it
output of a call                        external; one ``result`` part; child = the agent that a spawn returned
``compacted``                           runtime, flags ``context_reset reset_summary``; continues the last record
``token_usage_record``                  agent; the call's usage, flag ``finished``
``event_msg/token_count``               the same where calls have no record of their own and the totals moved
``event_msg/thread_rolled_back``        runtime, flag ``notice``; parent = the record that it goes back to
``event_msg/task_complete``             runtime, flag ``turn_duration`` where it states one
``event_msg/thread_name_updated``       runtime; the label, unless it is the first prompt
line of ``session_index.jsonl``         runtime; the label, unless it is the thread's first
anything else                           runtime; text or one data part
======================================  =====================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from porcelain.providers.codex_discover import PARSER, discover, discover_known, recognise
from porcelain.providers.codex_events import event_record, usage_record
from porcelain.providers.codex_items import COMPACTED, ITEM, LINE, TURN_CONTEXT, Item, Line
from porcelain.providers.codex_names import INDEX, name_record, open_part
from porcelain.providers.codex_parts import Parts
from porcelain.providers.codex_session import session_record
from porcelain.providers.codex_turns import Turns, digest
from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import data_part, line_part, name, size, text_part
from porcelain.providers.jsonlines import parse, read_entries
from porcelain.providers.reader import Entry, ReaderState, Source
from porcelain.providers.records import ROW_TIME, Dropped, Part, Record
from porcelain.providers.times import from_milliseconds, instant

__all__ = [
    "DIALECT",
    "NAME",
    "PARSER",
    "TITLE_ENTRY",
    "discover",
    "discover_known",
    "open_part",
    "read_line",
    "recognise",
]

NAME = "codex"
DIALECT = "codex/1"
TITLE_ENTRY = "event_msg/thread_name_updated session_index"

#: What the program itself puts into user messages, where a message does not say so itself.
_NOT_TYPED = re.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|permissions instructions|skills?[_>\s]"
    r"|turn_aborted|subagent_notification|collaboration_mode|model_switch|personality|apps_instructions|plugins?_))"
)
_SHELL_COMMAND = re.compile(r"\s*<user_shell_command>")
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NOTIFIED = re.compile(rf'\s*<subagent_notification>.{{0,64}}?"agent_(?:path|id)":\s*"({_UUID})"', re.DOTALL)
_SPAWNED = re.compile(rf'\{{"agent_id":\s*"({_UUID})"')
#: Longest time that is taken from an envelope.
_TIME_LENGTH = 40
_OUTPUTS = ("_output", "_result")
_SERVER_CALLS = ("web_search_call", "image_generation_call")


class _Document(Struct):
    """A rollout of the first program."""

    session: Raw
    items: list[Raw]


_DOCUMENT = msgspec.json.Decoder(_Document)


def read_line(
    line: bytes, source: Source, state: ReaderState, sink: ContentSink, *, fit: bool = False
) -> Iterable[Entry]:
    """The entries of one line, or of one whole document."""

    def read(data: bytes) -> tuple[Record, Mapping[str, str]]:
        if source.src == INDEX:
            return name_record(data, state, sink), {}
        return _read_object(data, state, sink)

    if source.shape == "document":
        try:
            document = parse(_DOCUMENT, line)
        except msgspec.DecodeError:
            return read_entries(line, read, _is_entry)
        return _read_document(line, document, state, sink)
    return read_entries(line, read, _is_entry, fit=fit)


def _is_entry(fields: Mapping[str, Raw]) -> bool:
    return ("payload" in fields and "type" in fields) or bool(
        fields.keys() & {"record_type", "role", "thread_name"}
    )


def _read_document(line: bytes, document: _Document, state: ReaderState, sink: ContentSink) -> list[Entry]:
    found: list[Entry] = []
    start = 0
    for value in (document.session, *document.items):
        data = bytes(value)
        start = max(line.find(data, start), start)
        record, values = _read_object(data, state, sink)
        found.append(Entry(record, start, len(data), values))
        start += len(data)
    return found


def _read_object(data: bytes, state: ReaderState, sink: ContentSink) -> tuple[Record, Mapping[str, str]]:
    line = LINE.decode(data)
    turns = Turns(state)
    turns.reach(line.ordinal)
    payload, kind = bytes(line.payload), line.type or ""
    more: dict[str, str] = {}
    if payload[:1] == b"{":
        match kind:
            case "response_item":
                record = _item_record(payload, line, turns, sink, "response_item/")
            case "event_msg":
                record = event_record(payload, turns, sink)
            case "session_meta":
                record, more = session_record(payload, line, turns, sink)
            case "turn_context":
                record = _context_record(payload, turns, sink)
            case "token_usage_record":
                record = usage_record(payload, turns)
            case "compacted":
                record = _compacted_record(payload, turns, sink)
            case _:
                record = _other_record(payload, kind, turns, sink)
    elif kind or line.role:
        record = _item_record(data, line, turns, sink, "")
    elif line.record_type:
        record = Record(entry=name(line.record_type))
    elif line.id and line.timestamp:
        record, more = session_record(data, line, turns, sink)
    else:
        record = _other_record(data, "unknown", turns, sink)
    values = turns.surroundings
    values.update(more)
    if record.time is UNSET and line.timestamp and line.timestamp[:4].isdigit():
        values[ROW_TIME] = line.timestamp[:_TIME_LENGTH]
    return record, values


# -- turns -----------------------------------------------------------------------------------------------------------


def _context_record(payload: bytes, turns: Turns, sink: ContentSink) -> Record:
    context = TURN_CONTEXT.decode(payload)
    turns.enter(context.turn_id, context.model)
    if not turns.is_repeated:
        turns.move(context.cwd)
    return Record(
        entry="turn_context",
        id=turns.aside(payload),
        model=name(context.model),
        parts=[line_part(payload, ("cwd", "workspace_roots"), sink)],
        run=name(turns.run),
        # A turn that no prompt began goes on with what was asked before.
        trigger="unknown" if context.turn_id else UNSET,
    )


def _compacted_record(payload: bytes, turns: Turns, sink: ContentSink) -> Record:
    compacted = COMPACTED.decode(payload)
    turns.input()
    repeated = bytes(compacted.replacement_history)
    record_id, before = turns.name(None, (compacted.message or "").encode("utf-8") or repeated)
    parts = [text_part(compacted.message, sink)] if compacted.message else []
    parts.append(line_part(payload, ("message", "replacement_history"), sink))
    return Record(
        continues=name(before),
        dropped=[Dropped(what="replacement history", bytes=len(repeated), why="repeats messages")]
        if repeated
        else UNSET,
        entry="compacted",
        flags=["context_reset", "reset_summary"],
        id=record_id,
        parent=name(before),
        parts=parts,
        run=name(turns.run),
    )


def _other_record(payload: bytes, kind: str, turns: Turns, sink: ContentSink) -> Record:
    return Record(
        entry=name(kind),
        id=turns.aside(payload),
        parts=[data_part(str(payload, "utf-8"), sink)],
        run=name(turns.run),
    )


# -- messages, calls and results -------------------------------------------------------------------------------------


def _item_record(payload: bytes, line: Line, turns: Turns, sink: ContentSink, envelope: str) -> Record:
    item = ITEM.decode(payload)
    passed = item.passed
    turns.enter(passed.turn_id if passed is not None else None)
    kind = item.type or "message"
    parts = Parts(payload, sink)
    flags: list[str] = []
    from_ = "runtime"
    call: str | UnsetType = UNSET
    child: str | None = None
    trigger: str | UnsetType = UNSET
    if kind == "reasoning":
        parts.reasoning(item)
        from_, call = "agent", turns.answer()
    elif kind.endswith("_call"):
        parts.call(item)
        if kind in _SERVER_CALLS:
            parts.server_result(item)
        from_, call = "agent", turns.answer()
    elif kind.endswith(_OUTPUTS) and item.call_id:
        parts.result(item)
        child = _spawned(item)
        from_ = "external"
        turns.input()
    elif kind == "message" and item.role is not None:
        parts.message(item.message if item.content is None else item.content)
        if item.role == "assistant":
            from_, call = "agent", turns.answer()
        else:
            turns.input()
    elif kind == "agent_message":
        parts.message(item.content)
        flags.append("injected")
        turns.input()
    else:
        return _aside(payload, item, envelope + kind, turns, sink)
    record_id, before = turns.name(item.id, payload)
    if kind == "message" and item.role != "assistant":
        said = _first_text(item)
        match _author(item, said, turns.is_delegated):
            case "person":
                from_, trigger = "external", "external"
                flags.append("external_input")
                turns.prompt(record_id, before)
                turns.remember(digest(said))
            case "agent":
                turns.prompt(record_id, before)
            case "command":
                from_ = "external"
                flags.append("command")
            case "notification":
                trigger = "notification"
                named = _NOTIFIED.match(said)
                child = named.group(1) if named else None
            case _:
                flags.append("injected")
    return Record(
        call=call,
        child=name(child),
        dropped=parts.dropped or UNSET,
        entry=name(envelope + kind),
        flags=flags or UNSET,
        from_=from_,
        id=name(record_id),
        parent=name(before),
        parts=parts.parts or UNSET,
        role=name(item.role),
        run=name(turns.run),
        time=_item_time(item, line),
        trigger=trigger,
    )


def _aside(payload: bytes, item: Item, entry: str, turns: Turns, sink: ContentSink) -> Record:
    """An item that is neither message, call nor result."""
    dropped: list[Dropped] | UnsetType = UNSET
    part: Part
    if item.encrypted_content:
        dropped = [Dropped(what="encrypted content", bytes=size(item.encrypted_content))]
        part = line_part(payload, ("encrypted_content",), sink)
    else:
        part = data_part(str(payload, "utf-8"), sink)
    return Record(
        dropped=dropped, entry=name(entry), id=turns.aside(payload), parts=[part], run=name(turns.run)
    )


def _author(item: Item, said: str, delegated: bool) -> str:
    """Who wrote a message that is not the model's: person, agent, command (a person's), notification or program."""
    if item.role != "user":
        return "program"
    kinds = item.passed.kinds if item.passed is not None else None
    if said.startswith("<subagent_notification>"):
        return "notification"
    if _SHELL_COMMAND.match(said):
        return "command"
    stated = [kind for kind in kinds or () if kind != "unknown"]
    typed = any(kind.startswith("user") for kind in stated) if stated else not _NOT_TYPED.match(said)
    return ("agent" if delegated else "person") if typed else "program"


def _first_text(item: Item) -> str:
    content = item.message if item.content is None else item.content
    if isinstance(content, str):
        return content
    for one in content or ():
        text = one if isinstance(one, str) else one.text
        if text is not None:
            return text
    return ""


def _spawned(item: Item) -> str | None:
    """The thread that a call started, as its output names it."""
    if bytes(item.output)[:1] != b'"':
        return None
    named = _SPAWNED.match(msgspec.json.decode(item.output, type=str)[:256])
    return named.group(1) if named else None


def _item_time(item: Item, line: Line) -> str | UnsetType:
    created = item.passed.create_time if item.passed is not None else None
    if created is not None and 0 < created < 1e11:
        return from_milliseconds(round(created * 1000)) or UNSET
    return line.created_at if line.created_at and instant(line.created_at) else UNSET
