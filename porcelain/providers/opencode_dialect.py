"""Glossary of the dialect ``opencode/1``: what a word is of, the word, the agent's own word, and where that stands.

An empty native word says that assembly derives the thing; no record names it.
"""

from __future__ import annotations

TERMS: tuple[tuple[str, str, str, str], ...] = (
    ("record", "id", "id", "message; tool part for its result; session"),
    ("record", "parent", "parentID", "assistant message; messageID of a tool part"),
    ("record", "call", "id", "assistant message"),
    ("record", "run", "id", "user message; responses take it from the message that they answer"),
    ("record", "stream", "id", "session that another one started; main for the conversation's own"),
    ("record", "tool", "callID", "task part"),
    ("record", "child", "state.metadata.sessionId", "task part"),
    ("record", "time", "time.created", "message, session; state.time.end of a tool part"),
    ("record", "trigger", "role", "user message with a part that is not synthetic"),
    ("record", "model", "modelID", "assistant message"),
    ("record", "usage", "tokens", "assistant message; its step-finish parts repeat it"),
    ("structure", "session", "id", "session without a parent"),
    ("structure", "epoch", "", ""),
    ("structure", "talk", "", ""),
    ("structure", "segment", "", ""),
    ("step", "epoch.boundary", "compaction", "part of a user message"),
    ("step", "epoch.summary", "summary", "true in an assistant message"),
    ("step", "message.external", "user", "role of a message that a person has a share in"),
    ("step", "context.injection", "synthetic", "user message all of whose text the program wrote"),
    ("step", "llm.call", "assistant", "role of a message"),
    ("step", "message.assistant", "text", "part of an assistant message"),
    ("step", "thinking", "reasoning", "part of an assistant message"),
    ("step", "tool", "tool", "part of an assistant message"),
    ("step", "agent.call", "task", "tool part that names a session"),
    ("step", "agent.output", "", ""),
    ("step", "error.api", "error", "assistant message"),
)
