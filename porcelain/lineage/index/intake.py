"""Taking in what is new: facts, their tokens, the records of files that have grown; which groups that touches."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from objstore.snapshot import Snapshot
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.store import read_facts
from porcelain.lineage.index.changes import Claimed, OutOfStep, known_claims, new_facts
from porcelain.lineage.index.groups import Groups
from porcelain.lineage.index.records import IndexedEvidence, file_row, forget_lost, index_all, index_files
from porcelain.lineage.index.standing import known_heads
from porcelain.lineage.index.tables import FIRST_INDEXES, TOKEN_INDEX, in_parts, run_all
from porcelain.lineage.index.tokens import of_folder, of_id, tokens
from porcelain.lineage.landed.events import ObservedFile

#: Facts that are read together.
PART = 6000
#: New facts from which on everything is made anew, which holds no more than a part of them in memory.
_MANY = 20_000
#: Files that were landed anew, the same: where another store has landed everything too.
_MANY_FILES = 5_000


class Intake:
    """What is new since the index was made; ``sources`` are all that there are now, by id."""

    def __init__(
        self, connection: sqlite3.Connection, view: Snapshot, path: str | None, *, anew: bool
    ) -> None:
        self._connection = connection
        self._run = connection.execute
        self._many = connection.executemany
        self._view = view
        self._path = path
        self._anew = anew
        self.groups = Groups(connection, empty=anew)
        self.evidence = IndexedEvidence(connection, view)
        self.sources: dict[str, Fact] = {}
        self.new_facts = 0
        self.new_files = 0

    def read_facts(self) -> dict[str, Fact]:
        """Take new facts in. What comes back are those that count now: all of them where there is an index, and of a
        new index only those that go with no group or say something about folders."""
        changed: dict[str, Fact] = {}
        for part in new_facts(self._view, {} if self._anew else known_heads(self._connection)):
            known = known_claims(self._connection, [one.id for _, one in part])
            rows: dict[str, tuple[object, ...]] = {}
            seen: dict[str, Fact] = {}
            for key, one in part:
                removed = one.tombstone is True
                before = known.get(one.id)
                if before is not None and (one.revision, key) <= (before.revision, before.key):
                    continue
                found = tokens(one, self._uris(one))
                token = found[0] if found else None
                known[one.id] = Claimed(one.revision, key, removed, token)
                rows[one.id] = (one.id, one.kind, one.revision, key, removed, token)
                if found:
                    self.groups.join(found)
                if one.kind == "source":
                    self.sources[one.id] = one
                if not self._anew or not found or self._tells_folder(one):
                    changed[one.id] = one
                if one.kind == "observation":
                    seen[one.id] = one
            self._observe(seen)
            self._many("INSERT OR REPLACE INTO fact VALUES (?, ?, ?, ?, ?, ?)", rows.values())
            self.new_facts += len(rows)
            if not self._anew and self.new_facts > _MANY:
                raise OutOfStep
        return changed

    def _uris(self, one: Fact) -> dict[str, str]:
        """The uri of an observation's source, which may stand in another chain than the observation."""
        name = one.columns.get("source_id") if one.kind == "observation" else None
        if name is None:
            return {}
        if name not in self.sources:
            self.load_sources()
        return {name: self.sources[name].columns["uri"]} if name in self.sources else {}

    def load_sources(self) -> None:
        rows = self._run("SELECT key FROM fact WHERE kind = 'source' AND NOT removed").fetchall()
        self.sources = {
            one.id: one for one in read_facts(self._view, [key for (key,) in rows])
        } | self.sources

    def _observe(self, seen: dict[str, Fact]) -> None:
        """Take in which files these observations are of, for their records to be found."""
        if not self._anew:
            self._many("DELETE FROM file WHERE id = ?", ((name,) for name in seen))
        files = (self._file(one) for one in seen.values() if one.tombstone is not True)
        rows = (file_row(file) for file in files if file is not None)
        self._many("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?)", rows)

    def _file(self, one: Fact) -> ObservedFile | None:
        columns, metadata = one.columns, one.columns.get("metadata", {})
        source = self.sources.get(columns.get("source_id", ""))
        if source is None or "src" not in metadata or not metadata.get("records"):
            return None
        if "provider_session_id" not in columns:
            return None
        return ObservedFile(
            observation=one.id,
            session=columns.get("session_id"),
            source=columns.get("source_id"),
            provider=source.columns["provider"],
            native_id=columns["provider_session_id"],
            src=metadata["src"],
            first_record=metadata.get("first_record"),
            differs=metadata.get("differs"),
            records=metadata["records"],
        )

    def _tells_folder(self, one: Fact) -> bool:
        columns = one.columns
        if one.kind == "observation":
            return "fork" in columns.get("metadata", {}).get("links", {})
        return False

    def is_strange(self, one: Fact) -> bool:
        """Whether a fact is of a kind that nothing states: it may stand where a derived row stood."""
        return one.kind in ("thread", "thread_member", "thread_edge", "resume_target")

    def judged_edges(self) -> set[str]:
        """The ids of the edges that somebody has classified."""
        keys = self._run("SELECT key FROM fact WHERE kind = 'classification' AND NOT removed").fetchall()
        facts = read_facts(self._view, [key for (key,) in keys])
        return {one.columns["target_id"] for one in facts if one.columns["target_type"] == "edge"}

    def group(self, changed: dict[str, Fact], moved: Sequence[tuple[str, str]]) -> set[int]:
        """Bring together what belongs together; the groups to derive from."""
        if self._anew:
            run_all(self._connection, FIRST_INDEXES)
            self._join_forks(changed.values())
            self.new_files = index_all(self._connection, self.evidence, self.groups, self._path)
            groups = self.groups.settle()
            run_all(self._connection, TOKEN_INDEX)
            return groups
        self._join_judgements(changed.values())
        grown = {name for name, one in changed.items() if one.kind == "observation"}
        relanded: list[str] = []
        for provider, native in moved:
            rows = self._run("SELECT id FROM file WHERE provider = ? AND native = ?", (provider, native))
            relanded += (name for (name,) in rows if name not in grown)
        if len(relanded) > _MANY_FILES:
            raise OutOfStep
        forget_lost(self._connection, self.evidence, relanded)
        for name in relanded:
            self.groups.join([of_id(name)])
        self.new_files = index_files(
            self._connection, self.evidence, self.groups, sorted({*grown, *relanded})
        )
        self._join_forks(changed.values())
        return self.groups.settle()

    def _join_judgements(self, changed: Iterable[Fact]) -> None:
        """Bring new judgements about edges together with what the edges are between."""
        for one in changed:
            if one.kind == "classification" and one.columns["target_type"] == "edge":
                edge = one.columns["target_id"]
                row = self._run(
                    "SELECT source_observation_id, target_observation_id FROM edges WHERE id = ?", (edge,)
                ).fetchone()
                if row is not None:
                    self.groups.join([of_id(edge), *(of_id(name) for name in row if name is not None)])

    def _join_forks(self, changed: Iterable[Fact]) -> None:
        """A fork that does not name its origin may come from any conversation of its folder: they are one group. Where
        a folder turns out to have such a fork, its conversations are all looked at again."""
        known = {token for (token,) in self._run("SELECT token FROM forky")}
        forks = [one for one in changed if self._tells_folder(one) and one.tombstone is not True]
        if self._anew:
            labels = list(self._cwd_labels()) if forks else []
            names = {one.id for one in forks}
            folders = {of_folder(value) for target, value in labels if target in names}
            for target, value in labels:
                if of_folder(value) in folders:
                    self.groups.join([of_id(target), of_folder(value)])
            self._many("INSERT INTO forky VALUES (?)", ((token,) for token in sorted(folders)))
            return
        if any(of_id(one.id) not in self.groups.of([of_id(one.id)]) for one in forks):
            raise OutOfStep
        for one in changed:
            if one.kind == "label" and one.columns["label_type"] == "cwd" and known:
                token = of_folder(one.columns["value"])
                if token in known:
                    self.groups.join([of_id(one.columns["target_id"]), token])
                elif self._is_fork(one.columns["target_id"]):
                    raise OutOfStep

    def _is_fork(self, name: str) -> bool:
        row = self._run("SELECT key FROM fact WHERE id = ? AND kind = 'observation'", (name,)).fetchone()
        return row is not None and self._tells_folder(read_facts(self._view, [row[0]])[0])

    def _cwd_labels(self) -> Iterator[tuple[str, str]]:
        keys = (key for (key,) in self._run("SELECT key FROM fact WHERE kind = 'label' AND NOT removed"))
        for part in in_parts(keys, PART):
            for one in read_facts(self._view, part):
                if one.columns["label_type"] == "cwd":
                    yield one.columns["target_id"], one.columns["value"]
