"""The samples' database is written without SQLite: SQLite reads back what was put in, and finds nothing wrong."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.sqlite_pages import Table, Value, database

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, 127, 128, -129, 2**47, -(2**47) - 1])
TEXTS = st.text(max_size=12) | st.builds(str.__mul__, st.sampled_from("aé😀"), st.integers(0, 12_000))
ROWS = st.lists(st.tuples(st.none() | NUMBERS, st.none() | TEXTS), max_size=60)


def table(rows: list[dict[str, Value]]) -> Table:
    return Table(
        "t",
        "CREATE TABLE t (id text PRIMARY KEY, number integer, body text)",
        ("id", "number", "body"),
        "id",
        {"by_number": ("CREATE INDEX by_number ON t (number, id)", ("number", "id"))},
        rows,
    )


def check(rows: list[dict[str, Value]]) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        data = bytearray(database([table(rows)]))
        data[18:20] = b"\x01\x01"  # a database in memory keeps no log
        connection.deserialize(bytes(data))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        put = [(row["id"], row["number"], row["body"]) for row in rows]
        assert connection.execute("SELECT id, number, body FROM t ORDER BY rowid").fetchall() == put
        for row in rows:
            found = connection.execute("SELECT body FROM t WHERE id = ?", (row["id"],)).fetchall()
            assert found == [(row["body"],)]
        (count,) = connection.execute("SELECT COUNT(*) FROM t INDEXED BY by_number").fetchone()
        assert count == len(rows)


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_what_is_put_in_comes_out(rows: list[tuple[int | None, str | None]]) -> None:
    check([{"id": f"k{n:03}", "number": number, "body": body} for n, (number, body) in enumerate(rows)])


def test_trees_of_every_size() -> None:
    """From no page below the root to many, across each size at which a page has just become full."""
    for count in (*range(60, 75), *range(130, 150), 700, 2000):
        check([{"id": f"{n % 7}{n:050}", "number": n % 5, "body": "x" * (n % 90)} for n in range(count)])
