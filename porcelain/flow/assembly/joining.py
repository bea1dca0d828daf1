"""New rows into a standing: what belongs together across rows. Calls, tool uses and results, children and what started
them (stages 3 to 5), over what is new only."""

from __future__ import annotations

from porcelain.flow.assembly.calls import is_response
from porcelain.flow.assembly.entries import (
    CHILD_RESULT,
    CONTEXT_RESET,
    EXTERNAL_INPUT,
    INJECTED,
    LAUNCH_ACK,
    RESET_SUMMARY,
    SYNTHETIC,
    Entry,
)
from porcelain.flow.assembly.ids import call_id
from porcelain.flow.assembly.intake import Disrupted, Fresh, Irregular
from porcelain.flow.assembly.standing import (
    JOURNAL,
    MENTIONED,
    NOTIFICATION,
    RESULT,
    SIDECAR,
    BatchKnown,
    CallKnown,
    Edge,
    Known,
    Standing,
    StreamKnown,
    ToolKnown,
)

#: Flags with which a record is another step than the notification that it may also be.
_OTHER_STEP = CONTEXT_RESET | RESET_SUMMARY | EXTERNAL_INPUT | INJECTED | LAUNCH_ACK


def take_calls(standing: Standing, fresh: Fresh) -> None:
    """Stage 3 over new rows, and the last response of each stream."""
    core, calls = standing.core, standing.calls
    found: dict[str, list[tuple[Entry, str]]] = {}
    crossing = False
    for name, entries in fresh.by_stream.items():
        for entry, container in zip(entries, fresh.containers[name], strict=True):
            if not is_response(entry):
                continue
            if not entry.flags & SYNTHETIC:
                stream = standing.streams.edit(name, StreamKnown)
                stream.last, stream.last_in = (entry.seq, entry.row), container
            if entry.call:
                fragments = found.setdefault(entry.call, [])
                crossing = crossing or bool(fragments and fragments[-1][0].stream != name)
                fragments.append((entry, container))
    for call, fragments in found.items():
        known = calls.old(call)
        if known is not None and any(entry.stream != known.stream for entry, _ in fragments):
            crossing = True
    if crossing:
        if core.revised:
            raise Irregular("revised records and calls across streams")
        core.crossing_calls = True
        for fragments in found.values():
            fragments.sort(key=lambda one: (one[0].seq, one[0].row))
    for call, fragments in found.items():
        first, container = fragments[0]
        known = calls.edit(call, lambda: CallKnown((), 0, first.stream, container))  # noqa: B023
        known.refs += tuple((entry.seq, entry.row) for entry, _ in fragments)
        for entry, _ in fragments:
            known.flags |= entry.flags
        fresh.calls.add(call)


def take_tools(standing: Standing, fresh: Fresh) -> None:
    """Stage 4 over new rows."""
    tools = standing.tools
    for name, entries in fresh.by_stream.items():
        for entry, container in zip(entries, fresh.containers[name], strict=True):
            for use in entry.uses:
                if not use.id:
                    continue
                known = tools.get(use.id)
                if known is not None and known.request is not None:
                    if name < known.stream:
                        raise Disrupted("a tool use was requested in an earlier stream as well")
                    continue
                tool = tools.edit(use.id, ToolKnown)
                tool.request = (entry.seq, entry.row, use.block)
                tool.stream, tool.asked = name, entry.time
                tool.name, tool.server, tool.server_tool = use.name, use.server, use.server_tool
                tool.parent = call_id(entry.call) if entry.call and is_response(entry) else container
                standing.core.bash_runs += use.name == "Bash"
                fresh.tools.add(use.id)
                fresh.children.update(tool.children)
    for entries in fresh.by_stream.values():
        for entry in entries:
            for result in entry.results:
                if not result.of:
                    continue
                tool = tools.edit(result.of, ToolKnown)
                if not tool.results:
                    tool.result, tool.answered = (entry.seq, entry.row, result.block), entry.time
                tool.results += 1
                fresh.tools.add(result.of)


def take_spawns(standing: Standing, fresh: Fresh) -> None:
    """Stage 5 over new rows: what they say about which tool use started which child."""
    for entry in fresh.entries:
        if entry.batch and entry.results and entry.kind != "journal":
            batch = standing.batches.edit(entry.batch, BatchKnown)
            if batch.tool is None:
                batch.tool = entry.results[0].of
                _launched(standing, fresh, entry.batch, batch)
    for entry in fresh.entries:
        if entry.child:
            _take_child(standing, fresh, entry)
        if entry.kind == "workflow_manifest" and entry.batch:
            batch = standing.batches.edit(entry.batch, BatchKnown)
            if batch.manifest is None:
                batch.manifest, batch.label = (entry.seq, entry.row), entry.label
                if batch.tool:
                    fresh.tools.add(batch.tool)
        if entry.trigger == "notification":
            _take_notification(standing, fresh, entry)
        if entry.flags & CONTEXT_RESET and entry.continues:
            known = standing.records.get(entry.continues)
            if known is None or known.hops < 0:
                record = standing.records.edit(entry.continues, lambda: Known("", MENTIONED))
                record.resets += 1
                fresh.records.add(entry.continues)
    for child in fresh.children:
        stream = standing.streams.get(child)
        for edge in stream.edges if stream is not None else ():
            tool = edge_tool(edge, standing.batches.get(edge.batch) if edge.batch else None)
            if tool:
                fresh.tools.add(tool)


def edge_tool(edge: Edge, batch: BatchKnown | None) -> str:
    """The tool use that an edge leads to, empty for none; ``batch`` is what is known of the edge's batch."""
    if edge.kind == JOURNAL:
        return (batch.tool or "") if batch is not None else ""
    return edge.tool


def _launched(standing: Standing, fresh: Fresh, name: str, batch: BatchKnown) -> None:
    """A batch has found its tool use."""
    if batch.tool:
        tool = standing.tools.edit(batch.tool, ToolKnown)
        tool.batches += (name,)
        _add_children(tool, batch.children)
        fresh.tools.add(batch.tool)
    fresh.children.update(batch.children)


def _add_children(tool: ToolKnown, children: tuple[str, ...]) -> None:
    tool.children += tuple(child for child in children if child not in tool.children)


def _take_child(standing: Standing, fresh: Fresh, entry: Entry) -> None:
    stream = standing.streams.edit(entry.child, StreamKnown)
    fresh.children.add(entry.child)
    tool = batch = parent = ""
    if entry.kind == "journal":
        kind, batch = JOURNAL, entry.batch
        if entry.flags & CHILD_RESULT and stream.returned is None:
            stream.returned = (entry.seq, entry.row)
    elif entry.kind == "agent_meta":
        kind, tool, parent = SIDECAR, entry.anchor, entry.started_by
    else:
        kind, tool = NOTIFICATION if entry.trigger == "notification" else RESULT, entry.anchor
    if not (tool or batch or parent):
        return
    if any((edge.tool, edge.batch, edge.parent) == (tool, batch, parent) for edge in stream.edges):
        return
    stream.edges += (Edge(kind, tool, batch, parent, entry.seq, entry.row),)
    if batch:
        known = standing.batches.edit(batch, BatchKnown)
        if entry.child not in known.children:
            known.children += (entry.child,)
        tool = known.tool or ""
    if tool:
        _add_children(standing.tools.edit(tool, ToolKnown), (entry.child,))
    if parent:
        of = standing.streams.edit(parent, StreamKnown)
        of.begot += (entry.child,) if entry.child not in of.begot else ()


def _take_notification(standing: Standing, fresh: Fresh, entry: Entry) -> None:
    step = bool(entry.stream) and not entry.flags & _OTHER_STEP
    if entry.child:
        stream = standing.streams.edit(entry.child, StreamKnown)
        stream.notified = True
        stream.notices += ((entry.seq, entry.row),) if step else ()
        fresh.children.add(entry.child)
    elif entry.tool and step:
        standing.tools.edit(entry.tool, ToolKnown).notices += ((entry.seq, entry.row),)
        fresh.tools.add(entry.tool)
