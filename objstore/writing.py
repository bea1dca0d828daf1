"""Committing a batch: objects, refs with their reflog, and values of this machine, in one durable LMDB transaction."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import lmdb

from objstore.batch import Batch, Prepared
from objstore.database import ENTRY_KEY, INDEX, LOCAL_REF, Database, LmdbSnapshot, kind_names, number_key
from objstore.errors import NotFound, RefMoved, StorageError, UsageError
from objstore.filling import filling_order
from objstore.garbage import without_gc
from objstore.lock import writer_lock
from objstore.refs import ANY, derived_resolver, is_local
from objstore.values import HEADER, pack_all

#: Objects from which on a transaction leaves many pages behind.
_LARGE = 4096


def commit(database: Database, batch: Batch, *, who: str, now: Callable[[], str]) -> int:
    """Write ``batch``; how many of its objects were new. ``now`` is the clock of the reflog.

    Raises ``RefMoved`` when a compare-and-swap lost, ``NotFound`` when a ref would name an absent object, ``Conflict``
    when the lock was not to be had, ``StorageError`` when the disk refuses: nothing is written then.
    """
    objects = batch.prepared()
    while True:
        try:
            with write_transaction(database) as txn:
                added = append(txn, database, objects)
                move_refs(txn, database, batch, who, now)
                for db, values in ((database.local, batch.local), (database.derived, batch.derived)):
                    for key, value in values.items():
                        if value is None:
                            txn.delete(key, db=db)
                        else:
                            txn.put(key, value, db=db)
            if len(objects) >= _LARGE:
                _turn(database)
            return added
        except lmdb.MapFullError:
            grow(database)


def _turn(database: Database) -> None:
    """An all but empty transaction after a large one. LMDB reuses the pages that a transaction left behind from the
    next but one on; so the next large one finds them, and the file stays smaller by a copy of the index."""
    with write_transaction(database) as txn:
        txn.put(b"turn", b"", db=database.meta)
        txn.delete(b"turn", db=database.meta)


@contextmanager
def write_transaction(database: Database) -> Iterator[Any]:
    """The one write transaction there can be; waits for other writers as long as the database's lock time-out says."""
    if database.read_only:
        raise StorageError(f"{database.path}: opened for reading only")
    with writer_lock(os.path.join(database.path, "write.lock"), database.lock_timeout, database.on_wait):
        try:
            with database.begin(write=True) as txn:
                yield txn
        except (lmdb.MapFullError, lmdb.MapResizedError):
            raise
        except lmdb.Error as error:
            raise StorageError(
                f"{database.path}: cannot be written: {error}", hint="is the disk full?"
            ) from None


def grow(database: Database) -> None:
    """Double the map; only systems that could not reserve a large one ever come here."""
    size = database.env.info()["map_size"]
    try:
        database.env.set_mapsize(size * 2)
    except (lmdb.Error, MemoryError, OverflowError) as error:
        raise StorageError(
            f"{database.path}: the database map is full and cannot grow beyond {size} bytes: {error}"
        ) from None


@without_gc()
def append(txn: Any, database: Database, objects: Sequence[Prepared]) -> int:
    """Write the objects that are not there yet, in an order that fills pages well; how many there were."""
    if not objects:
        return 0
    kinds = kind_names(txn, database)
    numbers = {name: number for number, name in enumerate(kinds)}
    for kind in {one[1]: None for one in objects}:
        if kind not in numbers:
            numbers[kind] = len(kinds)
            kinds.append(kind)
    if len(kinds) > 255:
        raise StorageError("more than 255 kinds of object in one store")
    fresh = _absent(txn, database, objects)
    if not fresh:
        return 0
    first = int.from_bytes(txn.get(b"next", db=database.meta), "big")
    ordered = [fresh[index] for index in filling_order([HEADER + len(one[3]) for one in fresh])]
    arrivals = list(map(number_key, range(first, first + len(ordered))))
    keys = [one[0] for one in ordered]
    tags = {tag: bytes((numbers[tag[0]], tag[1])) for tag in {one[1:3] for one in ordered}}
    values = pack_all(keys, [tags[one[1:3]] for one in ordered], [one[3] for one in ordered])
    txn.cursor(db=database.objects).putmulti(zip(arrivals, values, strict=True), append=True)
    entries = [key[:ENTRY_KEY] + arrival[3:] for key, arrival in zip(keys, arrivals, strict=True)]
    entries.sort()
    txn.cursor(db=database.ids).putmulti(zip(repeat(INDEX), entries))
    txn.put(b"next", number_key(first + len(ordered)), db=database.meta)
    txn.put(b"kinds", "\n".join(kinds).encode(), db=database.meta)
    return len(ordered)


def _absent(txn: Any, database: Database, objects: Sequence[Prepared]) -> list[Prepared]:
    """Those of ``objects`` that are not stored yet, each once."""
    unique = {one[0]: one for one in objects}
    ids = txn.cursor(db=database.ids)
    find, entry_here, get, objects_db = ids.set_range_dup, ids.value, txn.get, database.objects
    for key in sorted(unique):  # neighbours in the tree are then looked up one after the other
        start = key[:ENTRY_KEY]
        found = find(INDEX, start)
        while found:
            entry = entry_here()
            if not entry.startswith(start):
                break
            stored = get(b"\0\0\0" + entry[ENTRY_KEY:], db=objects_db)
            if stored is not None and stored.startswith(key):
                del unique[key]
                break
            found = ids.next_dup()
    return list(unique.values())


def move_refs(txn: Any, database: Database, batch: Batch, who: str, now: Callable[[], str]) -> None:
    """Move the refs of ``batch`` within a write transaction; see ``commit``."""
    if not batch.moves:
        return
    import json

    time = now()
    counter = int.from_bytes(txn.get(b"reflog", db=database.meta), "big")
    snapshot = LmdbSnapshot(database, txn)
    try:
        for move in batch.moves:
            if derived_resolver(move.name) is not None:
                raise UsageError(f"{move.name}: is derived and cannot be set")
            local = is_local(move.name)
            name = move.name.encode()
            db, key = (database.local, LOCAL_REF + name) if local else (database.refs, name)
            found = txn.get(key, db=db)
            current = found.hex() if found is not None else None
            if move.old != ANY and move.old != current:
                raise RefMoved(move.name, move.old, current)
            if move.new is None:
                txn.delete(key, db=db)
            else:
                target = bytes.fromhex(move.new)
                if target not in snapshot:
                    raise NotFound(f"{move.name}: cannot name {move.new}: no such object")
                txn.put(key, target, db=db)
            if local or move.new == current:
                continue
            entry = {"new": move.new, "old": current, "time": time, "who": who, "why": move.why}
            txn.put(
                name + b"\0" + number_key(counter),
                json.dumps(entry, sort_keys=True).encode(),
                db=database.reflog,
            )
            counter += 1
    finally:
        snapshot.close()
    txn.put(b"reflog", number_key(counter), db=database.meta)
