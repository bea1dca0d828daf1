"""The tables of the index, beside those of the view."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from porcelain.lineage.facts.projection import Row, cell
from porcelain.lineage.tables import ddl
from porcelain.lineage.tables.schema import FACT_TABLES, SCHEMA_VERSION, TABLES

T = TypeVar("T")

#: What of the index is the view: what a person's statement may read.
PUBLIC = frozenset({"export_info", *(table.name for table in TABLES), *(name for name, _ in ddl.VIEWS)})

#: How names of values of ``state`` begin that say what else the index holds of what is landed.
KEPT = "kept/"
#: Whether a row of ``session_observations`` is of a conversation in the file of another.
GUEST = "json_type(metadata_json, '$.inside') IS NOT NULL"
#: What was seen, in stored facts or in the file of another conversation, of tables that have rows of both.
SEEN = {
    "labels": "(EXISTS (SELECT 1 FROM fact WHERE fact.id = labels.id) OR target_id IN "
    f"(SELECT id FROM session_observations WHERE {GUEST}))",
    "session_observations": f"(EXISTS (SELECT 1 FROM fact WHERE fact.id = session_observations.id) OR {GUEST})",
    "sessions": "(EXISTS (SELECT 1 FROM fact WHERE fact.id = sessions.id) OR sessions.id IN "
    f"(SELECT session_id FROM session_observations WHERE {GUEST}))",
}
_TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE fact (id TEXT PRIMARY KEY, kind TEXT, revision INTEGER, key BLOB, removed INTEGER, token INTEGER)
  WITHOUT ROWID;
CREATE TABLE token (hash INTEGER PRIMARY KEY, grp INTEGER NOT NULL);
CREATE TABLE landed (ref TEXT PRIMARY KEY, head BLOB, provider TEXT, native TEXT) WITHOUT ROWID;
CREATE TABLE file (id TEXT PRIMARY KEY, provider TEXT, native TEXT, body BLOB) WITHOUT ROWID;
CREATE TABLE record (key INTEGER PRIMARY KEY, token INTEGER NOT NULL);
CREATE TABLE shared (id TEXT, key INTEGER, PRIMARY KEY (id, key)) WITHOUT ROWID;
CREATE TABLE owned (grp INTEGER, tbl TEXT, id TEXT, PRIMARY KEY (grp, tbl, id)) WITHOUT ROWID;
CREATE TABLE node (id TEXT PRIMARY KEY, session TEXT, provider TEXT, native TEXT, path TEXT, src TEXT, folder TEXT,
  first TEXT, last TEXT, root TEXT, bucket TEXT, kept BLOB) WITHOUT ROWID;
CREATE TABLE weak (folder TEXT, source TEXT, target TEXT, edge TEXT, grp INTEGER, PRIMARY KEY (folder, source, target))
  WITHOUT ROWID;
CREATE TABLE forky (token INTEGER PRIMARY KEY);
CREATE TABLE dangling (tbl TEXT, id TEXT, col TEXT, missing TEXT, left_out INTEGER, PRIMARY KEY (tbl, id, col))
  WITHOUT ROWID;
"""
#: Made when the tables have been filled for the first time, which is quicker; the first lot is needed to go on then.
FIRST_INDEXES = """
CREATE INDEX IF NOT EXISTS fact_token ON fact (token);
CREATE INDEX IF NOT EXISTS landed_native ON landed (provider, native);
"""
TOKEN_INDEX = "CREATE INDEX IF NOT EXISTS token_grp ON token (grp)"
INDEXES = """
CREATE INDEX IF NOT EXISTS shared_key ON shared (key);
CREATE INDEX IF NOT EXISTS weak_grp ON weak (grp);
CREATE INDEX IF NOT EXISTS file_native ON file (provider, native);
CREATE INDEX IF NOT EXISTS node_folder ON node (folder, first, last, id);
CREATE INDEX IF NOT EXISTS node_bucket ON node (root, bucket);
CREATE INDEX IF NOT EXISTS node_native ON node (native);
CREATE INDEX IF NOT EXISTS node_path ON node (path);
CREATE INDEX IF NOT EXISTS dangling_missing ON dangling (missing);
CREATE INDEX IF NOT EXISTS session_observations_session ON session_observations (session_id);
CREATE INDEX IF NOT EXISTS session_observations_path ON session_observations (path);
CREATE INDEX IF NOT EXISTS session_observations_guest ON session_observations (session_id)
  WHERE json_type(metadata_json, '$.inside') IS NOT NULL;
CREATE INDEX IF NOT EXISTS sessions_native ON sessions (provider_session_id);
CREATE INDEX IF NOT EXISTS labels_target ON labels (target_id);
CREATE INDEX IF NOT EXISTS thread_members_session ON thread_members (session_id);
CREATE INDEX IF NOT EXISTS thread_members_thread ON thread_members (thread_id);
CREATE INDEX IF NOT EXISTS import_runs_source ON import_runs (source_id);
"""


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables anew, within the open transaction; whatever was there is dropped."""
    run = connection.execute
    for kind in ("view", "table"):
        for (name,) in run("SELECT name FROM sqlite_master WHERE type = ?", (kind,)).fetchall():
            run(f'DROP {kind} "{name}"')
    run_all(connection, _TABLES)
    run("CREATE TABLE IF NOT EXISTS export_info (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL)")
    for table in TABLES:  # in order of id, as they are read
        run(f"{ddl.create_table(table)} WITHOUT ROWID")
    for name, query in ddl.VIEWS:
        run(f"CREATE VIEW {name} AS {query}")


def write_info(connection: sqlite3.Connection, fold: str) -> None:
    """State what the view was made from, as an exported file does."""
    rows = (("fold", fold), ("schema_version", str(SCHEMA_VERSION)))
    connection.executemany("INSERT OR REPLACE INTO export_info VALUES (?, ?)", rows)


def run_all(connection: sqlite3.Connection, statements: str) -> None:
    """Run statements one after another; ``executescript`` would end the transaction."""
    for statement in statements.split(";"):
        if statement.strip():
            connection.execute(statement)


def write_rows(connection: sqlite3.Connection, tables: Mapping[str, Iterable[Row]]) -> int:
    """Put rows in place of those with the same ids; how many."""
    count = 0
    for table in FACT_TABLES:
        rows = tables.get(table.name)
        if rows:
            places = ", ".join("?" for _ in table.columns)
            other = [column for column in table.columns if column.type in ("OBJECT", "LIST", "FLAG")]
            made = []
            for row in rows:  # in the order of the columns
                cells = row.copy()
                for column in other:
                    cells[column.name] = cell(column, row[column.name])
                made.append(tuple(cells.values()))
            connection.executemany(f"INSERT OR REPLACE INTO {table.name} VALUES ({places})", made)
            count += len(made)
    return count


def placed(values: Sequence[object]) -> str:
    """Places for values in a statement."""
    return ", ".join("?" for _ in values)


def in_parts(values: Iterable[T], size: int = 500) -> Iterator[list[T]]:
    """Lists of at most ``size`` values: what one statement has places for."""
    part: list[T] = []
    for value in values:
        part.append(value)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part
