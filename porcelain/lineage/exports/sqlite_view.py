"""The lineage view as a SQLite file.

The same facts and the same program give the same bytes: rows go in sorted by id, events in the order of their files,
nothing is ever updated, and no clock is read. Indexes are made at the end, which is also the fastest way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from objstore.errors import CheckFailed, StorageError
from porcelain.lineage.facts.projection import Projection, cells_of
from porcelain.lineage.landed.events import EventRow, EventSource, event_rows, no_events
from porcelain.lineage.tables import ddl
from porcelain.lineage.tables.schema import EVENTS, FACT_TABLES, SCHEMA_VERSION, TABLES
from porcelain.output_file import replacing

#: ``PRAGMA application_id`` of our files: "objl".
APPLICATION_ID = 0x6F626A6C
_PAGE_SIZE = 8192
_CACHE_KIB = 64 * 1024
_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_AT = 68


def write_sqlite(
    path: Path, projection: Projection, events: EventSource = no_events, *, overwrite: bool = False
) -> int:
    """Write the view to ``path`` and return the number of events in it.

    A file at ``path`` is replaced in one step if it is such a view itself, or with ``overwrite``. Raises
    ``StorageError`` where the file cannot be written, ``CheckFailed`` where a reference leads nowhere.
    """
    with replacing(path, _is_ours, overwrite=overwrite) as partial:
        try:
            with closing(sqlite3.connect(partial, isolation_level=None)) as connection:
                return _fill(connection, projection, event_rows(projection, events))
        except sqlite3.Error as error:
            raise StorageError(f"{path}: cannot write: {error}") from None


def fill(connection: sqlite3.Connection, projection: Projection, events: EventSource = no_events) -> int:
    """Make all tables of the view in an empty database and return the number of events; raises as ``write_sqlite``."""
    return _fill(connection, projection, event_rows(projection, events))


def _is_ours(head: bytes) -> bool:
    stated = head[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]
    return head.startswith(_MAGIC) and stated == APPLICATION_ID.to_bytes(4, "big")


def _fill(connection: sqlite3.Connection, projection: Projection, events: Iterable[EventRow]) -> int:
    run = connection.execute
    for setting in (
        f"page_size={_PAGE_SIZE}",
        "encoding='UTF-8'",
        "auto_vacuum=NONE",
        "journal_mode=OFF",
        "synchronous=OFF",
        "locking_mode=EXCLUSIVE",
        f"cache_size=-{_CACHE_KIB}",
        f"application_id={APPLICATION_ID}",
        f"user_version={SCHEMA_VERSION}",
    ):
        run(f"PRAGMA {setting}")
    run("BEGIN")
    run("CREATE TABLE export_info (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL)")
    connection.executemany(
        "INSERT INTO export_info VALUES (?, ?)",
        (("fold", projection.fold), ("schema_version", str(SCHEMA_VERSION))),
    )
    for table in TABLES:
        run(ddl.create_table(table))
    for table in FACT_TABLES:
        connection.executemany(
            ddl.insert(table),
            cells_of(table, projection.tables[table.name]),
        )
    count = connection.executemany(ddl.insert(EVENTS), events).rowcount
    for table in TABLES:
        for statement in ddl.create_indexes(table):
            run(statement)
    for name, query in ddl.VIEWS:
        run(f"CREATE VIEW {name} AS {query}")
    for table in FACT_TABLES:  # events take their references from rows that are checked here
        for broken in run(f"PRAGMA foreign_key_check({table.name})"):
            raise CheckFailed(
                f"{broken[0]}: row {broken[1]} refers to a row of {broken[2]} that is not there"
            )
    run("COMMIT")
    return max(count, 0)
