"""Assembly that goes on from a standing: new rows in, the frames that they change out.

Only the entries that new rows touch are looked at; for each of them the frames before are compared with those after.
The result is what comparing two assemblies of the whole would give, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import chain

from msgspec import UNSET
from msgspec.structs import replace

from porcelain.flow.assembly.build import CONTAINERS, Totals
from porcelain.flow.assembly.calls import is_response
from porcelain.flow.assembly.entries import CONTEXT_RESET, RESET_SUMMARY, Entry, Landed
from porcelain.flow.assembly.ids import at, call_id
from porcelain.flow.assembly.intake import (
    Fresh,
    Irregular,
    find_runs,
    take_records,
    take_streams,
    take_talks,
)
from porcelain.flow.assembly.joining import take_calls, take_spawns, take_tools
from porcelain.flow.assembly.leaves import Frames, part_nodes, ref, relate, step_node
from porcelain.flow.assembly.rendering import (
    Frame,
    call_frames,
    gates,
    lacking,
    record_frames,
    run_frames,
    segment_frame,
    session_frames,
    starts_of,
    stream_frames,
    talk_frames,
    tool_frames,
)
from porcelain.flow.assembly.sides import View, after, before
from porcelain.flow.assembly.spawns import EXACT
from porcelain.flow.assembly.standing import Core, Owners, Standing
from porcelain.flow.assembly.windows import take_windows
from porcelain.flow.formats.sf import SfNode, SfRelation, SfUnresolved

_MISSING_CHILDREN = ("child_stream", "notified_child")


class Going:
    """One step: the frames that changed, as they are gathered."""

    def __init__(self, standing: Standing, revision: int) -> None:
        self.standing = standing
        self.revision = revision
        self.nodes: list[SfNode] = []
        self.relations: list[SfRelation] = []
        self.unresolved: list[SfUnresolved] = []
        self.kinds: Counter[str] = Counter()
        self._seen: set[str] = set()

    def compare(self, old: Iterable[Frame], new: Iterable[Frame]) -> None:
        """Add what leads from the ``old`` frames of a name to the ``new`` ones."""
        gone = {frame.id: frame for frame in old}
        for frame in new:
            known = gone.pop(frame.id, None)
            if known != frame:
                self.add(frame, known)
        for frame in gone.values():
            self.remove(frame)

    def add(self, frame: Frame, known: Frame | None = None) -> None:
        """Add a frame that is new, or says something else than ``known``."""
        if type(frame) is SfNode:
            self.kinds[frame.kind] += 1
            if known is not None:
                assert isinstance(known, SfNode)
                self.kinds[known.kind] -= 1
            self.nodes.append(frame)
        elif type(frame) is SfRelation:
            self.relations.append(frame)
        elif type(frame) is SfUnresolved:
            self.unresolved.append(frame)
            if known is None:
                self._count_missing(frame, 1)

    def remove(self, frame: Frame) -> None:
        """A frame is no longer there."""
        if type(frame) is SfNode:
            self.kinds[frame.kind] -= 1
            self.nodes.append(SfNode(frame.id, self.revision, True))
        elif type(frame) is SfRelation:
            self.relations.append(SfRelation(frame.id, self.revision, True))
        elif type(frame) is SfUnresolved:
            self._count_missing(frame, -1)
            self.unresolved.append(replace(frame, state="resolved"))

    def _count_missing(self, frame: SfUnresolved, by: int) -> None:
        core = self.standing.core
        core.unresolved += by
        if frame.kind in _MISSING_CHILDREN:
            core.children_missing += by


def go_on(
    standing: Standing, files: Sequence[Landed], *, conversation: str, session: str, revision: int
) -> Going:
    """Take the rows of ``files`` into ``standing``, and say what changes. To keep it, ``commit`` the standing; else
    ``rollback``. Raises ``Disrupted`` where assembly must begin anew (the standing is then to be rolled back)."""
    core = standing.core = copy(standing.old_core)
    core.unsettled, core.outside = dict(core.unsettled), dict(core.outside)
    core.through_seq = files[-1].seq
    fresh = Fresh()
    take_records(standing, chain.from_iterable(file.entries for file in files), fresh)
    runs = find_runs(standing, fresh)
    take_streams(standing, fresh)
    take_talks(standing, fresh, runs)
    take_calls(standing, fresh)
    take_tools(standing, fresh)
    take_spawns(standing, fresh)
    take_windows(standing, fresh)

    going = Going(standing, revision)
    old, new = before(standing), after(standing)
    for name, entries in fresh.by_stream.items():
        _leaves(going, standing, name, entries, fresh.containers[name])
    for name in fresh.streams | fresh.children:
        going.compare(
            stream_frames(old, name, session, revision), stream_frames(new, name, session, revision)
        )
    for name in fresh.tools:
        going.compare(tool_frames(old, name, revision), tool_frames(new, name, revision))
    for name in fresh.calls:
        going.compare(call_frames(old, name, revision), call_frames(new, name, revision))
    for name in fresh.runs:
        going.compare(run_frames(old, name, revision), run_frames(new, name, revision))
    for name in fresh.talks:
        going.compare(talk_frames(old, name, revision), talk_frames(new, name, revision))
    for name in fresh.records:
        going.compare(record_frames(old, name, revision), record_frames(new, name, revision))
    _lacking(going, standing, old, new, fresh.children)
    going.compare(
        session_frames(old.core, conversation, session, revision),
        session_frames(core, conversation, session, revision),
    )
    _segments(going, old.core, core, session)
    _count(core, going.kinds)
    return going


def totals(core: Core) -> Totals:
    """What a header counts."""
    return Totals(
        talks=core.talks,
        steps=core.nodes - core.containers,
        streams=core.streams,
        segments=len(core.windows),
        changes=core.changes,
        lines_added=core.added,
        lines_removed=core.removed,
        llm_calls=core.calls,
        subagents=core.subagents,
        bash_runs=core.bash_runs,
    )


def _count(core: Core, kinds: Counter[str]) -> None:
    core.nodes += sum(kinds.values())
    core.containers += sum(kinds[kind] for kind in CONTAINERS)
    core.talks += kinds["talk"]
    core.streams += kinds["stream"]
    core.calls += kinds["llm.call"]


def _leaves(
    going: Going, standing: Standing, stream: str, entries: list[Entry], containers: list[str]
) -> None:
    """The frames that new records stand for by themselves. What they say of calls and tool uses comes with those."""
    frames = Frames(going.revision, [], [])
    for entry, container in zip(entries, containers, strict=True):
        if entry.call and is_response(entry):
            part_nodes(entry, call_id(entry.call), stream, frames)
        if (entry.flags or entry.trigger) and not entry.flags & (CONTEXT_RESET | RESET_SUMMARY):
            step_node(entry, container, stream, frames)
    resets = [entry for entry in entries if entry.flags & (CONTEXT_RESET | RESET_SUMMARY)]
    if resets:
        _resets(standing, stream, resets, frames)
    for node in frames.nodes:
        going.add(node)
    for relation in frames.relations:
        going.add(relation)


def _resets(standing: Standing, stream: str, resets: list[Entry], frames: Frames) -> None:
    """Boundaries and summaries, straight under their epoch."""
    known, was = standing.streams.get(stream), standing.streams.old(stream)
    assert known is not None
    opened = {epoch.first: epoch for epoch in known.epochs}
    epoch, boundary = known.epochs[0], None
    if was is not None and was.count:
        epoch, boundary = was.epochs[-1], was.boundary
    for entry in resets:
        place = (entry.seq, entry.row)
        if entry.flags & CONTEXT_RESET:
            epoch, boundary = opened.get(place, epoch), place
            prefix, kind = "boundary", "epoch.boundary"
        else:
            prefix, kind = "summary", "epoch.summary"
        node = at(prefix, entry)
        frames.nodes.append(SfNode(node, frames.revision, UNSET, kind, epoch.id, stream, ref(entry)))
        if boundary is not None and boundary != place:
            relate(
                frames,
                "summarizes",
                node,
                f"boundary/{boundary[0]}/{boundary[1]}",
                EXACT,
                "containment parent",
                [ref(entry)],
            )


def _lacking(going: Going, standing: Standing, old: View, new: View, children: set[str]) -> None:
    """Starting calls that are missing: several children may lack the same one."""
    touched: dict[str, None] = {}
    for child in children:
        lacked, lacks = _lacks(old, child), _lacks(new, child)
        for name, _ in lacked.items() - lacks.items():
            owners = standing.lacking.edit(name, lambda: Owners(""))
            owners.count -= 1
            touched[name] = None
        for name, reason in lacks.items() - lacked.items():
            owners = standing.lacking.edit(name, lambda: Owners(""))
            if owners.count and owners.reason != reason:
                raise Irregular("a call and a batch of one name")
            owners.reason = reason
            owners.count += 1
            touched[name] = None
    for name in touched:
        was, now = standing.lacking.old(name), standing.lacking.get(name)
        going.compare(
            [lacking(name, was.reason, going.revision)] if was is not None and was.count else [],
            [lacking(name, now.reason, going.revision)] if now is not None and now.count else [],
        )


def _lacks(view: View, child: str) -> dict[str, str]:
    stream = view.stream(child)
    if stream is None or not stream.count or not stream.edges:
        return {}
    found: dict[str, str] = {}
    for name, reason in starts_of(view, child)[1]:
        if found.setdefault(name, reason) != reason:
            raise Irregular("a call and a batch of one name")
    return found


def _segments(going: Going, was: Core, now: Core, session: str) -> None:
    for index, window in enumerate(now.windows):
        last, unmet = index == len(now.windows) - 1, gates(now, index)
        frame: Frame | None = None
        if index < len(was.windows):
            before_, last_before = was.windows[index], index == len(was.windows) - 1
            unmet_before = gates(was, index)
            same = last == last_before and unmet == unmet_before
            if same and window.talks == before_.talks:
                continue
            frame = segment_frame(before_, unmet_before, last_before, session, going.revision)
        going.add(segment_frame(window, unmet, last, session, going.revision), frame)
