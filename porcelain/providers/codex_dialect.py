"""Glossary of the dialect ``codex/1``: rows of what a word is of, the word, Codex's own word, and where that stands.

An empty native word says that assembly or the reader derives the thing; no line names it.
"""

from __future__ import annotations

TERMS: tuple[tuple[str, str, str, str], ...] = (
    ("record", "id", "payload.id", "response_item; a hash of the line in its turn where there is none"),
    ("record", "parent", "", "the message, call or result before it; after a roll-back the one gone back to"),
    (
        "record",
        "call",
        "",
        "turn and number of the model call in it; a call ends where its tokens are stated",
    ),
    ("record", "run", "turn_id", "turn_context, task_started, response_item; else the record of the prompt"),
    ("record", "stream", "session_meta.id", "first line of a sub-agent's rollout; main for the thread's own"),
    ("record", "continues", "", "the last record before a compacted line"),
    ("record", "tool", "call_id", "event of a spawn or of a patch"),
    ("record", "child", "agent_id", "output of spawn_agent; receiver_thread_ids of its event; notification"),
    (
        "record",
        "time",
        "create_time",
        "response_item; completed_at or started_at of an event; else the line's",
    ),
    ("record", "trigger", "content_item_kinds", "user message; before them, by how its text begins"),
    ("record", "model", "turn_context.model", "line of the turn; on the tokens of its calls"),
    ("record", "label", "thread_name", "thread_name_updated line"),
    ("record", "usage", "token_usage_record", "else token_count whose totals moved; cached is part of in"),
    ("structure", "session", "session_meta.id", "first line; later ones are copies of its parents'"),
    ("structure", "epoch", "", ""),
    ("structure", "talk", "", ""),
    ("structure", "segment", "", ""),
    ("step", "epoch.boundary", "compacted", "line; its message is the summary"),
    ("step", "message.external", "user", "message that a person wrote"),
    ("step", "context.injection", "developer", "message of the program: instructions, environment, skills"),
    ("step", "llm.call", "", "lines of one model call"),
    ("step", "message.assistant", "output_text", "content of an assistant message"),
    ("step", "thinking", "reasoning", "line; its summary where the rest is encrypted"),
    (
        "step",
        "tool",
        "function_call",
        "also custom_tool_call, local_shell_call, web_search_call; with its output",
    ),
    ("step", "agent.call", "spawn_agent", "a call whose output names the thread that it started"),
    ("step", "agent.output", "", ""),
    ("step", "runtime.notification", "subagent_notification", "user message"),
    ("step", "error.api", "error", "event_msg line; also stream_error"),
    ("step", "turn.duration", "task_complete.duration_ms", "event_msg line"),
    ("step", "control.command", "user_shell_command", "user message"),
    ("step", "control.notice", "thread_rolled_back", "event_msg line; also turn_aborted, warning"),
)
