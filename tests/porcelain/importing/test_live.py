"""Importing while the agent writes: a torn last line waits, and is imported once when it is complete."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import msgspec
import pytest

from porcelain.lineage.facts.kinds import Fact
from tests.porcelain.importing.driving import (
    HOME,
    TIDEPOOL,
    held,
    objstore,
    observations,
    succeed,
    verify,
    without_places,
)

FERRY = Path(".claude/projects/-home-mira-src-ferry/6aa2106d-924a-4182-ad15-0a4f0dad07c0.jsonl")
AGENTS = ".claude/projects/-home-mira-src-lantern-mail/5f9f4cd9-f5f5-4754-835d-fb9d3463361f"
WRITTEN = (
    TIDEPOOL,
    FERRY,
    Path(AGENTS + ".jsonl"),
    Path(AGENTS + "/subagents/agent-a8591367129c49705.jsonl"),
    Path(".pi/agent/sessions/--home-mira-src-kestrel--")
    / "2026-04-18T11-20-30-000Z_3da39d98-be44-4991-ad4e-c09b725b7769.jsonl",
)


def append(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:
        file.write(data)


def timeless(facts: dict[str, Fact]) -> dict[str, Fact]:
    """Facts without what tells how often something was said."""
    return {name: msgspec.structs.replace(fact, revision=0) for name, fact in facts.items()}


def same_as_a_fresh_import(store: Path, home: Path) -> None:
    """Equal but for where pages were cut."""
    verify(store)
    fresh = store.parent / "fresh"
    succeed(fresh, "import", home=home)
    there, here = held(fresh), held(store)
    assert {name: sorted(records) for name, records in here.landed.items()} == {
        name: sorted(records) for name, records in there.landed.items()
    }
    assert timeless(here.facts) == timeless(there.facts)
    assert without_places(store) == without_places(fresh)


@pytest.mark.parametrize("seed", range(3))
def test_pieces_of_any_size(tmp_path: Path, seed: int) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    chance = random.Random(seed)
    for path in WRITTEN[:2] if seed else WRITTEN:
        data = (HOME / path).read_bytes()
        cuts = sorted(chance.sample(range(1, len(data)), 12))
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            append(home / path, data[start:end])
            objstore(store, "import", "--quiet", home=home)
    for path in WRITTEN[:2] if seed else WRITTEN:
        assert (home / path).read_bytes() == (HOME / path).read_bytes()
    succeed(store, "import", home=home)
    same_as_a_fresh_import(store, home)
    fresh = held(tmp_path / "fresh")
    if seed:  # one file a conversation: the very order is the same
        assert held(store).landed == fresh.landed


def test_a_torn_line_is_pending_and_lands_once(tmp_path: Path) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    lines = (HOME / TIDEPOOL).read_bytes().splitlines(keepends=True)
    append(home / TIDEPOOL, b"".join(lines[:10]))
    succeed(store, "import", home=home)
    for cut in (20, len(lines[10]) // 2, len(lines[10]) - 2):
        append(home / TIDEPOOL, lines[10][:cut])
        result = succeed(store, "import", "--json", home=home).json
        assert [(p["pending"], p["records"], p["damaged"]) for p in result["places"]] == [(1, 0, 0)]
        (home / TIDEPOOL).write_bytes(b"".join(lines[:10]))
    append(home / TIDEPOOL, lines[10][:-9])
    result = succeed(store, "import", home=home)
    assert "1 file with an incomplete last line" in result.out
    append(home / TIDEPOOL, lines[10][-9:])
    result = succeed(store, "import", "--json", home=home).json
    assert [(p["pending"], p["records"], p["damaged"]) for p in result["places"]] == [(0, 1, 0)]
    row = observations(store)[str(home / TIDEPOOL)]
    assert (row["line_count"], row["metadata_json"]["records"]) == (11, 11)
    same_as_a_fresh_import(store, home)


def test_a_whole_last_line_without_its_newline_lands_at_once(tmp_path: Path) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    lines = (HOME / TIDEPOOL).read_bytes().splitlines(keepends=True)
    append(home / TIDEPOOL, b"".join(lines[:10])[:-1])
    result = succeed(store, "import", "--json", home=home).json
    assert [(p["pending"], p["records"]) for p in result["places"]] == [(0, 10)]
    append(home / TIDEPOOL, b"\n" + lines[10])
    result = succeed(store, "import", "--json", home=home).json
    assert [(p["pending"], p["records"]) for p in result["places"]] == [(0, 1)]
    same_as_a_fresh_import(store, home)


def test_a_session_that_begins_with_lines_that_are_no_conversation(tmp_path: Path) -> None:
    """Claude Code writes a snapshot before the first prompt; the file that was left out then was never rewritten."""
    store, home = tmp_path / "store", tmp_path / "home"
    snapshot = b'{"type":"file-history-snapshot","messageId":"m","snapshot":{},"isSnapshotUpdate":false}\n'
    append(home / TIDEPOOL, snapshot)
    first = objstore(store, "import", "--json", home=home)
    assert (first.code, first.json["records"], first.json["places"][0]["leftOut"]) == (0, 0, 1)
    append(home / TIDEPOOL, (HOME / TIDEPOOL).read_bytes())
    result = succeed(store, "import", "--json", home=home).json
    assert [(p["records"], p["conflicts"], p["new"]) for p in result["places"]] == [(43, 0, 1)]
    row = succeed(store, "lineage", "sessions", "--json").json
    assert (row["records"], row["conflicts"]) == (43, 0)
    same_as_a_fresh_import(store, home)


def test_imports_beside_a_writer(tmp_path: Path) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    succeed(store, "init")
    chance = random.Random(7)

    def write() -> None:
        left = {path: (HOME / path).read_bytes() for path in WRITTEN}
        while left:
            path = chance.choice(list(left))
            size = chance.randint(1, 5000)
            append(home / path, left[path][:size])
            left[path] = left[path][size:]
            if not left[path]:
                del left[path]
            time.sleep(0.004)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        objstore(store, "import", "--quiet", home=home)
    writer.join()
    succeed(store, "import", home=home)
    same_as_a_fresh_import(store, home)


def test_a_line_at_a_time(tmp_path: Path) -> None:
    """However little comes: damaged bytes that no compression makes shorter, a blank line, half a record."""
    home, store = tmp_path / "home", tmp_path / "store"
    for line in (HOME / FERRY).read_bytes().splitlines(keepends=True):
        append(home / FERRY, line)
        succeed(store, "import", home=home)
    verify(store)
    fresh = tmp_path / "fresh"
    succeed(fresh, "import", home=home)
    assert without_places(store) == without_places(fresh)
