"""``objstore lineage sql``: ask the lineage view with SQL."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from math import isfinite

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, printable, table, terminal_width
from plumbing.interface.stores import open_store
from porcelain.lineage.exports.sqlite_view import fill
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.index.tables import PUBLIC
from porcelain.lineage.tables.schema import EVENTS

SUMMARY = "ask the lineage with SQL"
USAGE = "lineage sql [--events] [--json] QUERY"
OPTIONS = (
    Option("--events", help="fill the table of events whether or not it is asked for"),
    JSON,
)
EXAMPLES = ("objstore lineage sql 'SELECT provider, count(*) FROM sessions GROUP BY 1'",)
ARGUMENTS = (1, 1)

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_HINT = "only one SELECT; tables: docs/lineage-tables.md"


class _Reading:
    """What statements may do: read, and of the index only what an export has. ``events`` says that one reads events."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        ).fetchall()
        self._hidden = {name for (name,) in names} - PUBLIC
        self.events = False

    def __call__(self, action: int, table: str | None, *_: object) -> int:
        if action not in _ALLOWED or (action == sqlite3.SQLITE_READ and table in self._hidden):
            return sqlite3.SQLITE_DENY
        self.events = self.events or (action == sqlite3.SQLITE_READ and table == EVENTS.name)
        return sqlite3.SQLITE_OK


def run(arguments: Arguments, context: Context) -> int:
    """Run one statement that only reads, over the tables that ``lineage export`` writes. The index has no events: for a
    statement that reads them all tables are made anew."""
    query = arguments.args[0]
    with (
        closing(sqlite3.connect("", isolation_level=None)) as passing,
        open_store(context) as store,
        open_lineage(store) as indexed,
    ):
        try:
            events = arguments.events
            if not events:
                reading = _Reading(indexed.connection)
                cursor = _asked(indexed.connection, reading, query)
                events = reading.events
            if events:
                indexed.connection.set_authorizer(None)
                fill(passing, indexed.projection(), indexed.landed_pages())
                cursor = _asked(passing, _Reading(passing), query)
            names = _names([column[0] for column in cursor.description or ()])
            if not names:
                raise UsageError("lineage sql: nothing is asked", hint=_HINT)
            with Writer(context.stdout) as out:
                if arguments.json:
                    for row in cursor:
                        out.json(dict(zip(names, map(_plain, row), strict=True)))
                    return 0
                rows = [tuple("" if cell is None else str(_plain(cell)) for cell in row) for row in cursor]
                for line in table(rows, names, width=terminal_width(context.stdout, context.env)):
                    out.line(printable(line))
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise UsageError(f"lineage sql: {error}", hint=_HINT) from None
    return 0


def _asked(connection: sqlite3.Connection, reading: _Reading, query: str) -> sqlite3.Cursor:
    # SQLite declares these when they are first used, which no statement that only reads may do.
    connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')")
    connection.set_authorizer(reading)
    return connection.execute(query)


def _names(said: list[str]) -> list[str]:
    """The names of the columns, each once: of several the second is called ``name:1``."""
    found: list[str] = []
    for name in said:
        number, own = 0, name
        while own in found:
            number += 1
            own = f"{name}:{number}"
        found.append(own)
    return found


def _plain(cell: object) -> object:
    """A value as JSON has it: bytes as their hex digits, a number that is none as text."""
    if isinstance(cell, bytes):
        return cell.hex()
    return str(cell) if isinstance(cell, float) and not isfinite(cell) else cell
