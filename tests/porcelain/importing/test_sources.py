"""Sources that vanish, shrink, are rewritten, copied, moved or come late: nothing that was imported is lost, and what
happened can be seen."""

from __future__ import annotations

import copy
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.porcelain.importing.driving import (
    CONVERSATIONS,
    HOME,
    TIDEPOOL,
    copy_home,
    held,
    landed_pages,
    objstore,
    opened,
    projection,
    state_of,
    succeed,
    verify,
    without_places,
)

ID = TIDEPOOL.stem
LANTERN = Path(".claude/projects/-home-mira-src-lantern-mail/5f9f4cd9-f5f5-4754-835d-fb9d3463361f")
AGENT = LANTERN / "subagents" / "agent-a8591367129c49705.jsonl"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copy_home(tmp_path / "home")


@pytest.fixture
def store(tmp_path: Path, home: Path) -> Path:
    succeed(tmp_path / "store", "import", home=home)
    return tmp_path / "store"


def place(store: Path, home: Path, *words: str | Path) -> dict[str, Any]:
    """Import, and what is said of Claude Code."""
    found = succeed(store, "import", "--json", *words, home=home).json["places"]
    return next(one for one in found if one["provider"] == "claude")  # type: ignore[no-any-return]


def listed(store: Path, name: str = ID) -> dict[str, Any]:
    return succeed(store, "lineage", "sessions", "--json", name).json  # type: ignore[no-any-return]


def shown(store: Path, name: str = ID) -> str:
    return succeed(store, "lineage", "sessions", name).out.splitlines()[1]


def sqlite(store: Path, query: str) -> list[Any]:
    """Rows of the exported view, whose references hold."""
    file = store.parent / "view.sqlite"
    succeed(store, "lineage", "export", file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return connection.execute(query).fetchall()


FILES = """
    SELECT o.path, o.presence, (SELECT count(*) FROM events e WHERE e.observation_id = o.id),
        coalesce((SELECT group_concat(json_extract(v.data_json, '$.state')) FROM evidence v
            WHERE v.target_id = o.id), '')
    FROM session_observations o WHERE o.provider_session_id = '%s'
    ORDER BY o.path, json_extract(o.metadata_json, '$.differs')"""


def gains(before: Any, after: Any) -> None:
    """Every record is still there, in order, in every conversation."""
    for name, records in before.landed.items():
        assert after.landed[name][: len(records)] == records


# -- gone ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [False, True])
def test_a_file_vanishes_and_comes_back(tmp_path: Path, home: Path, named: bool) -> None:
    store = tmp_path / "store"
    words = [home / ".claude"] if named else []
    place(store, home, *words)
    before = held(store)
    path = home / TIDEPOOL
    path.rename(tmp_path / "away")
    assert place(store, home, *words)["gone"] == 1
    assert held(store).landed == before.landed and held(store).folds == before.folds
    row = listed(store)
    assert (row["sources"], row["absent"], row["records"]) == (1, 1, 42)
    assert shown(store).endswith("1 gone")
    assert succeed(store, "status", "--json", home=home).json["agents"]["claude"]["gone"] == 1
    assert sqlite(store, FILES % ID) == [(str(path), "absent", 42, "gone")]
    assert place(store, home, *words)["gone"] == 0  # said once
    (tmp_path / "away").rename(path)
    back = place(store, home, *words)
    assert (back["gone"], back["records"], back["conflicts"]) == (0, 0, 0)
    assert listed(store)["absent"] == 0
    assert sqlite(store, FILES % ID) == [(str(path), "present", 42, "")]
    assert place(store, home, *words)["grown"] == 0
    verify(store)


def test_a_whole_conversation_vanishes(store: Path, home: Path) -> None:
    before = held(store)
    shutil.rmtree(home / LANTERN)
    (home / LANTERN).with_suffix(".jsonl").unlink()
    assert place(store, home)["gone"] == 5
    row = listed(store, LANTERN.name)
    assert (row["sources"], row["absent"], row["records"]) == (5, 5, 55)
    assert held(store).folds == before.folds
    assert "started a8591367129c49705" in succeed(store, "flow", "show", LANTERN.name).out
    verify(store)


# -- rewritten -------------------------------------------------------------------------------------


def rewritten(lines: list[bytes], start: int, stop: int) -> bytes:
    """Lines with other ids from ``start`` on, up to ``stop``."""
    return b"".join(lines[:start] + [line.replace(b'"uuid":"', b'"uuid":"9') for line in lines[start:stop]])


def test_a_file_is_cut_and_rewritten(store: Path, home: Path) -> None:
    before, path = held(store), home / TIDEPOOL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(rewritten(lines, 2, 5))
    result = place(store, home)
    assert (result["conflicts"], result["records"], result["damaged"]) == (1, 5, 0)
    gains(before, held(store))
    row = listed(store)
    assert (row["sources"], row["conflicts"], row["records"]) == (2, 1, 42)
    assert shown(store).endswith("rewritten")
    assert succeed(store, "status", "--json", home=home).json["agents"]["claude"]["rewritten"] == 1
    assert sqlite(store, FILES % ID) == [
        (str(path), "present", 42, ""),
        (str(path), "present", 5, "conflict"),
    ]
    assert place(store, home)["conflicts"] == 0
    path.write_bytes(rewritten(lines, 2, 9))  # and goes on growing
    result = place(store, home)
    assert (result["conflicts"], result["records"]) == (0, 4)
    assert [row[2] for row in sqlite(store, FILES % ID)] == [42, 9]
    path.write_bytes(rewritten(lines, 4, 12))  # and once more
    assert place(store, home)["conflicts"] == 1
    assert sorted(row[2] for row in sqlite(store, FILES % ID)) == [9, 12, 42]
    verify(store)


def test_a_file_is_cut_to_its_beginning(store: Path, home: Path) -> None:
    before, path = held(store), home / TIDEPOOL
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    result = place(store, home)
    assert (result["conflicts"], result["records"]) == (1, 5)
    gains(before, held(store))
    row = listed(store)
    assert (row["sources"], row["conflicts"], row["records"]) == (1, 1, 42)
    assert sqlite(store, FILES % ID) == [(str(path), "present", 42, "conflict")]
    verify(store)


@pytest.mark.parametrize("left", [b"", b'{"type":"mode","mode":"normal","sessionId":"%s"}\n' % ID.encode()])
def test_a_file_is_emptied(store: Path, home: Path, left: bytes) -> None:
    """Of everything, or of all that made it a conversation: it was rewritten, which is said once."""
    before, path = held(store), home / TIDEPOOL
    path.write_bytes(left)
    assert place(store, home)["conflicts"] == 1
    gains(before, held(store))
    row = listed(store)
    assert (row["sources"], row["conflicts"], row["records"]) == (1, 1, 42)
    count = state_of(store)[1]
    assert (place(store, home)["conflicts"], state_of(store)[1]) == (0, count)
    with path.open("ab") as file:
        file.writelines((HOME / TIDEPOOL).read_bytes().splitlines(keepends=True)[:5])
    assert place(store, home)["records"] == 5
    assert listed(store)["conflicts"] == 1
    verify(store)


def test_a_sub_agents_file_is_emptied(store: Path, home: Path) -> None:
    """It is rewritten as a file of its conversation, whose other files are there."""
    (home / AGENT).write_bytes(b"")
    result = place(store, home)
    assert (result["conversations"], result["conflicts"]) == (8, 1)
    assert listed(store, LANTERN.name)["conflicts"] == 1
    verify(store)


def test_a_rewrite_with_less_damage_counts_no_negative_damage(store: Path, home: Path) -> None:
    (path,) = (home / ".claude/projects/-home-mira-src-ferry").glob("6aa2106d*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    result = place(store, home)
    assert (result["conflicts"], result["damaged"], result["records"]) == (1, 0, 2)
    assert objstore(store, "import", "--strict", home=home).code == 0
    path.write_bytes(lines[2] + lines[0])
    assert objstore(store, "import", "--strict", home=home).code == 1


def test_a_rewrite_of_a_large_file_is_seen_wherever_it_differs(tmp_path: Path, home: Path) -> None:
    """The evidence stands on the new observation even when many pieces pass before anything differs."""
    from tests.porcelain.importing.driving import SMALL_PIECES, patched, run

    store, path = tmp_path / "store", home / TIDEPOOL
    script = patched(tmp_path / "small.py", *SMALL_PIECES)
    assert run(store, "import", home=home, script=script).code == 0
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(rewritten(lines, 36, 42) + lines[1].replace(b'"uuid":"', b'"uuid":"8'))
    assert run(store, "import", home=home, script=script).code == 0
    rows = sqlite(store, FILES % ID)
    assert [(row[1], row[2]) for row in rows] == [("present", 42), ("present", 43)]
    assert rows[1][3] == "conflict"
    verify(store)


# -- copied and moved ------------------------------------------------------------------------------


def test_a_copy_takes_the_place_of_the_file(store: Path, home: Path) -> None:
    before, path = held(store), home / TIDEPOOL
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)
    result = place(store, home)
    assert (result["conflicts"], result["records"], result["gone"]) == (0, 0, 0)
    assert held(store) == before
    copy.write_bytes(path.read_bytes() + path.read_bytes().splitlines()[1].replace(b'"uuid":"', b'"uuid":"9'))
    copy.replace(path)
    result = place(store, home)
    assert (result["conflicts"], result["records"]) == (0, 1)
    assert len(set(held(store).landed["claude", ID]) - set(before.landed["claude", ID])) == 1
    verify(store)


def uncounted(folds: dict[Any, dict[str, Any]]) -> Any:
    """Folds without the counts of records: lines that have no id of their own count again in a second reading."""
    found = copy.deepcopy(folds)
    for frames in found.values():
        for frame in frames.values():
            frame.get("attrs", {}).pop("records", None)
    return found


def test_the_project_is_renamed(store: Path, home: Path) -> None:
    before, path = held(store), home / TIDEPOOL
    objects = succeed(store, "status", "--json", "--no-scan").json["objects"]
    moved = path.parent.with_name("-home-mira-src-rockpool")
    path.parent.rename(moved)
    result = place(store, home)
    assert (result["gone"], result["conflicts"], result["records"]) == (3, 0, 114)
    gains(before, held(store))
    assert {record for records in held(store).landed.values() for record in records} == {
        record for records in before.landed.values() for record in records
    }
    assert uncounted(held(store).folds) == uncounted(before.folds)
    row = listed(store)
    assert (row["sources"], row["absent"], row["records"]) == (2, 1, 42)
    assert sqlite(store, FILES % ID) == [
        (str(moved / path.name), "present", 42, ""),
        (str(path), "absent", 42, "gone"),
    ]
    assert succeed(store, "status", "--json", "--no-scan").json["objects"] < objects + 60
    assert place(store, home)["records"] == 0
    verify(store)


def test_a_backup_of_the_folder_is_the_same_conversation(store: Path, home: Path) -> None:
    before = held(store)
    backup = shutil.copytree(home / ".claude", home / "backup" / ".claude")
    result = place(store, home, backup)
    assert (result["conversations"], result["conflicts"], result["gone"]) == (8, 0, 0)
    assert {r for records in held(store).landed.values() for r in records} == {
        r for records in before.landed.values() for r in records
    }
    assert len(projection(store).tables["sessions"]) == CONVERSATIONS
    assert listed(store)["records"] == 42
    assert place(store, home)["records"] == 0
    verify(store)


# -- late ------------------------------------------------------------------------------------------


def test_an_agent_file_comes_later_than_its_parent(tmp_path: Path, home: Path) -> None:
    store = tmp_path / "store"
    late = [home / AGENT, (home / AGENT).with_suffix(".meta.json")]
    data = [path.read_bytes() for path in late]
    for path in late:
        path.unlink()
    place(store, home)
    assert listed(store, LANTERN.name)["records"] == 45
    for path, content in zip(late, data, strict=True):
        path.write_bytes(content)
    result = place(store, home)
    assert (result["new"], result["grown"], result["records"]) == (0, 1, 10)
    assert listed(store, LANTERN.name)["records"] == 55
    fresh = tmp_path / "fresh"
    place(fresh, home)
    assert without_places(store) == without_places(fresh)
    verify(store)


def test_a_conversation_comes_later_than_its_sub_agents(tmp_path: Path, home: Path) -> None:
    """oh-my-pi's: they stand for it until its own file is there, and everything is one conversation then."""
    store, sessions = tmp_path / "store", home / ".omp" / "agent" / "sessions" / "-src-beehive.ops"
    name = "dc1bab23-e2cd-4ff6-aa10-48a481d76d3a"
    (path,) = sessions.glob(f"*_{name}.jsonl")
    data = path.read_bytes()
    for without in (None, data.splitlines(keepends=True)[0]):  # no file, and one with nothing but its header
        path.unlink() if without is None else path.write_bytes(without)
        succeed(store, "import", home=home)
        row = listed(store, name)
        assert (row["native_id"], row["sources"], row["records"]) == (name, 3, 24)
    path.write_bytes(data)
    succeed(store, "import", home=home)
    fresh = tmp_path / "fresh"
    succeed(fresh, "import", home=home)
    row = listed(store, name)
    assert (row["sources"], row["records"]) == (4, listed(fresh, name)["records"])
    assert without_places(store) == without_places(fresh)
    verify(store)


def test_a_child_that_was_imported_alone_stays_a_conversation(tmp_path: Path, home: Path) -> None:
    """Factory Droid's: when what started it is found, and when both go on."""
    store, sessions = tmp_path / "store", home / ".factory" / "sessions" / "-home-mira-src-tidepool"
    child, parent = (
        sessions / f"{name}.jsonl"
        for name in ("db3b73d7-c55f-44bd-a746-4d22d9b1b36a", "3051027f-4a08-4778-b445-5da6d48f2819")
    )
    lines, whole = child.read_bytes().splitlines(keepends=True), parent.read_bytes()
    child.write_bytes(b"".join(lines[:3]))
    parent.unlink()
    succeed(store, "import", home=home)
    parent.write_bytes(whole)
    child.write_bytes(b"".join(lines))
    succeed(store, "import", home=home)
    assert [listed(store, path.stem)["records"] for path in (child, parent)] == [8, 14]
    assert objstore(store, "doctor", home=home).code == 0
    verify(store)


def test_a_copy_of_a_child_takes_nobodys_name(tmp_path: Path, home: Path) -> None:
    """Factory Droid's: a copy without settings, which does not say what started it."""
    store, sessions = tmp_path / "store", home / ".factory" / "sessions" / "-home-mira-src-tidepool"
    child = sessions / "db3b73d7-c55f-44bd-a746-4d22d9b1b36a.jsonl"
    succeed(store, "import", home=home)
    before = held(store)
    shutil.copyfile(child, sessions / "a-copy.jsonl")
    with child.open("a") as file:
        file.write(json.dumps({"type": "todo_state", "id": "later", "todos": []}) + "\n")
    succeed(store, "import", home=home)
    gains(before, held(store))
    assert objstore(store, "doctor", home=home).code == 0
    verify(store)


# -- forks -----------------------------------------------------------------------------------------


def test_forks_share_the_records_of_the_original(store: Path) -> None:
    """The fork repeats all records of the first session with an id, the branch those before its second prompt."""
    fork, branch = "befa7ade-aa2a-4512-8249-50c082cbb801", "488cb2c3-6bda-4806-9888-ff5d9c7bfb99"
    landed = {name: records for (_, name), records in held(store).landed.items()}
    ids: dict[str, dict[str, str]] = {}
    with opened(store) as (_, view):
        for _, name, page, records in landed_pages(view):
            mine = ids.setdefault(name, {})
            for number, record in enumerate(records):
                if isinstance(record.id, str):
                    mine[record.id] = page.records[64 * number : 64 * number + 64]
    for other, least in ((fork, 25), (branch, 15)):
        both = ids[ID].keys() & ids[other].keys()
        assert len(both) >= least
        assert all(ids[ID][name] == ids[other][name] for name in both)
        assert len(set(landed[ID]) & set(landed[other])) >= least
    distinct = {record for records in landed.values() for record in records}
    with opened(store) as (_, view):
        assert sum(stored.kind == "record" for _, stored in view.objects()) == len(distinct)
    assert len(distinct) < sum(map(len, landed.values()))
    tables = projection(store).tables
    sessions = {row["provider_session_id"]: row for row in tables["sessions"]}
    assert [sessions[name]["event_count"] for name in (ID, fork, branch)] == [42, 43, 29]
    calls = {
        frame["id"]
        for name in (ID, fork, branch)
        for frame in held(store).folds["claude", name].values()
        if frame.get("kind") == "llm.call"
    }
    spoken: set[str] = set()
    for name in (ID, fork, branch):
        lines = (HOME / TIDEPOOL).with_name(f"{name}.jsonl").read_bytes().splitlines()
        spoken |= {m["id"] for m in (json.loads(line).get("message", {}) for line in lines) if "id" in m}
    assert calls == {f"call/{name}" for name in spoken}
    assert len(spoken) < 11 + 13 + 7
