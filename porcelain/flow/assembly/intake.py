"""New rows into a standing: records, streams, runs, talks and epochs; the stages of assembly, over what is new only.

Where a new row changes what an earlier one *was* (a parent lands after its children, a run turns out to be none of its
own), going on would have to change frames all over: ``Disrupted`` says so, and the session is assembled from its start.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from porcelain.flow.assembly.canonical import ASIDE
from porcelain.flow.assembly.entries import AUXILIARY, CONTEXT_RESET, REVISED, Entry
from porcelain.flow.assembly.ids import joined, place
from porcelain.flow.assembly.standing import (
    AUXILIARY_ONLY,
    AWAITED,
    MENTIONED,
    NAMED,
    UNNAMED,
    EpochKnown,
    Known,
    Mark,
    RunKnown,
    Standing,
    StreamKnown,
    TalkKnown,
    role,
    run_key,
)
from porcelain.flow.assembly.streams import MAIN
from porcelain.flow.assembly.talks import MAX_HOPS


class Disrupted(Exception):
    """What is new changes what was settled; the message says how."""


class Irregular(Disrupted):
    """The session has names whose ids clash: only assembly of the whole can tell which of them counts."""


class Fresh(Struct):
    """The new rows that make up the conversation, and whose entries they touch."""

    entries: list[Entry] = field(default_factory=list)
    by_id: dict[str, Entry] = field(default_factory=dict)
    #: Stream -> its new entries, and what the leaves of each go under.
    by_stream: dict[str, list[Entry]] = field(default_factory=dict)
    containers: dict[str, list[str]] = field(default_factory=dict)
    #: New talks in the order in which they began, and talks whose times changed.
    new_talks: list[str] = field(default_factory=list)
    moved_talks: dict[str, None] = field(default_factory=dict)
    #: Names whose frames may have changed; ``children`` are streams whose start must be looked at again.
    streams: set[str] = field(default_factory=set)
    children: set[str] = field(default_factory=set)
    tools: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)
    talks: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)


def take_records(standing: Standing, entries: Iterable[Entry], fresh: Fresh) -> None:
    """Stage 1 over new rows; also counts workspace changes, the session's times and its title."""
    core, records, changes = standing.core, standing.records, standing.changes
    by_id, kept = fresh.by_id, fresh.entries
    places: dict[str, int] = {}
    for entry in entries:
        core.rows += 1
        for change in entry.changed:
            if changes.get(change.key) is None:
                changes.put(change.key, Mark())
                core.changes += 1
                core.added += change.added
                core.removed += change.removed
        kind = entry.kind
        if entry.id and kind != "provider_body":
            known = records.old(entry.id)
            if known is not None and known.hops >= 0:
                if entry.flags & REVISED:
                    raise Disrupted("a record was revised")
                continue
            if known is not None:
                if known.hops == AWAITED:
                    raise Disrupted("a parent landed after its child")
                fresh.records.add(entry.id)
            first = by_id.setdefault(entry.id, entry)
            if first is not entry:
                if entry.flags & REVISED and entry.stream == first.stream and entry.id in places:
                    _check_names(entry)
                    by_id[entry.id] = kept[places[entry.id]] = entry
                    core.revised = True
                continue
        if kind not in ASIDE:
            _check_names(entry)
            if entry.id:
                places[entry.id] = len(kept)
            kept.append(entry)
    for entry in kept:
        time = entry.time
        if time:
            if time > core.last:
                core.last = time
            if time < core.first or not core.first:
                core.first = time
        if entry.label and not entry.id and entry.kind not in ("agent_meta", "workflow_manifest"):
            core.title = entry.label
    if core.revised and core.crossing_calls:
        raise Irregular("revised records and calls across streams")


def _check_names(entry: Entry) -> None:
    """Ids hold ``/`` between their parts and ``_`` for a ``/`` in one: only without it do they tell names apart."""
    names = (
        f"{entry.stream}{entry.child}{entry.batch}{entry.started_by}{entry.tool}{entry.call}{entry.run}"
        f"{entry.continues}"
    )
    if (
        "/" in names
        or entry.stream.startswith("main_")
        or any("/" in use.id for use in entry.uses)
        or any("/" in result.of for result in entry.results)
    ):
        raise Irregular("a name holds a /")


def find_runs(standing: Standing, fresh: Fresh) -> list[str]:
    """The run of each new entry: its own, or that of its nearest ancestor that has one, empty for none."""
    records, by_id = standing.records, fresh.by_id
    for name in by_id:
        if records.changed.get(name) is None or records.changed[name].hops < 0:
            _resolve(standing, name, by_id)
    found = []
    for entry in fresh.entries:
        if entry.run or not entry.parent:
            found.append(entry.run)
            continue
        parent = records.get(entry.parent)
        if parent is None or parent.hops < 0:
            _await(standing, entry.parent)
            found.append("")
        else:
            found.append(parent.run if parent.hops < MAX_HOPS else "")
    return found


def _resolve(standing: Standing, name: str, by_id: dict[str, Entry]) -> None:
    """Enter a new record and those of its new ancestors that are not entered yet."""
    records = standing.records
    walked: dict[str, None] = {}
    run, hops = "", 0
    while True:
        entry = by_id.get(name)
        if entry is None or name in walked:
            known = records.get(name) if name not in walked else None
            if known is not None and known.hops >= 0:
                run, hops = known.run, known.hops
            elif name not in walked:
                _await(standing, name)
            break
        entered = records.changed.get(name)
        if entered is not None and entered.hops >= 0:
            run, hops = entered.run, entered.hops
            break
        walked[name] = None
        if entry.run or not entry.parent:
            _enter(standing, name, entry.run, 0)
            del walked[name]
            run, hops = entry.run, 0
            break
        name = entry.parent
    for below in reversed(walked):
        hops += 1
        if not run or hops > MAX_HOPS:
            run, hops = "", 0
        _enter(standing, below, run, hops)


def _enter(standing: Standing, name: str, run: str, hops: int) -> None:
    before = standing.records.get(name)
    standing.records.put(name, Known(run, hops, before.resets if before is not None else 0))


def _await(standing: Standing, name: str) -> None:
    known = standing.records.get(name)
    if known is None:
        standing.records.put(name, Known("", AWAITED, 0))
    elif known.hops == MENTIONED:
        standing.records.put(name, Known("", AWAITED, known.resets))


def take_streams(standing: Standing, fresh: Fresh) -> None:
    """Stage 2 over new rows: streams, what they are to the session, their labels."""
    streams, core = standing.streams, standing.core
    for entry in fresh.entries:
        if entry.child:
            known = streams.edit(entry.child, StreamKnown)
            sort = AUXILIARY_ONLY if entry.flags & AUXILIARY else NAMED
            known.named = sort if known.named == UNNAMED else max(known.named, sort)
            fresh.children.add(entry.child)
        if entry.label and entry.kind == "agent_meta":
            for name in {entry.stream, entry.child} - {""}:
                known = streams.edit(name, StreamKnown)
                known.label = known.label or entry.label
                fresh.streams.add(name)
        if entry.stream:
            fresh.by_stream.setdefault(entry.stream, []).append(entry)
            if entry.stream == MAIN and entry.time > core.newest:
                core.newest = entry.time
    fresh.by_stream = {name: fresh.by_stream[name] for name in sorted(fresh.by_stream)}
    for name in fresh.children:
        before, now = streams.old(name), streams.get(name)
        if before is not None and before.count and now is not None and role(name, before) != role(name, now):
            raise Disrupted("a child turned out to be an auxiliary stream, or none")
    for name, entries in fresh.by_stream.items():
        known = streams.edit(name, StreamKnown)
        if not known.count:
            known.first = (entries[0].seq, entries[0].row)
            core.subagents += role(name, known) == "child"
            fresh.children.add(name)
            fresh.children.update(known.begot)
        fresh.streams.add(name)


def take_talks(standing: Standing, fresh: Fresh, runs: list[str]) -> None:
    """Stages 6 and 7 over new rows: epochs, talks and runs; fills ``fresh.containers``."""
    run_of = {id(entry): run for entry, run in zip(fresh.entries, runs, strict=True)}
    for name, entries in fresh.by_stream.items():
        _take_stream(standing, fresh, name, entries, [run_of[id(entry)] for entry in entries])


def _take_stream(standing: Standing, fresh: Fresh, name: str, entries: list[Entry], runs: list[str]) -> None:
    stream = standing.streams.edit(name, StreamKnown)
    external: set[str] = set()
    stated: set[str] = set()
    for entry, run in zip(entries, runs, strict=True):
        if entry.trigger and run:
            stated.add(run)
            if entry.trigger == "external":
                external.add(run)
    for run in stated:
        _state_triggers(standing, name, run, run in external)
    epochs = list(stream.epochs)
    if not stream.count:
        epochs.append(EpochKnown(joined("epoch", name, "0"), stream.first, None, "", 0))
        if name != MAIN:
            stream.talk = joined("talk", name)
            _new_talk(standing, fresh, stream.talk, TalkKnown(name, epochs[0].id, stream.first))
    containers = fresh.containers[name] = []
    epoch, size = epochs[-1], epochs[-1].size
    for entry, run in zip(entries, runs, strict=True):
        at = (entry.seq, entry.row)
        if entry.flags & CONTEXT_RESET:
            stream.boundary = at
            if stream.count:
                if (name != MAIN and "_" in name) or entry.id == "0" or entry.id.startswith("at_"):
                    raise Irregular("a reset whose id may clash")
                epochs[-1] = EpochKnown(epoch.id, epoch.first, epoch.boundary, epoch.continues, size)
                epoch = EpochKnown(
                    joined("epoch", name, entry.id or place(entry)), at, at, entry.continues, 0
                )
                size = 0
                epochs.append(epoch)
        stream.count += 1
        size += 1
        if not run:
            containers.append(stream.talk or epoch.id)
            continue
        key = run_key(name, run)
        known = standing.runs.get(key)
        if known is None:
            starts = run in external or run not in stated
            if not stream.talk or (name == MAIN and starts):
                stream.talk = joined("talk", name, run)
                _new_talk(standing, fresh, stream.talk, TalkKnown(name, epoch.id, at))
            talk = standing.talks.edit(stream.talk, _no_talk)
            known = RunKnown(stream.talk, at, not talk.runs, run in stated, run in external)
            standing.runs.put(key, known)
            talk.runs += 1
            fresh.runs.add(key)
            fresh.talks.add(stream.talk)
        containers.append(joined("run", known.talk, run))
        if entry.time:
            _time_talk(standing, fresh, known.talk, entry.time)
    epochs[-1] = EpochKnown(epoch.id, epoch.first, epoch.boundary, epoch.continues, size)
    stream.epochs = tuple(epochs)


def _state_triggers(standing: Standing, stream: str, run: str, external: bool) -> None:
    """A run that was there states a trigger (again). Whether it starts a talk may not change any more."""
    key = run_key(stream, run)
    before = standing.runs.old(key)
    if before is None or (before.stated and (before.external or not external)):
        return
    if stream == MAIN and (before.external or not before.stated) != (before.external or external):
        raise Disrupted("a run turned out to start a talk, or not to")
    now = standing.runs.edit(key, _no_run)
    now.stated, now.external = True, now.external or external


def _new_talk(standing: Standing, fresh: Fresh, name: str, talk: TalkKnown) -> None:
    standing.talks.put(name, talk)
    fresh.new_talks.append(name)
    fresh.talks.add(name)


def _time_talk(standing: Standing, fresh: Fresh, name: str, time: int) -> None:
    talk = standing.talks.get(name)
    assert talk is not None
    if talk.start and talk.start <= time <= talk.end:
        return
    talk = standing.talks.edit(name, _no_talk)
    talk.end = max(talk.end, time)
    talk.start = min(talk.start or time, time)
    fresh.moved_talks[name] = None


def _no_talk() -> TalkKnown:
    raise AssertionError("a talk that is not there")


def _no_run() -> RunKnown:
    raise AssertionError("a run that is not there")
