"""Active time: blocks, their union and difference, and what copies repeat."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porcelain.lineage.usage.blocks import PAUSE, blocks_of, length, united, without
from tests.porcelain.importing.driving import succeed
from tests.porcelain.lineage import usage_homes as homes
from tests.porcelain.lineage.pi_home import PiHome

TIMES = st.lists(st.integers(0, 40), max_size=12)


def points(blocks: list[tuple[int, int]]) -> set[int]:
    """The whole units that lie inside of blocks."""
    return {unit for start, end in blocks for unit in range(start, end)}


def as_blocks(times: list[int]) -> list[tuple[int, int]]:
    return united((min(a, b), max(a, b)) for a, b in zip(times[::2], times[1::2], strict=False))


@given(TIMES)
def test_union_covers_the_same(times: list[int]) -> None:
    pairs = [(min(a, b), max(a, b)) for a, b in zip(times[::2], times[1::2], strict=False)]
    found = united(pairs)
    assert points(found) == points(pairs)
    assert all(earlier[1] < later[0] for earlier, later in pairwise(found))
    assert length(found) == len(points(found))


@given(TIMES, TIMES)
def test_what_is_taken_off(times: list[int], others: list[int]) -> None:
    blocks, taken = as_blocks(times), as_blocks(others)
    left = without(blocks, taken)
    assert points(left) == points(blocks) - points(taken)
    assert left == sorted(left)


@given(st.lists(st.integers(0, 10 * PAUSE), max_size=20))
def test_blocks_part_at_long_pauses_only(times: list[int]) -> None:
    found = blocks_of(times)
    assert all(any(start <= time <= end for start, end in found) for time in times)
    assert {edge for block in found for edge in block} <= set(times)
    assert all(later[0] - earlier[1] > PAUSE for earlier, later in pairwise(found))


def test_a_moment_that_nobody_else_has_stays() -> None:
    assert without([(5, 5), (9, 9)], [(4, 6)]) == [(9, 9)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_what_a_fork_repeats_is_taken_off(home: Path, tmp_path: Path) -> None:
    """An hour of history in another project's copy, and ten minutes of its own."""
    store = tmp_path / "store"
    history = [homes.pi_call(number, minute=number) for number in range(0, 61, 20)]
    origin = homes.write(homes.pi_path(home, "origin"), [homes.pi_header("origin"), *history])
    header = homes.pi_header("fork", cwd="/home/ines/shed", parent=str(origin))
    own = [homes.pi_call(200 + n, minute=300 + 10 * n) for n in range(2)]
    homes.write(homes.pi_path(home, "fork", "--home-ines-shed--"), [header, *history, *own])
    succeed(store, "import", home=home)
    document = succeed(store, "lineage", "active", "--json", home=home).json
    minutes = {row["project"]: row["active"] / 60_000 for row in document["projects"]}
    assert minutes == {"/home/ines/garden": 60, "/home/ines/shed": 10}
    repeated = {row["project"]: row["repeated"] / 60_000 for row in document["sessions"]}
    assert repeated == {"/home/ines/garden": 0, "/home/ines/shed": 60}
    assert all(row["confidence"] == "medium" for row in document["projects"])


def test_two_at_once_in_one_project_count_once(home: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    for number, session in enumerate(("one", "two")):
        lines = [homes.pi_call(100 * number + n, minute=10 * n + number) for n in range(3)]
        homes.write(homes.pi_path(home, session), [homes.pi_header(session), *lines])
    succeed(store, "import", home=home)
    document = succeed(store, "lineage", "active", "--json", home=home).json
    (project,) = document["projects"]
    assert project["active"] == 21 * 60_000 and project["sessions"] == 2
    lines = succeed(store, "lineage", "active", home=home).out.splitlines()
    assert lines[2].startswith("0:21 h in 1 project;")
    assert lines[-1].split()[:3] == ["/home/ines/garden", "0:21", "h"]


def test_conversations_without_times_are_of_low_confidence(home: Path, tmp_path: Path) -> None:
    timeless = [{k: v for k, v in homes.pi_call(n).items() if k != "timestamp"} for n in range(4)]
    homes.write(homes.pi_path(home, "dim"), [homes.pi_header("dim"), *timeless])
    store = tmp_path / "store"
    succeed(store, "import", home=home)
    (project,) = succeed(store, "lineage", "active", "--json", home=home).json["projects"]
    assert project["confidence"] == "low" and len(project["warnings"]) == 1
    shutil.rmtree(home)
    assert "1 of 1 conversations state few times" in succeed(store, "lineage", "active").out


def test_a_moved_conversation_counts_where_it_was(tmp_path: Path) -> None:
    """An hour in the garden; its copy repeats that in the orchard and goes on for ten minutes: each project has its
    own, and the timeline a step from one to the other at the time of the move. Nothing counts twice."""
    home, store = PiHome(tmp_path / "home"), tmp_path / "store"

    def timed(entries: list[dict[str, Any]], start: int) -> list[dict[str, Any]]:
        return [
            {
                **entry,
                "timestamp": f"2026-03-01T{10 + (start + 5 * n) // 60}:{(start + 5 * n) % 60:02}:00.000Z",
            }
            for n, entry in enumerate(entries)
        ]

    source = home.write("a", timed(home.entries("a", 13), 0), timestamp="2026-03-01T10:00:00.000Z")
    target = home.move(source, "garden", "orchard", timed(home.entries("e", 16, 13), 120))
    moved = {**home.moved(source, target, "garden", "orchard"), "ts": "2026-03-01T11:30:00.000Z"}
    home.manifest(moved)
    succeed(store, "import", home=home.home)
    succeed(store, "lineage", "import-sidecars", home=home.home)
    document = succeed(store, "lineage", "active", "--json").json
    minutes = {row["project"]: row["active"] / 60_000 for row in document["projects"]}
    assert minutes == {"/home/ines/garden": 60, "/home/ines/orchard": 10}
    (session,) = document["sessions"]
    assert session["active"] / 60_000 == 70
    timeline = succeed(store, "lineage", "timeline", "--json").json
    assert {row["id"]: row["active"] / 60_000 for row in timeline["rows"]} == minutes
    (step,) = timeline["steps"]
    assert (step["source"], step["target"], step["relation"]) == (
        "/home/ines/garden",
        "/home/ines/orchard",
        "continuation",
    )
    for word in ("garden", "orchard"):  # whichever of them the conversation as a whole is counted to
        only = succeed(store, "lineage", "timeline", "--json", word).json
        assert [row["id"] for row in only["rows"]] == [f"/home/ines/{word}"] and only["steps"] == []
        assert only["rows"][0]["active"] / 60_000 == minutes[f"/home/ines/{word}"]
    assert len(succeed(store, "lineage", "timeline", "--sessions", "--json").json["rows"]) == 1
    idle = home.move(target, "orchard", "meadow")  # and a copy that nobody has gone on with
    home.manifest({**home.moved(target, idle, "orchard", "meadow"), "ts": "2026-03-01T12:30:00.000Z"})
    succeed(store, "import", home=home.home)
    succeed(store, "lineage", "import-sidecars", home=home.home)
    timeline = succeed(store, "lineage", "timeline", "--json").json
    assert {row["id"]: row["active"] / 60_000 for row in timeline["rows"]} == minutes
    shutil.rmtree(source.parent)  # the original is given up: what it did stays
    succeed(store, "import", home=home.home)
    assert minutes == {
        row["project"]: row["active"] / 60_000
        for row in succeed(store, "lineage", "active", "--json").json["projects"]
    }
