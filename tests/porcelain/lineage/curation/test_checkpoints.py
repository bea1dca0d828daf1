"""Summaries that took the place of history: listed once whatever copies there are, and never quoted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.porcelain.importing.driving import objstore, succeed
from tests.porcelain.lineage.curation.test_curation import rows
from tests.porcelain.lineage.pi_home import PiHome

TEXT = "a summary that nobody may quote"


def compaction(name: str, number: int) -> dict[str, Any]:
    return {
        "type": "compaction",
        "id": f"{name}c{number:06x}",
        "parentId": f"{name}{number:07x}",
        "timestamp": f"2026-03-01T12:0{number}:00.000Z",
        "summary": TEXT,
        "firstKeptEntryId": f"{name}{number:07x}",
        "tokensBefore": 1000,
    }


@pytest.fixture
def store(tmp_path: Path) -> Path:
    home = PiHome(tmp_path / "home")
    source = home.write(
        "a", [*home.entries("a", 22), compaction("a", 1), *home.entries("b", 3), compaction("a", 2)]
    )
    home.move(source, "garden", "orchard")
    home.write("d", home.entries("d", 3), folder="meadow")
    succeed(tmp_path / "store", "import", home=home.home)
    return tmp_path / "store"


def test_each_summary_once(store: Path) -> None:
    result = succeed(store, "lineage", "checkpoints")
    first, second = result.out.splitlines()
    assert first.startswith("2026-03-01 12:01  pi 0000000a-0000  a summary of 31 bytes at record 24")
    assert second.endswith("at record 28") and TEXT not in result.out
    assert succeed(store, "lineage", "checkpoints", "0000000d").out == ""
    assert rows(store, "SELECT * FROM checkpoints") == []


def test_recorded_once(store: Path) -> None:
    assert succeed(store, "lineage", "checkpoints", "--record").err == "2 checkpoints recorded\n"
    assert succeed(store, "lineage", "checkpoints", "--record").err == "0 checkpoints recorded\n"
    (one, _) = rows(store, "SELECT kind, privacy_status, generator FROM checkpoints")
    assert one == {"generator": "pi", "kind": "compaction_summary", "privacy_status": "metadata-only"}
    exported = store.parent / "view.json"
    succeed(store, "lineage", "export", exported)
    assert TEXT.encode() not in exported.read_bytes()
    assert objstore(store, "lineage", "checkpoints", "zzz").code == 3
