"""Public bug reports of other tools, each file built by its recipe and taken through the whole program.

Those about usage are in ``test_usage_totals``, about forks and copies in ``test_shared_records`` and
``relations.test_relations``, about formats of one agent in the tests of its reader.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from porcelain.lineage.exports.json_view import _HEAD
from tests.porcelain.importing.driving import copy_home, objstore, succeed
from tests.porcelain.lineage.pi_home import PiHome

NATIVE = "5f0e8a51-7d0c-4f6f-9a3b-000000000001"
OTHER = "5f0e8a51-7d0c-4f6f-9a3b-000000000002"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def claude(row: int, session: str = NATIVE, **changes: Any) -> dict[str, Any]:
    """Line ``row`` of a transcript, which follows the line before it."""
    role = "assistant" if row % 2 else "user"
    content: Any = f"line {row}" if role == "user" else [{"type": "text", "text": f"line {row}"}]
    return {
        "parentUuid": f"u{row - 1:04}" if row else None,
        "isSidechain": False,
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": f"u{row:04}",
        "timestamp": f"2026-03-01T10:{row // 60:02}:{row % 60:02}.000Z",
        "cwd": "/home/ines/garden",
        "sessionId": session,
        "version": "2.1.332",
        **changes,
    }


def text(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode()


def path_of(home: Path, session: str = NATIVE) -> Path:
    folder = home / ".claude" / "projects" / "-home-ines-garden"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{session}.jsonl"


def rows(store: Path, query: str, *words: str) -> list[dict[str, Any]]:
    out = succeed(store, "lineage", "sql", *words, "--json", query).out
    return [json.loads(line) for line in out.splitlines()]


def ids(store: Path, session: str = NATIVE) -> list[str | None]:
    """The agent's ids of all records of a conversation, in the order of its file."""
    query = (
        "SELECT provider_event_id AS id FROM events WHERE session_id = "
        f"(SELECT id FROM sessions WHERE provider_session_id = '{session}') ORDER BY ordinal"
    )
    return [row["id"] for row in rows(store, query, "--events")]


def damage(store: Path) -> dict[str, int]:
    query = "SELECT json_extract(metadata_json, '$.damage') AS damage FROM session_observations"
    (found,) = rows(store, query)
    held: dict[str, int] = json.loads(found["damage"] or "{}")
    return held


def test_r01_a_cut_record_and_the_next_glued_to_it(home: Path, store: Path) -> None:
    lines = [text(claude(row)) for row in range(50)]
    cut = b'{"type":"pr-link","sessionId":"s","prNu'
    lines[25] = cut + lines[25]
    path_of(home).write_bytes(b"\n".join(lines) + b"\n")
    result = succeed(store, "import", home=home)
    assert "1 damaged place set aside" in result.out
    assert ids(store) == [f"u{row:04}" for row in range(50)]
    assert damage(store) == {"bytes": len(cut), "count": 1}
    (found,) = rows(
        store, "SELECT byte_offset, byte_count FROM events WHERE provider_event_id = 'u0025'", "--events"
    )
    start = sum(len(line) + 1 for line in lines[:25]) + len(cut)
    assert (found["byte_offset"], found["byte_count"]) == (start, len(lines[25]) - len(cut))
    shutil.rmtree(store)
    assert objstore(store, "import", "--strict", home=home).code == 1


def test_r02_two_records_on_one_line(home: Path, store: Path) -> None:
    lines = [text(claude(row)) for row in range(6)]
    braces = text(claude(6, message={"role": "user", "content": 'he wrote "}{" and meant it }{'}))
    path_of(home).write_bytes(b"\n".join([*lines[:2], lines[2] + lines[3], *lines[4:], braces]) + b"\n")
    succeed(store, "import", home=home)
    assert ids(store) == [f"u{row:04}" for row in range(7)]
    assert damage(store) == {}
    places = rows(store, "SELECT row_number AS n FROM events ORDER BY ordinal", "--events")
    assert [row["n"] for row in places] == [1, 2, 3, 3, 4, 5, 6]


def test_r03_a_run_of_nul_bytes_before_a_record(home: Path, store: Path) -> None:
    lines = [text(claude(row)) for row in range(4)]
    lines[2] = bytes(512) + lines[2]
    path_of(home).write_bytes(b"\n".join(lines) + b"\n")
    succeed(store, "import", home=home)
    assert ids(store) == [f"u{row:04}" for row in range(4)]
    assert damage(store) == {"bytes": 512, "count": 1}


def test_r04_a_last_line_that_is_cut(home: Path, store: Path) -> None:
    """Pending, then whole; or, if the agent goes on behind it, damaged."""
    path, lines = path_of(home), [text(claude(row)) + b"\n" for row in range(5)]
    path.write_bytes(b"".join(lines[:4])[:-40])
    result = succeed(store, "import", home=home)
    assert "1 file with an incomplete last line" in result.out
    assert (ids(store), damage(store)) == (["u0000", "u0001", "u0002"], {})
    path.write_bytes(b"".join(lines[:4]))
    assert succeed(store, "import", "--json", home=home).json["records"] == 1
    assert (ids(store), damage(store)) == (["u0000", "u0001", "u0002", "u0003"], {})
    cut = lines[4][:-60]
    after = text(claude(5, parentUuid="u0003")) + b"\n"
    path.write_bytes(b"".join(lines[:4]) + cut)
    succeed(store, "import", home=home)
    path.write_bytes(b"".join(lines[:4]) + cut + after)
    succeed(store, "import", home=home)
    assert ids(store) == ["u0000", "u0001", "u0002", "u0003", "u0005"]
    assert damage(store) == {"bytes": len(cut), "count": 1}
    assert rows(store, "SELECT 1 FROM evidence WHERE summary LIKE '%not complete%'") == []


def test_r06_line_separators_within_a_text(home: Path, store: Path) -> None:
    line = claude(1, message={"role": "user", "content": "one\u2028two\u2029three\u0085four"})
    raw = json.dumps(line, ensure_ascii=False).encode()
    assert b"\xe2\x80\xa8" in raw
    path_of(home).write_bytes(text(claude(0)) + b"\n" + raw + b"\n" + text(claude(2)) + b"\n")
    succeed(store, "import", home=home)
    assert (ids(store), damage(store)) == (["u0000", "u0001", "u0002"], {})


def test_r08_a_lone_surrogate(home: Path, store: Path, tmp_path: Path) -> None:
    part = {"type": "tool_result", "tool_use_id": "t1", "content": "before \udcb2 after"}
    line = claude(1, type="user", message={"role": "user", "content": [part]})
    raw = json.dumps(line).encode()
    assert b"\\udcb2" in raw
    path_of(home).write_bytes(text(claude(0)) + b"\n" + raw + b"\n")
    objects = []
    for name in ("one", "two"):
        succeed(tmp_path / name, "import", home=home)
        query = "SELECT object_id FROM events ORDER BY ordinal"
        objects.append(rows(tmp_path / name, query, "--events"))
        succeed(tmp_path / name, "lineage", "export", tmp_path / f"{name}.json")
        succeed(tmp_path / name, "verify")
    assert objects[0] == objects[1] and len(objects[0]) == 2
    assert (tmp_path / "one.json").read_text().startswith(_HEAD)


def test_r10_a_tool_call_without_a_result(home: Path, store: Path) -> None:
    """Of three results one is missing: said so, never made up; when it comes, all is well."""

    def call(row: int) -> dict[str, Any]:
        part = {"type": "tool_use", "id": f"t{row}", "name": "Read", "input": {}}
        return claude(
            row, type="assistant", message={"id": f"m{row}", "role": "assistant", "content": [part]}
        )

    def result(row: int, of: int) -> dict[str, Any]:
        part = {"type": "tool_result", "tool_use_id": f"t{of}", "content": "ok"}
        return claude(row, type="user", message={"role": "user", "content": [part]})

    lines = [claude(0), call(1), result(2, 1), call(3), call(5), result(6, 5)]
    path = path_of(home)
    path.write_bytes(b"".join(text(line) + b"\n" for line in lines))
    succeed(store, "import", home=home)
    open_ends = [
        json.loads(line) for line in succeed(store, "flow", "unresolved", "--json", NATIVE).out.splitlines()
    ]
    assert any("t3" in json.dumps(one) for one in open_ends)
    assert not any("t1" in json.dumps(one) or "t5" in json.dumps(one) for one in open_ends)
    with path.open("ab") as file:
        file.write(text(result(7, 3)) + b"\n")
    succeed(store, "import", home=home)
    assert "t3" not in succeed(store, "flow", "unresolved", "--json", NATIVE).out


def test_r11_parents_that_are_not_there_and_an_id_used_twice(home: Path, store: Path) -> None:
    lines = [claude(row) for row in range(20)]
    for row in (4, 9, 14):
        lines[row]["parentUuid"] = f"gone-{row}"
    lines[17]["uuid"] = "u0003"
    path_of(home).write_bytes(b"".join(text(line) + b"\n" for line in lines))
    succeed(store, "import", home=home)
    found = ids(store)
    assert len(found) == 20
    assert found.count("u0003") == 2
    query = "SELECT count(DISTINCT object_id) AS n FROM events WHERE provider_event_id = 'u0003'"
    assert rows(store, query, "--events") == [{"n": 2}]
    shown = succeed(store, "flow", "show", NATIVE).out
    assert "10 talks, 10 steps" in shown  # none is hidden for want of a parent
    doctor = succeed(store, "lineage", "doctor", home=home).out
    assert (
        "Claude Code: 4 records after one that no file of the conversation has" in doctor
    )  # u0017 is gone too
    succeed(store, "verify")


def spoken(row: int, session: str, **changes: Any) -> dict[str, Any]:
    """A line of ``session`` with an id of its own, an answer with what it cost."""
    letter = "b" if session == OTHER else "u"
    names = {"uuid": f"{letter}{row:04}", "parentUuid": f"{letter}{row - 1:04}"}
    line = claude(row, session, **{**names, **changes})
    if row % 2:
        usage = {"input_tokens": 10, "output_tokens": row}
        line["message"] |= {"id": f"msg_{letter}{row}", "model": "claude-x", "usage": usage}
    return line


#: Lines of B in the orchard, a day later than A's in the garden.
MINE = [spoken(row, NATIVE) for row in range(6)]
THEIRS = [
    spoken(row, OTHER, cwd="/home/ines/orchard", timestamp=f"2026-03-02T11:00:{row:02}.000Z")
    for row in range(10)
]


def lines(*found: dict[str, Any]) -> bytes:
    return b"".join(text(line) + b"\n" for line in found)


def sessions(store: Path) -> dict[str, tuple[Any, ...]]:
    query = (
        "SELECT provider_session_id AS id, event_count AS n, start_timestamp AS first, end_timestamp AS last "
        "FROM sessions"
    )
    return {row["id"]: (row["n"], row["first"][:19], row["last"][:19]) for row in rows(store, query)}


def calls(store: Path) -> dict[str, tuple[int, int]]:
    found = succeed(store, "lineage", "usage", "--by", "session", "--json").json["rows"]
    return {row["name"]: (row["calls"], row["seen"]) for row in found}


def test_r12_records_of_one_session_in_the_file_of_another(home: Path, store: Path) -> None:
    """Five lines of B at the end of A's file, which B's own file has too: one set of records, B's by their ids; A's
    file is where they were seen too, and nothing claims that it comes from B for it."""
    path_of(home).write_bytes(lines(*MINE, *THEIRS[2:7]))
    path_of(home, OTHER).write_bytes(lines(*THEIRS))
    succeed(store, "import", home=home)
    assert ids(store) == [f"u{row:04}" for row in range(6)]
    query = """SELECT e.provider_event_id AS id FROM events e JOIN session_observations o ON o.id = e.observation_id
        JOIN sessions s ON s.id = e.session_id WHERE s.provider_session_id = '{}' AND o.path LIKE '%{}.jsonl'
        ORDER BY e.ordinal"""
    own, seen = (
        [row["id"] for row in rows(store, query.format(OTHER, file), "--events")] for file in (OTHER, NATIVE)
    )
    assert own == [f"b{row:04}" for row in range(10)] and seen == own[2:7]
    query = """SELECT count(*) AS n, count(DISTINCT e.id) AS places, count(DISTINCT e.object_id) AS records
        FROM events e"""
    assert rows(store, query, "--events") == [{"n": 21, "places": 21, "records": 16}]
    assert {name: found[0] for name, found in sessions(store).items()} == {NATIVE: 6, OTHER: 10}
    assert calls(store) == {NATIVE: (3, 3), OTHER: (5, 7)}
    links = (
        "SELECT json_extract(metadata_json, '$.links.session') AS other FROM session_observations "
        "WHERE json_extract(metadata_json, '$.inside') IS NULL ORDER BY 1"
    )
    assert [row["other"] for row in rows(store, links)] == [None, json.dumps([OTHER])]
    edges = rows(store, "SELECT edge_type, source_session_id = target_session_id AS same FROM edges")
    assert edges == [{"edge_type": "same_session_id", "same": 1}]
    (found,) = succeed(store, "lineage", "evidence", "--json").json["findings"]
    assert (found["kind"], found["says"]) == (
        "lines of another conversation",
        f"lines of {OTHER} stand in this file",
    )
    answer = succeed(store, "lineage", "why", "--json", NATIVE, OTHER).json
    assert (answer["relation"], answer["rule"]) == ("sibling", "same-file")
    target = succeed(store, "lineage", "resume", "--json", OTHER).json
    assert target["status"] == "deterministic" and target["recommended"]["path"].endswith(f"{OTHER}.jsonl")


def test_r12_records_of_a_session_that_has_no_file(home: Path, store: Path, tmp_path: Path) -> None:
    """B is a session all the same, with A's file as evidence, and A has nothing of it."""
    path = path_of(home)
    path.write_bytes(lines(*MINE[:4], *THEIRS[:5], *MINE[4:]))
    succeed(store, "import", home=home)
    assert (ids(store), ids(store, OTHER)) == (
        [f"u{row:04}" for row in range(6)],
        [f"b{row:04}" for row in range(5)],
    )
    assert sessions(store) == {
        NATIVE: (6, "2026-03-01T10:00:00", "2026-03-01T10:00:05"),
        OTHER: (5, "2026-03-02T11:00:00", "2026-03-02T11:00:04"),
    }
    assert calls(store) == {NATIVE: (3, 3), OTHER: (2, 2)}
    used = succeed(store, "lineage", "usage", "--json").json
    assert (used["files"], used["conversations"], used["total"]["seen"]) == (1, 2, 5)
    listed = [json.loads(line) for line in succeed(store, "lineage", "sessions", "--json").out.splitlines()]
    assert [(row["native_id"], row["label"], row["records"]) for row in listed] == [
        (OTHER, "/home/ines/orchard", 5),
        (NATIVE, "/home/ines/garden", 6),
    ]
    for words in (("timeline",), ("active",)):
        shown = succeed(store, "lineage", *words).out
        assert "/home/ines/orchard" in shown and "/home/ines/garden" in shown
    inventory = succeed(store, "lineage", "inventory").out
    assert "1 file, 0 of them gone." in inventory and f"{OTHER[:13]} in it" in inventory
    items = succeed(store, "lineage", "inventory", "--json").json["files"]
    assert sorted((one["native_id"], one["records"], one["path"]) for one in items) == [
        (NATIVE, 6, str(path)),
        (OTHER, 5, str(path)),
    ]
    why = succeed(store, "lineage", "why", NATIVE, OTHER).out
    assert f"5 records of {OTHER} stand in the file of {NATIVE}" in why
    resume = succeed(store, "lineage", "resume", OTHER).out
    assert "no file of its own" in resume and f"stand in the file of {NATIVE}" in resume
    assert "claude --resume" not in resume
    status = succeed(store, "status", home=tmp_path / "nobody").out
    assert re.search(r"Claude Code +2 +11 +1 ", status)
    assert "all well" in succeed(store, "lineage", "doctor", home=home).out
    assert succeed(store, "lineage", "threads", "--all", str(path)).out.count(str(path)) == 2
    for words in (("label", path, "by its path"), ("resume", path), ("graph", path)):
        assert objstore(store, "lineage", *words).code == 0  # a path means the file's own
    succeed(store, "verify")
    exported = succeed(store, "lineage", "export", "--json", tmp_path / "view.json").json
    assert (exported["events"], exported["rows"]["sessions"], exported["dangling"]) == (11, 2, 0)
    succeed(store, "lineage", "export", "--pi-compat", tmp_path / "compat")
    (made,) = (tmp_path / "compat").rglob("session-store.export.json")
    files = json.loads(made.read_text())["sessions"]  # each file is one there, under a key of its own
    assert sorted(one["eventCount"] for one in files) == [5, 6]
    assert len({one["canonicalKey"] for one in files}) == 2


def test_r12_where_others_worked_is_not_where_the_file_belongs(home: Path, store: Path) -> None:
    third = NATIVE[:-1] + "3"
    path = path_of(home)
    path.write_bytes(lines(*MINE, *THEIRS[:5], THEIRS[4]))  # one of them twice
    path_of(home, third).write_bytes(
        lines(*(spoken(row, third, cwd="/home/ines/orchard") for row in (20, 21)))
    )
    succeed(store, "import", home=home)
    rules = [
        succeed(store, "lineage", "why", "--json", third, other).json["rule"] for other in (NATIVE, OTHER)
    ]
    assert rules == ["not-enough-evidence", "same-folder"]
    assert sessions(store)[OTHER][0] == len(ids(store, OTHER)) == 6
    moved = succeed(
        store, "lineage", "move", "--from", "/home/ines/orchard", "--to", "/home/ines/meadow", "--json"
    )
    assert [one["from"] for one in moved.json["moves"]] == [str(path_of(home, third))]  # A's file stays
    assert moved.json["left"] == []
    made = succeed(
        store, "lineage", "suggest", "add", "--suggester", "m", "--json", path, path_of(home, third)
    )
    assert made.json["status"] == "candidate"


def test_r12_in_whatever_order_and_on_whatever_machine(home: Path, tmp_path: Path) -> None:
    """B's own file may be there before, come later, or be on another machine: the same view in the end."""
    first, second = lines(*MINE, *THEIRS[2:7]), lines(*THEIRS)
    views = []
    for number, files in enumerate([[(NATIVE, first), (OTHER, second)], [(OTHER, second), (NATIVE, first)]]):
        for native, data in files:
            path_of(tmp_path / f"home{number}", native).write_bytes(data)
            os.utime(path_of(tmp_path / f"home{number}", native), ns=(10**18, 10**18))
            succeed(tmp_path / f"store{number}", "import", home=tmp_path / f"home{number}")
        views.append(counts(tmp_path / f"store{number}"))
    assert views[0] == views[1]
    path_of(tmp_path / "one").write_bytes(first)
    path_of(tmp_path / "two", OTHER).write_bytes(second)
    for name in ("one", "two"):
        succeed(tmp_path / f"{name}.store", "import", home=tmp_path / name)
    alone = counts(tmp_path / "one.store")
    assert alone["records"] == {NATIVE: 6, OTHER: 5}
    succeed(tmp_path / "one.store", "push", tmp_path / "two.store")
    succeed(tmp_path / "one.store", "pull", tmp_path / "two.store")
    united = counts(tmp_path / "one.store")
    assert united == views[0] == counts(tmp_path / "two.store")


def counts(store: Path) -> dict[str, Any]:
    """What a view says about who has how much, without the paths."""
    return {
        "records": {name: found[0] for name, found in sessions(store).items()},
        "times": {name: found[1:] for name, found in sessions(store).items()},
        "calls": calls(store),
        "relations": rows(store, "SELECT edge_type, confidence, provenance FROM edges ORDER BY 1"),
        "events": rows(
            store,
            "SELECT s.provider_session_id AS id, e.object_id, count(*) AS n FROM events e "
            "JOIN sessions s ON s.id = e.session_id GROUP BY 1, 2 ORDER BY 1, 2",
        ),
    }


@pytest.mark.parametrize("origin", [True, False], ids=["origin", "no origin"])
def test_r12_a_fork_that_keeps_the_session_of_what_it_copied(home: Path, store: Path, origin: bool) -> None:
    """As of 2.0: the first lines name the origin, what follows them the fork. They are the fork's history and no ghost,
    whether or not the origin's file is still there."""
    queued = {"type": "queue-operation", "operation": "enqueue", "sessionId": NATIVE}
    history = [
        *THEIRS[:6],
        spoken(90, OTHER, parentUuid="b0002"),
    ]  # with a branch that the fork does not go on from
    after = [spoken(row, NATIVE) for row in range(4)]
    after[0]["parentUuid"] = "b0005"
    path_of(home).write_bytes(lines(queued, *history, *after))
    if origin:
        path_of(home, OTHER).write_bytes(lines(*THEIRS[:6]))
    succeed(store, "import", home=home)
    assert len(ids(store)) == 12
    found = {name: counted[0] for name, counted in sessions(store).items()}
    assert found == ({NATIVE: 12, OTHER: 6} if origin else {NATIVE: 12})
    if origin:
        assert succeed(store, "lineage", "why", "--json", OTHER, NATIVE).json["relation"] == "fork"


def test_r14_an_exit_entry_on_a_stale_leaf(tmp_path: Path, store: Path) -> None:
    """Twenty entries, a second branch of ten, and a killed process that writes its exit on the first: all is there."""
    home = PiHome(tmp_path / "home")
    first = home.entries("a", 20)
    second = home.entries("b", 20, 10)
    second[0]["parentId"] = first[9]["id"]
    leave = {
        "type": "custom",
        "customType": "session_exit",
        "id": "eeeeeeee",
        "parentId": first[-1]["id"],
        "timestamp": "2026-03-01T11:00:00.000Z",
    }
    home.write("a", [*first, *second, leave])
    succeed(store, "import", home=home.home)
    native = home.native("a")
    assert len(ids(store, native)) == 1 + 20 + 10 + 1
    shown = succeed(store, "flow", "show", native).out
    assert shown
    (target,) = [
        json.loads(line) for line in succeed(store, "lineage", "resume", "--json", native).out.splitlines()
    ]
    assert target["status"] == "deterministic"


def test_r23_a_second_compaction_that_repeats_the_history(home: Path, store: Path) -> None:
    lines = [claude(row) for row in range(6)]

    def compact(row: int) -> list[dict[str, Any]]:
        boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
        summary = {"role": "user", "content": f"summary {row}"}
        return [
            {**claude(row), **boundary, "parentUuid": None, "logicalParentUuid": f"u{row - 1:04}"},
            claude(row + 1, type="user", message=summary, isCompactSummary=True),
        ]

    history = [*lines, *compact(6), *(claude(row) for row in range(8, 12))]
    path = path_of(home)
    again = [*history, *compact(12), *history[8:12], *(claude(row) for row in range(14, 16))]
    path.write_bytes(b"".join(text(line) + b"\n" for line in again))
    succeed(store, "import", home=home)
    found = [name for name in ids(store) if name is not None]
    assert set(found) == {f"u{row:04}" for row in range(16)}
    query = "SELECT count(DISTINCT object_id) AS n FROM events"
    assert rows(store, query, "--events") == [{"n": 16}]  # what is said again is the same object
    out = succeed(store, "lineage", "checkpoints", "--json", NATIVE).out
    assert len(out.splitlines()) == 2


def test_r36_another_inode_and_a_change_far_before_the_cursor(home: Path, store: Path) -> None:
    path = path_of(home)
    padding = "x" * 30_000
    lines = [
        text(claude(row, message={"role": "user", "content": f"{row} {padding}"})) + b"\n"
        for row in range(100)
    ]
    path.write_bytes(b"".join(lines))
    assert path.stat().st_size > 3_000_000
    succeed(store, "import", home=home)
    copy = path.with_suffix(".copy")
    shutil.copyfile(path, copy)
    os.replace(copy, path)
    for words in ((), ("--check",)):
        moved = succeed(store, "import", "--json", *words, home=home).json
        assert (moved["records"], moved["places"][0]["conflicts"]) == (0, 0)
    data = bytearray(path.read_bytes())
    at = data.index(b'"uuid":"u0000"') + 8
    data[at : at + 5] = b"v0000"
    path.write_bytes(data)
    noticed = succeed(store, "import", "--json", "--check", home=home).json
    assert noticed["places"][0]["conflicts"] == 1
    assert "v0000" in str(ids(store)) and "u0000" in str(ids(store))
    succeed(store, "lineage", "mark", "--clear-conflict", path)
    assert rows(store, "SELECT 1 FROM evidence WHERE summary LIKE 'rewritten%'") == []


def test_the_fixtures_hold_damage_of_each_sort(tmp_path: Path, store: Path) -> None:
    home = copy_home(tmp_path / "fixtures")
    succeed(store, "import", home=home)
    query = "SELECT sum(json_extract(metadata_json, '$.damage.count')) AS n FROM session_observations"
    assert rows(store, query)[0]["n"] >= 5
