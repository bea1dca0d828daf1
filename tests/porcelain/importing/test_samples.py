"""Every sample comes out with the counts that a plain reading of its bytes gives."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.porcelain.importing.driving import (
    HOME,
    held,
    landed_pages,
    objstore,
    observations,
    opened,
    succeed,
    verify,
)

_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
#: Types of Claude Code's lines that make a file a conversation.
_SPOKEN = ("user", "assistant", "system", "attachment", "progress")


class Counted(NamedTuple):
    """One file as plain JSON tells it: its whole records, and lines of which something is no record."""

    records: list[dict[str, Any]]
    broken: int


def read(path: Path) -> Counted:
    """Records are JSON objects a line; in a broken line, those from some place on to its end."""
    records: list[dict[str, Any]] = []
    broken = 0
    data = path.read_bytes()
    for number, line in enumerate(lines := data.split(b"\n"), 1):
        text = line.decode("utf-8", "replace").strip(" \t\r\n\ufeff")
        if not text:
            continue
        found, whole = list(objects(text)), True
        if found == [None]:
            found, whole = salvaged(text), False
        if not found and number == len(lines):
            continue  # torn: its writer may come back
        records += [one for one in found if one is not None]
        broken += not whole
    return Counted(records, broken)


def objects(text: str) -> Iterator[dict[str, Any] | None]:
    """The objects that ``text`` consists of; only None when it consists of anything else."""
    found, place = [], 0
    decoder = json.JSONDecoder()
    while place < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except ValueError:
            return iter([None])
        if not isinstance(value, dict):
            return iter([None])
        found.append(value)
        place += len(text[place:]) - len(text[place:].lstrip())
    return iter(found)


def salvaged(text: str) -> list[dict[str, Any] | None]:
    """What stands behind a record that was cut: the longest end of the line that is whole records."""
    for start in re.finditer(r'\{"', text[1:]):
        found = list(objects(text[start.start() + 1 :]))
        if found != [None] and all(one and "type" in one for one in found):
            return found
    return []


def transcripts(root: Path) -> list[Path]:
    """Files that hold records, other than whole documents."""
    return sorted(path for path in root.rglob("*.jsonl") if path.name != "history.jsonl")


def is_conversation(path: Path, records: list[dict[str, Any]]) -> bool:
    if "subagents" in path.parts:
        return True
    return any(
        one.get("type") in _SPOKEN and ("uuid" in one or "message" in one or one["type"] == "attachment")
        for one in records
    )


def native_id(path: Path, records: list[dict[str, Any]]) -> str:
    """The session that a transcript of Claude Code belongs to."""
    for parent in path.parents:
        if parent.name == "subagents":
            return parent.parent.name
    if _UUID.fullmatch(path.stem):
        return path.stem
    return next((one["sessionId"] for one in records if "sessionId" in one), path.stem)


def message(record: dict[str, Any]) -> dict[str, Any]:
    found = record.get("message")
    return found if isinstance(found, dict) else {}


def blocks(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for record in records:
        content = message(record).get("content")
        if isinstance(content, list):
            yield from (block for block in content if isinstance(block, dict))


def once(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of records that claim one uuid the first."""
    first = {one["uuid"]: number for number, one in reversed(list(enumerate(records))) if one.get("uuid")}
    return [one for number, one in enumerate(records) if first.get(one.get("uuid"), number) == number]


def resets(records: list[dict[str, Any]]) -> set[str]:
    """Context resets but one that stands at the very beginning, which resets nothing."""
    return {one["uuid"] for one in records[1:] if one.get("subtype") == "compact_boundary"}


#: What the client itself wrote in a person's name begins with.
_CLIENTS = (
    "<task-notification",
    "<local-command",
    "<command-name",
    "<bash",
    "[Request interrupted",
    "Caveat",
)


def is_typed(record: dict[str, Any]) -> bool:
    """Whether a line of a main transcript is something that a person typed."""
    attachment = record.get("attachment") or {}
    if record.get("type") == "attachment":
        return attachment.get("type") == "queued_command" and attachment.get("commandMode") == "prompt"
    if record.get("type") != "user" or record.get("isMeta") or record.get("isCompactSummary"):
        return False
    if record.get("isSidechain"):
        return (record.get("origin") or {}).get("kind") == "human"
    content = message(record).get("content")
    if isinstance(content, list):
        if any(isinstance(block, dict) and block.get("type") == "tool_result" for block in content):
            return False
        content = "".join(block.get("text", "") for block in content if isinstance(block, dict))
    return isinstance(content, str) and not content.startswith(_CLIENTS)


def check_claude(store: Path, root: Path) -> int:
    seen = {path: row for path, row in observations(store).items() if path.startswith(str(root) + "/")}
    conversations: dict[str, dict[str, set[str]]] = {}
    for path in transcripts(root):
        records, broken = read(path)
        if not records or not is_conversation(path, records):
            assert str(path) not in seen
            continue
        row = seen.pop(str(path))
        metadata = row["metadata_json"]
        assert metadata["records"] == len(records), path
        if not broken:
            assert "damage" not in metadata, path
        if path.name == "journal.jsonl":
            continue
        name = native_id(path, records)
        assert row["provider_session_id"] == name
        counts = conversations.setdefault(
            name, {"calls": set(), "tools": set(), "streams": set(), "resets": set(), "typed": set()}
        )
        agent = path.stem.removeprefix("agent-") if path.name.startswith("agent-") else "main"
        counts["streams"].add(agent)
        records = once(records)
        uses = [block for block in blocks(records) if block.get("type") == "tool_use"]
        counts["tools"] |= {block["id"] for block in uses if "id" in block}
        counts["calls"] |= {
            message(one)["id"] for one in records if one.get("type") == "assistant" and "id" in message(one)
        }
        counts["resets"] |= resets(records)
        if agent == "main":
            counts["typed"] |= {f"{path}:{n}" for n, one in enumerate(records) if is_typed(one)}
    # What is left are documents: one record each.
    assert all(row["metadata_json"]["records"] == 1 for row in seen.values())
    assert all(not path.endswith(".jsonl") for path in seen)
    folds = {name: frames for (provider, name), frames in held(store).folds.items() if provider == "claude"}
    assert folds.keys() == conversations.keys()
    for name, counts in conversations.items():
        kinds = [(frame.get("kind"), frame) for frame in folds[name].values() if frame["t"] == "node"]

        def of(*wanted: str, kinds: list[tuple[Any, Any]] = kinds) -> list[dict[str, Any]]:
            return [frame for kind, frame in kinds if kind in wanted]

        assert {one["id"] for one in of("tool", "agent.call")} == {f"tool/{t}" for t in counts["tools"]}, name
        assert {one["id"] for one in of("llm.call")} == {f"call/{c}" for c in counts["calls"]}, name
        assert {one["id"] for one in of("stream")} == {f"stream/{s}" for s in counts["streams"]}, name
        assert len(of("message.external")) == len(counts["typed"]), name
        assert len(of("epoch.boundary")) == len(counts["resets"]), name
        assert len(of("epoch")) == len(counts["streams"]) + len(counts["resets"]), name
    return len(conversations)


def check_pi_structure(
    frames: dict[str, Any], records: list[dict[str, Any]], tools: int, compacted: int
) -> None:
    """Turns, model calls, tool uses, compactions of one file, which is one stream."""
    kinds = Counter(frame.get("kind") for frame in frames.values() if frame["t"] == "node")
    answers = [one for one in records if message(one).get("role") == "assistant"]
    # An entry that stands twice in a file is one call.
    calls = {
        message(one).get("responseId") or one.get("id") or message(one).get("timestamp") or one["timestamp"]
        for one in answers
    }
    asked = {
        one.get("id") or number for number, one in enumerate(records) if message(one).get("role") == "user"
    }
    assert kinds["llm.call"] == len(calls)
    assert kinds["tool"] + kinds["agent.call"] == tools
    assert kinds["message.external"] == kinds["talk"] == len(asked)
    assert kinds["epoch.boundary"] == compacted
    assert kinds["stream"] == 1


def check_pi(store: Path, root: Path) -> int:
    seen = {path: row for path, row in observations(store).items() if path.startswith(str(root) + "/")}
    landed: dict[str, list[Any]] = {}
    with opened(store) as (_, view):
        for provider, _, page, records in landed_pages(view):
            if provider == "pi":
                landed.setdefault(page.src, []).extend(records)
    folds = {name: frames for (provider, name), frames in held(store).folds.items() if provider == "pi"}
    found = 0
    for path in transcripts(root):
        records, broken = read(path)
        row = seen.pop(str(path))
        assert row["metadata_json"]["records"] == len(records), path
        assert ("damage" in row["metadata_json"]) == bool(broken), path
        mine = landed[path.name]
        assert len(mine) == len(records)
        parts = [part for record in mine for part in record.parts or ()]
        calls = {block["id"] for block in blocks(records) if block.get("type") == "toolCall"}
        assert {part.id for part in parts if part.k == "call"} == calls, path
        said = sum(message(one).get("role") == "assistant" for one in records)
        assert sum(record.role == "assistant" for record in mine) == said, path
        compacted = sum(one.get("type") == "compaction" for one in records)
        assert sum("context_reset" in (record.flags or ()) for record in mine) == compacted, path
        check_pi_structure(folds[row["provider_session_id"]], records, len(calls), compacted)
        found += 1
    assert not seen
    return found


@pytest.mark.parametrize(("agent", "check"), [("claude", check_claude), ("pi", check_pi)])
def test_every_shared_sample(tmp_path: Path, shared: Path, agent: str, check: Any) -> None:
    root = (shared / "samples" / agent).absolute()
    store = tmp_path / "store"
    code = objstore(store, "import", "--json", root)
    assert (code.code, code.err.count("\n")) == (0, 1), code.err
    assert check(store, root) == code.json["places"][0]["conversations"] > 20
    verify(store)


def test_the_fixtures(tmp_path: Path) -> None:
    store = tmp_path / "store"
    result = succeed(store, "import", "--json", home=HOME).json
    by_agent = {place["provider"]: place for place in result["places"]}
    assert check_claude(store, HOME / ".claude") == by_agent["claude"]["conversations"] == 8
    assert check_pi(store, HOME / ".pi") == by_agent["pi"]["conversations"] == 5
    readme = (HOME.parent / "README.md").read_text()
    rows = re.findall(
        r"^\| `(home/\S+)` \| .* \| \d+ \| (\d+) \|(?: \d+ \|){4} (\d+) \|$", readme, re.MULTILINE
    )
    rows = [row for row in rows if row[0].startswith(("home/.claude/", "home/.pi/"))]
    assert len(rows) == 20
    seen = observations(store)
    for path, records, damage in rows:
        if row := seen.get(str(HOME.parent / path)):
            metadata = row["metadata_json"]
            assert metadata["records"] == int(records)
            assert metadata.get("damage", {}).get("count", 0) == int(damage)
    assert by_agent["claude"]["damaged"] == sum(int(damage) for _, _, damage in rows) == 5
    verify(store)
