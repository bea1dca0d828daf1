from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from porcelain.lineage.tables import ddl
from porcelain.lineage.tables.schema import BY_NAME, TABLES

_COLUMN = re.compile(r"^- `(\w+)` (TEXT|INTEGER)(.*)$")


def seed_tables(text: str) -> dict[str, list[tuple[str, str, str]]]:
    """Tables of the published draft: name, then (column, type, the rest of the line) in order."""
    tables: dict[str, list[tuple[str, str, str]]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("#"):
            name = line.strip("#` ")
        found = _COLUMN.match(line)
        if found:
            tables.setdefault(name, []).append((found[1], found[2], found[3]))
    return tables


def test_the_columns_of_the_draft_come_first_and_in_its_order(shared: Path) -> None:
    draft = seed_tables((shared / "seeds" / "canonical-agent-session-store.md").read_text("utf-8"))
    assert len(draft) == 13
    for name, columns in draft.items():
        ours = BY_NAME[name].columns
        assert [column.name for column in ours][: len(columns)] == [column for column, _, _ in columns]
        for column, (_, sql_type, rest) in zip(ours, columns, strict=False):
            words, _, values = rest.partition("—")
            assert (column.type == "INTEGER") == (sql_type == "INTEGER")
            assert column.required or column.name == "id" or "NOT NULL" not in words, (name, column.name)
            listed = re.findall(r"`([a-z_+]+)`", values)
            assert not listed or column.values == tuple(listed), (name, column.name)
            target = re.search(r"REFERENCES `(\w+)\(id\)`", words)
            assert target is None or column.references == target[1]
            assert column.unique == ("UNIQUE" in words)


def test_rows_begin_with_their_id_and_end_with_their_object() -> None:
    for table in TABLES:
        names = [column.name for column in table.columns]
        assert (names[0], names[-1]) == ("id", "object_id")
        assert len(set(names)) == len(names)
        assert all(column.references is None or column.references in BY_NAME for column in table.columns)
        assert all(set(index) <= set(names) for index in table.indexes)


def test_the_statements_are_good_sql_and_the_page_names_every_column() -> None:
    connection = sqlite3.connect(":memory:")
    page = ddl.page()
    for table in TABLES:
        connection.execute(ddl.create_table(table))
        for statement in ddl.create_indexes(table):
            connection.execute(statement)
        assert f"`{table.name}`" in page
        assert all(f"`{column.name}`" in page for column in table.columns)
    for name, query in ddl.VIEWS:
        connection.execute(f"CREATE VIEW {name} AS {query}")
        assert connection.execute(f"SELECT * FROM {name}").fetchall() == []
    connection.close()
