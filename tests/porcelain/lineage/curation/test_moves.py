"""Moving all sessions of a folder: shown, recorded once, copied when told, and nothing deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from porcelain.lineage.curation.moves import destination
from tests.porcelain.importing.driving import objstore, succeed
from tests.porcelain.lineage.curation.test_curation import rows
from tests.porcelain.lineage.pi_home import PiHome


@pytest.fixture
def home(tmp_path: Path) -> PiHome:
    home = PiHome(tmp_path / "home")
    home.write("a", home.entries("a", 22, text="in /home/ines/garden/beds"))
    home.write("b", home.entries("b", 22), folder="garden/shed", path=home.path("b", "garden-shed"))
    home.write("c", home.entries("c", 22), folder="gardens")
    return home


@pytest.fixture
def store(tmp_path: Path, home: PiHome) -> Path:
    succeed(tmp_path / "store", "import", home=home.home)
    return tmp_path / "store"


MOVE = ("lineage", "move", "--from", "/home/ines/garden", "--to", "/home/ines/orchard")


def files(home: PiHome) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.home.rglob("*") if path.is_file()}


def test_nothing_is_recorded_unless_told(store: Path, home: PiHome) -> None:
    before = files(home)
    plan = succeed(store, *MOVE, "--json").json
    assert [Path(move["from"]) for move in plan["moves"]] == [home.path("a"), home.path("b", "garden-shed")]
    assert "--home-ines-orchard-shed--" in plan["moves"][1]["to"]
    assert rows(store, "SELECT * FROM batch_operations") == [] == rows(store, "SELECT * FROM edges")
    assert files(home) == before


def test_a_move_is_recorded_once(store: Path, home: PiHome) -> None:
    before = files(home)
    assert succeed(store, *MOVE, "--apply").out.endswith("2 conversations recorded\n")
    (operation,) = rows(
        store, "SELECT operation_type, source_path, destination_path, counts_json FROM batch_operations"
    )
    assert operation == {
        "counts_json": '{"sessions":2}',
        "destination_path": "/home/ines/orchard",
        "operation_type": "bucket_relocation",
        "source_path": "/home/ines/garden",
    }
    edges = rows(store, "SELECT edge_type, json_extract(metadata_json, '$.relation') AS relation FROM edges")
    assert edges == [{"edge_type": "relocation", "relation": "continuation"}] * 2
    again = succeed(store, *MOVE, "--apply", "--json").json
    assert (again["moves"], again["known"]) == ([], 2)
    assert len(rows(store, "SELECT id FROM edges")) == 2
    assert rows(store, "SELECT mark_type FROM observation_marks") == []  # the copies are not there
    assert {row["status"] for row in rows(store, "SELECT status FROM thread_resume_targets")} == {
        "deterministic",
        "recoverable-only",
    }
    assert files(home) == before


def test_files_are_copied_when_told(store: Path, home: PiHome) -> None:
    before = files(home)
    succeed(store, *MOVE, "--apply", "--copy")
    after = files(home)
    assert before.items() <= after.items() and len(after) == len(before) + 2
    copies = [path for path in after if path not in before]
    assert all("_relocated_" in path.name and b"/home/ines/garden" not in after[path] for path in copies)
    succeed(store, *MOVE, "--apply", "--copy")
    assert files(home) == after
    succeed(store, "import", home=home.home)
    marks = rows(store, "SELECT mark_type, count(*) AS n FROM observation_marks GROUP BY 1 ORDER BY 1")
    assert marks == [{"mark_type": "deletion_candidate", "n": 2}, {"mark_type": "superseded", "n": 2}]
    resumes = [json.loads(line) for line in succeed(store, "lineage", "resume", "--json").out.splitlines()]
    assert {one["recommended"]["path"] for one in resumes} == set(map(str, copies))
    assert succeed(store, *MOVE, "--apply", "--json").json["moves"] == []
    assert files(home) == after


def test_a_file_that_is_there_is_left_alone(store: Path, home: PiHome) -> None:
    target = Path(succeed(store, *MOVE, "--json").json["moves"][0]["to"])
    target.parent.mkdir(parents=True)
    target.write_text("mine")
    succeed(store, *MOVE, "--apply", "--copy")
    assert target.read_text() == "mine"
    assert not list(home.home.rglob("*.partial"))


def test_what_makes_no_sense(store: Path) -> None:
    assert objstore(store, "lineage", "move", "--from", "/a").code == 2
    assert objstore(store, "lineage", "move", "--from", "/a", "--to", "/a").code == 2
    assert objstore(store, *MOVE, "--copy").code == 2
    assert succeed(store, "lineage", "move", "--from", "/a", "--to", "/b").out.startswith("0 conversations")


def test_where_copies_go() -> None:
    from msgspec.structs import replace

    from tests.porcelain.lineage.relations.test_threads import node

    one = replace(node("a"), path="/h/sessions/--w-a--/2026_x_relocated_00_relocated_11.jsonl")
    assert destination(one, "/w/b:c").startswith("/h/sessions/--w-b-c--/2026_x_relocated_")
    assert destination(one, "/w/b") == destination(one, "/w/b")
    claude = replace(one, provider="claude", path="/h/projects/-w-a/x.jsonl")
    assert destination(claude, "/w/b.c") == "/h/projects/-w-b-c/x.jsonl"
