"""The lineage view as a JSON file: camelCase names, one row a line, rows sorted by id, empty columns left out.

Events stand in the SQLite view; the JSON names how many there are, and lists them only when asked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TextIO

import msgspec

from objstore.errors import StorageError
from objstore.fastcanonical import encode
from porcelain.lineage.facts.projection import Projection, Row
from porcelain.lineage.landed.events import (
    EventCount,
    EventRow,
    EventSource,
    event_rows,
    observed_files,
    stated_count,
)
from porcelain.lineage.tables import ddl
from porcelain.lineage.tables.columns import Table
from porcelain.lineage.tables.schema import EVENTS, FACT_TABLES, SCHEMA_VERSION
from porcelain.output_file import replacing

_HEAD = f'{{"schemaVersion":{SCHEMA_VERSION},\n"generator":"objstore lineage export",\n'


def write_json(
    path: Path,
    projection: Projection,
    events: EventSource | None = None,
    *,
    count: EventCount = stated_count,
    overwrite: bool = False,
) -> int:
    """Write the view to ``path`` and return the number of events; as ``sqlite_view.write_sqlite`` for what stands
    there. With ``events`` they are in it, sorted on disk and not in memory; without, ``count`` says how many a file
    has."""
    with (
        replacing(path, _is_ours, overwrite=overwrite) as partial,
        partial.open("w", encoding="utf-8", newline="\n") as out,
    ):
        try:
            rows = None if events is None else event_rows(projection, events)
            return _write(out, projection, rows, count)
        except sqlite3.Error as error:
            raise StorageError(f"{path}: cannot sort the events: {error}") from None


def _is_ours(head: bytes) -> bool:
    return head.startswith(_HEAD.encode())


def _write(
    out: TextIO, projection: Projection, events: Iterable[EventRow] | None, count_of: EventCount
) -> int:
    out.write(f'{_HEAD}"fold":"{projection.fold}",\n')
    for table in FACT_TABLES:
        _write_array(out, table.json_name, (json_row(table, row) for row in projection.tables[table.name]))
    if events is None:
        count = sum(map(count_of, observed_files(projection)))
        _write_array(out, EVENTS.json_name, ())
    else:
        count = _write_events(out, events)
    storage = "sqlite" if events is None else "inline"
    index = {"count": count, "privacyStatus": "metadata-only", "storage": storage, "table": EVENTS.name}
    out.write(f'"eventIndex":{encode(index).decode()}}}\n')
    return count


def _write_events(out: TextIO, events: Iterable[EventRow]) -> int:
    with closing(sqlite3.connect("", isolation_level=None)) as sorter:  # a temporary file of SQLite's own
        sorter.execute(ddl.create_table(EVENTS))
        sorter.execute("BEGIN")
        count = sorter.executemany(ddl.insert(EVENTS), events).rowcount
        rows = sorter.execute(f"SELECT * FROM {EVENTS.name} ORDER BY id")
        _write_array(out, EVENTS.json_name, (json_row(EVENTS, _event(row)) for row in rows))
    return max(count, 0)


def json_row(table: Table, row: Row) -> dict[str, Any]:
    """``row`` as it stands in the JSON: names of the export, empty columns left out."""
    return {column.json_name: row[column.name] for column in table.columns if row[column.name] is not None}


def _event(row: EventRow) -> Row:
    named: Row = {column.name: value for column, value in zip(EVENTS.columns, row, strict=True)}
    named["metadata_json"] = msgspec.json.decode(named["metadata_json"])
    return named


def _write_array(out: TextIO, name: str, rows: Iterable[dict[str, Any]]) -> None:
    out.write(f'"{name}":[')
    for text in _separated(rows):
        out.write(text)
    out.write("],\n")


def _separated(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    before = "\n"
    for row in rows:
        yield before + encode(row).decode()
        before = ",\n"
