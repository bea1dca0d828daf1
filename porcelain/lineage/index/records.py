"""Which files hold the same landed records: 8 bytes of each record's id, and for those that several files hold and that
say something about them, by which files."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from objstore.snapshot import Snapshot
from porcelain.lineage.index.changes import IndexedHeads
from porcelain.lineage.index.groups import Groups
from porcelain.lineage.index.tables import in_parts, placed
from porcelain.lineage.index.tokens import of_id, of_key
from porcelain.lineage.landed.events import ObservedFile
from porcelain.lineage.landed.pages import LandedPages
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.relations.shared_records import LandedEvidence, nearest, record_keys

_DECODER = msgspec.msgpack.Decoder(ObservedFile)


class IndexedEvidence(LandedEvidence):
    """Evidence from the landed pages of a store, the pairs from the index."""

    def __init__(self, connection: sqlite3.Connection, view: Snapshot) -> None:
        self.landed = LandedPages(view, IndexedHeads(connection, view))
        super().__init__(view, self.landed)
        self._run = connection.execute

    def pairs(self, nodes: Sequence[Node]) -> Iterator[tuple[str, str]]:
        by_age = sorted((node for node in nodes if node.records), key=lambda node: node.order)
        keys: dict[str, list[int]] = defaultdict(list)
        for part in in_parts(node.id for node in by_age):
            for name, key in self._run(f"SELECT id, key FROM shared WHERE id IN ({placed(part)})", part):
                keys[name].append(key)
        return nearest(by_age, [keys.get(node.id, ()) for node in by_age])


def index_all(connection: sqlite3.Connection, evidence: IndexedEvidence, groups: Groups) -> int:
    """Index the records of all files, for an index that has none; how many files."""
    run = connection.execute
    run("CREATE TEMP TABLE every (key INTEGER, token INTEGER, id TEXT)")

    def rows() -> Iterator[tuple[int, int, str]]:
        for name, body in run("SELECT id, body FROM file"):
            token = of_id(name)
            for key in set(record_keys(evidence.landed, _DECODER.decode(body))):
                yield of_key(key), token, name

    connection.executemany("INSERT INTO every VALUES (?, ?, ?)", rows())
    run("CREATE TEMP TABLE held AS SELECT key, min(token) AS low, max(token) AS high FROM every GROUP BY key")
    run("INSERT INTO record SELECT key, low FROM held")  # in order of key, as they were grouped
    run("CREATE TEMP TABLE several AS SELECT key FROM held WHERE low <> high")
    quiet = [(key,) for (key,) in run("SELECT key FROM several") if not evidence.tells(key % (1 << 64))]
    connection.executemany("DELETE FROM several WHERE key = ?", quiet)
    run("INSERT INTO shared SELECT id, key FROM every WHERE key IN (SELECT key FROM several)")
    last: tuple[int, int] | None = None
    for key, token in run("SELECT key, token FROM every WHERE key IN (SELECT key FROM several) ORDER BY key"):
        if last is not None and last[0] == key:
            groups.join([last[1], token])
        last = (key, token)
    for table in ("every", "held", "several"):
        run(f"DROP TABLE {table}")
    return int(run("SELECT count(*) FROM file").fetchone()[0])


def index_files(
    connection: sqlite3.Connection, evidence: IndexedEvidence, groups: Groups, names: Sequence[str]
) -> int:
    """Index the records of these files anew; how many of them are known."""
    run, count = connection.execute, 0
    for name in names:
        row = run("SELECT body FROM file WHERE id = ?", (name,)).fetchone()
        run("DELETE FROM shared WHERE id = ?", (name,))
        if row is None:
            continue
        count += 1
        token = of_id(name)
        found = {of_key(key) for key in record_keys(evidence.landed, _DECODER.decode(row[0]))}
        held: dict[int, int] = {}
        for part in in_parts(found):
            held.update(run(f"SELECT key, token FROM record WHERE key IN ({placed(part)})", part))
        for key, other in held.items():
            if other != token and evidence.tells(key % (1 << 64)):
                groups.join([token, other])
                holder = run("SELECT id FROM fact WHERE token = ? AND kind = 'observation'", (other,))
                both = [(one, key) for one in (name, *(one for (one,) in holder))]
                connection.executemany("INSERT OR IGNORE INTO shared VALUES (?, ?)", both)
        fresh = [(key, token) for key in found - held.keys()]
        connection.executemany("INSERT INTO record VALUES (?, ?)", fresh)
        # What others hold too, and this file was the first of to be seen with.
        mine = [key for key, other in held.items() if other == token]
        for part in in_parts(mine):
            run(
                f"INSERT OR IGNORE INTO shared SELECT DISTINCT ?, key FROM shared WHERE key IN ({placed(part)})",
                (name, *part),
            )
    return count


def forget_lost(connection: sqlite3.Connection, evidence: IndexedEvidence, name: str) -> None:
    """Forget the records that a file no longer holds: it was landed anew, under other rules or by another store."""
    run = connection.execute
    row = run("SELECT body FROM file WHERE id = ?", (name,)).fetchone()
    if row is None:
        return
    found = {of_key(key) for key in record_keys(evidence.landed, _DECODER.decode(row[0]))}
    known = [key for (key,) in run("SELECT key FROM record WHERE token = ?", (of_id(name),))]
    for key in known:
        if key not in found:
            other = run("SELECT id FROM shared WHERE key = ? AND id <> ?", (key, name)).fetchone()
            if other is None:
                run("DELETE FROM record WHERE key = ?", (key,))
            else:
                run("UPDATE record SET token = ? WHERE key = ?", (of_id(other[0]), key))


def file_row(file: ObservedFile) -> tuple[str, str, str, bytes]:
    """A row of the table of files."""
    return file.observation, file.provider, file.native_id, msgspec.msgpack.encode(file)
