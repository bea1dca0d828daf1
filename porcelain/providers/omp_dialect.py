"""Glossaries of the dialects ``pi/1`` and ``oh-my-pi/1``: rows of what a word is of, the word, the agent's own word,
and where that stands. An empty native word says that assembly or the reader derives the thing; no line names it.
"""

from __future__ import annotations

_COMMON: tuple[tuple[str, str, str, str], ...] = (
    ("record", "id", "id", "entry; none in version 1"),
    ("record", "parent", "parentId", "entry"),
    ("record", "call", "responseId", "assistant message; else its entry id, else its time"),
    ("record", "run", "", "the entry id of the prompt, or its number where entries have no ids"),
    ("record", "continues", "parentId", "compaction entry"),
    ("record", "time", "timestamp", "entry"),
    ("record", "trigger", "role", "user message"),
    ("record", "model", "message.model", "assistant message; model_change entry"),
    ("record", "usage", "message.usage", "assistant message; cached tokens are not part of in"),
    ("structure", "epoch", "", ""),
    ("structure", "talk", "", ""),
    ("structure", "segment", "", ""),
    ("step", "epoch.boundary", "compaction", "entry; its summary with it"),
    ("step", "message.external", "user", "message"),
    ("step", "context.injection", "custom_message", "entry; also messages of other roles"),
    ("step", "llm.call", "assistant", "message"),
    ("step", "message.assistant", "text", "content block of an assistant message"),
    ("step", "thinking", "thinking", "content block of an assistant message"),
    ("step", "tool", "toolCall", "content block of an assistant message, with its toolResult"),
    ("step", "control.command", "bashExecution", "message"),
    ("step", "control.notice", "branch_summary", "entry"),
    ("step", "error.api", "stopReason", "assistant message that ended in error or aborted"),
)

PI_TERMS = (
    *_COMMON,
    ("record", "label", "session_info.name", "entry; also label entries"),
    ("structure", "session", "session.id", "header, the first line"),
)

TERMS = (
    *_COMMON,
    (
        "record",
        "stream",
        "",
        "name of a sub-agent's file in the folder of the session; main for the session's own",
    ),
    ("record", "child", "details.results.id", "toolResult of a task"),
    (
        "record",
        "label",
        "title",
        "slot on the first line, header, title_change; in clear where the source is user",
    ),
    ("structure", "session", "session.id", "header, on the first line or behind the slot"),
    ("step", "agent.call", "task", "a toolCall whose result names sub-agents"),
    ("step", "agent.output", "", ""),
)
