"""The samples read as plain JSON, by other means than what made them: what files hold, and what their page says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
README = (FIXTURES / "README.md").read_text(encoding="utf-8")
COUNTED = {
    found[1]: tuple(map(int, found[2].split(" | ")))
    for found in re.finditer(r"^\| `(home/[^`]+)` \| .* \| ((?:\d+ \| ){6}\d+) \|$", README, re.MULTILINE)
}
UNCOUNTED = {
    found[1]: int(found[2])
    for found in re.finditer(r"^\| `(home/[^`]+)` \| [^|]+ \| (\d+) \|$", README, re.MULTILINE)
}
#: A folder with many small files, and how many.
TREES = {
    found[1]: int(found[2])
    for found in re.finditer(r"^\| `(home/[^`]+/)` \| (\d+) files .* \| \d+ \|$", README, re.MULTILINE)
}
CLAUDE = sorted(path for path in COUNTED if path.startswith("home/.claude/"))
PI = sorted(path for path in COUNTED if path.startswith("home/.pi/"))
CODEX = sorted(path for path in COUNTED if path.startswith("home/.codex/"))
OMP = sorted(path for path in COUNTED if path.startswith("home/.omp/"))
FACTORY = sorted(path for path in COUNTED if path.startswith("home/.factory/"))
#: How a record begins: what a line is cut into before each of its pieces is taken for JSON.
BEGINNINGS = {
    ".claude": rb'\{"parentUuid":',
    ".codex": rb'\{"timestamp":"',
    ".factory": rb'\{"type":"(?:message|todo_state|agent_turn_outcome|compaction_state|session_start)"',
    ".omp": rb'\{"type":"(?:message|compaction|model_change|reset_boundary|custom)","id":"',
    ".pi": rb'\{"type":"',
}


def shown(words: str) -> str:
    """The counted file whose description holds ``words``."""
    (line,) = [line for line in README.splitlines() if words in line and line.startswith("| `home/")]
    return line.split("`")[1]


def data_of(path: str) -> bytes:
    data = (FIXTURES / path).read_bytes()
    return zstandard.ZstdDecompressor().decompress(data) if path.endswith(".zst") else data


def pieces(path: str) -> Iterator[Any]:
    """Records, or None for what is none; every record of a damaged file starts the same
    way. A last line without a newline is left out when it does not parse: its writer may still come back."""
    beginning = BEGINNINGS[path.split("/")[1]]
    *lines, last = data_of(path).split(b"\n")
    for line in [*lines, last]:
        whole = line.startswith(b"{") and is_json(line)
        for piece in [line] if whole else re.split(rb"(?=" + beginning + rb")", line):
            if not piece.strip():
                continue
            try:
                yield json.loads(piece)
            except ValueError:
                if line is not last:
                    yield None


def is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def typed_by_a_person(record: dict[str, Any]) -> bool:
    message = record.get("message", {})
    if message.get("role") != "user":
        return False
    if "parentUuid" not in record:  # Pi, oh-my-pi
        return message.get("attribution") in (None, "user")
    text = message["content"]
    program = ("<task-notification>", "[Request interrupted", "<command-name>")
    hidden = record["isSidechain"] or record.get("isMeta") or record.get("isCompactSummary")
    return isinstance(text, str) and not hidden and not text.startswith(program)


def count(path: str) -> tuple[int, ...]:
    data = data_of(path)
    found = list(pieces(path))
    records = [record for record in found if record is not None]
    counted = {".codex": count_codex, ".factory": count_factory}.get(path.split("/")[1], count_messages)
    return (
        data.count(b"\n") + (not data.endswith(b"\n")),
        len(records),
        *counted(path, records),
        len(found) - len(records),
    )


def count_messages(path: str, records: list[dict[str, Any]]) -> tuple[int, ...]:
    """Turns, model calls, tool calls and sub-agents of a file of Claude Code, Pi or oh-my-pi."""
    said = [record for record in records if record.get("message", {}).get("role") == "assistant"]
    blocks = [block for record in said for block in record["message"]["content"]]
    below = [p for p in (FIXTURES / path).with_suffix("").rglob("*.jsonl") if p.name != "journal.jsonl"]
    below = below if below and "subagents" not in path and not re.search(r"/\d+-\w+\.jsonl$", path) else []
    roots = [r for r in records if r.get("isSidechain") and r["parentUuid"] is None and "agentId" not in r]
    return (
        sum(map(typed_by_a_person, records)),
        len({record["message"].get("id") or json.dumps(record) for record in said}),
        len({block["id"] for block in blocks if block["type"] in ("tool_use", "toolCall")}),
        len(below) + len(roots),
    )


def count_codex(path: str, records: list[dict[str, Any]]) -> tuple[int, ...]:
    payloads = [record["payload"] for record in records]
    meta = payloads[0]
    users = [one for one in payloads if one.get("type") == "message" and one["role"] == "user"]
    typed = [one for one in users if not one["content"][0]["text"].startswith("<")]
    below = [
        other for other in CODEX if records_of(other)[0]["payload"].get("parent_thread_id") == meta["id"]
    ]
    return (
        0 if "parent_thread_id" in meta else len(typed),
        len(codex_calls(records)),
        len({one["call_id"] for one in payloads if one.get("type") in ("custom_tool_call", "function_call")}),
        len(below),
    )


def codex_calls(records: list[dict[str, Any]]) -> list[dict[str, int]]:
    """What each model call used: its own record, or in files that have none the totals as far as they moved."""
    stated = [one["payload"]["usage"] for one in records if one["type"] == "token_usage_record"]
    if stated:
        return stated
    infos = [one["payload"]["info"] for one in records if one["payload"].get("type") == "token_count"]
    calls, before = [], None
    for info in infos:
        if info is None or info["total_token_usage"] == before:
            continue
        before = info["total_token_usage"]
        calls.append(info["last_token_usage"])
    return calls


def count_factory(path: str, records: list[dict[str, Any]]) -> tuple[int, ...]:
    messages = [record["message"] for record in records if record["type"] == "message"]
    said = [one for one in messages if one["role"] == "assistant"]
    asked = [one for one in messages if one["role"] == "user" and "visibility" not in one]
    typed = [one for one in asked if one["content"][0]["type"] == "text"]
    uses = {block["id"] for one in said for block in one["content"] if block["type"] == "tool_use"}
    callers = [caller for other in FACTORY for caller in started_by(other)]
    return (
        0 if started_by(path) else len(typed),
        len({one["openaiMessageId"] for one in said}),
        len(uses),
        callers.count(Path(path).stem),
    )


def settings_of(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIXTURES / path).with_suffix(".settings.json").read_bytes())
    return found


def started_by(path: str) -> list[str]:
    return [tag["metadata"]["callingSessionId"] for tag in settings_of(path)["tags"]]


def records_of(path: str) -> list[dict[str, Any]]:
    return [record for record in pieces(path) if record is not None]
