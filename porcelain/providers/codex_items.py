"""The shape of Codex's lines: what of them is decoded."""

from __future__ import annotations

from msgspec import Raw, Struct, field

from porcelain.providers.decoding import NONE, Shape, count
from porcelain.providers.records import Usage


class Line(Struct):
    """The envelope, and the fields by which a line without one is known."""

    timestamp: str | None = None
    created_at: str | None = None
    ordinal: int | None = None
    type: str | None = None
    payload: Raw = NONE
    id: str | None = None
    role: str | None = None
    record_type: str | None = None
    instructions: Raw = NONE


class Content(Struct):
    type: str | None = None
    text: str | None = None
    image_url: str | None = None
    encrypted_content: str | None = None


class Passed(Struct):
    """What a message keeps from the program that made it: its turn, its time, and what each content item is."""

    turn_id: str | None = None
    create_time: float | None = None
    kinds: list[str] | None = field(default=None, name="content_item_kinds")


class Function(Struct):
    name: str | None = None


class Item(Struct):
    """A ``response_item``."""

    type: str | None = None
    id: str | None = None
    role: str | None = None
    content: list[Content | str] | str | None = None
    message: str | None = None
    summary: list[Content | str] | None = None
    encrypted_content: str | None = None
    name: str | None = None
    namespace: str | None = None
    function: Function | None = None
    arguments: Raw = NONE
    input: Raw = NONE
    action: Raw = NONE
    call_id: str | None = None
    output: Raw = NONE
    result: Raw = NONE
    tools: Raw = NONE
    status: str | None = None
    passed: Passed | None = field(default=None, name="internal_chat_message_metadata_passthrough")


class Tokens(Struct, gc=False):
    """Counts as Codex states them: cached ones are part of ``input_tokens``, reasoning is part of ``output_tokens``."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_output_tokens: int | None = None
    total_tokens: int | None = None


class Info(Struct):
    total: Tokens | None = field(default=None, name="total_token_usage")
    last: Tokens | None = field(default=None, name="last_token_usage")


class Shown(Struct):
    """The item of ``item_completed``: what the user saw."""

    type: str | None = None
    id: str | None = None
    text: str | None = None
    content: list[Content | str] | None = None
    summary_text: list[str] | None = None
    tool: str | None = None
    receivers: list[str] | None = field(default=None, name="receiver_thread_ids")
    changes: Raw = NONE
    status: str | None = None


class Event(Struct):
    """An ``event_msg``."""

    type: str | None = None
    turn_id: str | None = None
    message: str | None = None
    text: str | None = None
    started_at: int | str | None = None
    completed_at: int | str | None = None
    completed_at_ms: int | None = None
    duration_ms: int | None = None
    info: Info | None = None
    usage: Tokens | None = None
    item: Shown | None = None
    call_id: str | None = None
    new_thread_id: str | None = None
    changes: Raw = NONE
    success: bool | None = None
    thread_name: str | None = None
    num_turns: int | None = None


class TokenRecord(Struct):
    turn_id: str | None = None
    response_id: str | None = None
    usage: Tokens | None = None


class TurnContext(Struct):
    turn_id: str | None = None
    cwd: str | None = None
    model: str | None = None


class Compacted(Struct):
    message: str | None = None
    replacement_history: Raw = NONE


class Git(Struct):
    commit_hash: str | None = None
    branch: str | None = None
    repository_url: str | None = None


class HistoryBase(Struct):
    thread_id: str | None = None
    end_ordinal_exclusive: int | None = None
    end_byte_offset: int | None = None


class Instructions(Struct):
    text: str | None = None


class Meta(Struct):
    """A ``session_meta``, or the first line of a file from before there were envelopes."""

    id: str | None = None
    session_id: str | None = None
    forked_from_id: str | None = None
    forked_from_ordinal: int | None = field(default=None, name="forked_from_ordinal_exclusive")
    history_base: HistoryBase | None = None
    parent_thread_id: str | None = None
    first_own: int | None = field(default=None, name="subagent_history_start_ordinal")
    timestamp: str | None = None
    cwd: str | None = None
    originator: str | None = None
    cli_version: str | None = None
    source: Raw = NONE
    thread_source: str | None = None
    history_mode: str | None = None
    base_instructions: Instructions | None = None
    instructions: str | None = None
    git: Git | None = None


class ThreadSpawn(Struct):
    parent_thread_id: str | None = None


class SubAgent(Struct):
    thread_spawn: ThreadSpawn | None = None


class SourceOf(Struct):
    subagent: Raw = NONE


_NESTED: dict[str, type[Struct]] = {
    "passed": Passed,
    "function": Function,
    "info": Info,
    "total": Tokens,
    "last": Tokens,
    "usage": Tokens,
    "item": Shown,
    "git": Git,
    "history_base": HistoryBase,
    "base_instructions": Instructions,
    "thread_spawn": ThreadSpawn,
}
_ITEMS: dict[str, type[Struct]] = {"content": Content, "summary": Content}
LINE = Shape(Line)
ITEM = Shape(Item, nested=_NESTED, items=_ITEMS)
EVENT = Shape(Event, nested=_NESTED, items=_ITEMS)
TOKEN_RECORD = Shape(TokenRecord, nested=_NESTED)
TURN_CONTEXT = Shape(TurnContext)
COMPACTED = Shape(Compacted)
META = Shape(Meta, nested=_NESTED)
_SOURCE = Shape(SourceOf)
_SUBAGENT = Shape(SubAgent, nested=_NESTED)


def usage(stated: Tokens) -> Usage:
    """Counts as stated; total = ``in`` + ``out``."""
    return Usage(
        in_=count(stated.input_tokens),
        out=count(stated.output_tokens),
        cache_read=count(stated.cached_input_tokens),
        cache_write=count(stated.cache_write_input_tokens),
        reasoning=count(stated.reasoning_output_tokens),
    )


def subagent_parent(meta: Meta) -> tuple[bool, str | None]:
    """Whether the thread is a sub-agent's, and the thread that started it where that is stated."""
    parent = meta.parent_thread_id
    if bytes(meta.source)[:1] == b"{":
        inner = _SOURCE.decode(meta.source).subagent
        if inner:
            if parent is None and bytes(inner)[:1] == b"{":
                spawn = _SUBAGENT.decode(inner).thread_spawn
                parent = spawn.parent_thread_id if spawn is not None else None
            return True, parent
    return parent is not None or meta.thread_source == "subagent", parent
