"""Stage 9, leaves: the nodes and relations that single records stand for, under the containers of their records."""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType

from porcelain.flow.assembly.calls import Call, is_response
from porcelain.flow.assembly.entries import (
    CHILD_RESULT,
    COMMAND,
    CONTEXT_RESET,
    ERROR,
    EXTERNAL_INPUT,
    INJECTED,
    LAUNCH_ACK,
    NOTICE,
    RESET_SUMMARY,
    SYNTHETIC,
    TURN_DURATION,
    Entry,
)
from porcelain.flow.assembly.ids import at, call_id, part, relation_id, stream_id, tool_id
from porcelain.flow.assembly.spawns import EXACT, STRONG, Spawn
from porcelain.flow.assembly.streams import Epoch, Stream
from porcelain.flow.assembly.tools import Tool
from porcelain.flow.formats import gojson
from porcelain.flow.formats.sf import Ref, SfNode, SfRelation

#: What a record that carries a flag becomes: flag, id prefix, kind, attributes. The first that fits counts.
_STEPS = (
    (EXTERNAL_INPUT, "input", "message.external", UNSET),
    (INJECTED, "inject", "context.injection", UNSET),
    (LAUNCH_ACK, "ack", "agent.launch_ack", UNSET),
)
_CONTROLS: tuple[tuple[int, str, str, Raw | UnsetType], ...] = (
    (ERROR, "error", "error.api", Raw(b'{"retry_state":"unavailable"}')),
    (TURN_DURATION, "turn", "turn.duration", Raw(b'{"measured_by":"observed_replayable"}')),
    (COMMAND, "command", "control.command", UNSET),
    (NOTICE, "notice", "control.notice", UNSET),
)


class Frames(Struct):
    """Where the stages put what they make; every frame gets ``revision``."""

    revision: int
    nodes: list[SfNode]
    relations: list[SfRelation]


class Sources(Struct):
    """What leaves are made from: calls and tools by id, child streams that each tool started, known streams."""

    calls: dict[str, Call]
    tools: dict[str, Tool]
    started: dict[str, list[str]]
    streams: frozenset[str]


def ref(entry: Entry) -> Ref:
    """The place of a whole record."""
    return Ref(entry.seq, entry.row)


def relate(
    frames: Frames, type_: str, from_: str, to: str, quality: str, via: str, evidence: list[Ref]
) -> None:
    """Add one relation."""
    frames.relations.append(
        SfRelation(
            relation_id(type_, from_, to), frames.revision, UNSET, type_, from_, to, quality, via, evidence
        )
    )


def leaves(stream: Stream, sources: Sources, frames: Frames) -> None:
    """The leaves of one stream. Each goes under the container of its record, parts of a response under its call."""
    name = stream.name
    revision = frames.revision
    add = frames.nodes.append
    for entry, container in zip(stream.entries, stream.containers, strict=True):
        parent = container
        if entry.call and is_response(entry):
            call = sources.calls[entry.call]
            parent = call_id(entry.call)
            if call.fragments[0] is entry:
                add(_call_node(parent, call, container, name, revision))
            part_nodes(entry, parent, name, frames)
        for use in entry.uses:
            tool = sources.tools.get(use.id)
            if tool is not None and tool.use is use:
                add(_tool_node(tool, parent, name, revision))
        if (entry.flags or entry.trigger) and step_node(entry, container, name, frames):
            _notified(entry, sources, frames)
    for epoch in stream.epochs:
        _resets(stream, epoch, frames)


def part_nodes(entry: Entry, parent: str, stream: str, frames: Frames) -> None:
    """The texts and thoughts of a response, under its call."""
    add, revision = frames.nodes.append, frames.revision
    seq, row = entry.seq, entry.row
    kind = "message.synthetic" if entry.flags & SYNTHETIC else "message.assistant"
    for block in entry.texts:
        place = Ref(seq, row, block)
        add(SfNode(f"msg/{seq}/{row}:{block}", revision, UNSET, kind, parent, stream, place))
    for block in entry.thoughts:
        place = Ref(seq, row, block)
        add(SfNode(f"think/{seq}/{row}:{block}", revision, UNSET, "thinking", parent, stream, place))


def step_node(entry: Entry, container: str, stream: str, frames: Frames) -> bool:
    """The node of a record that is a step by itself, if it is one; True for a notification. Resets and summaries come
    with their epoch."""
    flags, revision = entry.flags, frames.revision
    if flags & (CONTEXT_RESET | RESET_SUMMARY):
        return False
    for bit, prefix, kind, attrs in _STEPS:
        if flags & bit:
            frames.nodes.append(
                SfNode(at(prefix, entry), revision, UNSET, kind, container, stream, ref(entry), UNSET, attrs)
            )
            return False
    if entry.trigger == "notification":
        frames.nodes.append(
            SfNode(
                at("notify", entry), revision, UNSET, "runtime.notification", container, stream, ref(entry)
            )
        )
        return True
    for bit, prefix, kind, control in _CONTROLS:
        if flags & bit:
            frames.nodes.append(
                SfNode(
                    at(prefix, entry), revision, UNSET, kind, container, stream, ref(entry), UNSET, control
                )
            )
            return False
    return False


def _notified(entry: Entry, sources: Sources, frames: Frames) -> None:
    """What a notification reports: the child that it names, else those that the call it completes started."""
    node = at("notify", entry)
    if entry.child in sources.streams:
        _reports(node, entry.child, EXACT, "task id on the notification", entry, frames)
    elif not entry.child:
        for child in sources.started.get(entry.tool, ()):
            _reports(node, child, STRONG, "the call the notification completes", entry, frames)


def _reports(node: str, child: str, quality: str, via: str, entry: Entry, frames: Frames) -> None:
    relate(frames, "reports", node, stream_id(child), quality, via, [ref(entry)])


def _call_node(node: str, call: Call, container: str, stream: str, revision: int) -> SfNode:
    refs = [Ref(entry.seq, entry.row) for entry in call.fragments]
    attrs = call_attributes(refs, finished=call.finished)
    return SfNode(node, revision, UNSET, "llm.call", container, stream, refs[0], refs, attrs)


def call_attributes(refs: list[Ref], *, finished: bool) -> Raw:
    """The attributes of a model call with these fragments."""
    if finished:
        last = refs[-1]
        usage = f'"usage":"observed_replayable","usage_at":{{"row":{last.row},"seq":{last.seq}}}'
    else:
        usage = '"stop_reason":"unavailable","usage":"unavailable"'
    text = f'{{"fragments":{len(refs)},{usage},"usage_from":"last_fragment_in_line_order"}}'
    return Raw(text.encode("ascii"))


def _tool_node(tool: Tool, parent: str, stream: str, revision: int) -> SfNode:
    use = tool.use
    asked = Ref(tool.request.seq, tool.request.row, use.block)
    refs = [asked]
    if tool.result is None:
        result, join = "unavailable", "unresolved"
    elif tool.results > 1:
        result, join = "unavailable", "exact_ambiguous"
    else:
        result, join = "available", EXACT
        refs.append(Ref(tool.result.seq, tool.result.row, tool.result_block))
    launched = ""
    if tool.manifest is not None:
        refs.append(ref(tool.manifest))
        launched = tool.manifest.label
    attrs = tool_attributes(use.name, use.server, use.server_tool, launched, result, join)
    kind = "agent.call" if tool.starts_child else "tool"
    return SfNode(tool_id(use.id), revision, UNSET, kind, parent, stream, asked, refs, attrs)


def tool_attributes(name: str, server: str, server_tool: str, launched: str, result: str, join: str) -> Raw:
    """The attributes of a tool use."""
    named = f'"name":{gojson.string(name)},'
    if server or server_tool:
        named = f'"mcp_server":{gojson.string(server)},"mcp_tool":{gojson.string(server_tool)},{named}'
    if launched:
        named = f'"launched":{gojson.string(launched)},{named}'
    return Raw(f'{{{named}"result":"{result}","result_join":"{join}","timing":"unavailable"}}'.encode())


def _resets(stream: Stream, epoch: Epoch, frames: Frames) -> None:
    """The boundary and the summaries of an epoch, straight under it, and what the summaries summarise."""
    boundary: Entry | None = None
    for entry in stream.entries[epoch.start : epoch.start + epoch.size]:
        if not entry.flags & (CONTEXT_RESET | RESET_SUMMARY):
            continue
        if entry.flags & CONTEXT_RESET:
            boundary = entry
            prefix, kind = "boundary", "epoch.boundary"
        else:
            prefix, kind = "summary", "epoch.summary"
        node = at(prefix, entry)
        frames.nodes.append(SfNode(node, frames.revision, UNSET, kind, epoch.id, stream.name, ref(entry)))
        if boundary is not None and boundary is not entry:
            relate(
                frames,
                "summarizes",
                node,
                at("boundary", boundary),
                EXACT,
                "containment parent",
                [ref(entry)],
            )


def starts(joins: list[Spawn], frames: Frames) -> None:
    """One relation for each tool use and the child that it started; several pieces of evidence join into one."""
    known: dict[tuple[str, str], int] = {}
    for join in joins:
        key = (join.tool, join.child)
        index = known.get(key)
        if index is None:
            known[key] = len(frames.relations)
            relate(
                frames,
                "starts",
                tool_id(join.tool),
                stream_id(join.child),
                join.quality,
                join.via,
                [ref(join.evidence)],
            )
            continue
        before = frames.relations[index]
        stronger = before.quality == STRONG and join.quality == EXACT
        evidence = [*(before.evidence or []), ref(join.evidence)]
        frames.relations[index] = SfRelation(
            before.id,
            before.revision,
            UNSET,
            before.type,
            before.from_,
            before.to,
            join.quality if stronger else before.quality,
            join.via if stronger else before.via,
            evidence,
        )


def outputs(stream: Stream, journal: dict[str, Entry], frames: Frames) -> None:
    """What a child stream came to: its last response by a model, and the result that the journal of its run states."""
    if stream.role != "child":
        return
    last: Entry | None = None
    container = stream_id(stream.name)
    for index in range(len(stream.entries) - 1, -1, -1):
        entry = stream.entries[index]
        if is_response(entry) and not entry.flags & SYNTHETIC:
            last, container = entry, stream.containers[index]
            break
    returned = journal.get(stream.name)
    refs = [ref(entry) for entry in (last, returned) if entry is not None]
    if not refs:
        return
    state = "unavailable" if returned is None else "observed_replayable"
    node = f"output/{part(stream.name)}"
    frames.nodes.append(
        SfNode(
            node,
            frames.revision,
            UNSET,
            "agent.output",
            container,
            stream.name,
            refs[0],
            refs,
            Raw(f'{{"returned_value":"{state}"}}'.encode("ascii")),
        )
    )
    relate(
        frames,
        "ends_with",
        stream_id(stream.name),
        node,
        EXACT,
        "the last response in the child stream, and what it returned",
        list(refs),
    )


def journal_results(entries: list[Entry]) -> dict[str, Entry]:
    """Child -> the first journal record that holds its result."""
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry.kind == "journal" and entry.child and entry.flags & CHILD_RESULT:
            found.setdefault(entry.child, entry)
    return found
