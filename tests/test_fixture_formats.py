"""The samples of Codex, oh-my-pi, OpenCode and Factory Droid are laid out as these agents lay out theirs."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from contextlib import closing
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.fixture_files import (
    CODEX,
    FACTORY,
    FIXTURES,
    OMP,
    README,
    codex_calls,
    data_of,
    is_json,
    records_of,
    settings_of,
    shown,
)

OPENCODE = FIXTURES / "home/.local/share/opencode"


# -- Codex -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", CODEX)
def test_codex_layout(path: str) -> None:
    meta = records_of(path)[0]["payload"]
    named = re.fullmatch(r"rollout-(\S{10})T(\d\d)-(\S{5})-(\S{36})\.jsonl(\.zst)?", Path(path).name)
    assert named is not None and named[4] == meta["id"]
    # The name has Mira's time: one hour before UTC in winter, two in summer.
    ahead = int(named[2]) - int(meta["timestamp"][11:13])
    assert (named[1], ahead) == (meta["timestamp"][:10], 2 if "05" <= named[1][5:7] <= "10" else 1)
    if "/sessions/" in path:
        assert path.split("/sessions/")[1].startswith(named[1].replace("-", "/") + "/")
    assert int(meta["id"][:8] + meta["id"][9:13], 16) // 1000 == pytest.approx(
        epoch(meta["timestamp"]), abs=1
    )


def epoch(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def test_codex_states_totals_again_and_anew() -> None:
    counts = [
        one["payload"]["info"]
        for one in records_of(shown("0.110: cached"))
        if one["payload"].get("type") == "token_count"
    ]
    assert counts[0] is None and len(counts) > 2 * 9
    naive = sum(info["last_token_usage"]["input_tokens"] for info in counts if info)
    calls = codex_calls(records_of(shown("0.110: cached")))
    assert naive > 1.5 * sum(one["input_tokens"] for one in calls)
    totals = [
        one["payload"]["info"]["total_token_usage"]["input_tokens"]
        for one in records_of(shown("0.49, archived"))
        if one["payload"].get("type") == "token_count" and one["payload"]["info"]
    ]
    assert any(after < before for before, after in pairwise(totals))


def test_codex_forks_repeat_or_refer() -> None:
    parent, fork = (
        records_of(shown("0.110: cached")),
        records_of(shown("its fork before the last prompt: header")),
    )
    copied = [one for one in fork[1:] if one["timestamp"] == fork[1]["timestamp"]]
    ends = [n for n, one in enumerate(parent, 1) if one["payload"].get("type") == "task_complete"]
    before = [{**one, "timestamp": fork[1]["timestamp"]} for one in parent]
    assert copied == fork[1 : 1 + len(copied)]
    assert copied == before[: ends[1]]
    assert fork[0]["payload"]["forked_from_id"] == parent[0]["payload"]["id"]
    data, later = data_of(shown("0.171: numbered")), records_of(shown("its fork: nothing but new"))
    base = later[0]["payload"]["history_base"]
    kept = data[: base["end_byte_offset"]]
    assert kept.endswith(b"\n") and kept.count(b"\n") == base["end_ordinal_exclusive"]
    assert [one["ordinal"] for one in later] == [base["end_ordinal_exclusive"] + n for n in range(len(later))]


def test_codex_states_the_tokens_of_a_numbered_thread_twice() -> None:
    records = records_of(shown("0.171: numbered"))
    totals = [one["payload"]["info"] for one in records if one["payload"].get("type") == "token_count"]
    assert [info["last_token_usage"] for info in totals] == codex_calls(records)


# -- oh-my-pi --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", OMP)
def test_omp_layout_and_tree(path: str) -> None:
    found = records_of(path)
    if found[0]["type"] == "title":
        assert data_of(path).index(b"\n") == 255  # the slot is 256 bytes with its end
        del found[0]
    header, *entries = found
    assert path.split("/")[4] == "-" + header["cwd"].removeprefix("/home/mira/").replace("/", "-")
    seen: set[str | None] = {None}
    for entry in entries:
        assert entry["parentId"] in seen and entry["id"] not in seen
        seen.add(entry["id"])


def test_omp_branch_subagents_and_blob() -> None:
    main, branch = shown("title slot"), shown("its branch before")
    origin = records_of(branch)[0]["parentSession"]
    assert origin == "/home/mira/" + main.removeprefix("home/")
    assert sum(entry in records_of(main) for entry in records_of(branch)) == 8
    folder = (FIXTURES / main).with_suffix("")
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*.jsonl")}
    named = set()
    for path in (main, *(f"{main.removesuffix('.jsonl')}/{name}" for name in files)):
        above = "" if path == main else path.rsplit("/", 1)[1].removesuffix(".jsonl") + "/"
        for record in records_of(path):
            for result in record.get("message", {}).get("details", {}).get("results", ()):
                named.add(f"{above}{result['id']}.jsonl")
    assert files == named and len(files) == 3
    (blob,) = (FIXTURES / "home/.omp/agent/blobs").iterdir()
    assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
    assert f"blob:sha256:{blob.name}".encode() in data_of(main)
    assert blob.read_bytes().startswith(b"\x89PNG") and blob.read_bytes().endswith(b"IEND\xaeB`\x82")


# -- OpenCode --------------------------------------------------------------------------------------------------------

_ROW = re.compile(r"^\| `(ses_\w+)` \| (\w+) \| .* \| ((?:\d+ \| ){3}\d+) \|$", re.MULTILINE)
STORED = {found[1]: (found[2], *map(int, found[3].split(" | "))) for found in _ROW.finditer(README)}


def opened() -> sqlite3.Connection:
    return sqlite3.connect(f"{(OPENCODE / 'opencode.db').as_uri()}?immutable=1", uri=True)


def test_opencode_database_is_whole() -> None:
    with closing(opened()) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        for index in ("part_session_idx", "part_message_id_id_idx", "sqlite_autoindex_part_1"):
            (found,) = database.execute("SELECT COUNT(*) FROM part NOT INDEXED").fetchone()
            where = "session_id > '' AND message_id > '' AND id > ''"
            query = f"SELECT COUNT(*) FROM part INDEXED BY {index} WHERE {where}"
            assert database.execute(query).fetchone() == (found,)


def documents(session: str) -> list[dict[str, Any]]:
    """What the database, else the tree, holds of a session: its messages and its parts."""
    with closing(opened()) as database:
        rows = [
            json.loads(row[0])
            for table in ("message", "part")
            for row in database.execute(
                f"SELECT data FROM {table} WHERE session_id = ? ORDER BY id", (session,)
            )
        ]
    if rows:
        return rows
    files = [*OPENCODE.glob(f"storage/message/{session}/*.json")]
    files += [part for one in files for part in OPENCODE.glob(f"storage/part/{one.stem}/*.json")]
    return [json.loads(data) for p in sorted(files) if is_json(data := p.read_bytes())]


@pytest.mark.parametrize("session", sorted(STORED))
def test_opencode_counts(session: str) -> None:
    where, stated, turns, calls, tools = STORED[session]
    held = documents(session)
    with closing(opened()) as database:
        rows = database.execute("SELECT parent_id FROM session WHERE id = ?", (session,)).fetchall()
    in_tree = (OPENCODE / "storage/message" / session).is_dir()
    assert (
        where == {(True, False): "database", (True, True): "both", (False, True): "tree"}[bool(rows), in_tree]
    )
    assert stated == 1 + len(held) + (where == "tree")  # the part that was cut
    prompts = [one for one in held if one.get("role") == "user"]
    compactions = [one for one in held if one.get("type") == "compaction"]
    assert turns == (0 if rows and rows[0][0] else len(prompts) - len(compactions))
    assert calls == sum(one.get("role") == "assistant" for one in held)
    assert tools == len({one["callID"] for one in held if one.get("type") == "tool"})


def test_opencode_left_the_tree_behind() -> None:
    (session,) = (name for name, (where, *_) in STORED.items() if where == "both")
    tree = {p.stem: json.loads(p.read_bytes()) for p in OPENCODE.glob(f"storage/message/{session}/*.json")}
    tree |= {
        p.stem: json.loads(p.read_bytes())
        for one in [*tree]
        for p in OPENCODE.glob(f"storage/part/{one}/*.json")
    }
    with closing(opened()) as database:
        rows = {
            row[0]: json.loads(row[1])
            for table in ("message", "part")
            for row in database.execute(f"SELECT id, data FROM {table} WHERE session_id = ?", (session,))
        }
    own = ("id", "sessionID", "messageID")
    assert rows == {name: {k: v for k, v in one.items() if k not in own} for name, one in tree.items()}


def test_opencode_fork_has_nothing_of_its_origin_but_what_was_said() -> None:
    with closing(opened()) as database:
        query = "SELECT part.id, part.data FROM part JOIN session ON session.id = session_id WHERE title = ?"
        main, fork = (
            {row[0]: json.loads(row[1]) for row in database.execute(query, (title,))}
            for title in ("Outbox drops letters", "Outbox drops letters (fork #1)")
        )
        assert database.execute("SELECT parent_id FROM session WHERE title LIKE '%(fork #1)'").fetchone() == (
            None,
        )
    assert not main.keys() & fork.keys()
    copied = [part for part in fork.values() if part in main.values()]
    assert len(copied) == 12 and sum(part["type"] == "tool" for part in copied) == 3


def test_opencode_task_names_its_child() -> None:
    with closing(opened()) as database:
        (child, parent) = database.execute(
            "SELECT id, parent_id FROM session WHERE parent_id IS NOT NULL"
        ).fetchone()
    (task,) = [one for one in documents(parent) if one.get("tool") == "task"]
    assert task["state"]["metadata"]["sessionId"] == child


# -- Factory Droid ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FACTORY)
def test_factory_layout_and_chain(path: str) -> None:
    header, *records = records_of(path)
    assert header["type"] == "session_start" and header["id"] == Path(path).stem
    assert re.sub(r"[^A-Za-z0-9-]", "-", header["cwd"]) == path.split("/")[3]
    seen: list[str | None] = [None]
    for record in records:
        if record["type"] == "message":
            assert record.get("parentId") == seen[-1]
            seen.append(record["id"])


def test_factory_settings_and_fork() -> None:
    main, child, fork = (
        shown("hidden context"),
        shown("the session of the task: nothing"),
        shown("a fork of the whole"),
    )
    (tag,) = settings_of(child)["tags"]
    said = [record["message"] for record in records_of(main) if record["type"] == "message"]
    tasks = [block["id"] for one in said for block in one["content"] if block.get("name") == "Task"]
    assert [tag["metadata"]["callingToolUseId"]] == tasks
    own, whole = settings_of(main)["tokenUsage"], settings_of(main)["inclusiveTokenUsage"]
    added = settings_of(child)["tokenUsage"]
    assert whole == {key: own[key] + added[key] for key in own}
    assert settings_of(main)["childInclusiveTokenUsageBySessionId"] == {Path(child).stem: added}
    header, *records = records_of(fork)
    assert header["parent"] == Path(main).stem
    assert records[:11] == records_of(main)[1:12] and records[9]["id"] == header["forkedAtMessageId"]
    assert settings_of(fork)["tokenUsage"]["inputTokens"] < own["inputTokens"]
