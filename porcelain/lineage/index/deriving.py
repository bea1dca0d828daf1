"""Deriving from groups, and keeping note of which rows follow from which."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import groupby
from operator import itemgetter

from objstore.snapshot import Snapshot
from porcelain.lineage.derived.lineage import Lineage, derive
from porcelain.lineage.derived.rows import derived_facts
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import Stored
from porcelain.lineage.facts.projection import Row, derive_columns, plain_rows
from porcelain.lineage.facts.store import read_facts
from porcelain.lineage.index.folders import Places, node_row, replace_nodes
from porcelain.lineage.index.intake import PART, Intake
from porcelain.lineage.index.tables import in_parts, placed
from porcelain.lineage.index.tokens import of_id
from porcelain.lineage.index.written import Written
from porcelain.lineage.tables.schema import BY_KIND

#: Groups that are looked up one by one.
_FEW = 500


class Deriving:
    """Derives from groups. ``places`` are those of transcripts that came, went or changed; ``groups`` and ``facts``
    count what was derived from. ``judged`` as in ``neighbours``."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        view: Snapshot,
        intake: Intake,
        written: Written,
        judged: Set[str],
        *,
        anew: bool,
    ) -> None:
        self._connection = connection
        self._run = connection.execute
        self._view = view
        self._intake = intake
        self._joined = intake.groups
        self._written = written
        self._judged = judged
        self._first = anew
        self.places: Places = (set(), set())
        self.groups = 0
        self.facts = 0

    def derive(self, groups: set[int]) -> None:
        """Derive from these groups, as many together as make a part."""
        merged: set[int] = set()
        for numbers, facts in self._parts(groups):
            if not self._first:
                self._forget(numbers)
            found, tables, derived = self._derived(numbers, facts)
            merged |= self._join_judged(found) | self._join_named(found)
            live = {one.id for _, one in facts}
            dangling = self._written.settle(tables)
            lost = {one.row for one in dangling if one.left_out}
            derive_columns(tables, {row["id"]: row["uri"] for row in tables["sources"]})
            if not self._first:
                self._written.take_out_dangling(live)
                self._written.take_out_left(dangling)
            tables["sources"] = [row for row in tables["sources"] if row["id"] not in self._intake.sources]
            self._written.write(tables)
            self._written.note(dangling)
            self._own(found, derived, live - lost)
            roots = {name: one.columns["uri"] for name, one in self._intake.sources.items()}
            names = [one.id for _, one in facts if one.kind == "observation"]
            rows = [node_row(node, roots.get(node.source, "")) for node in found.nodes if not node.named]
            replace_nodes(self._connection, () if self._first else names, rows, self.places)
            self.groups += len(numbers)
            self.facts += len(facts)
        self._first = False
        if merged:
            self.derive(merged)

    def groups_of(self, rows: Iterable[tuple[str, str]]) -> set[int]:
        """The groups that these rows (table and id) follow from or belong to; none for those that go with no group."""
        found: set[int] = set()
        for table, name in rows:
            held = self._run(
                "SELECT t.grp FROM fact f JOIN token t ON t.hash = f.token WHERE f.id = ? AND NOT f.removed "
                "UNION SELECT grp FROM owned WHERE tbl = ? AND id = ?",
                (name, table, name),
            )
            found.update(group for (group,) in held)
        return found

    def _parts(self, groups: set[int]) -> Iterator[tuple[list[int], list[Stored]]]:
        """Whole groups and their live facts, each part of bounded size unless one group is larger."""
        waiting: list[int] = []
        keys: list[bytes] = []
        for group, mine in self._keys_of(groups):
            waiting.append(group)
            keys += mine
            if len(keys) >= PART:
                yield waiting, stored_facts(self._view, keys)
                waiting, keys = [], []
        if waiting:
            yield waiting, stored_facts(self._view, keys)

    def _keys_of(self, groups: set[int]) -> Iterator[tuple[int, list[bytes]]]:
        """The keys of the live facts of each group, which may be none."""
        joined = "FROM token t LEFT JOIN fact f ON f.token = t.hash AND NOT f.removed WHERE t.grp"
        if len(groups) < _FEW:
            for group in sorted(groups):
                rows = self._run(f"SELECT f.key {joined} = ?", (group,))
                yield group, [key for (key,) in rows if key is not None]
            return
        rows = self._run(f"SELECT t.grp, f.key {joined} >= 0 ORDER BY t.grp")
        for group, found in groupby(rows, key=itemgetter(0)):
            if group in groups:
                yield group, [key for _, key in found if key is not None]

    def _forget(self, groups: Sequence[int]) -> None:
        """Take out the rows that followed from these groups, and what was withdrawn from them."""
        for part in in_parts(groups):
            within = f"grp IN ({placed(part)})"
            owned: dict[str, list[str]] = defaultdict(list)
            for table, name in self._run(f"SELECT tbl, id FROM owned WHERE {within}", part):
                owned[table].append(name)
            self._run(f"DELETE FROM owned WHERE {within}", part)
            gone = self._run(
                f"SELECT f.kind, f.id FROM token t JOIN fact f ON f.token = t.hash WHERE t.{within} AND f.removed",
                part,
            ).fetchall()
            for kind, name in gone:
                owned[BY_KIND[kind].name].append(name)
            for table, names in owned.items():
                self._written.take_out(table, names)
            withdrawn = [name for kind, name in gone if kind == "observation"]
            replace_nodes(self._connection, withdrawn, (), self.places)

    def _derived(
        self, groups: Sequence[int], facts: list[Stored]
    ) -> tuple[Lineage, dict[str, list[Row]], list[Fact]]:
        pairs = [] if self._first else self._pairs_inside(groups)
        known = [*(one for _, one in facts), *self._intake.sources.values()]
        found = derive(known, self._intake.evidence, pairs)
        stored = {one.id for one in known}
        derived = [pair for pair in derived_facts(found, buckets=False) if pair[1].id not in stored]
        sources = [(key_of(self._connection, name), one) for name, one in self._intake.sources.items()]
        tables = plain_rows([*facts, *sources, *derived])
        return found, tables, [one for _, one in derived]

    def _pairs_inside(self, groups: Sequence[int]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for part in in_parts(groups):
            found += self._run(f"SELECT source, target FROM weak WHERE grp IN ({placed(part)})", part)
        return found

    def _join_judged(self, found: Lineage) -> set[int]:
        """Bring a judgement together with the edge it is about; the groups that are to be derived from again."""
        if not self._judged:
            return set()
        again: set[int] = set()
        for claim in found.claims.all:
            if claim.id in self._judged:
                nodes = found.nodes.by_id
                pair = [
                    of_id(claim.id),
                    of_id(nodes[claim.source].session),
                    of_id(nodes[claim.target].session),
                ]
                if len(set(self._joined.of(pair).values())) > 1 or pair[0] not in self._joined.of(pair[:1]):
                    self._joined.join(pair)
                    again |= self._joined.settle()
        return again

    def _join_named(self, found: Lineage) -> set[int]:
        """Let what is stated about files that are only named, and about conversations in the files of others, find
        their groups: no fact of their own has brought their observations there. The groups that are to be derived from
        again, because such a statement was there before."""
        named = {of_id(node.id): of_id(node.session) for node in found.nodes if node.named}
        if not named:
            return set()
        held = self._joined.of({*named, *named.values()})
        apart = False
        for node, session in named.items():
            if session not in held:
                continue
            if node not in held:
                self._joined.add(node, held[session])
            elif held[node] != held[session]:
                self._joined.join([node, session])
                apart = True
        return self._joined.settle() if apart else set()

    def _own(self, found: Lineage, derived: Iterable[Fact], live: set[str]) -> None:
        """Note which rows follow from which group, so that they can be taken out again."""
        group_of: dict[str, int] = {}
        held = self._joined.of({of_id(node.session) for node in found.nodes})
        for node in found.nodes:
            group_of[node.id] = group_of[node.session] = held.get(of_id(node.session), 0)
        for claim in found.claims.all:
            group_of[claim.id] = group_of[claim.source]
        rows = []
        threads: dict[str, int] = {}
        for one in derived:
            if one.kind == "source":
                self._written.added.add(one.id)
                continue
            group = self._group_of(one, group_of, threads)
            if one.kind == "thread":
                threads[one.id] = group
            rows.append((group, BY_KIND[one.kind].name, one.id))
            self._written.added.add(one.id)
        self._written.added |= live
        self._connection.executemany("INSERT OR REPLACE INTO owned VALUES (?, ?, ?)", rows)

    def _group_of(self, one: Fact, group_of: dict[str, int], threads: dict[str, int]) -> int:
        columns = one.columns
        if "thread_id" in columns:
            return threads[columns["thread_id"]]
        for name in ("root_session_id", "source_observation_id", "observation_id", "target_id", "session_id"):
            if columns.get(name) in group_of:
                return group_of[columns[name]]
        return group_of[one.id] if one.id in group_of else self._group_of_evidence(one)

    def _group_of_evidence(self, one: Fact) -> int:
        """The group of the statement that a row follows from which is about no transcript."""
        row = self._run(
            "SELECT t.grp FROM fact f JOIN token t ON t.hash = f.token WHERE f.id = ?",
            (next(iter(one.evidence), ""),),
        ).fetchone()
        return 0 if row is None else int(row[0])


def stored_facts(view: Snapshot, keys: Sequence[bytes]) -> list[Stored]:
    """The facts with these keys."""
    return [(key.hex(), one) for key, one in zip(keys, read_facts(view, keys), strict=True)]


def key_of(connection: sqlite3.Connection, name: str) -> str:
    """The key (hex) of the fact that counts for an id."""
    row = connection.execute("SELECT key FROM fact WHERE id = ?", (name,)).fetchone()
    return str(row[0].hex())
