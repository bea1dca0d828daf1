"""Codex: ``event_msg`` lines and the tokens of model calls as records."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET, UnsetType

from porcelain.providers.codex_items import (
    EVENT,
    TOKEN_RECORD,
    Content,
    Event,
    Info,
    Shown,
    Tokens,
    usage,
)
from porcelain.providers.codex_parts import changes
from porcelain.providers.codex_turns import Turns, digest
from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import NAME_LENGTH, data_part, name, text_part
from porcelain.providers.records import Changes, Part, Record
from porcelain.providers.times import from_milliseconds, instant

_STARTED = ("task_started", "turn_started")
_ENDED = ("task_complete", "turn_complete")
_FLAGS = {
    "error": "error",
    "stream_error": "error",
    "thread_rolled_back": "notice",
    "turn_aborted": "notice",
    "warning": "notice",
}
#: Events that only show once more what a ``response_item`` holds.
_SHOWN = ("user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content")


def event_record(payload: bytes, turns: Turns, sink: ContentSink) -> Record:
    """The record of one ``event_msg``."""
    event = EVENT.decode(payload)
    kind = event.type or ""
    item = event.item if kind == "item_completed" else None
    if kind in _STARTED:
        turns.enter(event.turn_id)
    if kind == "token_count" and event.info is not None:
        counted = _counted(payload, event.info, turns, sink)
        if counted is not None:
            return counted
    flags = [_FLAGS[kind]] if kind in _FLAGS else []
    if kind in _ENDED and event.duration_ms is not None:
        flags.append("turn_duration")
    label, hidden = _label(event, turns, sink) if kind == "thread_name_updated" else (UNSET, UNSET)
    changed: Changes | UnsetType = UNSET
    tool: str | None = None
    child: str | None = None
    if kind == "patch_apply_end":
        tool = event.call_id
        changed = changes(event.changes) if event.success is not False else UNSET
    elif kind == "collab_agent_spawn_end":
        tool, child = event.call_id, event.new_thread_id
    elif item is not None and item.type == "FileChange":
        tool = item.id
        changed = changes(item.changes) if item.status == "completed" else UNSET
    elif item is not None and item.tool in ("spawn_agent", "spawnAgent"):
        tool, child = item.id, item.receivers[0] if item.receivers else None
    named = label is not UNSET or hidden is not UNSET
    return Record(
        changes=changed,
        child=name(child),
        entry=name(f"event_msg/{item.type}" if item is not None and item.type else f"event_msg/{kind}"),
        flags=flags or UNSET,
        # A name is a new statement each time it is made.
        id=UNSET if named else turns.aside(payload),
        label=label,
        label_content=hidden,
        parent=name(turns.roll_back(event.num_turns or 0)) if kind == "thread_rolled_back" else UNSET,
        parts=UNSET if named else _parts(payload, event, item, sink),
        run=name(event.turn_id or turns.run),
        time=_time(event),
        tool=name(tool),
        trigger="unknown" if kind in _STARTED and event.turn_id else UNSET,
    )


def usage_record(payload: bytes, turns: Turns) -> Record:
    """The record of one ``token_usage_record``: the tokens of one model call."""
    stated = TOKEN_RECORD.decode(payload)
    turns.count_by_response()
    turns.enter(stated.turn_id)
    return Record(
        call=turns.spend(payload),
        entry="token_usage_record",
        flags=["finished"],
        from_="agent",
        id=name(stated.response_id or turns.aside(payload)),
        model=name(turns.model),
        run=name(turns.run),
        usage=usage(stated.usage) if stated.usage is not None else UNSET,
    )


def _counted(payload: bytes, info: Info, turns: Turns, sink: ContentSink) -> Record | None:
    """The record of a ``token_count`` that tells of a new model call; None for one that repeats what is known.

    The program states the totals again when nothing was used, so that only totals that moved count; what was used is
    the last call's figures, or the difference where those are not stated. A thread that inherits its parent's history
    without the calls in it begins with the parent's totals: they are larger than its first call's, and no answer is
    before them.
    """
    if turns.counts_by_response:
        return None
    last = info.last
    if info.total is not None:
        before = turns.totals(_written(info.total))
        if before is None:
            return None
        if not before and last and not turns.is_answering and _written(last) != _written(info.total):
            return None
        if last is None or not (last.input_tokens or last.output_tokens):
            last = _difference(info.total, before)
    if last is None or not (last.input_tokens or last.output_tokens):
        return None
    return Record(
        call=turns.spend(payload),
        entry="event_msg/token_count",
        flags=["finished"],
        from_="agent",
        id=turns.aside(payload),
        model=name(turns.model),
        parts=[data_part(str(payload, "utf-8"), sink)],
        run=name(turns.run),
        usage=usage(last),
    )


_COUNTS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)


def _written(total: Tokens) -> str:
    return " ".join(str(getattr(total, key) or 0) for key in _COUNTS)


def _difference(total: Tokens, before: str) -> Tokens:
    """What was used between two totals; a total that fell began anew."""
    now = [getattr(total, key) or 0 for key in _COUNTS]
    then = [int(word) for word in before.split()] or [0] * len(now)
    if any(later < earlier for later, earlier in zip(now, then, strict=True)):
        then = [0] * len(now)
    return Tokens(**{key: later - earlier for key, later, earlier in zip(_COUNTS, now, then, strict=True)})


def _label(event: Event, turns: Turns, sink: ContentSink) -> tuple[str | UnsetType, str | UnsetType]:
    """The name of the thread, in clear unless the program made it of the first prompt."""
    title = event.thread_name
    if title is None:
        return UNSET, UNSET
    if len(title) <= NAME_LENGTH and digest(title) != turns.remembered:
        return title, UNSET
    return UNSET, sink.text(title)


def _parts(payload: bytes, event: Event, item: Shown | None, sink: ContentSink) -> list[Part]:
    texts: list[str] = []
    if event.type in _SHOWN:
        texts += [text for text in (event.message, event.text) if text is not None]
    elif item is not None and item.type in ("UserMessage", "AgentMessage", "Reasoning"):
        texts += list(_texts(item))
    if texts:
        return [text_part(text, sink) for text in texts]
    return [data_part(str(payload, "utf-8"), sink)]


def _texts(item: Shown) -> Iterable[str]:
    for one in item.content or ():
        text = one.text if isinstance(one, Content) else one
        if text is not None:
            yield text
    yield from item.summary_text or ()


def _time(event: Event) -> str | UnsetType:
    """The time that the event itself states."""
    if event.completed_at_ms:
        return from_milliseconds(event.completed_at_ms) or UNSET
    for stated in (event.completed_at, event.started_at):
        if isinstance(stated, int) and stated > 0:
            return from_milliseconds(stated * 1000) or UNSET
        if isinstance(stated, str) and instant(stated):
            return stated
    return UNSET
