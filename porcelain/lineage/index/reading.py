"""Reading the index: the view as a whole, row by row, and what follows from the facts about a few conversations."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import msgspec

from objstore.errors import NotFound, UsageError
from objstore.snapshot import Snapshot
from porcelain.lineage.derived.lineage import Lineage, derive
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import Stored
from porcelain.lineage.facts.projection import Dangling, Projection, Row
from porcelain.lineage.facts.store import read_facts
from porcelain.lineage.index.changes import IndexedHeads
from porcelain.lineage.index.records import IndexedEvidence
from porcelain.lineage.index.standing import state_value
from porcelain.lineage.index.tables import GUEST, SEEN, in_parts, placed
from porcelain.lineage.index.tokens import of_id
from porcelain.lineage.landed.pages import LandedPages
from porcelain.lineage.tables.columns import Table
from porcelain.lineage.tables.schema import BY_NAME, FACT_TABLES

#: Conversations that one word may name before it is said to name too many.
_MOST = 50
_JSON = msgspec.json.Decoder()


#: Conversations that are wanted, their files and all sources; and for each table about them, which of its rows are.
_WANTED = "CREATE TEMP TABLE IF NOT EXISTS wanted (id TEXT PRIMARY KEY) WITHOUT ROWID"
_ABOUT = {
    "evidence": "target_id",
    "labels": "target_id",
    "session_observations": "session_id",
    "sessions": "id",
}


class Rows(Sequence[Row]):
    """The rows of one table in order of id, read each time that they are gone through: all, or those of stored facts
    and of what was seen in the files of others;
    or those about what is ``wanted``, if the table is about conversations or files."""

    def __init__(
        self, connection: sqlite3.Connection, table: Table, *, stored: bool = False, wanted: bool = False
    ) -> None:
        self._connection = connection
        self._table = table
        limits = []
        if stored:
            limits.append(
                SEEN.get(table.name, f"EXISTS (SELECT 1 FROM fact WHERE fact.id = {table.name}.id)")
            )
        if wanted and table.name in _ABOUT:
            limits.append(f"{_ABOUT[table.name]} IN (SELECT id FROM wanted)")
        self._from = f"FROM {table.name}" + (f" WHERE {' AND '.join(limits)}" if limits else "")

    def __iter__(self) -> Iterator[Row]:
        return self.only([column.name for column in self._table.columns])

    def only(self, names: Sequence[str]) -> Iterator[Row]:
        """The rows with these columns only."""
        readers = [
            (column.name, _JSON.decode if column.type in ("OBJECT", "LIST") else bool)
            for column in self._table.columns
            if column.type in ("OBJECT", "LIST", "FLAG") and column.name in names
        ]
        for cells in self._connection.execute(f"SELECT {', '.join(names)} {self._from} ORDER BY id"):
            row: dict[str, Any] = dict(zip(names, cells, strict=True))
            for name, read in readers:
                if row[name] is not None:
                    row[name] = read(row[name])
            yield row

    def __len__(self) -> int:
        return int(self._connection.execute(f"SELECT count(*) {self._from}").fetchone()[0])

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return list(self)[index]

    def cells(self) -> Iterator[tuple[str | int | None, ...]]:
        """The rows as SQLite holds them."""
        return self._connection.execute(f"SELECT * {self._from} ORDER BY id")


class Tables(Mapping[str, Sequence[Row]]):
    """All tables of the view by name."""

    def __init__(self, connection: sqlite3.Connection, *, stored: bool = False, wanted: bool = False) -> None:
        self._connection = connection
        self._stored = stored
        self._wanted = wanted

    def __getitem__(self, name: str) -> Rows:
        return Rows(self._connection, BY_NAME[name], stored=self._stored, wanted=self._wanted)

    def __iter__(self) -> Iterator[str]:
        return (table.name for table in FACT_TABLES)

    def __len__(self) -> int:
        return len(FACT_TABLES)


class Indexed:
    """An index that is in step with ``view``; both are good as long as ``opening.open_lineage`` holds them."""

    def __init__(self, connection: sqlite3.Connection, view: Snapshot) -> None:
        self.connection = connection
        self.view = view

    @property
    def fold(self) -> str:
        """The name of the fold, as ``Projection.fold``."""
        return state_value(self.connection, "fold") or ""

    def state(self, name: str) -> str | None:
        """A value of the state of the index."""
        return state_value(self.connection, name)

    def projection(self, *, stored: bool = False) -> Projection:
        """The view, whose rows are read when they are asked for; with ``stored`` only those of stored facts."""
        rows = self.connection.execute("SELECT tbl, id, col, missing, left_out FROM dangling")
        dangling = [
            Dangling(table=table, row=name, column=column, missing=missing, left_out=bool(left_out))
            for table, name, column, missing, left_out in rows
        ]
        return Projection(
            tables=Tables(self.connection, stored=stored), dangling=sorted(dangling), fold=self.fold
        )

    def latest(self, limit: int, provider: str | None = None) -> tuple[Projection, int]:
        """The rows of stored facts about so many conversations, of one agent or of all, those with the latest end; and
        how many there are. Of other tables than those about conversations and their files all rows are in it."""
        run = self.connection.execute
        of_facts = f"FROM sessions WHERE {SEEN['sessions']}"
        mine = (of_facts + " AND provider = ?", (provider,)) if provider is not None else (of_facts, ())
        count = run(f"SELECT count(*) {mine[0]}", mine[1]).fetchone()[0]
        run(_WANTED)
        run("DELETE FROM wanted")
        run(
            f"INSERT INTO wanted SELECT id {mine[0]} ORDER BY coalesce(end_timestamp, '') DESC, id LIMIT ?",
            (*mine[1], max(limit, 0)),
        )
        of_files = "FROM session_observations o JOIN wanted w ON o.session_id = w.id"
        run(f"INSERT OR IGNORE INTO wanted SELECT o.id {of_files}")
        run("INSERT OR IGNORE INTO wanted SELECT id FROM sources")  # which may have names
        tables = Tables(self.connection, stored=True, wanted=True)
        return Projection(tables=tables, dangling=[], fold=self.fold), int(count)

    def evidence(self) -> IndexedEvidence:
        """What landed records say about nodes."""
        return IndexedEvidence(self.connection, self.view)

    def sessions_named(self, text: str) -> list[str]:
        """The ids of the conversations that ``text`` may name: a fact's id, a path, a native id or its beginning."""
        run = self.connection.execute
        queries = (
            ("SELECT id FROM sessions WHERE id = ?", text),
            ("SELECT session_id FROM session_observations WHERE id = ?", text),
            ("SELECT session FROM node WHERE path = ?", text),
            (f"SELECT session_id FROM session_observations WHERE path = ? AND NOT {GUEST}", text),
            ("SELECT session FROM node WHERE src = ?", text),
            ("SELECT id FROM sessions WHERE provider_session_id = ?", text),
        )
        found = {row[0] for query, value in queries for row in run(f"{query} LIMIT {_MOST}", (value,))}
        if not found and text:
            end = text[:-1] + chr(ord(text[-1]) + 1)
            found.update(
                row[0]
                for row in run(
                    "SELECT id FROM sessions WHERE provider_session_id >= ? AND provider_session_id < ? "
                    f"LIMIT {_MOST}",
                    (text, end),
                )
            )
        return sorted(one for one in found if one is not None)

    def landed_pages(self) -> LandedPages:
        """The landed pages of files."""
        return LandedPages(self.view, IndexedHeads(self.connection, self.view))

    def facts_of(self, *kinds: str, grouped: bool = True) -> list[Fact]:
        """The live facts of some kinds; without ``grouped`` only those that nothing is derived from."""
        query = f"SELECT key FROM fact WHERE kind IN ({placed(kinds)}) AND NOT removed"
        rows = self.connection.execute(query + ("" if grouped else " AND token IS NULL"), kinds)
        return read_facts(self.view, [key for (key,) in rows])

    def suggested(self) -> list[str]:
        """The ids of the conversations that suggestions are about."""
        rows = self.connection.execute("SELECT source_session_id, target_session_id FROM merge_suggestions")
        return sorted({session for row in rows for session in row if session is not None})

    def several(self) -> Lineage:
        """What follows from the facts about threads of more than one file."""
        rows = self.connection.execute(
            "SELECT DISTINCT session_id FROM thread_members WHERE thread_id IN "
            "(SELECT thread_id FROM thread_members GROUP BY thread_id HAVING count(*) > 1)"
        )
        return self._derived(self._groups_of(session for (session,) in rows))

    def bearing_on(self, text: str) -> tuple[list[Stored], Lineage]:
        """The stored facts that may name what ``text`` names, and what follows from them: of a conversation those of
        its groups, of anything else all."""
        sessions = self.sessions_named(text)
        if sessions:
            keys, pairs = self._keys(self._groups_of(sessions))
        else:
            rows = self.connection.execute("SELECT DISTINCT grp FROM token")
            keys, pairs = self._keys([group for (group,) in rows])
        facts = read_facts(self.view, keys)
        found = derive(facts, self.evidence(), pairs)
        return [(key.hex(), one) for key, one in zip(keys, facts, strict=True)], found

    def around(self, names: Iterable[str]) -> Lineage:
        """What follows from the facts about the conversations that these words may name, and from all that bears on
        them. ``lineage.Lineage`` for the whole store says the same about them."""
        sessions = {session for text in names for session in self.sessions_named(text)}
        edges = [text for text in names if text.startswith("edge_")]
        for part in in_parts(edges):
            rows = self.connection.execute(
                f"SELECT source_session_id, target_session_id FROM edges WHERE id IN ({placed(part)})", part
            )
            sessions.update(session for row in rows for session in row if session is not None)
        return self._derived(self._groups_of(sessions))

    def everything(self) -> Lineage:
        """What follows from all facts: as large as the store."""
        rows = self.connection.execute("SELECT DISTINCT grp FROM token")
        return self._derived([group for (group,) in rows])

    def _groups_of(self, sessions: Iterable[str]) -> list[int]:
        groups: set[int] = set()
        for part in in_parts(of_id(session) for session in sessions):
            rows = self.connection.execute(f"SELECT grp FROM token WHERE hash IN ({placed(part)})", part)
            groups.update(group for (group,) in rows)
        return sorted(groups)

    def _derived(self, groups: Sequence[int]) -> Lineage:
        keys, pairs = self._keys(groups)
        return derive(read_facts(self.view, keys), self.evidence(), pairs)

    def _keys(self, groups: Sequence[int]) -> tuple[list[bytes], list[tuple[str, str]]]:
        """The keys of the facts of these groups and of those that go with none, and the neighbours in the groups."""
        run = self.connection.execute
        keys: list[bytes] = [
            key for (key,) in run("SELECT key FROM fact WHERE token IS NULL AND NOT removed")
        ]
        pairs: list[tuple[str, str]] = []
        for part in in_parts(groups):
            within = f"grp IN ({placed(part)})"
            keys += (
                key
                for (key,) in run(
                    f"SELECT f.key FROM token t JOIN fact f ON f.token = t.hash WHERE t.{within} AND NOT f.removed",
                    part,
                )
            )
            pairs += run(f"SELECT source, target FROM weak WHERE {within}", part)
        return keys, pairs


def only_session(indexed: Indexed, text: str) -> str:
    """The id of the conversation that ``text`` names. Raises ``NotFound`` for none, ``UsageError`` for several."""
    found = indexed.sessions_named(text)
    if not found:
        raise NotFound(f"{text}: no such conversation", hint="list them with: objstore lineage sessions")
    if len(found) > 1:
        rows = indexed.connection.execute(
            f"SELECT provider_session_id FROM sessions WHERE id IN ({placed(found)})", found
        )
        names = sorted(row[0] or "" for row in rows)
        raise UsageError(
            f"{text}: names {len(found)} conversations", hint="type more of the id: " + " ".join(names[:3])
        )
    return found[0]
