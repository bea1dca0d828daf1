"""The rows of the view as they come and go, with what refers to something that is not there."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from porcelain.lineage.facts.projection import Dangling, Row, settle_references
from porcelain.lineage.index.tables import in_parts, placed, write_rows
from porcelain.lineage.tables.schema import FACT_TABLES

#: Tables with references to rows of other groups, which are looked through where such a row goes.
_LOOSE = tuple(
    (table.name, column.name)
    for table in FACT_TABLES
    for column in table.columns
    if column.references is not None
    and table.name
    in (
        "aliases",
        "backup_observations",
        "checkpoints",
        "classifications",
        "merge_suggestions",
        "observation_marks",
        "repo_events",
        "repo_observations",
    )
)


class Written:
    """Writes rows and takes them out; ``count`` is of those written, ``added`` and ``removed`` hold their ids."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._run = connection.execute
        self.count = 0
        self.added: set[str] = set()
        self.removed: set[str] = set()

    def write(self, tables: Mapping[str, Iterable[Row]]) -> None:
        """Put rows in place of those with the same ids."""
        self.count += write_rows(self._connection, tables)

    def write_settled(self, tables: dict[str, list[Row]]) -> None:
        """The same, and note them as added, once it is clear what they refer to."""
        self.take_out_dangling([row["id"] for rows in tables.values() for row in rows])
        dangling = self.settle(tables)
        self.take_out_left(dangling)
        self.added.update(row["id"] for rows in tables.values() for row in rows)
        self.write(tables)
        self.note(dangling)

    def settle(self, tables: dict[str, list[Row]]) -> list[Dangling]:
        """Leave out or empty what refers to something that is neither in ``tables`` nor in the index."""
        return settle_references(tables, self._is_elsewhere)

    def note(self, dangling: Iterable[Dangling]) -> None:
        """Note what refers to something that is not there."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO dangling VALUES (?, ?, ?, ?, ?)",
            ((one.table, one.row, one.column, one.missing, one.left_out) for one in dangling),
        )

    def take_out(self, table: str, names: Sequence[str]) -> None:
        """Take out the rows of a table with these ids."""
        self.removed.update(names)
        for part in in_parts(names):
            self._run(f"DELETE FROM {table} WHERE id IN ({placed(part)})", part)
        self.take_out_dangling(names)

    def take_out_dangling(self, names: Iterable[str]) -> None:
        """Forget what the rows with these ids refer to in vain."""
        for part in in_parts(names):
            self._run(f"DELETE FROM dangling WHERE id IN ({placed(part)})", part)

    def _is_elsewhere(self, table: str, name: str) -> bool:
        row = self._run("SELECT 1 FROM fact WHERE id = ? AND NOT removed", (name,)).fetchone()
        return (
            row is not None
            or self._run(f"SELECT 1 FROM {table} WHERE id = ?", (name,)).fetchone() is not None
        )

    def take_out_left(self, dangling: Iterable[Dangling]) -> None:
        """Take out rows that are left out now, which may have been there before."""
        for one in dangling:
            if one.left_out:
                self.take_out(one.table, [one.row])

    def loose(self) -> list[tuple[str, str]]:
        """Table and id of the rows that refer to something that has come or gone since this was last asked, beyond the
        group that it is of."""
        added, removed = self.added, self.removed - self.added
        self.added, self.removed = set(), set()
        found: set[tuple[str, str]] = set()
        for part in in_parts(sorted(added)):
            found.update(self._run(f"SELECT tbl, id FROM dangling WHERE missing IN ({placed(part)})", part))
        for part in in_parts(sorted(removed)):
            for table, column in _LOOSE:
                rows = self._run(f"SELECT id FROM {table} WHERE {column} IN ({placed(part)})", part)
                found.update((table, name) for (name,) in rows)
        return sorted(found)
