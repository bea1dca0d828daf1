"""Copies of the sample conversations in which every text that is nobody's name carries a mark of its own."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import zstandard

from tests.porcelain.importing.driving import copy_home

MARK = re.compile(rb"zq\d{5}mark")
#: Secrets that are planted in the fixtures, by what only they hold.
SECRET = re.compile(rb"AKIA|ghp_|not-a-real|notARealSecret|FAKEfake|fixture0token")

_TEXT = re.compile(rb'"(?:text|content|command|stdout|thinking)":"')
#: Ids, names, times, counts, roles, words of the format, pointers; and names that a person gave.
_PLAIN = set(re.findall(r"\w+", """
    type subtype role id uuid parentUuid logicalParentUuid sessionId session_id requestSessionId messageId leafUuid
    tool_use_id toolUseId toolUseID parentToolUseID sourceToolAssistantUUID agentId parentAgentId runId taskId promptId
    requestId timestamp version cwd gitBranch model name stop_reason userType entrypoint promptSource kind level
    media_type mimeType customTitle forkedFrom operation status service_tier key
    parentId toolCallId toolName responseId stopReason parentSession branchedFrom firstKeptEntryId fromId targetId
    modelId provider api label commandMode encoding
    id session_id turn_id thread_id call_id response_id agent_id forked_from_id parent_thread_id sender_thread_id
    receiver_thread_ids window_id cli_version originator source thread_source history_mode commit_hash branch
    repository_url thread_name updated_at namespace phase content_item_kinds reasoning_effort approval_policy
    titleSource attribution updatedAt pad agent agentSource purpose previousSessionFiles
    hostId owner visibility interactionMode reasoningEffort openaiMessageId turnId reason resultKind sessionTitle
    callingSessionId callingToolUseId forkedAtMessageId parent providerLock autonomyMode
    sessionID messageID parentID projectID modelID providerID directory worktree root slug mode finish callID tool
    snapshot parentSessionId session_id message_id parent_id project_id
    """))  # fmt: skip
#: Columns of OpenCode's database, and those that hold JSON.
_COLUMNS = {"session": ("title",), "message": ("data",), "part": ("data",)}


class Marker:
    """Gives out marks; ``given`` counts them."""

    def __init__(self) -> None:
        self.given = 0

    def __call__(self) -> str:
        self.given += 1
        return f"zq{self.given:05d}mark"

    def value(self, value: Any, key: str = "") -> Any:
        """``value`` with a mark in every text that is not plain."""
        match value:
            case str() if key == "data" and len(value) > 20:
                return base64.b64encode(self().encode() * 3).decode()
            case str() if key not in _PLAIN and not value.startswith(("toolu_", "msg_")):
                return f"{value} {self()}"
            case list():
                return [self.value(one, key) for one in value]
            case dict():
                # A title that a person gave is a name.
                given = "user" in (value.get("source"), value.get("titleSource"))
                return {
                    name: one if given and name == "title" else self.value(one, name)
                    for name, one in value.items()
                }
        return value

    def lines(self, data: bytes) -> bytes:
        """All lines of a transcript."""
        return b"\n".join([self.line(line) for line in data.split(b"\n")])

    def line(self, line: bytes) -> bytes:
        """One line; one that is no JSON gets marks at the beginning of its texts, or else at its end."""
        try:
            value = json.loads(line)
        except ValueError:
            marked = _TEXT.sub(lambda found: found.group() + self().encode(), line)
            return marked if marked != line or not line.strip() else line + self().encode()
        return json.dumps(self.value(value), separators=(",", ":")).encode()


def _mark_database(path: Path, marker: Marker) -> None:
    with closing(sqlite3.connect(path)) as database:
        for table, columns in _COLUMNS.items():
            for column in columns:
                for ident, text in database.execute(
                    f"SELECT id, {column} FROM {table} ORDER BY id"
                ).fetchall():
                    marked = marker.line(text.encode()).decode() if column == "data" else f"{marker()} {text}"
                    database.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (marked, ident))
        database.commit()


def marked_home(target: Path) -> tuple[Path, int]:
    """A home folder with marked conversations, and how many marks there are."""
    home = copy_home(target)
    marker = Marker()
    for path in sorted(home.rglob("*")):
        if path.suffix == ".jsonl":
            path.write_bytes(marker.lines(path.read_bytes()))
        elif path.suffix == ".zst":
            data = marker.lines(zstandard.ZstdDecompressor().decompress(path.read_bytes()))
            path.write_bytes(zstandard.ZstdCompressor().compress(data))
        elif path.suffix == ".db":
            _mark_database(path, marker)
        elif path.suffix == ".json":
            path.write_bytes(marker.line(path.read_bytes()))
        elif path.is_file():
            path.write_bytes(path.read_bytes() + f"\n// {marker()}\n".encode())
    project = home / ".claude/projects/-home-mira-src-marks"
    project.mkdir()
    spoken = {
        "type": "user",
        "uuid": "7b0a0b66-2f4f-4a51-9c5e-0f4d35c40a01",
        "parentUuid": None,
        "isSidechain": False,
        "sessionId": "7b0a0b66-2f4f-4a51-9c5e-0f4d35c40a00",
        "cwd": "/home/mira/src/marks",
        "version": "2.1.300",
        "timestamp": "2026-05-04T10:00:00.000Z",
    }
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 40}}
    bodies: list[dict[str, Any]] = [
        {"message": {"role": "user", "content": "a prompt"}},
        {"message": {"role": "user", "content": [{"type": "text", "text": "see"}, image]}},
        {"type": "summary", "summary": "what was said", "leafUuid": "x"},
        {"type": "ai-title", "aiTitle": "a title by a model"},
        {"type": "agent-name", "agentName": "a name by a model"},
        {"type": "custom-title", "customTitle": f"{marker()} what was said first (Branch)"},
        {"type": "last-prompt", "lastPrompt": "again", "leafUuid": "x"},
        {"type": "new-kind", "payload": {"deep": ["text", {"er": "text"}]}},
        {"type": "system", "subtype": "informational", "content": "said by the program", "level": "info"},
        {"message": {"role": "user", "content": [{"type": "new-block", "secretly": "text"}]}},
        {"attachment": {"type": "queued_command", "prompt": "typed meanwhile", "commandMode": "prompt"}},
        {
            "type": "assistant",
            "message": {
                "id": "msg_01marks",
                "role": "assistant",
                "model": "m",
                "content": [
                    {"type": "thinking", "thinking": "thought", "signature": "s" * 30},
                    {"type": "tool_use", "id": "toolu_marks", "name": "Bash", "input": {"command": "ls", "odd": "x"}},
                    "bare text",
                ],
            },
        },
        {
            "toolUseResult": {"stdout": "out", "stderr": "err", "structuredPatch": [{"lines": ["+ added"]}]},
            "message": {
                "role": "user",
                "content": [{
                    "type": "tool_result",
                    "tool_use_id": "toolu_marks",
                    "content": [{"type": "text", "text": "o"}, image],
                }],
            },
        },
        {"toolUseResult": "Error: not found", "message": {"role": "user", "content": "x"}},
    ]  # fmt: skip
    lines = [
        json.dumps(
            marker.value({**spoken, "uuid": f"7b0a0b66-2f4f-4a51-9c5e-0f4d35c4{n:04d}", **body})
        ).encode()
        for n, body in enumerate(bodies)
    ]
    cut = json.dumps({**spoken, "message": {"role": "user", "content": marker() * 20}}).encode()
    lines += [
        marker().encode(),
        b'"' + marker().encode() + b'"',
        cut[:-30] + lines[0],
        b"\0" * 9 + marker().encode(),
    ]
    lines += [
        b'{"type":"user","message":{"content":"\xff\xfe '
        + marker().encode()
        + b'"},"uuid":"u","sessionId":"s"}'
    ]
    data = b"\n".join(lines) + b"\n" + cut[:-9]
    (project / "7b0a0b66-2f4f-4a51-9c5e-0f4d35c40a00.jsonl").write_bytes(data)
    return home, marker.given
