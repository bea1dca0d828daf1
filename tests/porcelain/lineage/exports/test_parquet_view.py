"""The lineage of several stores as Parquet, side by side, asked with DuckDB what the documentation asks."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from objstore.errors import StorageError
from porcelain.lineage.exports import parquet_view
from porcelain.lineage.exports.parquet_place import FolderPlace
from porcelain.lineage.tables.schema import TABLES
from tests.plumbing.conftest import objstore
from tests.porcelain.remotes.bucket_server import Bucket, bucket

__all__ = ["bucket", "objstore"]

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
ROOT = Path(__file__).resolve().parents[4]
HOME = ROOT / "fixtures" / "home"


@pytest.fixture
def stores(objstore: Any, tmp_path: Path) -> tuple[str, ...]:
    """Three stores: one with Claude's conversations, one with Pi's, and one that pulled from both."""
    for name, agents in (("one", (".claude",)), ("two", (".pi",)), ("three", ())):
        assert objstore("init", store=name).code == 0
        for agent in agents:
            assert objstore("import", str(HOME / agent), store=name).code == 0
    for other in ("./one", "./two"):
        assert objstore("pull", other, store="three").code == 0
    return "one", "two", "three"


def exported(objstore: Any, store: str, place: str, *more: str) -> dict[str, Any]:
    done = objstore("lineage", "export", "--format", "parquet", "--json", *more, place, store=store)
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def rows_of(objstore: Any, store: str, table: str) -> list[dict[str, Any]]:
    """The rows of a table by way of the SQLite view."""
    assert objstore("lineage", "export", "--force", f"{store}.db", store=store).code == 0
    with sqlite3.connect(f"{store}.db") as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def queries() -> list[str]:
    """The queries for DuckDB that the page shows."""
    page = (ROOT / "docs" / "fleet.md").read_text()
    return re.findall(r"```sql\n(.*?)```", page.partition("## Spark")[0], re.DOTALL)


def test_three_stores_side_by_side_answer_the_documented_queries(
    objstore: Any, stores: tuple[str, ...], tmp_path: Path
) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    for store in stores:
        exported(objstore, store, "fleet")
    by_month, longest = queries()
    wanted: dict[tuple[str, str], tuple[set[str], set[str], set[str]]] = defaultdict(
        lambda: (set(), set(), set())
    )
    sessions: dict[str, dict[str, Any]] = {}
    for store in stores:
        for row in rows_of(objstore, store, "events"):
            key = row["provider"], row["timestamp"][:7] if row["timestamp"] else "none"
            ids, conversations, machines = wanted[key]
            ids.add(row["id"])
            conversations.add(row["session_id"])
            machines.add(store)
        sessions |= {row["id"]: row for row in rows_of(objstore, store, "sessions")}
    found = duckdb.sql(by_month.rstrip().rstrip(";")).fetchall()
    assert found == [(*key, *map(len, sets)) for key, sets in sorted(wanted.items())]
    assert len(found) > 6 and {machines for *_, machines in found} == {2}
    order = sorted(
        sessions.values(), key=lambda row: (-row["event_count"], row["provider"], row["provider_session_id"])
    )
    found = duckdb.sql(longest.rstrip().rstrip(";")).fetchall()
    assert [row[:3] for row in found] == [
        (row["provider"], row["provider_session_id"], row["event_count"]) for row in order[:20]
    ]
    times = {row[1]: row[3].isoformat(timespec="milliseconds")[:23] + "Z" for row in found if row[3]}
    for row in order[:20]:
        if row["start_timestamp"]:
            assert times[row["provider_session_id"]] == row["start_timestamp"]


def test_every_table_holds_what_the_sqlite_view_holds(
    objstore: Any, stores: tuple[str, ...], tmp_path: Path
) -> None:
    from pyarrow import parquet

    report = exported(objstore, "three", "fleet")
    assert report["events"] == len(rows_of(objstore, "three", "events")) > 300
    for table in TABLES:
        wanted = {row["id"]: row for row in rows_of(objstore, "three", table.name)}
        files = [name for name in report["files"] if name.startswith(f"{table.name}/")]
        found = {
            row["id"]: row
            for name in files
            for row in parquet.ParquetFile(Path("fleet") / name).read().to_pylist()
        }
        assert found.keys() == wanted.keys(), table.name
        for key, row in found.items():
            for column in table.columns:
                if column.name in row and column.type != "TIME":
                    assert row[column.name] == wanted[key][column.name], (table.name, column.name)


def test_an_export_replaces_its_own_earlier_one_and_nothing_else(
    objstore: Any, stores: tuple[str, ...], tmp_path: Path
) -> None:
    exported(objstore, "one", "fleet")
    exported(objstore, "two", "fleet")
    first = contents(tmp_path / "fleet")
    assert exported(objstore, "one", "fleet")["removed"] == []
    assert contents(tmp_path / "fleet") == first
    identity = next(name.split("/")[1] for name in first)
    stale = tmp_path / "fleet" / "events" / identity / "provider=claude" / "month=1999-01"
    stale.mkdir(parents=True)
    (stale / "events-0.parquet").write_bytes(b"old")
    other = tmp_path / "fleet" / "events" / "README"
    other.write_text("mine")
    owner = "one" if exported(objstore, "one", "fleet")["removed"] else "two"
    exported(objstore, owner, "fleet")
    exported(objstore, "two", "fleet")
    assert not stale.exists() and other.read_text() == "mine"
    other.unlink()
    assert contents(tmp_path / "fleet") == first
    without = exported(objstore, "one", "fleet", "--no-events")
    assert without["events"] == 0 and all(name.startswith("events/") for name in without["removed"])


def test_rows_that_are_held_are_few(
    objstore: Any, stores: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import parquet

    exported(objstore, "three", "whole")
    monkeypatch.setattr(parquet_view, "_HELD", 20)
    monkeypatch.setattr(parquet_view, "_OPEN", 2)
    held: list[int] = []
    add = parquet_view._Events.add

    def counted(self: Any, row: Any) -> None:
        add(self, row)
        held.append(self._held)
        assert len(self._writers) <= 2

    monkeypatch.setattr(parquet_view._Events, "add", counted)
    report = exported(objstore, "three", "few")
    assert max(held) < 20 and len(held) == report["events"]
    assert any("events-1.parquet" in name for name in report["files"])

    def events(folder: str) -> list[Any]:
        files = sorted(Path(folder, "events").rglob("*.parquet"))
        return sorted(str(row) for path in files for row in parquet.ParquetFile(path).read().to_pylist())

    assert events("few") == events("whole")


def test_the_same_files_in_a_bucket(
    objstore: Any, stores: tuple[str, ...], tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    from porcelain.remotes.s3_bucket import bucket_files

    for name, value in bucket.env.items():
        monkeypatch.setenv(name, value)
    url = bucket.url
    for store in ("one", "two"):
        exported(objstore, store, url)
        exported(objstore, store, "fleet")
    files = bucket_files(url, bucket.env)
    assert {name: files.get(name) for name in files.list("")} == contents(tmp_path / "fleet")
    report = exported(objstore, "one", url, "--no-events")
    assert report["removed"] and not set(report["removed"]) & set(files.list(""))


def test_places_that_cannot_be_written(objstore: Any, stores: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    done = objstore("lineage", "export", "--format", "parquet", "file", store="one")
    assert done.code == 2 and "not a folder" in done.err
    assert objstore("lineage", "export", "--format", "parquet", "s3://-x", store="one").code == 2
    with pytest.raises(StorageError), FolderPlace(tmp_path / "file" / "below").scratch():
        pass
