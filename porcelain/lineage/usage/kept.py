"""What was counted, kept in the index as long as nothing new is landed: then usage is a matter of adding up rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

from objstore.store import Store
from porcelain.lineage.index.opening import keep
from porcelain.lineage.index.reading import Indexed
from porcelain.lineage.index.standing import landed_stamp
from porcelain.lineage.index.tables import KEPT
from porcelain.lineage.usage.activity import VERSION
from porcelain.lineage.usage.measuring import measured
from porcelain.lineage.usage.totals import TABLES, Totals, counted

_NAME = f"{KEPT}usage"
#: Of the form of what is kept.
_FORM = 1
_STAMP = f"{_FORM}/{VERSION}"

#: What is asked of a count.
Ask = Callable[[sqlite3.Connection], Totals]


def kept_totals(indexed: Indexed, ask: Ask) -> Totals | None:
    """What ``ask`` says of the count that the index has, or None where it has none of what is landed now."""
    return ask(indexed.connection) if indexed.state(_NAME) == _STAMP else None


def fresh_totals(store: Store, ask: Ask, on_conversation: Callable[[], object]) -> Totals:
    """What ``ask`` says when everything is counted; the count is kept, where that can be."""
    with store.snapshot() as view:
        stamp = landed_stamp(view)
    with closing(counted(measured(store, on_conversation))) as usage:

        def copy(connection: sqlite3.Connection) -> None:
            for name, create in TABLES.items():
                connection.execute(f"DROP TABLE IF EXISTS {name}")
                connection.execute(create)
                rows = usage.execute(f"SELECT * FROM {name}")
                places = ", ".join("?" for _ in rows.description)
                connection.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
            connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (_NAME, _STAMP))

        keep(store, stamp, copy)
        return ask(usage)
