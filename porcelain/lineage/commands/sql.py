"""``objstore lineage sql``: ask the lineage view with SQL."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, printable, table, terminal_width
from plumbing.interface.stores import open_store
from porcelain.lineage.exports.sqlite_view import fill
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.index.tables import PUBLIC

SUMMARY = "ask the lineage with SQL"
USAGE = "lineage sql [--events] [--json] QUERY"
OPTIONS = (
    Option("--events", help="fill the table of events too"),
    JSON,
)
EXAMPLES = ("objstore lineage sql 'SELECT provider, count(*) FROM sessions GROUP BY 1'",)
ARGUMENTS = (1, 1)

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


def _authorize(action: int, table: str | None, *_: object) -> int:
    """Whether a statement may do this: read, and only what an export has."""
    if action == sqlite3.SQLITE_READ and table not in PUBLIC and table not in ("", None, "sqlite_master"):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def run(arguments: Arguments, context: Context) -> int:
    """Run one statement that only reads, over the tables that ``lineage export`` writes."""
    with (
        closing(sqlite3.connect("", isolation_level=None)) as passing,
        open_store(context) as store,
        open_lineage(store) as indexed,
    ):
        connection = indexed.connection
        if arguments.events:
            connection = passing
            fill(connection, indexed.projection(), indexed.landed_pages())
        connection.set_authorizer(_authorize)
        try:
            cursor = connection.execute(arguments.args[0])
            names = [column[0] for column in cursor.description or ()]
            with Writer(context.stdout) as out:
                if arguments.json:
                    for row in cursor:
                        out.json(dict(zip(names, row, strict=True)))
                    return 0
                rows = [tuple("" if cell is None else str(cell) for cell in row) for row in cursor]
                for line in table(rows, names, width=terminal_width(context.stdout, context.env)):
                    out.line(printable(line))
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise UsageError(
                f"lineage sql: {error}", hint="only one SELECT; tables: docs/lineage-tables.md"
            ) from None
    return 0
