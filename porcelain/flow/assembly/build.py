"""Assembly: landed rows to the nodes, relations and missing ends of a session, all stages in order.

The result is a function of the rows alone: the same rows give the same frames in the same order, whatever rounds were
written before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import attrgetter
from typing import TypeVar

from msgspec import UNSET, Struct

from porcelain.flow.assembly.calls import calls
from porcelain.flow.assembly.canonical import canonical
from porcelain.flow.assembly.containers import segment_nodes, session_node, stream_nodes, talk_nodes
from porcelain.flow.assembly.entries import CONTEXT_RESET, Entry
from porcelain.flow.assembly.epochs import epochs
from porcelain.flow.assembly.ids import joined, stream_id, tool_id
from porcelain.flow.assembly.leaves import Frames, Sources, journal_results, leaves, outputs, starts
from porcelain.flow.assembly.segments import segments
from porcelain.flow.assembly.spawns import Missing, spawns
from porcelain.flow.assembly.streams import MAIN, Stream, session, streams
from porcelain.flow.assembly.talks import Ancestry, Talk, talks
from porcelain.flow.assembly.tools import Tools, tools
from porcelain.flow.formats.sf import SfNode, SfRelation, SfUnresolved
from porcelain.flow.formats.times import rfc3339nano

#: Kinds of nodes that are no steps.
CONTAINERS = ("conversation", "segment", "session", "stream", "epoch", "talk", "run")
_BY_ID = attrgetter("id")
_F = TypeVar("_F", SfNode, SfRelation, SfUnresolved)


class Totals(Struct, frozen=True):
    """What a header counts; the same for a fold that ends in the same state."""

    talks: int
    steps: int
    streams: int
    segments: int
    changes: int
    lines_added: int
    lines_removed: int
    llm_calls: int
    subagents: int
    bash_runs: int


class Assembled(Struct, frozen=True):
    """The whole structure of a session: frames in order of id. Times are as a header writes them, empty for none."""

    nodes: list[SfNode]
    relations: list[SfRelation]
    unresolved: list[SfUnresolved]
    title: str
    session_from: str
    session_through: str
    totals: Totals


def assemble(
    entries: Iterable[Entry], *, conversation: str, session_name: str, revision: int, through: int
) -> Assembled:
    """The structure of the session whose rows, in landed order, are ``entries``, up to file ``through``."""
    rows = canonical(entries, through)
    all_streams = streams(rows.entries)
    about = session(rows.entries)
    by_call = calls(all_streams)
    by_tool = tools(all_streams)
    spawned = spawns(rows.entries, all_streams, by_tool.by_id)
    ancestry = Ancestry(rows.by_id)
    main: Stream | None = None
    main_talks: list[Talk] = []
    child_talks: list[Talk] = []
    for stream in all_streams:
        stream.epochs = epochs(stream)
        found = talks(stream, ancestry)
        if stream.name == MAIN:
            main, main_talks = stream, found
        else:
            child_talks += found
    children_missing = any(gap.kind in ("child_stream", "notified_child") for gap in spawned.missing)
    windows = segments(main, main_talks, child_talks, by_tool.by_id.values(), children_missing)

    frames = Frames(revision, [], [])
    started: dict[str, list[str]] = {}
    for join in spawned.joins:
        children = started.setdefault(join.tool, [])
        if join.child not in children:
            children.append(join.child)
    sources = Sources(by_call, by_tool.by_id, started, frozenset(stream.name for stream in all_streams))
    starts(spawned.joins, frames)
    session_node(conversation, session_name, about, frames)
    journal = journal_results(rows.entries)
    for stream in all_streams:
        stream_nodes(stream, session_name, frames)
        leaves(stream, sources, frames)
        outputs(stream, journal, frames)
    talk_nodes([*main_talks, *child_talks], frames)
    segment_nodes(windows, session_name, frames)

    nodes = _in_order(frames.nodes)
    kinds = Counter(node.kind for node in nodes)
    # By id of node, the first name counting, as for the nodes themselves.
    roles = {stream_id(stream.name): stream.role for stream in reversed(all_streams)}
    tool_names = {tool_id(name): tool.use.name for name, tool in reversed(by_tool.by_id.items())}
    return Assembled(
        nodes,
        _in_order(frames.relations),
        _in_order(_unresolved(spawned.missing, by_tool, rows.entries, rows.by_id, revision)),
        about.title,
        rfc3339nano(about.first) if about.first else "",
        rfc3339nano(about.last) if about.last else "",
        Totals(
            talks=kinds["talk"],
            steps=len(nodes) - sum(kinds[kind] for kind in CONTAINERS),
            streams=kinds["stream"],
            segments=kinds["segment"],
            changes=rows.changes,
            lines_added=rows.added,
            lines_removed=rows.removed,
            llm_calls=kinds["llm.call"],
            subagents=sum(role == "child" for role in roles.values()),
            bash_runs=sum(name == "Bash" for name in tool_names.values()),
        ),
    )


def _in_order(frames: list[_F]) -> list[_F]:
    """Frames by id; of several with one id (names that differ only in what an id cannot hold) the first."""
    frames.sort(key=_BY_ID)
    known = {frame.id for frame in frames}
    if len(known) == len(frames):
        return frames
    kept: dict[str, _F] = {}
    for frame in frames:
        kept.setdefault(frame.id, frame)
    return list(kept.values())


def _unresolved(
    missing: list[Missing], by_tool: Tools, entries: list[Entry], by_id: dict[str, Entry], revision: int
) -> list[SfUnresolved]:
    gaps = list(missing)
    for name, tool in by_tool.by_id.items():
        if tool.results == 0:
            gaps.append(Missing("tool_result", name, "no result landed for this tool use"))
        elif tool.results > 1:
            gaps.append(Missing("tool_result", name, "several results carry this tool-use id"))
    for name in by_tool.orphans:
        gaps.append(Missing("tool_use", name, "a result arrived for a request that was never landed"))
    for entry in entries:
        if entry.flags & CONTEXT_RESET and entry.continues and entry.continues not in by_id:
            gaps.append(
                Missing(
                    "epoch_continuation",
                    entry.continues,
                    "a reset names a record that is not in the landed data",
                )
            )
    return [
        SfUnresolved(
            joined("unres", gap.kind, gap.ref), revision, UNSET, gap.kind, gap.ref, gap.reason, "open"
        )
        for gap in gaps
    ]
