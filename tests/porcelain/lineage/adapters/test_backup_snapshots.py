"""Backups as evidence: the windows in which a file was there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from porcelain.lineage.adapters.backup_snapshots import snapshot_time, snapshots_in
from tests.porcelain.importing.driving import objstore, projection, succeed
from tests.porcelain.lineage import usage_homes as homes

NAMES = ("2026-05-01-100000", "2026-05-02-100000", "2026-05-03-100000", "2026-05-04-100000")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def conversation(home: Path, name: str) -> Path:
    return homes.write(homes.pi_path(home, name), [homes.pi_header(name), homes.pi_call(1)])


def back_up(home: Path, snapshot: Path, *, volume: str = "") -> None:
    shutil.copytree(home, snapshot / volume / str(home).lstrip("/"), dirs_exist_ok=True)


@pytest.fixture
def backups(home: Path, tmp_path: Path) -> Path:
    """``kept`` is in all four snapshots, ``young`` in the last two, ``gone`` in the first two only."""
    folder = tmp_path / "backups"
    conversation(home, "kept")
    gone = conversation(home, "gone")
    back_up(home, folder / NAMES[0])
    back_up(home, folder / NAMES[1], volume="Macintosh HD")
    gone.unlink()
    conversation(home, "young")
    back_up(home, folder / NAMES[2])
    back_up(home, folder / NAMES[3])
    return folder


def test_windows_of_presence(tmp_path: Path, home: Path, backups: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "import", home=home)
    before = sorted((path, path.stat().st_mtime_ns) for path in backups.rglob("*"))
    document = succeed(store, "lineage", "backup", "--json", backups).json
    assert document["snapshots"] == list(NAMES)
    windows = {
        one["path"].rpartition("_")[2]: [(w["presence"], w["first"], w["last"]) for w in one["windows"]]
        for one in document["files"]
    }
    assert windows == {
        "kept.jsonl": [("present", NAMES[0], NAMES[3])],
        "young.jsonl": [("absent", NAMES[0], NAMES[1]), ("present", NAMES[2], NAMES[3])],
        "gone.jsonl": [("present", NAMES[0], NAMES[1]), ("absent", NAMES[2], NAMES[3])],
    }
    assert [path.rpartition("_")[2] for path in document["unknown"]] == ["gone.jsonl"]
    assert sorted((path, path.stat().st_mtime_ns) for path in backups.rglob("*")) == before


def test_what_is_stored_of_it(tmp_path: Path, home: Path, backups: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "import", home=home)
    assert succeed(store, "lineage", "backup", "--json", backups).json["newFacts"] == 11
    assert succeed(store, "lineage", "backup", "--json", backups).json["newFacts"] == 0
    tables = projection(store).tables
    rows = {
        (row["path"].rpartition("_")[2], row["snapshot_label"]): row for row in tables["backup_observations"]
    }
    assert len(rows) == 10
    kept = rows["kept.jsonl", NAMES[0]]
    assert (kept["presence"], kept["snapshot_timestamp"]) == ("present", "2026-05-01T10:00:00.000Z")
    files = {row["id"]: row for row in tables["session_observations"]}
    assert files[kept["session_observation_id"]]["path"] == kept["path"]
    assert kept["file_size"] == files[kept["session_observation_id"]]["file_size"]
    assert rows["gone.jsonl", NAMES[0]]["session_observation_id"] is None
    assert rows["gone.jsonl", NAMES[3]]["presence"] == "absent"
    inventory = succeed(store, "lineage", "inventory").out
    assert "in 2 backups" in inventory
    assert tables["logical_threads"] == []


def test_a_later_snapshot_adds_what_changed(tmp_path: Path, home: Path, backups: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "import", home=home)
    succeed(store, "lineage", "backup", backups)
    back_up(home, backups / "2026-05-05-100000")
    assert succeed(store, "lineage", "backup", "--json", backups).json["newFacts"] == 3


def test_snapshots_of_one_folder(tmp_path: Path, home: Path) -> None:
    store, folder = tmp_path / "store", tmp_path / "backups"
    conversation(home, "kept")
    succeed(store, "import", home=home)
    for name in ("a", "b"):
        shutil.copytree(home / ".pi" / "agent", folder / name)
    nothing = succeed(store, "lineage", "backup", folder)
    assert "no folder of sessions that the store knows" in nothing.err
    found = succeed(store, "lineage", "backup", "--json", "--under", home / ".pi" / "agent", folder).json
    assert [len(one["windows"]) for one in found["files"]] == [1]


def test_a_dry_run_stores_nothing(tmp_path: Path, home: Path, backups: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "import", home=home)
    succeed(store, "lineage", "backup", "--dry-run", backups)
    assert projection(store).tables["backup_observations"] == []
    assert objstore(store, "lineage", "backup", tmp_path / "nowhere").code == 3


@pytest.mark.parametrize(
    ("label", "time"),
    [
        ("2026-05-22-211000", "2026-05-22T21:10:00.000Z"),
        ("2026-05-22-211000.backup", "2026-05-22T21:10:00.000Z"),
        ("laptop_2026-05-22T21:10:05Z", "2026-05-22T21:10:05.000Z"),
        ("20260522", "2026-05-22T00:00:00.000Z"),
        ("daily.0", None),
        ("2026-13-40", None),
    ],
)
def test_times_of_snapshots(label: str, time: str | None) -> None:
    assert snapshot_time(label) == time


def test_snapshots_go_by_time_where_all_have_one(tmp_path: Path) -> None:
    for name in ("b-2026-01-01", "a-2026-02-01"):
        (tmp_path / name).mkdir()
    assert [path.name for path in snapshots_in(tmp_path)] == ["b-2026-01-01", "a-2026-02-01"]
    (tmp_path / "current").mkdir()
    assert [path.name for path in snapshots_in(tmp_path)] == ["a-2026-02-01", "b-2026-01-01", "current"]
