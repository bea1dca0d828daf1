"""Glossary of the dialect ``factory/1``: what a word is of, the word, the agent's own word, and where that stands.

An empty native word says that assembly derives the thing; no record names it.
"""

from __future__ import annotations

TERMS: tuple[tuple[str, str, str, str], ...] = (
    ("record", "id", "id", "message line; <session>/settings for the settings"),
    ("record", "parent", "parentId", "message line"),
    ("record", "call", "message.openaiMessageId", "assistant message; else the id of the message"),
    ("record", "run", "id", "typed message; turnId of an agent_turn_outcome"),
    ("record", "stream", "id", "session_start of a sub-agent; main for the session's own"),
    ("record", "tool", "tags.metadata.callingToolUseId", "settings of a sub-agent"),
    ("record", "child", "id", "session_start of the sub-agent whose settings these are"),
    ("record", "started_by", "tags.metadata.callingSessionId", "settings of a sub-agent"),
    ("record", "time", "timestamp", "message line; a header has none"),
    ("record", "trigger", "message.role", "user message without tool results that is not hidden"),
    ("record", "model", "message.modelId", "assistant message; model in the settings"),
    ("record", "label", "sessionTitle", "session_start, where a person set it"),
    ("record", "usage", "tokenUsage", "settings; totals of the session without its children"),
    ("structure", "session", "session_start.id", "header"),
    ("structure", "epoch", "", ""),
    ("structure", "talk", "", ""),
    ("structure", "segment", "", ""),
    ("step", "epoch.boundary", "compaction_state", "transcript line, which is also the summary"),
    ("step", "message.external", "message", "user message that a person typed"),
    ("step", "context.injection", "visibility llm_only", "user message; one that holds only reminders"),
    ("step", "llm.call", "message", "assistant message"),
    ("step", "message.assistant", "text", "content block of an assistant message"),
    ("step", "thinking", "thinking", "content block of an assistant message"),
    ("step", "tool", "tool_use", "content block of an assistant message, joined with its tool_result"),
    ("step", "agent.call", "tool_use", "a tool use that a sub-agent's settings name"),
    ("step", "agent.output", "", ""),
    ("step", "control.notice", "agent_turn_outcome", "transcript line; also session_end"),
)
