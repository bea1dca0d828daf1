"""Which files hold the same landed records: 8 bytes of each record's id, and for those that several files hold and that
say something about them, by which files."""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import msgspec
from msgspec import Struct

from objstore.database import Database
from objstore.garbage import without_gc
from objstore.snapshot import Snapshot
from objstore.workers import Serve, run_tasks
from porcelain.lineage.index.changes import IndexedHeads
from porcelain.lineage.index.groups import Groups
from porcelain.lineage.index.tables import in_parts, placed
from porcelain.lineage.index.tokens import of_id
from porcelain.lineage.landed.events import ObservedFile
from porcelain.lineage.landed.pages import LandedPages
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.relations.shared_records import LandedEvidence, nearest, record_keys

#: Parts of the keys of records, by their first byte, that are looked through one after the other.
_PARTS = 256
#: Keys that are held in memory.
_WAITING = 1_000_000
#: Files from which on processes pay for their start, and those that one is given at a time.
_MANY = 5000
_BUNDLE = 256


class _Held(Struct, frozen=True, array_like=True):
    """A file, and the heads of the landing chains of its conversation."""

    file: ObservedFile
    heads: list[bytes]


_DECODER = msgspec.msgpack.Decoder(ObservedFile)
_BUNDLES = msgspec.msgpack.Decoder(list[_Held])
_BYTES = msgspec.msgpack.Decoder(list[bytes])
_ENCODER = msgspec.msgpack.Encoder()


class IndexedEvidence(LandedEvidence):
    """Evidence from the landed pages of a store, the pairs from the index."""

    def __init__(self, connection: sqlite3.Connection, view: Snapshot) -> None:
        self.heads = IndexedHeads(connection, view)
        self.landed = LandedPages(view, self.heads)
        super().__init__(view, self.landed)
        self._run = connection.execute

    def pairs(self, nodes: Sequence[Node]) -> Iterator[tuple[str, str]]:
        by_age = sorted((node for node in nodes if node.records), key=lambda node: node.order)
        keys: dict[str, list[int]] = defaultdict(list)
        for part in in_parts(node.id for node in by_age):
            for name, key in self._run(f"SELECT id, key FROM shared WHERE id IN ({placed(part)})", part):
                keys[name].append(key)
        return nearest(by_age, [keys.get(node.id, ()) for node in by_age])


def index_all(
    connection: sqlite3.Connection, evidence: IndexedEvidence, groups: Groups, path: str | None
) -> int:
    """Index the records of all files, for an index that has none; how many files. ``path`` is the store's folder, where
    other processes may open it."""
    connection.execute("CREATE TEMP TABLE spilled (part INTEGER, keys BLOB, files BLOB)")
    names: list[str] = []
    parts = [(array("q"), array("I")) for _ in range(_PARTS)]
    waiting = 0
    for name, found in _keyed(connection, evidence, path):
        number = len(names)
        names.append(name)
        for key in found:
            keys, files = parts[(key >> 56) + 128]
            keys.append(key)
            files.append(number)
        waiting += len(found)
        if waiting >= _WAITING:
            _spill(connection, parts)
            waiting = 0
    _spill(connection, parts)
    _index_parts(connection, evidence, groups, names)
    connection.execute("DROP TABLE spilled")
    return len(names)


def _spill(connection: sqlite3.Connection, parts: list[tuple[array[int], array[int]]]) -> None:
    rows = ((number, keys.tobytes(), files.tobytes()) for number, (keys, files) in enumerate(parts) if keys)
    connection.executemany("INSERT INTO spilled VALUES (?, ?, ?)", rows)
    for keys, files in parts:
        del keys[:], files[:]


def _index_parts(
    connection: sqlite3.Connection, evidence: IndexedEvidence, groups: Groups, names: Sequence[str]
) -> None:
    """Note for each record a file that holds it, and for those that several files hold all of them. Whole parts of the
    keys, one after the other, so that memory does not grow with the number of records."""
    tokens = array("q", map(of_id, names))
    shared: list[tuple[str, int]] = []
    for number in range(_PARTS):
        keys, files = array("q"), array("I")
        for some, theirs in connection.execute("SELECT keys, files FROM spilled WHERE part = ?", (number,)):
            keys.frombytes(some)
            files.frombytes(theirs)
        first: dict[int, int] = {}
        others: dict[int, list[int]] = defaultdict(list)
        for key, file in zip(keys, files, strict=True):
            if first.setdefault(key, file) != file:
                others[key].append(file)
        rows = sorted((key, tokens[file]) for key, file in first.items())
        connection.executemany("INSERT INTO record VALUES (?, ?)", rows)
        for key, more in others.items():
            if evidence.tells(key):
                holders = [first[key], *more]
                groups.join([tokens[file] for file in holders])
                shared += ((names[file], key) for file in holders)
    connection.executemany("INSERT INTO shared VALUES (?, ?)", sorted(shared))


def _keyed(
    connection: sqlite3.Connection, evidence: IndexedEvidence, path: str | None
) -> Iterator[tuple[str, set[int]]]:
    """All files with the keys of their records, in any order. Of many files the pages are read by processes."""
    files = _with_heads(connection, evidence.heads)
    count = connection.execute("SELECT count(*) FROM file").fetchone()[0]
    processes = os.cpu_count() or 1
    if path is None or processes == 1 or count < _MANY:
        for one in files:
            yield one.file.observation, _keys_of(evidence, one)
        return
    parts = list(in_parts(files, _BUNDLE))
    tasks = [_ENCODER.encode(part) for part in parts]
    for number, data in run_tasks(f"{__name__}:serve", os.fsencode(path), tasks, processes):
        part = parts[number]
        if data is None:  # the process died
            read = (_keys_of(evidence, one) for one in part)
        else:
            read = (_unpacked(keys) for keys in _BYTES.decode(data))
        yield from zip((one.file.observation for one in part), read, strict=True)


def serve(path: bytes) -> Serve:
    """What a process does that reads pages: the keys of the records of a bundle of files."""
    database = Database.open(os.fsdecode(path), read_only=True)

    def keys(task: bytes) -> Iterator[bytes]:
        with without_gc(), database.snapshot() as view:
            bundle = _BUNDLES.decode(task)
            heads = {(one.file.provider, one.file.native_id): one.heads for one in bundle}
            landed = LandedPages(view, lambda provider, native: heads[provider, native])
            yield _ENCODER.encode([record_keys(landed, one.file).tobytes() for one in bundle])

    return keys


def _unpacked(data: bytes) -> set[int]:
    keys = array("q")
    keys.frombytes(data)
    return set(keys)


def _keys_of(evidence: IndexedEvidence, one: _Held) -> set[int]:
    evidence.heads.take(one.file.provider, one.file.native_id, one.heads)
    return set(record_keys(evidence.landed, one.file))


def _with_heads(connection: sqlite3.Connection, heads: IndexedHeads) -> Iterator[_Held]:
    """All files, with the heads of the landing chains of their conversations."""
    rows = connection.execute(
        "SELECT f.body, l.ref, l.head FROM file f LEFT JOIN landed l USING (provider, native)"
    )
    for body, found in groupby(rows, key=itemgetter(0)):
        file = _DECODER.decode(body)
        refs = [(ref, head) for _, ref, head in found if ref is not None]
        yield _Held(file, heads.hold(file.provider, file.native_id, refs))


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
        found = set(record_keys(evidence.landed, _DECODER.decode(row[0])))
        held: dict[int, int] = {}
        for part in in_parts(found):
            held.update(run(f"SELECT key, token FROM record WHERE key IN ({placed(part)})", part))
        for key, other in held.items():
            if other != token and evidence.tells(key):
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


def forget_lost(connection: sqlite3.Connection, evidence: IndexedEvidence, names: Sequence[str]) -> None:
    """Forget the records that these files no longer hold: they were landed anew, under other rules or by another store.
    Which records the index has of a file it only says when all of it is gone through, so that is done once for many.
    """
    run = connection.execute
    for part in in_parts(names):
        name_of = {of_id(name): name for name in part}
        known: dict[str, list[int]] = defaultdict(list)
        for key, token in run(
            f"SELECT key, token FROM record WHERE token IN ({placed(part)})", list(name_of)
        ):
            known[name_of[token]].append(key)
        bodies = run(f"SELECT id, body FROM file WHERE id IN ({placed(part)})", part).fetchall()
        for name, body in bodies:
            found = set(record_keys(evidence.landed, _DECODER.decode(body)))
            for key in known[name]:
                if key not in found:
                    _forget_holder(connection, name, key)


def _forget_holder(connection: sqlite3.Connection, name: str, key: int) -> None:
    run = connection.execute
    other = run("SELECT id FROM shared WHERE key = ? AND id <> ?", (key, name)).fetchone()
    if other is None:
        run("DELETE FROM record WHERE key = ?", (key,))
    else:
        run("UPDATE record SET token = ? WHERE key = ?", (of_id(other[0]), key))


def file_row(file: ObservedFile) -> tuple[str, str, str, bytes]:
    """A row of the table of files."""
    return file.observation, file.provider, file.native_id, msgspec.msgpack.encode(file)
