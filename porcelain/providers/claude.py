"""Claude Code: its lines as landed records (dialect ``claude-code/1``).

A conversation is a main transcript and, beside it, one transcript for each sub-agent with a sidecar document, and the
journals, manifests and scripts of workflow runs. One line is one record. A record holds nothing that a fork or resumed
copy of the line would state differently: session, folder, branch, version and fork origin go to ``Entry.values``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import UNSET, Raw, UnsetType

from porcelain.providers.claude_blocks import (
    ATTACHMENT,
    LINE,
    RESULT,
    Attachment,
    Block,
    BlockParts,
    Kinded,
    Line,
    ToolResult,
    usage,
)
from porcelain.providers.claude_discover import PARSER, discover, recognise
from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import NAME_LENGTH, PATH_LENGTH, data_part, line_part, name, size, text_part
from porcelain.providers.jsonlines import read_entries
from porcelain.providers.reader import Entry, ReaderState, Source
from porcelain.providers.records import Changes, Part, Record
from porcelain.providers.times import instant

__all__ = ["DIALECT", "NAME", "PARSER", "TITLE_ENTRY", "discover", "read_line", "recognise"]

NAME = "claude"
DIALECT = "claude-code/1"
TITLE_ENTRY = "custom-title"

#: Fields that copies of one line state differently; they never reach a record, not even through its content.
_SURROUNDINGS = ("sessionId", "session_id", "requestSessionId", "cwd", "gitBranch", "version", "forkedFrom")
_FROM = {"assistant": "agent", "user": "external"}
_TRIGGERS = {"human": "external", "task-notification": "notification"}
#: What the program itself puts into user messages; the rest of them a person typed. Stated by no field before 2.1.220.
_NOT_TYPED = re.compile(
    r"\s*(?:<(?:command-name|local-command|task-notification|system-reminder|bash-std|user-memory|tool_use_error)"
    r"|\[Request interrupted|Caveat: The messages below)"
)
_NOTIFICATION = "<task-notification>"
_TASK = re.compile(r"<task-id>(a[0-9a-f]{16})</task-id>")
_TASK_TOOL = re.compile(r"<tool-use-id>([^<]{1,256})</tool-use-id>")
#: A title that ``/branch`` made of the old one, which may be the first prompt; what a person types is no such title.
_BRANCHED = re.compile(r" \(Branch(?: \d+)?\)\Z")
_KINDED = msgspec.json.Decoder(Kinded)


def read_line(
    line: bytes, source: Source, state: ReaderState, sink: ContentSink, *, fit: bool = False
) -> Iterable[Entry]:
    """The entries of one line of a transcript or journal, or of one whole sidecar document or script."""
    if source.kind == "workflow_script":
        return [_read_script(line, source, sink)]

    def read(data: bytes) -> tuple[Record, Mapping[str, str]]:
        stated = LINE.decode(data)
        if source.kind == "transcript":
            return _transcript_record(data, stated, source, sink), _surroundings(stated, state)
        return _sidecar_record(data, stated, source, sink), state.values

    return read_entries(line, read, _is_entry, fit=fit)


def _is_entry(fields: Mapping[str, Raw]) -> bool:
    return "type" in fields and bool(
        fields.keys() & {"uuid", "sessionId", "timestamp", "messageId", "leafUuid", "agentId", "key"}
    )


def _surroundings(line: Line, state: ReaderState) -> dict[str, str]:
    """The surroundings in force from ``line`` on: the very dict of the line before when nothing changed.

    A line that names no folder is no conversation record; it says at most to which session it belongs.
    """
    values = state.values
    session = line.session
    if line.cwd is None:
        if session is None or session == values.get("session") or len(session) > NAME_LENGTH:
            return values
        state.values = {"session": session}
        return state.values
    origin = line.forked_from.session if line.forked_from else None
    if (
        line.cwd == values.get("cwd")
        and session == values.get("session")
        and (line.branch or None) == values.get("branch")
        and line.version == values.get("version")
        and origin == values.get("forked_from")
    ):
        return values
    stated = {
        "session": session,
        "cwd": line.cwd,
        "branch": line.branch,
        "version": line.version,
        "forked_from": origin,
    }
    found = {key: value for key, value in stated.items() if value and len(value) <= PATH_LENGTH}
    if found != values:
        state.values = found
    return state.values


def _transcript_record(data: bytes, line: Line, source: Source, sink: ContentSink) -> Record:
    kind, message = line.type, line.message
    from_ = _FROM.get(kind or "", "runtime")
    parts: list[Part] = []
    dropped = None
    flags: list[str] = []
    tool: str | None = None
    child: str | None = None
    batch: str | None = None
    changes: Changes | UnsetType = UNSET
    attachment: Attachment | None = None
    origin = line.origin.kind if line.origin else None

    if bytes(line.attachment)[:1] == b"{":
        attachment = ATTACHMENT.decode(line.attachment)
        if origin is None and attachment.origin is not None:
            origin = attachment.origin.kind
        parts.append(_attachment_part(line.attachment, attachment, sink))
    if message is not None and from_ != "runtime":
        result_text: str | None = None
        if line.result:
            result_text = str(line.result, "utf-8")
            if result_text.startswith("{"):
                result = RESULT.decode(line.result)
                tool, child, batch = result.tool, result.agent, result.run
                changes = _changes(result)
                if result.status == "async_launched":
                    flags.append("launch_ack")
                elif result.status == "completed" and child:
                    flags.append("child_result")
            elif not result_text.startswith("["):
                result_text = None
        content = message.content
        if isinstance(content, str):
            parts.append(text_part(content, sink))
        elif content:
            blocks = BlockParts(data, result_text, sink)
            blocks.add_all(content)
            parts += blocks.parts
            dropped = blocks.dropped
            result_text = blocks.take_result()
        if result_text:
            parts.append(data_part(result_text, sink))
    elif (
        attachment is None and line.custom_title is None and line.ai_title is None and line.agent_name is None
    ):
        parts.append(line_part(data, _SURROUNDINGS, sink))

    typed = _typed_text(line, attachment)
    if typed is not None and _NOTIFICATION in typed:
        named = _TASK.search(typed)
        called = _TASK_TOOL.search(typed)
        child = child or (named.group(1) if named else None)
        tool = tool or (called.group(1) if called else None)
    trigger = _trigger(line, origin, typed)
    _flag(flags, line, attachment, trigger)
    label, label_content = _label(line, sink)
    return Record(
        batch=name(batch) if batch else _or_unset(source.batch),
        call=name(message.id) if message is not None and kind == "assistant" else UNSET,
        changes=changes,
        child=name(child),
        continues=name(line.logical_parent),
        dropped=dropped or UNSET,
        entry=_entry(line, attachment),
        flags=flags or UNSET,
        from_=from_,
        id=name(line.uuid),
        label=label,
        label_content=label_content,
        model=name(message.model) if message is not None and kind == "assistant" else UNSET,
        parent=name(line.parent),
        parts=parts or UNSET,
        role=name(message.role) if message is not None and from_ != "runtime" else UNSET,
        run=name(line.prompt_id or _own_run(line, flags, trigger)),
        time=_time(line.timestamp),
        tool=name(tool),
        trigger=trigger or UNSET,
        usage=usage(message.usage)
        if message is not None and kind == "assistant" and message.usage is not None
        else UNSET,
    )


def _own_run(line: Line, flags: list[str], trigger: str | None) -> str | None:
    """The run that a prompt begins in transcripts of versions that wrote no prompt id: the prompt's own record id,
    which what follows it reaches through its parents."""
    begins = "external_input" in flags or trigger == "notification"
    return line.uuid if begins and line.type == "user" else None


def _typed_text(line: Line, attachment: Attachment | None) -> str | None:
    """The text in which a person's prompt or a task notification would stand."""
    if attachment is not None:
        return attachment.prompt if isinstance(attachment.prompt, str) else None
    if line.type != "user" or line.message is None:
        return None
    content = line.message.content
    if isinstance(content, str):
        return content
    first = content[0] if content else None
    if isinstance(first, Block):
        return first.text if first.type == "text" else "" if first.type == "image" else None
    return first


def _trigger(line: Line, origin: str | None, typed: str | None) -> str | None:
    if origin is not None:
        return _TRIGGERS.get(origin, "unknown")
    if line.type != "user" or line.meta or line.compact_summary:
        return None
    if line.prompt_source is not None:
        return "external" if line.prompt_source in ("sdk", "typed") else None
    if typed is None or line.sidechain or line.result or _NOT_TYPED.match(typed):
        return None
    return "external"


def _flag(flags: list[str], line: Line, attachment: Attachment | None, trigger: str | None) -> None:
    """Add to ``flags`` what the line's own fields say, and bring them into the order of the schema."""
    kind, message = line.type, line.message
    if kind == "assistant" and message is not None:
        if message.model == "<synthetic>":
            flags.append("synthetic")
        if message.stop_reason:
            flags.append("finished")
    elif kind == "system":
        flags.append(_SYSTEM_FLAGS.get(line.subtype or "", "notice"))
    elif attachment is not None:
        if attachment.type == "queued_command" and attachment.command_mode == "prompt":
            flags.append("external_input")
        else:
            flags.append("injected")
        if attachment.type == "prompt_snapshot":
            if attachment.system_prompt:
                flags.append("system_prompt")
            if attachment.tools:
                flags.append("tool_schemas")
    elif kind == "user" and trigger == "external" and not line.meta:
        flags.append("external_input")
    if line.compact_summary:
        flags.append("reset_summary")
    if line.meta and kind == "user":
        flags.append("injected")
    if len(flags) > 1:
        flags.sort(key=_FLAG_ORDER.index)


_SYSTEM_FLAGS = {
    "compact_boundary": "context_reset",
    "api_error": "error",
    "turn_duration": "turn_duration",
    "local_command": "command",
}
_FLAG_ORDER = (
    "synthetic",
    "context_reset",
    "reset_summary",
    "finished",
    "external_input",
    "injected",
    "child_result",
    "error",
    "launch_ack",
    "turn_duration",
    "command",
    "notice",
    "system_prompt",
    "tool_schemas",
)


def _label(line: Line, sink: ContentSink) -> tuple[str | UnsetType, str | UnsetType]:
    """A title that a person typed in clear; any other only as content."""
    title = line.custom_title
    if title and not _BRANCHED.search(title) and len(title) <= NAME_LENGTH:
        return title, UNSET
    other = title or line.ai_title or line.agent_name or (line.summary if line.type == "summary" else None)
    return UNSET, sink.text(other) if other else UNSET


def _entry(line: Line, attachment: Attachment | None) -> str | UnsetType:
    kind = line.type
    if not kind:
        return UNSET
    detail: str | None = None
    if kind == "system":
        detail = line.subtype
    elif kind == "attachment":
        detail = attachment.type if attachment is not None else None
    elif kind == "queue-operation":
        detail = line.operation
    elif kind == "progress" and line.data:
        try:
            detail = _KINDED.decode(line.data).type
        except msgspec.ValidationError:
            detail = None
    return name(f"{kind}/{detail}" if detail else kind)


def _time(text: str | None) -> str | UnsetType:
    return text if text and instant(text) else UNSET


def _or_unset(text: str | None) -> str | UnsetType:
    return text if text else UNSET


def _attachment_part(source: Raw, attachment: Attachment, sink: ContentSink) -> Part:
    text = attachment.text if isinstance(attachment.text, str) else attachment.content
    if attachment.type == "queued_command" and isinstance(attachment.prompt, str):
        text = attachment.prompt
    if isinstance(text, str) and text:
        return text_part(text, sink)
    return data_part(str(source, "utf-8"), sink)


def _changes(result: ToolResult) -> Changes | UnsetType:
    """Lines added and removed by an edit; a file that was created counts its lines as added."""
    if result.patch is None or not result.file_path:
        return UNSET
    added = removed = 0
    for hunk in result.patch:
        for changed in hunk.lines:
            if changed.startswith("+"):
                added += 1
            elif changed.startswith("-"):
                removed += 1
    if result.type == "create" and not result.patch and bytes(result.content).startswith(b'"'):
        written = msgspec.json.decode(result.content, type=str)
        added = written.count("\n") + (not written.endswith("\n") and bool(written))
    return Changes(added=added, files=1, removed=removed)


def _sidecar_record(data: bytes, line: Line, source: Source, sink: ContentSink) -> Record:
    """A record of a journal line, an agent's sidecar or a workflow's manifest."""
    title = line.description or line.workflow_name
    entry: str = source.kind
    if source.kind == "journal" and line.type:
        entry = f"journal/{line.type}"
    return Record(
        batch=_or_unset(source.batch),
        child=name(line.agent) if line.agent else _or_unset(source.stream),
        entry=name(entry),
        flags=["child_result"] if source.kind == "journal" and line.journal_result else UNSET,
        label_content=sink.text(title) if title else UNSET,
        parts=[line_part(data, _SURROUNDINGS, sink)],
        started_by=name(line.parent_agent),
        time=_time(line.timestamp),
        tool=name(line.tool),
    )


def _read_script(source_text: bytes, source: Source, sink: ContentSink) -> Entry:
    text = source_text.decode("utf-8", "replace")
    part = Part(k="unknown", content=sink.text(text), bytes=size(text), why="a program, not data")
    record = Record(batch=_or_unset(source.batch), entry=source.kind, parts=[part])
    return Entry(record, 0, len(source_text))
