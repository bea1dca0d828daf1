"""Bringing the index up to date: what is new is read, the groups it belongs to are derived again, their rows replaced.

An index that has nothing yet goes the same way, with everything new; its groups are derived some thousand facts at a
time, so that memory does not grow with the store.
"""

from __future__ import annotations

import gc
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter

from msgspec import Struct

from objstore.digest import hasher
from objstore.snapshot import Snapshot
from porcelain.lineage.derived.lineage import Lineage, derive
from porcelain.lineage.derived.rows import derived_facts
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import Stored
from porcelain.lineage.facts.projection import (
    Dangling,
    Row,
    derive_columns,
    observe_source,
    plain_rows,
    settle_references,
)
from porcelain.lineage.facts.store import read_facts
from porcelain.lineage.index.changes import (
    OutOfStep,
    moved_landings,
)
from porcelain.lineage.index.folders import (
    Places,
    bucket_rows,
    neighbours,
    node_row,
    replace_nodes,
    weak_edge,
)
from porcelain.lineage.index.intake import PART, Intake
from porcelain.lineage.index.standing import edition, heads_text, lineage_heads
from porcelain.lineage.index.tables import (
    INDEXES,
    in_parts,
    make_tables,
    placed,
    run_all,
    write_info,
    write_rows,
)
from porcelain.lineage.index.tokens import of_id
from porcelain.lineage.relations.nodes import NAMED_URI
from porcelain.lineage.tables.schema import BY_KIND, FACT_TABLES

#: Groups that are looked up one by one.
_FEW = 500
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


class Work(Struct):
    """What an update did: facts and files (their records) that were read because they are new, groups and facts that
    were derived from again, rows written, and whether everything was made anew."""

    new_facts: int = 0
    new_files: int = 0
    groups: int = 0
    facts: int = 0
    rows: int = 0
    anew: bool = False


def update(connection: sqlite3.Connection, view: Snapshot) -> Work:
    """Bring the index in step with ``view``, within the open transaction."""
    with _without_collector():
        return _updated(connection, view)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Nothing that is made here refers to itself, and looking for what does would take a fifth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _updated(connection: sqlite3.Connection, view: Snapshot) -> Work:
    row = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'state'").fetchone()
    stamp = None
    if row is not None:
        stamp = connection.execute("SELECT value FROM state WHERE name = 'edition'").fetchone()
    if stamp is not None and stamp[0] == edition():
        connection.execute("SAVEPOINT onward")
        try:
            done = _Update(connection, view, anew=False).run()
            connection.execute("RELEASE onward")
            return done
        except OutOfStep:
            connection.execute("ROLLBACK TO onward")
            connection.execute("RELEASE onward")
    make_tables(connection)
    return _Update(connection, view, anew=True).run()


class _Update:
    def __init__(self, connection: sqlite3.Connection, view: Snapshot, *, anew: bool) -> None:
        self._connection = connection
        self._run = connection.execute
        self._many = connection.executemany
        self._view = view
        self._anew = anew
        self._work = Work(anew=anew)
        self._intake = Intake(connection, view, anew=anew)
        self._groups = self._intake.groups
        self._evidence = self._intake.evidence
        self._places: Places = (set(), set())
        self._added: set[str] = set()
        self._removed: set[str] = set()
        self._judged: set[str] = set()
        self._first = anew
        self._all_folders = anew

    def run(self) -> Work:
        """Do it all."""
        intake = self._intake
        moved = moved_landings(self._connection, self._view)
        changed = intake.read_facts()
        intake.load_sources()
        self._judged = intake.judged_edges()
        if not self._anew and any(intake.is_rare(one) for one in changed.values()):
            raise OutOfStep
        self._derive(intake.group(changed, moved))
        self._work.new_facts, self._work.new_files = intake.new_facts, intake.new_files
        while again := self._settle_folders():
            self._derive(again)
        self._write_plain(changed.values())
        self._write_buckets()
        self._check_loose()
        self._finish()
        return self._work

    # -- what follows --------------------------------------------------------------------------------------------------

    def _derive(self, groups: set[int]) -> None:
        """Derive from these groups, as many together as make a part."""
        merged: set[int] = set()
        for numbers, facts in self._parts(groups):
            if not self._first:
                self._forget(numbers)
            found, tables, derived = self._derived(numbers, facts)
            merged |= self._join_judged(found)
            live = {one.id for _, one in facts}
            dangling = settle_references(tables, self._is_elsewhere)
            derive_columns(tables, {row["id"]: row["uri"] for row in tables["sources"]})
            if not self._first:
                self._take_out_dangling(live)
            tables["sources"] = [row for row in tables["sources"] if row["id"] not in self._intake.sources]
            self._work.rows += write_rows(self._connection, tables)
            self._note(dangling)
            self._own(found, derived, live)
            roots = {name: one.columns["uri"] for name, one in self._intake.sources.items()}
            names = [one.id for _, one in facts if one.kind == "observation"]
            rows = [node_row(node, roots.get(node.source, "")) for node in found.nodes if not node.named]
            replace_nodes(self._connection, () if self._first else names, rows, self._places)
            self._work.groups += len(numbers)
            self._work.facts += len(facts)
        self._first = False
        if merged:
            self._derive(merged)

    def _parts(self, groups: set[int]) -> Iterator[tuple[list[int], list[Stored]]]:
        """Whole groups and their live facts, each part of bounded size unless one group is larger."""
        waiting: list[int] = []
        keys: list[bytes] = []
        for group, mine in self._keys_of(groups):
            waiting.append(group)
            keys += mine
            if len(keys) >= PART:
                yield waiting, self._stored(keys)
                waiting, keys = [], []
        if waiting:
            yield waiting, self._stored(keys)

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

    def _stored(self, keys: list[bytes]) -> list[Stored]:
        return [(key.hex(), one) for key, one in zip(keys, read_facts(self._view, keys), strict=True)]

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
                self._take_out(table, names)
            withdrawn = [name for kind, name in gone if kind == "observation"]
            replace_nodes(self._connection, withdrawn, (), self._places)

    def _take_out(self, table: str, names: Sequence[str]) -> None:
        self._removed.update(names)
        for part in in_parts(names):
            self._run(f"DELETE FROM {table} WHERE id IN ({placed(part)})", part)
        self._take_out_dangling(names)

    def _take_out_dangling(self, names: Iterable[str]) -> None:
        for part in in_parts(names):
            self._run(f"DELETE FROM dangling WHERE id IN ({placed(part)})", part)

    def _derived(
        self, groups: Sequence[int], facts: list[Stored]
    ) -> tuple[Lineage, dict[str, list[Row]], list[Fact]]:
        pairs = [] if self._first else self._pairs_inside(groups)
        known = [*(one for _, one in facts), *self._intake.sources.values()]
        found = derive(known, self._evidence, pairs)
        stored = {one.id for one in known}
        derived = [pair for pair in derived_facts(found, buckets=False) if pair[1].id not in stored]
        sources = [(self._key_of(name), one) for name, one in self._intake.sources.items()]
        tables = plain_rows([*facts, *sources, *derived])
        return found, tables, [one for _, one in derived]

    def _key_of(self, name: str) -> str:
        row = self._run("SELECT key FROM fact WHERE id = ?", (name,)).fetchone()
        return str(row[0].hex())

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
                if len(set(self._groups.of(pair).values())) > 1 or pair[0] not in self._groups.of(pair[:1]):
                    self._groups.join(pair)
                    again |= self._groups.settle()
        return again

    def _is_elsewhere(self, table: str, name: str) -> bool:
        row = self._run("SELECT 1 FROM fact WHERE id = ? AND NOT removed", (name,)).fetchone()
        return (
            row is not None
            or self._run(f"SELECT 1 FROM {table} WHERE id = ?", (name,)).fetchone() is not None
        )

    def _note(self, dangling: Iterable[Dangling]) -> None:
        self._many(
            "INSERT OR REPLACE INTO dangling VALUES (?, ?, ?, ?, ?)",
            ((one.table, one.row, one.column, one.missing, one.left_out) for one in dangling),
        )

    def _own(self, found: Lineage, derived: Iterable[Fact], live: set[str]) -> None:
        """Note which rows follow from which group, so that they can be taken out again."""
        group_of: dict[str, int] = {}
        held = self._groups.of({of_id(node.session) for node in found.nodes})
        for node in found.nodes:
            group_of[node.id] = group_of[node.session] = held.get(of_id(node.session), 0)
        for claim in found.claims.all:
            group_of[claim.id] = group_of[claim.source]
        rows = []
        threads: dict[str, int] = {}
        for one in derived:
            if one.kind == "source":
                self._added.add(one.id)
                continue
            group = self._group_of(one, group_of, threads)
            if one.kind == "thread":
                threads[one.id] = group
            rows.append((group, BY_KIND[one.kind].name, one.id))
            self._added.add(one.id)
        self._added |= live
        self._many("INSERT OR REPLACE INTO owned VALUES (?, ?, ?)", rows)

    def _group_of(self, one: Fact, group_of: dict[str, int], threads: dict[str, int]) -> int:
        columns = one.columns
        if "thread_id" in columns:
            return threads[columns["thread_id"]]
        for name in ("root_session_id", "source_observation_id", "observation_id", "target_id", "session_id"):
            if columns.get(name) in group_of:
                return group_of[columns[name]]
        return group_of.get(one.id, 0)

    # -- across groups -------------------------------------------------------------------------------------------------

    def _settle_folders(self) -> set[int]:
        """Bring the neighbours in the folders that changed up to date; the groups that have to be derived from again,
        because of neighbours within them."""
        folders = self._places[0]
        wanted = None if self._all_folders else set(folders)
        self._all_folders = False
        folders.clear()
        if wanted is not None and not wanted:
            return set()
        now = set(neighbours(self._connection, wanted))
        known: dict[tuple[str, str, str], tuple[str, int | None]] = {}
        if wanted is not None:
            for part in in_parts(sorted(one for one in wanted if one is not None)):
                rows = self._run(
                    f"SELECT folder, source, target, edge, grp FROM weak WHERE folder IN ({placed(part)})",
                    part,
                )
                known.update(((folder, one, two), (edge, grp)) for folder, one, two, edge, grp in rows)
        again: set[int] = set()
        for pair in known.keys() - now:
            edge, grp = known[pair]
            self._run("DELETE FROM weak WHERE folder = ? AND source = ? AND target = ?", pair)
            if grp is None:
                self._take_out("edges", [edge])
            else:
                again.add(grp)
        names = {name for _, one, two in now for name in (one, two)}
        held = self._groups.of(of_id(name) for name in names)
        made: list[Stored] = []
        for pair in sorted(now):
            folder, source, target = pair
            one, two = held[of_id(source)], held[of_id(target)]
            grp = one if one == two else None
            before = known.get(pair)
            if before is not None and before[1] == grp:
                continue
            if before is not None and before[1] is None:
                self._take_out("edges", [before[0]])
            edge_fact = weak_edge((source, self._session_of(source)), (target, self._session_of(target)))
            edge = edge_fact[1].id
            if edge in self._judged and grp is None:
                self._groups.join([of_id(source), of_id(target), of_id(edge)])
                (grp,) = self._groups.settle()
            self._run(
                "INSERT OR REPLACE INTO weak VALUES (?, ?, ?, ?, ?)", (folder, source, target, edge, grp)
            )
            if grp is None:
                made.append(edge_fact)
            else:
                again.add(grp)
        if made:
            self._work.rows += write_rows(self._connection, plain_rows(made))
            self._added.update(one.id for _, one in made)
        return again

    def _pairs_inside(self, groups: Sequence[int]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for part in in_parts(groups):
            found += self._run(f"SELECT source, target FROM weak WHERE grp IN ({placed(part)})", part)
        return found

    def _session_of(self, name: str) -> str:
        return str(self._run("SELECT session FROM node WHERE id = ?", (name,)).fetchone()[0])

    def _write_buckets(self) -> None:
        facts, empty = bucket_rows(self._connection, None if self._anew else self._places[1])
        self._work.rows += write_rows(self._connection, plain_rows(facts))
        for place in empty:
            self._run("DELETE FROM bucket_statuses WHERE root = ? AND bucket = ?", place)

    # -- the rest ------------------------------------------------------------------------------------------------------

    def _write_plain(self, changed: Iterable[Fact]) -> None:
        """Write the rows of facts that go with no group."""
        if self._anew:
            rows = self._run("SELECT key FROM fact WHERE token IS NULL AND NOT removed").fetchall()
            keys = [key for (key,) in rows]
        else:
            grouped = {"session", "observation"}
            names = [one.id for one in changed if one.kind not in grouped]
            keys = []
            for part in in_parts(names):
                within = f"FROM fact WHERE token IS NULL AND id IN ({placed(part)})"
                for kind, name in self._run(f"SELECT kind, id {within} AND removed", part).fetchall():
                    self._take_out(BY_KIND[kind].name, [name])
                keys += (key for (key,) in self._run(f"SELECT key {within} AND NOT removed", part))
        for some in in_parts(keys, PART):
            self._write_settled(plain_rows(self._stored(some)))
        runs = {
            one.columns["source_id"] for one in changed if one.kind == "import_run" and not self._anew
        } | {one.id for one in changed if one.kind == "source"}
        self._observe_sources(set(self._intake.sources) if self._anew else runs)

    def _write_settled(self, tables: dict[str, list[Row]]) -> None:
        self._added.update(row["id"] for rows in tables.values() for row in rows)
        dangling = settle_references(tables, self._is_elsewhere)
        self._work.rows += write_rows(self._connection, tables)
        self._note(dangling)

    def _observe_sources(self, names: set[str]) -> None:
        wanted = [
            (self._key_of(name), self._intake.sources[name])
            for name in sorted(names)
            if name in self._intake.sources
        ]
        tables = plain_rows(wanted)
        for row in tables["sources"]:
            runs = self._run(
                "SELECT started_at, finished_at FROM import_runs WHERE source_id = ?", (row["id"],)
            )
            observe_source(row, ({"started_at": start, "finished_at": end} for start, end in runs))
        self._work.rows += write_rows(self._connection, {"sources": tables["sources"]})

    def _check_loose(self) -> None:
        """Rows that refer to something that has come or gone are made anew with everything else: this is rare."""
        if self._anew:
            return
        for part in in_parts(sorted(self._added)):
            found = self._run(f"SELECT 1 FROM dangling WHERE missing IN ({placed(part)})", part)
            if found.fetchone() is not None:
                raise OutOfStep
        for part in in_parts(sorted(self._removed - self._added)):
            for table, column in _LOOSE:
                query = f"SELECT 1 FROM {table} WHERE {column} IN ({placed(part)})"
                if self._run(query, part).fetchone() is not None:
                    raise OutOfStep

    def _finish(self) -> None:
        self._run(
            "DELETE FROM sources WHERE uri = ? AND id NOT IN (SELECT id FROM fact WHERE NOT removed) "
            "AND id NOT IN (SELECT source_id FROM session_observations WHERE source_id IS NOT NULL) "
            "AND id NOT IN (SELECT source_id FROM backup_observations WHERE source_id IS NOT NULL)",
            (NAMED_URI,),
        )
        run_all(self._connection, INDEXES)
        fold = self._fold()
        write_info(self._connection, fold)
        state = {
            "edition": edition(),
            "fold": fold,
            "heads": heads_text(lineage_heads(self._view)),
        }
        self._many("INSERT OR REPLACE INTO state VALUES (?, ?)", state.items())

    def _fold(self) -> str:
        """The name of the fold, as ``projection.Projection`` has it."""
        digest = hasher("sha256")
        rows = self._run(
            "SELECT key FROM fact WHERE NOT removed AND kind <> 'import_run' ORDER BY key"
        ).fetchall()
        return digest("\n".join(key.hex() for (key,) in rows).encode()).hex()
