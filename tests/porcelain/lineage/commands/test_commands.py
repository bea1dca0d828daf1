"""``lineage sessions`` and ``lineage export`` as commands."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.porcelain.importing.driving import CONVERSATIONS, FILES, HOME, RECORDS, TIDEPOOL, objstore, succeed

#: One more is only named: the origin of a branch that is not there under that name.
SESSIONS = CONVERSATIONS + 1


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("lineage") / "store"
    succeed(store, "import", home=HOME)
    return store


def rows(store: Path, *words: str) -> list[dict[str, Any]]:
    out = succeed(store, "lineage", "sessions", "--json", *words).out
    return [json.loads(line) for line in out.splitlines()]


# -- sessions ------------------------------------------------------------------------------------------------------


def test_sessions_are_listed_latest_first_under_the_names_people_know(store: Path) -> None:
    found = rows(store)
    assert len(found) == CONVERSATIONS
    assert [row["last"] for row in found] == sorted((row["last"] for row in found), reverse=True)
    by_id = {row["native_id"]: row for row in found}
    first = by_id[TIDEPOOL.stem]
    assert (first["label"], first["label_type"]) == ("Skarvik clock change", "display_name")
    assert (first["records"], first["sources"], first["provider"]) == (42, 1, "claude")
    assert by_id["32f7623b-e732-49b3-a20d-66587585d046"]["label_type"] == "cwd"
    assert by_id["32f7623b-e732-49b3-a20d-66587585d046"]["sources"] == 8
    pi = by_id["3da39d98-be44-4991-ad4e-c09b725b7769"]
    assert pi["label"] == "Tile cache keeps what was used last"  # of several names the last holds
    assert (by_id["6aa2106d-924a-4182-ad15-0a4f0dad07c0"]["damage"], pi["damage"]) == (5, 0)


def test_the_table(store: Path) -> None:
    header, first, *more = succeed(store, "lineage", "sessions").out.splitlines()
    assert header.split() == ["last", "agent", "id", "name", "records", "files"]
    assert first.split() == [
        "2026-06-24",
        "17:05",
        "factory",
        "a13f25a8-0c1e",
        "Quays",
        "by",
        "boat",
        "12",
        "2",
        "1",
        "damaged",
    ]
    assert len(more) == CONVERSATIONS - 1
    assert any(line.endswith("5 damaged") for line in more)


def test_which_sessions(store: Path) -> None:
    assert {row["provider"] for row in rows(store, "--provider", "pi")} == {"pi"}
    assert len(rows(store, "-n", "2")) == 2
    assert [row["label"] for row in rows(store, "SKARVIK")] == ["Skarvik clock change"]
    assert [row["native_id"][:4] for row in rows(store, "tidepool", "befa")] == ["befa"]
    assert rows(store, "tidepool", "beehive") == []
    limited = succeed(store, "lineage", "sessions", "--limit", "2")
    assert (len(limited.out.splitlines()), limited.err) == (
        3,
        f"{CONVERSATIONS - 2} conversations not shown\n",
    )
    nothing = succeed(store, "lineage", "sessions", "zzz")
    assert (nothing.out, nothing.err) == ("", "no conversation matches\n")


def test_an_empty_store_and_none(tmp_path: Path) -> None:
    succeed(tmp_path / "store", "init")
    empty = succeed(tmp_path / "store", "lineage", "sessions")
    assert (empty.out, empty.err) == ("", "no conversation yet: objstore import\n")
    assert succeed(tmp_path / "store", "lineage", "sessions", "--json").out == ""
    none = objstore(tmp_path / "none", "lineage", "sessions")
    assert (none.code, none.out) == (3, "") and none.err.endswith("hint: make one with: objstore init\n")


@pytest.mark.parametrize("words", [("-n", "x"), ("-n", "-1"), ("--unknown",), ("--provider",)])
def test_bad_options(store: Path, words: tuple[str, ...]) -> None:
    result = objstore(store, "lineage", "sessions", *words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("objstore: lineage sessions: ") and len(result.err.splitlines()) == 2


# -- export --------------------------------------------------------------------------------------------------------


def table(file: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return connection.execute(query).fetchall()


def test_export_sqlite(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "view.sqlite"
    result = succeed(store, "lineage", "export", file)
    assert (result.out, result.err) == (
        "",
        f"wrote {file}: {SESSIONS} sessions, {FILES + 1} files, {RECORDS} events\n",
    )
    assert table(file, "SELECT count(*) FROM sessions") == [(SESSIONS,)]
    assert table(file, "SELECT count(*) FROM events") == [(RECORDS,)]
    per_file = (
        "SELECT observation_id, count(*), max(ordinal) + 1, count(DISTINCT ordinal) FROM events GROUP BY 1"
    )
    counts = dict(
        table(file, "SELECT id, json_extract(metadata_json, '$.records') FROM session_observations")
    )
    assert table(file, per_file) and all(
        counts[name] == events == last == distinct for name, events, last, distinct in table(file, per_file)
    )


def test_events_stand_where_their_records_do(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "view.sqlite"
    succeed(store, "lineage", "export", file)
    query = """SELECT e.row_number, e.byte_offset, e.byte_count, e.provider_event_id FROM events e
        JOIN session_observations o ON o.id = e.observation_id WHERE o.path = ? ORDER BY e.ordinal"""
    data = (HOME / TIDEPOOL).read_bytes()
    lines = data.split(b"\n")
    with closing(sqlite3.connect(file)) as connection:
        found = connection.execute(query, (str(HOME / TIDEPOOL),)).fetchall()
    assert len(found) == 42
    for line, offset, length, name in found:
        assert data[offset : offset + length] == lines[line - 1]
        assert json.loads(lines[line - 1]).get("uuid") == name


def test_export_json(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "view.json"
    succeed(store, "lineage", "export", file)
    document = json.loads(file.read_bytes())
    assert len(document["sessions"]) == SESSIONS and len(document["events"]) == RECORDS
    succeed(store, "lineage", "export", "--no-events", file)
    document = json.loads(file.read_bytes())
    assert document["events"] == []
    assert document["eventIndex"]["count"] == RECORDS


def test_the_form_goes_by_the_option_then_the_name(store: Path, tmp_path: Path) -> None:
    for words, name, begins in (
        ((), "a.json", b"{"),
        ((), "a.db", b"SQLite format 3"),
        (("--format", "sqlite"), "b.json", b"SQLite format 3"),
        (("--format", "json"), "b.sqlite", b"{"),
    ):
        succeed(store, "lineage", "export", *words, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_what_is_written_can_be_had_as_json(store: Path, tmp_path: Path) -> None:
    result = succeed(store, "lineage", "export", "--json", tmp_path / "view.sqlite")
    assert result.err == ""
    assert result.json["rows"]["sessions"] == SESSIONS
    assert (result.json["events"], result.json["dangling"]) == (RECORDS, 0)
    assert result.json["file"] == str(tmp_path / "view.sqlite")


def test_only_an_export_is_replaced(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "view.sqlite"
    file.write_text("my notes\n")
    result = objstore(store, "lineage", "export", file)
    assert result.code != 0 and "was not written by this command" in result.err
    assert file.read_text() == "my notes\n"
    succeed(store, "lineage", "export", "--force", file)
    assert table(file, "SELECT count(*) FROM sessions") == [(SESSIONS,)]
    succeed(store, "lineage", "export", file)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["view.sqlite"]


def test_where_it_cannot_be_written(store: Path, tmp_path: Path) -> None:
    folder = objstore(store, "lineage", "export", tmp_path)
    assert (folder.code, folder.err.splitlines()[0]) == (2, f"objstore: {tmp_path}: is a folder")
    nowhere = objstore(store, "lineage", "export", tmp_path / "no" / "view.sqlite")
    assert nowhere.code == 5 and nowhere.err.startswith("objstore: ") and len(nowhere.err.splitlines()) <= 2
    for words in ((), ("a", "b"), ("--format", "xml", "a")):
        assert objstore(store, "lineage", "export", *words).code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [(), ("--force",), ("--format", "json"), ("--no-events", "--force")])
def test_what_is_no_file_is_never_replaced(store: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    """A pipe stands for devices: a user with all rights would replace those of the machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = objstore(store, "lineage", "export", *words, pipe)
    assert (result.code, result.err.splitlines()[0]) == (2, f"objstore: {pipe}: is not a file")
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_an_empty_store_gives_an_empty_view(tmp_path: Path) -> None:
    succeed(tmp_path / "store", "init")
    file = tmp_path / "view.sqlite"
    succeed(tmp_path / "store", "lineage", "export", file)
    assert table(file, "SELECT count(*) FROM sessions") == [(0,)]
