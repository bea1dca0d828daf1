"""``objstore lineage sql``: ask the lineage view with SQL."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from objstore.errors import UsageError
from plumbing.options import JSON, Arguments, Context, Option
from plumbing.output import Writer, printable, table, terminal_width
from plumbing.stores import open_store
from porcelain.lineage.derive import lineage_view
from porcelain.lineage.events import no_events
from porcelain.lineage.landed_pages import LandedPages
from porcelain.lineage.sqlite_view import fill

SUMMARY = "ask the lineage with SQL"
USAGE = "lineage sql [--events] [--json] QUERY"
OPTIONS = (
    Option("--events", help="fill the table of events too"),
    JSON,
)
EXAMPLES = ("objstore lineage sql 'SELECT provider, count(*) FROM sessions GROUP BY 1'",)
ARGUMENTS = (1, 1)

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


def run(arguments: Arguments, context: Context) -> int:
    """Run one statement that only reads, over the tables that ``lineage export`` writes, made anew in memory."""
    with (
        closing(sqlite3.connect(":memory:", isolation_level=None)) as connection,
        open_store(context) as store,
        store.snapshot() as view,
    ):
        fill(connection, lineage_view(view), LandedPages(view) if arguments.events else no_events)
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
        )
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
