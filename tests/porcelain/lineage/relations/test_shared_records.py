"""Evidence from landed records: forks without a link, moved copies, what every conversation has."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from porcelain.lineage.relations import shared_records
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.relations.shared_records import LandedEvidence
from tests.porcelain.importing.driving import succeed
from tests.porcelain.lineage.pi_home import PiHome
from tests.porcelain.lineage.relations.test_threads import node


@pytest.fixture
def home(tmp_path: Path) -> PiHome:
    return PiHome(tmp_path / "home")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def threads(store: Path) -> list[dict[str, Any]]:
    out = succeed(store, "lineage", "threads", "--all", "--json").out
    return [json.loads(line) for line in out.splitlines()]


def why(store: Path, source: Path | str, target: Path | str) -> dict[str, Any]:
    answer: dict[str, Any] = succeed(store, "lineage", "why", "--json", source, target).json
    return answer


def test_a_fork_without_a_link(home: PiHome, store: Path) -> None:
    """R27: the header's id is its identity, and the records that both hold say where it comes from."""
    shared = home.entries("a", 12)
    one = home.write("a", [*shared, *home.entries("b", 15, 12)])
    two = home.write("c", [*shared, *home.entries("d", 17, 12)], timestamp="2026-03-01T09:59:30.000Z")
    succeed(store, "import", home=home.home)
    answer = why(store, one, two)
    assert (answer["relation"], answer["rule"], answer["confidence"]) == ("fork", "shared-records", "medium")
    (thread,) = threads(store)
    assert [member["role"] for member in thread["members"]] == ["canonical_path", "fork"]
    assert thread["resume"]["status"] == "branch-choices"
    text = succeed(store, "lineage", "why", one, two).out
    assert "12 in both, the first 13 of 16 and 18 alike" in text


def test_a_moved_copy_in_which_the_folder_was_replaced(home: PiHome, store: Path) -> None:
    entries = home.entries("a", 25)
    for row in entries[3:20]:
        row["message"]["content"][0]["text"] += " in /home/ines/garden/beds"
    source = home.write("a", entries)
    target = home.move(source, "garden", "orchard", home.entries("e", 30, 25))
    home.manifest(home.moved(source, target, "garden", "orchard"))
    before = {path: path.read_bytes() for path in home.agent.rglob("*") if path.is_file()}
    succeed(store, "import", home=home.home)
    succeed(store, "lineage", "import-sidecars", home=home.home)
    answer = why(store, source, target)
    assert (answer["relation"], answer["rule"]) == ("continuation", "explicit-move")
    assert "the first 26 of 26 and 31 alike" in succeed(store, "lineage", "why", source, target).out
    marks = succeed(
        store, "lineage", "sql", "--json", "SELECT mark_type FROM observation_marks ORDER BY 1"
    ).out.splitlines()
    assert [json.loads(row)["mark_type"] for row in marks] == ["deletion_candidate", "superseded"]
    assert {path: path.read_bytes() for path in home.agent.rglob("*") if path.is_file()} == before


def test_a_moved_copy_without_any_manifest(home: PiHome, store: Path) -> None:
    source = home.write("a", home.entries("a", 25))
    target = home.move(source, "garden", "orchard", home.entries("e", 30, 25))
    succeed(store, "import", home=home.home)
    answer = why(store, source, target)
    assert (answer["relation"], answer["rule"]) == ("continuation", "prefix-of-moved-copy")
    (resume,) = (json.loads(line) for line in succeed(store, "lineage", "resume", "--json").out.splitlines())
    assert resume["recommended"]["path"] == str(target)
    text = succeed(store, "lineage", "resume", "0000000a").out
    assert text.splitlines() == [
        "pi 0000000a-0000: go on with",
        f"  * 2026-03-01 10:00  pi {home.native('a')}",
        f"    {target}",
        f"    cd /home/ines/orchard && pi --session {target}",
    ]


def test_a_source_that_went_on_after_the_move_is_no_deletion_candidate(home: PiHome, store: Path) -> None:
    source = home.write("a", home.entries("a", 25))
    target = home.move(source, "garden", "orchard")
    with source.open("a") as file:
        file.write(json.dumps(home.entries("f", 26, 25)[0]) + "\n")
    home.manifest(home.moved(source, target, "garden", "orchard"))
    succeed(store, "import", home=home.home)
    succeed(store, "lineage", "import-sidecars", home=home.home)
    marks = succeed(store, "lineage", "sql", "--json", "SELECT mark_type FROM observation_marks").out
    assert marks.splitlines() == ['{"mark_type":"superseded"}']


def test_a_copy_whose_every_text_was_replaced_and_no_manifest(home: PiHome, store: Path) -> None:
    source = home.write("a", home.entries("a", 25, text="at /home/ines/garden"))
    target = home.move(source, "garden", "orchard", home.entries("e", 27, 25))
    succeed(store, "import", home=home.home)
    answer = why(store, source, target)
    assert (answer["relation"], answer["rule"]) == ("continuation", "prefix-of-moved-copy")
    assert "the first 26 of 26 and 28 alike" in succeed(store, "lineage", "why", source, target).out
    (thread,) = threads(store)
    assert thread["resume"]["status"] == "deterministic"
    with source.open("a") as file:
        file.write(json.dumps(home.entries("f", 26, 25)[0]) + "\n")
    succeed(store, "import", home=home.home)
    answer = why(store, source, target)
    assert (answer["relation"], answer["confidence"]) == ("fork", "medium")
    assert "the first 26 records of both are alike" in answer["because"]


def test_what_is_connected_through_a_third_is_not_unrelated(home: PiHome, store: Path) -> None:
    one, two, three = (home.write(name, home.entries(name, 25), folder=name) for name in "abc")
    succeed(store, "import", home=home.home)
    assert why(store, one, three)["relation"] == "unrelated"
    for source, target in ((one, two), (two, three)):
        succeed(store, "lineage", "classify", source, target, "continuation")
    answer = why(store, one, three)
    assert (answer["relation"], answer["rule"]) == ("sibling", "same-thread")
    assert len(answer["path"]) == 2


def test_what_every_conversation_says_is_no_evidence(tmp_path: Path, store: Path) -> None:
    folder = tmp_path / "home" / ".claude" / "projects" / "-home-ines-garden"
    folder.mkdir(parents=True)
    for number in (1, 2):
        name = f"{number:08}-0000-4000-8000-000000000000"
        rows: list[dict[str, Any]] = [
            {"type": "mode", "mode": f"m{row}", "sessionId": name} for row in range(30)
        ]
        rows += [
            {
                "type": "user",
                "uuid": f"u{number}-{row}",
                "sessionId": name,
                "cwd": f"/home/ines/garden{number}",
                "timestamp": f"2026-03-0{number}T10:00:0{row}.000Z",
                "message": {"role": "user", "content": f"{number} {row}"},
            }
            for row in range(3)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    succeed(store, "import", home=tmp_path / "home")
    assert len(threads(store)) == 2
    answer = why(store, "00000001", "00000002")
    assert (answer["relation"], answer["direct"]) == ("unrelated", [])


def test_sessions_with_nothing_in_common(home: PiHome, store: Path) -> None:
    one = home.write("a", home.entries("a", 25), folder="garden")
    two = home.write("b", home.entries("b", 25), folder="orchard")
    three = home.write("c", home.entries("c", 5), folder="garden")
    succeed(store, "import", home=home.home)
    assert why(store, one, two)["relation"] == "unrelated"
    assert (why(store, one, three)["relation"], why(store, one, three)["rule"]) == ("sibling", "same-folder")
    assert why(store, two, three)["relation"] == "unknown"  # too short to say
    succeed(store, "lineage", "repo", "--path", "/home/ines", "allotment")
    assert why(store, one, two)["rule"] == "same-project"


def test_many_forks_of_one(home: PiHome, store: Path) -> None:
    """R15, with and without a link: a fork is an edge from the one that it comes from, and never from another fork."""
    shared = home.entries("a", 30)
    parent = home.write("a", [*shared, *home.entries("9", 33, 30)])
    for number in range(12):
        name = f"{number + 1:x}"
        link: dict[str, Any] = {"parentSession": str(parent)} if number % 2 else {}
        home.write(
            f"f{name}",
            [*shared, *home.entries(name, 31 + number, 30)],
            timestamp=f"2026-03-01T09:59:{30 + number}.000Z",
            **link,
        )
    succeed(store, "import", home=home.home)
    query = """SELECT p.path, count(*) AS forks FROM edges e
        JOIN session_observations p ON p.id = e.source_observation_id GROUP BY 1"""
    assert succeed(store, "lineage", "sql", "--json", query).json == {"path": str(parent), "forks": 12}
    (thread,) = threads(store)
    assert thread["relations"] == {"fork": 12}


class Made(LandedEvidence):
    """Evidence from lists of record numbers."""

    def __init__(self, files: dict[str, list[int]]) -> None:
        self._files = files

    def keys(self, node: Node) -> array[int]:
        return array("Q", self._files[node.id])

    def tells(self, key: int) -> bool:
        return True


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=8), st.integers(1, 40))
def test_the_index_finds_what_comparing_all_pairs_finds(files: list[list[int]], size: int) -> None:
    nodes = [replace(node("hgfedcba"[n], n), records=1) for n in range(len(files))]
    evidence = Made({one.id: found for one, found in zip(nodes, files, strict=True)})
    with mock.patch.object(shared_records, "_PASS", size):
        found = list(evidence.pairs(nodes))
    for newer in range(len(files)):
        shared = {older: len(set(files[older]) & set(files[newer])) for older in range(newer)}
        best = [older for older in sorted(shared, key=lambda one: (-shared[one], one)) if shared[older]]
        mine = [nodes[older].id for older in best[: shared_records.CANDIDATES]]
        assert [older for older, one in found if one == nodes[newer].id] == mine
