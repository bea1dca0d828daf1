"""The lineage view as Parquet files, so that the stores of many machines are asked one question by an existing engine.

``TABLE/store=ID/TABLE.parquet``; events, which are many, as
``events/store=ID/provider=P/month=YYYY-MM/events-N.parquet``. Each store writes only below its own id, so that many
write into one place, and a later export takes the place of the earlier one. The same facts give the same bytes. At
most ``_HELD`` rows are held at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from objstore.errors import UsageError
from porcelain.lineage.exports.parquet_place import Place
from porcelain.lineage.facts.projection import Projection, cell
from porcelain.lineage.landed.events import EventSource, event_rows
from porcelain.lineage.tables.columns import Column
from porcelain.lineage.tables.schema import EVENTS, FACT_TABLES, SCHEMA_VERSION

#: Rows that are held, of all partitions of events together, and rows in one group of any other table.
_HELD = 65_536
#: Files that are open at a time; of a partition that was closed for others the rest goes into one more file.
_OPEN = 128
_NO_MONTH = "none"
#: The column of events that stands in the path, and not in the file again.
_IN_PATH = "provider"


class Written(Struct, frozen=True, kw_only=True):
    """What an export came to: events, files that were written, and older ones that were removed."""

    events: int
    files: list[str]
    removed: list[str]


def write_parquet(place: Place, store: str, projection: Projection, events: EventSource) -> Written:
    """Write the view of the store with the id ``store`` into ``place``. Raises ``UsageError`` where pyarrow is not
    installed, and what the place raises."""
    try:
        import pyarrow  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError("parquet: needs pyarrow", hint="pip install 'objstore-cli[parquet]'") from None
    del pyarrow
    about = {"objstore.fold": projection.fold, "objstore.schema": str(SCHEMA_VERSION)}
    files: list[str] = []
    with place.scratch() as scratch:
        for table in FACT_TABLES:
            columns = table.columns
            rows = (
                [cell(column, row[column.name]) for column in columns]
                for row in projection.tables[table.name]
            )
            name = f"{table.name}/store={store}/{table.name}.parquet"
            path = scratch / f"{table.name}.parquet"
            _write_table(path, columns, rows, about)
            place.put(name, path)
            files.append(name)
        count = 0
        with _Events(scratch, about) as partitions:
            for row in event_rows(projection, events):
                partitions.add(row)
                count += 1
        for partition, path in partitions.written:
            name = f"{EVENTS.name}/store={store}/{partition}"
            place.put(name, path)
            files.append(name)
    return Written(events=count, files=files, removed=_remove_older(place, store, files))


def _remove_older(place: Place, store: str, files: Sequence[str]) -> list[str]:
    """Remove what an earlier export of this store wrote and this one did not."""
    kept = set(files)
    removed: list[str] = []
    for table in (*FACT_TABLES, EVENTS):
        found = place.names(f"{table.name}/store={store}/")
        removed += [name for name in sorted(found) if name not in kept and name.endswith(".parquet")]
    for name in removed:
        place.remove(name)
    return removed


def _fields(columns: Sequence[Column]) -> Any:
    import pyarrow

    types = {"INTEGER": pyarrow.int64(), "FLAG": pyarrow.bool_(), "TIME": pyarrow.timestamp("ms", "UTC")}
    return pyarrow.schema(
        [pyarrow.field(one.name, types.get(one.type, pyarrow.string()), not one.required) for one in columns]
    )


def _table(columns: Sequence[Column], rows: Sequence[Sequence[Any]], schema: Any) -> Any:
    """Rows as SQLite holds them, as a table of Arrow."""
    import pyarrow

    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = []
    for column, field, found in zip(columns, schema, values, strict=True):
        if column.type == "FLAG":
            arrays.append(pyarrow.array([None if one is None else bool(one) for one in found], field.type))
        elif column.type == "TIME":
            arrays.append(pyarrow.array([one or None for one in found], pyarrow.string()).cast(field.type))
        else:
            arrays.append(pyarrow.array(found, field.type))
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def _writer(path: Path, schema: Any) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(path, schema, compression="zstd", write_page_index=True)


def _write_table(
    path: Path, columns: Sequence[Column], rows: Iterable[Sequence[Any]], about: Mapping[str, str]
) -> None:
    schema = _fields(columns).with_metadata(dict(about))
    rest = iter(rows)
    with _writer(path, schema) as writer:
        while group := list(islice(rest, _HELD)):
            writer.write_table(_table(columns, group, schema))


class _Events:
    """Events on their way into the files of their partitions. ``written`` are name and place of each file."""

    def __init__(self, scratch: Path, about: Mapping[str, str]) -> None:
        self._scratch = scratch
        names = [column.name for column in EVENTS.columns]
        self._provider, self._time = names.index(_IN_PATH), names.index("timestamp")
        self._columns = [column for column in EVENTS.columns if column.name != _IN_PATH]
        self._schema = _fields(self._columns).with_metadata(dict(about))
        self._rows: dict[str, list[Sequence[Any]]] = {}
        self._held = 0
        self._writers: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}
        self.written: list[tuple[str, Path]] = []

    def __enter__(self) -> _Events:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            for partition in sorted(self._rows):
                self._flush(partition)
        for writer in self._writers.values():
            writer.close()
        self.written.sort()

    def add(self, row: Sequence[Any]) -> None:
        """One more event."""
        month = row[self._time][:7] if row[self._time] else _NO_MONTH
        partition = f"provider={quote(row[self._provider], safe='')}/month={month}"
        self._rows.setdefault(partition, []).append((*row[: self._provider], *row[self._provider + 1 :]))
        self._held += 1
        if self._held >= _HELD:
            self._flush(max(self._rows, key=lambda name: (len(self._rows[name]), name)))

    def _flush(self, partition: str) -> None:
        rows = self._rows.pop(partition)
        self._held -= len(rows)
        writer = self._writers.pop(partition, None) or self._open(partition)
        self._writers[partition] = writer  # the one that was used last stands last
        writer.write_table(_table(self._columns, rows, self._schema))

    def _open(self, partition: str) -> Any:
        if len(self._writers) >= _OPEN:
            self._writers.pop(next(iter(self._writers))).close()
        number = self._numbers[partition] = self._numbers.get(partition, -1) + 1
        path = self._scratch / f"events-{len(self.written)}.parquet"
        self.written.append((f"{partition}/{EVENTS.name}-{number}.parquet", path))
        return _writer(path, self._schema)
