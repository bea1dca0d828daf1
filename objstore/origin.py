"""One writer, one chain: noticing that a store's folder was copied, and going on under a new id.

A store notes where it lives: machine, path, and the number of its file. When a writer finds it elsewhere, the folder is
a copy, or came out of a backup, and another store may write under the same id. What was written under the old id stays;
every ref of it is copied under the new one, from where this store goes on.
"""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct

from objstore import writing
from objstore.batch import Batch
from objstore.database import Database, LmdbSnapshot
from objstore.errors import StorageError
from objstore.refs import RefMove
from objstore.snapshot import Snapshot
from objstore.store import Store

_KEY = b"origin"


class Origin(Struct, frozen=True, kw_only=True):
    """Where a store lives: a name of the machine, the folder, and the number of the file that holds the database."""

    inode: int
    machine: str
    path: str


_DECODER = msgspec.json.Decoder(Origin)


def origin_of(database: Database, machine: str) -> Origin:
    """Where the store is now; ``machine`` names this one and must not come from the store itself."""
    try:
        status = os.stat(os.path.join(database.path, "data.mdb"))
    except OSError as error:
        raise StorageError(f"{database.path}: cannot be read: {error.strerror}") from None
    return Origin(inode=status.st_ino, machine=machine, path=database.path)


def settle(store: Store, machine: str) -> str | None:
    """Note where the store lives, before its first write there. Where that is not where it lived before, it goes on
    under a new id, which is returned (and set on ``store``); else None.

    A folder that was only moved (the same machine and file) keeps its id.
    """
    database = store.database
    if not isinstance(database, Database):
        return None
    now = origin_of(database, machine)
    with store.snapshot() as view:
        before = _noted(view)
    if before == now:
        return None
    batch = store.batch()
    batch.set_local(_KEY, msgspec.json.encode(now))
    if before is None or (before.machine, before.inode) == (now.machine, now.inode):
        store.commit(batch)
        return None
    new = new_store_id()
    with writing.write_transaction(database) as txn:
        view = LmdbSnapshot(database, txn)
        try:
            if _noted(view) == now:  # another process was faster
                new = txn.get(b"store", db=database.meta).decode()
            else:
                go_on_as(txn, database, view, new, "copied store", who=store.who, time=store.now())
                txn.put(_KEY, batch.local[_KEY], db=database.local)
        finally:
            view.close()
    store.store_id = new
    return new


def new_store_id() -> str:
    """A new id for a store."""
    return os.urandom(8).hex()


def _noted(view: Snapshot) -> Origin | None:
    found = view.local(_KEY)
    return None if found is None else _DECODER.decode(found)


def go_on_as(
    txn: object, database: Database, view: Snapshot, new: str, why: str, *, who: str, time: str
) -> str:
    """Within a write transaction of ``database``, of which ``view`` is one: give the store the id ``new`` and copy its
    refs under it. Returns the old id."""
    old: str = txn.get(b"store", db=database.meta).decode()  # type: ignore[attr-defined]
    batch = Batch(database.meta_text("hash"))
    batch.moves += copied_refs(view, old, new, why)
    writing.move_refs(txn, database, batch, who, lambda: time)
    txn.put(b"store", new.encode(), db=database.meta)  # type: ignore[attr-defined]
    return old


def copied_refs(view: Snapshot, old: str, new: str, why: str) -> list[RefMove]:
    """The moves that copy every ref of the store ``old``, whose id is its second part, under the id ``new``."""
    moves: list[RefMove] = []
    for name, key in view.refs():
        parts = name.split("/", 2)
        if parts[1] == old:
            moves.append(RefMove("/".join([parts[0], new, *parts[2:]]), key.hex(), None, why))
    return moves
