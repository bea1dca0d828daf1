"""The frames of a name, as a function of what a standing knows of it: before the last rows and after them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, Raw, Struct

from porcelain.flow.assembly.containers import attributes
from porcelain.flow.assembly.entries import FINISHED
from porcelain.flow.assembly.ids import call_id, joined, part, relation_id, session_id, stream_id, tool_id
from porcelain.flow.assembly.joining import edge_tool
from porcelain.flow.assembly.leaves import call_attributes, tool_attributes
from porcelain.flow.assembly.segments import IDLE_GAP
from porcelain.flow.assembly.sides import View
from porcelain.flow.assembly.spawns import EXACT, STRONG
from porcelain.flow.assembly.standing import (
    JOURNAL,
    Core,
    Edge,
    Place,
    StreamKnown,
    Window,
    role,
)
from porcelain.flow.assembly.streams import MAIN
from porcelain.flow.formats.sf import Ref, SfNode, SfRelation, SfUnresolved
from porcelain.flow.formats.times import rfc3339nano

Frame = SfNode | SfRelation | SfUnresolved
_VIA = ("run journal", "child sidecar", "completion notification", "parent tool result")
NO_CALL = "a child names a call that was never landed"
NO_LAUNCH = "a batch names children but its launch call was never landed"


class Start(Struct, frozen=True):
    """A tool use that started a child, how that is known, and the records that say so."""

    tool: str
    via: str
    quality: str
    evidence: tuple[Place, ...]


def _landed(view: View, name: str) -> bool:
    stream = view.stream(name)
    return stream is not None and stream.count > 0


def starts_of(view: View, child: str) -> tuple[list[Start], list[tuple[str, str]]]:
    """What started a landed child, and the ends that are missing instead: (ref, reason) of a ``spawn_call``."""
    stream = view.stream(child)
    assert stream is not None
    found: dict[str, Start] = {}
    missing: list[tuple[str, str]] = []
    for tool, edge in sorted(_resolved(view, stream), key=lambda one: (one[0], one[1].batch)):
        if not tool:
            if edge.parent and _landed(view, edge.parent):
                continue
            missing.append((edge.batch, NO_LAUNCH) if edge.batch else (edge.parent, NO_CALL))
            continue
        known = view.tool(tool)
        if known is None or known.request is None:
            missing.append((tool, NO_CALL))
            continue
        quality = STRONG if edge.kind == JOURNAL else EXACT
        one, at = found.get(tool), (edge.seq, edge.row)
        if one is None:
            found[tool] = Start(tool, _VIA[edge.kind], quality, (at,))
        elif one.quality == STRONG and quality == EXACT:
            found[tool] = Start(tool, _VIA[edge.kind], EXACT, (*one.evidence, at))
        else:
            found[tool] = Start(tool, one.via, one.quality, (*one.evidence, at))
    return list(found.values()), missing


def _resolved(view: View, stream: StreamKnown) -> Iterator[tuple[str, Edge]]:
    """The edges of a child with their tool uses; of those that come to the same the first."""
    known: set[tuple[str, str, str]] = set()
    for edge in stream.edges:
        tool = edge_tool(edge, view.batch(edge.batch) if edge.batch else None)
        key = (tool, edge.batch, edge.parent)
        if key not in known:
            known.add(key)
            yield tool, edge


def stream_frames(view: View, name: str, session: str, revision: int) -> Iterator[Frame]:
    """A stream, its epochs, what started it, what it came to; what is missing of it."""
    stream = view.stream(name)
    if stream is None:
        return
    if not stream.count:
        if stream.edges:
            yield _open("child_stream", name, "announced, but no transcript has landed yet", revision)
        if stream.notified:
            yield _open(
                "notified_child", name, "a notification names a child whose stream has not landed", revision
            )
        return
    node, what = stream_id(name), role(name, stream)
    yield SfNode(
        node,
        revision,
        UNSET,
        "stream",
        session_id(session),
        name,
        Ref(*stream.first),
        UNSET,
        attributes(label=stream.label or None, records=stream.count, role=what),
    )
    previous = ""
    for epoch in stream.epochs:
        boundary = epoch.boundary
        yield SfNode(
            epoch.id,
            revision,
            UNSET,
            "epoch",
            node,
            name,
            Ref(*epoch.first),
            UNSET if boundary is None else [Ref(*boundary)],
            attributes(
                continues_from=(epoch.continues or None) if boundary is not None else None,
                records=epoch.size,
                reset="none" if boundary is None else "observed_replayable",
            ),
        )
        if boundary is not None:
            yield _relation(
                "follows", epoch.id, previous, EXACT, "explicit context reset", [Ref(*boundary)], revision
            )
        previous = epoch.id
    if stream.edges:
        for start in starts_of(view, name)[0]:
            yield _relation(
                "starts",
                tool_id(start.tool),
                node,
                start.quality,
                start.via,
                [Ref(*at) for at in start.evidence],
                revision,
            )
    elif name != MAIN:
        reason = "no landed record names the call that started this stream"
        yield _open("spawn_of_child", name, reason, revision)
    for at in stream.notices:
        yield _reports(at, node, EXACT, "task id on the notification", revision)
    if what == "child":
        yield from _output(stream, name, node, revision)


def _output(stream: StreamKnown, name: str, stream_node: str, revision: int) -> Iterator[Frame]:
    refs = [Ref(*at) for at in (stream.last, stream.returned) if at is not None]
    if not refs:
        return
    state = "unavailable" if stream.returned is None else "observed_replayable"
    node = f"output/{part(name)}"
    yield SfNode(
        node,
        revision,
        UNSET,
        "agent.output",
        stream.last_in if stream.last is not None else stream_node,
        name,
        refs[0],
        refs,
        Raw(f'{{"returned_value":"{state}"}}'.encode("ascii")),
    )
    via = "the last response in the child stream, and what it returned"
    yield _relation("ends_with", stream_node, node, EXACT, via, list(refs), revision)


def tool_frames(view: View, name: str, revision: int) -> Iterator[Frame]:
    """A tool use, what is missing of it, and what notifications that name it report."""
    tool = view.tool(name)
    if tool is None:
        return
    if tool.request is None:
        if tool.results:
            yield _open("tool_use", name, "a result arrived for a request that was never landed", revision)
        return
    started = [child for child in tool.children if _starts(view, name, child)]
    manifests = [
        (batch.manifest, batch.label)
        for batch in map(view.batch, tool.batches)
        if batch is not None and batch.manifest is not None
    ]
    refs = [Ref(*tool.request)]
    one = tool.results == 1
    if one and tool.result is not None:
        refs.append(Ref(*tool.result))
    launched = ""
    if manifests:
        place, launched = min(manifests)
        refs.append(Ref(*place))
    agent = any(role(child, view.stream(child) or StreamKnown()) != "auxiliary" for child in started)
    yield SfNode(
        tool_id(name),
        revision,
        UNSET,
        "agent.call" if agent else "tool",
        tool.parent,
        tool.stream,
        refs[0],
        refs,
        tool_attributes(
            tool.name,
            tool.server,
            tool.server_tool,
            launched,
            "available" if one else "unavailable",
            EXACT if one else "exact_ambiguous" if tool.results else "unresolved",
        ),
    )
    if not one:
        reason = (
            "several results carry this tool-use id" if tool.results else "no result landed for this tool use"
        )
        yield _open("tool_result", name, reason, revision)
    for at in tool.notices:
        for child in started:
            yield _reports(at, stream_id(child), STRONG, "the call the notification completes", revision)


def _starts(view: View, tool: str, child: str) -> bool:
    return _landed(view, child) and any(start.tool == tool for start in starts_of(view, child)[0])


def call_frames(view: View, name: str, revision: int) -> Iterator[Frame]:
    """A model call."""
    call = view.call(name)
    if call is not None:
        refs = [Ref(*at) for at in call.refs]
        yield SfNode(
            call_id(name),
            revision,
            UNSET,
            "llm.call",
            call.container,
            call.stream,
            refs[0],
            refs,
            call_attributes(refs, finished=call.flags & FINISHED != 0),
        )


def run_frames(view: View, key: str, revision: int) -> Iterator[Frame]:
    """A run."""
    run = view.run(key)
    if run is not None:
        stream, _, name = key.partition("\0")
        cause = "external" if run.opens else "notification"
        attrs = Raw(f'{{"trigger":"{cause}"}}'.encode("ascii"))
        yield SfNode(
            joined("run", run.talk, name),
            revision,
            UNSET,
            "run",
            run.talk,
            stream,
            Ref(*run.first),
            UNSET,
            attrs,
        )


def talk_frames(view: View, name: str, revision: int) -> Iterator[Frame]:
    """A talk, and the segment that it is in."""
    talk = view.talk(name)
    if talk is None:
        return
    main = talk.stream == MAIN
    trigger = "external" if main else "unknown"
    attrs = Raw(f'{{"loops":{talk.runs},"runs":{talk.runs},"trigger":"{trigger}"}}'.encode("ascii"))
    first = Ref(*talk.first)
    yield SfNode(name, revision, UNSET, "talk", talk.epoch, talk.stream, first, UNSET, attrs)
    if talk.window >= 0:
        yield _relation(
            "in_segment",
            name,
            _segment_id(view.core.windows[talk.window]),
            EXACT if main else STRONG,
            "activity window" if main else "inside the window of the talk that delegated it",
            [first],
            revision,
        )


def record_frames(view: View, name: str, revision: int) -> Iterator[Frame]:
    """What is missing where resets name a record that is not there."""
    record = view.record(name)
    if record is not None and record.hops < 0 and record.resets:
        reason = "a reset names a record that is not in the landed data"
        yield _open("epoch_continuation", name, reason, revision)


def session_frames(core: Core, conversation: str, session: str, revision: int) -> Iterator[Frame]:
    """The root of the tree."""
    if core.through_seq:
        yield SfNode(
            session_id(session),
            revision,
            UNSET,
            "session",
            attrs=attributes(
                conversation=conversation,
                from_time=rfc3339nano(core.first) if core.first else None,
                through_time=rfc3339nano(core.last) if core.last else None,
                title=core.title or None,
                title_from="observed_replayable" if core.title else None,
            ),
        )


def gates(core: Core, index: int) -> tuple[str, ...]:
    """What keeps a segment from being committed."""
    window, last = core.windows[index], index == len(core.windows) - 1
    return (
        *(("activity_boundary",) if last else ()),
        *(("no_crossing_open_operation",) if core.children_missing or window.crossing else ()),
        *(("lateness_watermark",) if last or core.newest - window.end <= IDLE_GAP else ()),
    )


def segment_frame(window: Window, unmet: tuple[str, ...], last: bool, session: str, revision: int) -> SfNode:
    """A segment."""
    return SfNode(
        _segment_id(window),
        revision,
        UNSET,
        "segment",
        session_id(session),
        UNSET,
        Ref(*window.first),
        UNSET,
        attributes(
            committable=not unmet,
            gates_unmet=unmet,
            state="open" if last else "candidate",
            talks=window.talks,
        ),
    )


def _segment_id(window: Window) -> str:
    return f"segment/at_{window.first[0]}_{window.first[1]}"


def lacking(ref: str, reason: str, revision: int) -> SfUnresolved:
    """A starting call that is missing."""
    return _open("spawn_call", ref, reason, revision)


def _open(kind: str, ref: str, reason: str, revision: int) -> SfUnresolved:
    return SfUnresolved(joined("unres", kind, ref), revision, UNSET, kind, ref, reason, "open")


def _reports(at: Place, stream: str, quality: str, via: str, revision: int) -> SfRelation:
    return _relation("reports", f"notify/{at[0]}/{at[1]}", stream, quality, via, [Ref(*at)], revision)


def _relation(
    type_: str, from_: str, to: str, quality: str, via: str, evidence: list[Ref], revision: int
) -> SfRelation:
    return SfRelation(
        relation_id(type_, from_, to), revision, UNSET, type_, from_, to, quality, via, evidence
    )
