from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from objstore.errors import StorageError
from porcelain.lineage.adapters.reports import Stated
from porcelain.lineage.exports.sqlite_view import write_sqlite
from porcelain.lineage.facts.projection import Projection, project
from porcelain.lineage.tables.schema import SCHEMA_VERSION, TABLES


@pytest.fixture
def view(fake: Any) -> Projection:
    return fake.view(  # type: ignore[no-any-return]
        fake.conversation(
            "a",
            fake.source(
                "a",
                5,
                damage_count=1,
                damage_bytes=8,
                titles=(Stated(value="Bohnen säen", time="2026-03-01T10:00:00Z"),),
                cwds=(Stated(value="/home/ines/garden"),),
            ),
            fake.source("a/subagents/agent-1", 2, stream="agent-1"),
        ),
        fake.conversation("b", fake.source("b", 4, state="gone"), provider="pi"),
    )


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_every_table_is_there_with_its_rows_and_references(
    tmp_path: Path, fake: Any, view: Projection
) -> None:
    path = tmp_path / "lineage.sqlite"
    assert write_sqlite(path, view, fake.pages) == 11
    for table in TABLES:
        assert [column[1] for column in rows(path, f"PRAGMA table_info({table.name})")] == [
            column.name for column in table.columns
        ]
        if table.name != "events":
            assert len(rows(path, f"SELECT * FROM {table.name}")) == len(view.tables[table.name])
    assert rows(path, "PRAGMA foreign_key_check") == []
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert rows(path, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    assert ("fold", view.fold) in rows(path, "SELECT * FROM export_info")


def test_the_file_keeps_its_own_references(tmp_path: Path, view: Projection) -> None:
    path = tmp_path / "lineage.sqlite"
    write_sqlite(path, view)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys=ON")
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute("DELETE FROM sources")
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute("UPDATE labels SET label_type = 'nickname'")


def test_events_stand_at_their_places_without_text(tmp_path: Path, fake: Any, view: Projection) -> None:
    path = tmp_path / "lineage.sqlite"
    write_sqlite(path, view, fake.pages)
    found = rows(
        path,
        "SELECT e.ordinal, e.row_number, e.byte_offset, e.byte_count, e.event_type, e.role, e.timestamp, e.summary,"
        " e.provider_event_id, e.object_id, e.metadata_json FROM events e JOIN session_observations o"
        " ON o.id = e.observation_id WHERE o.path LIKE '%/a.jsonl' ORDER BY e.ordinal",
    )
    assert [row[:4] for row in found] == [
        (0, 0, 0, 49),
        (1, 0, 50, 49),
        (2, 2, 200, 49),
        (3, 2, 250, 49),
        (4, 4, 400, 49),
    ]
    name = fake.digest("a", 2)
    assert found[2][4:] == (
        "assistant",
        "assistant",
        "2026-03-01T10:02:00.000Z",
        "text, call Bash",
        "a-2",
        name,
        f'{{"digest":"{name[:12]}"}}',
    )


def test_a_record_that_is_landed_twice_at_one_place_is_one_event(
    tmp_path: Path, fake: Any, view: Projection
) -> None:
    path = tmp_path / "lineage.sqlite"
    assert write_sqlite(path, view, lambda file: [*fake.pages(file), *fake.pages(file)]) == 11
    assert rows(path, "SELECT count(*) FROM events") == [(11,)]


def test_readable_views(tmp_path: Path, view: Projection) -> None:
    path = tmp_path / "lineage.sqlite"
    write_sqlite(path, view)
    assert rows(
        path, "SELECT provider, native_id, display_name, cwd, records, files FROM readable_sessions"
    ) == [
        ("claude", "a", "Bohnen säen", "/home/ines/garden", 7, 2),
        ("pi", "b", None, None, 4, 1),
    ]
    assert [row[0] for row in rows(path, "SELECT presence FROM readable_observations")].count("absent") == 1
    assert len(rows(path, "SELECT * FROM readable_evidence")) == 2


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_the_same_facts_give_the_same_bytes(tmp_path: Path, fake: Any, data: st.DataObject) -> None:
    names = data.draw(st.permutations("abc"))
    reports = [fake.conversation(name, fake.source(name, 1 + "abc".index(name))) for name in names]
    facts = data.draw(st.permutations(fake.learn({}, *reports)))
    other = fake.learn({}, fake.conversation("a", fake.source("a", 1)))
    written = []
    for number, chains in enumerate(([facts, other], [other, facts])):
        path = tmp_path / f"{number}.sqlite"
        write_sqlite(path, project(fake.join(*chains)), fake.pages)
        written.append(path.read_bytes())
    ordered = [fake.conversation(name, fake.source(name, 1 + "abc".index(name))) for name in "abc"]
    write_sqlite(tmp_path / "ordered.sqlite", fake.view(*ordered), fake.pages)
    assert written[0] == written[1] == (tmp_path / "ordered.sqlite").read_bytes()


def test_an_export_is_replaced_and_anything_else_is_not(tmp_path: Path, fake: Any, view: Projection) -> None:
    path = tmp_path / "lineage.sqlite"
    write_sqlite(path, fake.view(fake.conversation("z")))
    write_sqlite(path, view)
    assert len(rows(path, "SELECT * FROM sessions")) == 2
    foreign = tmp_path / "diary.sqlite"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE diary (day TEXT)")
    before = foreign.read_bytes()
    with pytest.raises(StorageError, match="was not written by this command") as refused:
        write_sqlite(foreign, view)
    assert refused.value.hint
    assert foreign.read_bytes() == before
    write_sqlite(foreign, view, overwrite=True)
    assert len(rows(foreign, "SELECT * FROM sessions")) == 2


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path: Path, view: Projection) -> None:
    path = tmp_path / "lineage.sqlite"
    write_sqlite(path, view)
    before = path.read_bytes()

    def broken(_file: object) -> Any:
        raise StorageError("page lost")

    with pytest.raises(StorageError, match="page lost"):
        write_sqlite(path, view, broken)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["", "missing/lineage.sqlite"])
def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path, view: Projection, name: str) -> None:
    with pytest.raises(StorageError) as refused:
        write_sqlite(tmp_path / name, view)
    assert "\n" not in str(refused.value)
