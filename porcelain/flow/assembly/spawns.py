"""Stage 5, spawns: which tool use started which child stream, by the records that name both.

A child may be named by the result of the call that started it, by its sidecar, by the notification of its completion,
or by the journal of a workflow, which names only the batch. The first record to name a pair is its evidence.
"""

from __future__ import annotations

from msgspec import Struct

from porcelain.flow.assembly.entries import Entry
from porcelain.flow.assembly.streams import MAIN, Stream
from porcelain.flow.assembly.tools import Tool

EXACT = "exact_unique"
STRONG = "strong_inference"


class Spawn(Struct, frozen=True):
    """A child stream, the tool use that started it, how that is known and from which record."""

    tool: str
    child: str
    via: str
    quality: str
    evidence: Entry


class Missing(Struct, frozen=True):
    """An end that is not there: an unresolved entry to be."""

    kind: str
    ref: str
    reason: str


class Spawns(Struct):
    """The joins that hold, in order of child and tool, and what is missing."""

    joins: list[Spawn]
    missing: list[Missing]


class _Edge(Struct, frozen=True):
    tool: str
    batch: str
    parent: str
    child: str
    via: str
    quality: str
    evidence: Entry


def _batch_tools(entries: list[Entry]) -> dict[str, str]:
    """Batch -> the tool use whose result announced it."""
    found: dict[str, str] = {}
    for entry in entries:
        if entry.batch and entry.results and entry.kind != "journal" and entry.batch not in found:
            found[entry.batch] = entry.results[0].of
    return found


def _edges(entries: list[Entry], batches: dict[str, str]) -> list[_Edge]:
    found: dict[tuple[str, str, str, str], _Edge] = {}
    for entry in entries:
        if not entry.child:
            continue
        batch = parent = ""
        quality = EXACT
        if entry.kind == "journal":
            tool, batch, quality, via = batches.get(entry.batch, ""), entry.batch, STRONG, "run journal"
        elif entry.kind == "agent_meta":
            tool, parent, via = entry.anchor, entry.started_by, "child sidecar"
        elif entry.trigger == "notification":
            tool, via = entry.anchor, "completion notification"
        else:
            tool, via = entry.anchor, "parent tool result"
        if tool or batch or parent:
            key = (tool, batch, parent, entry.child)
            if key not in found:
                found[key] = _Edge(tool, batch, parent, entry.child, via, quality, entry)
    return sorted(found.values(), key=lambda edge: (edge.child, edge.tool, edge.batch))


def spawns(entries: list[Entry], streams: list[Stream], tools: dict[str, Tool]) -> Spawns:
    """Join children to the tool uses that started them; marks those tools, and hangs manifests on launching ones."""
    batches = _batch_tools(entries)
    roles = {stream.name: stream.role for stream in streams}
    joins: list[Spawn] = []
    missing: list[Missing] = []
    named: set[str] = set()
    for edge in _edges(entries, batches):
        child = edge.child
        named.add(child)
        if child not in roles:
            missing.append(Missing("child_stream", child, "announced, but no transcript has landed yet"))
        elif not edge.tool:
            if edge.parent in roles:
                continue
            if edge.batch:
                missing.append(
                    Missing(
                        "spawn_call",
                        edge.batch,
                        "a batch names children but its launch call was never landed",
                    )
                )
            else:
                missing.append(
                    Missing("spawn_call", edge.parent, "a child names a call that was never landed")
                )
        elif edge.tool not in tools:
            missing.append(Missing("spawn_call", edge.tool, "a child names a call that was never landed"))
        else:
            if roles[child] != "auxiliary":
                tools[edge.tool].starts_child = True
            joins.append(Spawn(edge.tool, child, edge.via, edge.quality, edge.evidence))
    for name in roles:
        if name != MAIN and name not in named:
            missing.append(
                Missing("spawn_of_child", name, "no landed record names the call that started this stream")
            )
    for entry in entries:
        if entry.kind == "workflow_manifest" and entry.batch:
            tool = tools.get(batches.get(entry.batch, ""))
            if tool is not None and tool.manifest is None:
                tool.manifest = entry
        if entry.trigger == "notification" and entry.child and entry.child not in roles:
            missing.append(
                Missing(
                    "notified_child", entry.child, "a notification names a child whose stream has not landed"
                )
            )
    return Spawns(joins, missing)
