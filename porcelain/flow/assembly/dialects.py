"""Glossary: what each word of the model is called by the agent that wrote the source, and where it stands there.

One table a dialect. An empty native word says that assembly derives the thing; no record names it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from porcelain.providers import codex_dialect, factory_dialect, omp_dialect, opencode_dialect


class Term(Struct, frozen=True):
    """One word: ``name`` in the model, which says what it is ``of`` (a field of records, a structure, a step), the
    ``native`` word of the source and ``where`` that stands."""

    of: Literal["record", "structure", "step"]
    name: str
    native: str
    where: str


CLAUDE_CODE = (
    Term("record", "id", "uuid", "transcript line"),
    Term("record", "parent", "parentUuid", "transcript line"),
    Term("record", "call", "message.id", "assistant line; the same on every fragment of one response"),
    Term("record", "run", "promptId", "user line; responses take it from their ancestors"),
    Term("record", "batch", "toolUseResult.runId", "launch result of a workflow; else the folder of the run"),
    Term("record", "stream", "agentId", "name of the transcript file; main for the session's own"),
    Term("record", "continues", "logicalParentUuid", "compact_boundary line"),
    Term("record", "tool", "toolUseResult.toolUseId", "result line; tool-use-id in a task notification"),
    Term(
        "record",
        "child",
        "toolUseResult.agentId",
        "result line, sidecar, journal; task-id in a task notification",
    ),
    Term("record", "started_by", "parentAgentId", "sidecar of a child"),
    Term("record", "time", "timestamp", "transcript line"),
    Term("record", "trigger", "origin.kind", "user line or attachment"),
    Term("record", "model", "message.model", "assistant line"),
    Term("record", "label", "aiTitle", "title line; description in a sidecar, workflowName in a manifest"),
    Term("structure", "session", "sessionId", "every line"),
    Term("structure", "epoch", "", ""),
    Term("structure", "talk", "", ""),
    Term("structure", "segment", "", ""),
    Term("step", "epoch.boundary", "system/compact_boundary", "transcript line"),
    Term("step", "epoch.summary", "isCompactSummary", "user line after a compaction"),
    Term("step", "message.external", "user", "line whose origin is a person; queued_command attachment"),
    Term("step", "context.injection", "isMeta", "user line; any other attachment"),
    Term("step", "llm.call", "assistant", "lines of one message.id"),
    Term("step", "message.assistant", "text", "content block of an assistant line"),
    Term("step", "message.synthetic", "<synthetic>", "model of an assistant line that the client wrote"),
    Term("step", "thinking", "thinking", "content block of an assistant line"),
    Term("step", "tool", "tool_use", "content block of an assistant line, joined with its tool_result"),
    Term("step", "agent.call", "tool_use", "a tool use that started a child transcript"),
    Term("step", "agent.launch_ack", "async_launched", "toolUseResult.status of a result line"),
    Term("step", "agent.output", "", ""),
    Term("step", "runtime.notification", "task-notification", "origin.kind of a user line"),
    Term("step", "error.api", "system/api_error", "transcript line"),
    Term("step", "turn.duration", "system/turn_duration", "transcript line"),
    Term("step", "control.command", "system/local_command", "transcript line"),
    Term("step", "control.notice", "system", "any other system line"),
)


def _terms(rows: Iterable[tuple[str, str, str, str]]) -> tuple[Term, ...]:
    return tuple(Term(of, name, native, where) for of, name, native, where in rows)  # type: ignore[arg-type]


DIALECTS: dict[str, tuple[Term, ...]] = {
    "claude-code/1": CLAUDE_CODE,
    "codex/1": _terms(codex_dialect.TERMS),
    "factory/1": _terms(factory_dialect.TERMS),
    "oh-my-pi/1": _terms(omp_dialect.TERMS),
    "opencode/1": _terms(opencode_dialect.TERMS),
    "pi/1": _terms(omp_dialect.PI_TERMS),
}
