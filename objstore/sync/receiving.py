"""Taking a pack in: everything is read and checked first, then one transaction stores the objects, joins the refs and
brings the indexes up to date. What is refused leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any

import lmdb
import msgspec
from msgspec import Struct

from objstore import writing
from objstore.batch import Batch, Prepared, prepare
from objstore.closure import CONTENT_REFS
from objstore.database import Database, LmdbSnapshot
from objstore.errors import StorageError, UsageError
from objstore.garbage import without_gc
from objstore.origin import go_on_as, new_store_id
from objstore.pack.checking import PackCheck, check_links
from objstore.pack.format import Limits, PackRefused
from objstore.pack.reader import Entry, PackReader, Source
from objstore.store import Store
from objstore.sync.arrivals import notify
from objstore.sync.joining import RefRefused, foreign_heads, join_refs, place_of

#: Objects, or bytes of them, that are checked and compressed together.
_GROUP_OBJECTS = 4096
_GROUP_BYTES = 4 * 1024 * 1024
#: Bytes of compressed objects that are held before they go to a file, and what each costs beside its own.
_HELD_BYTES = 64 * 1024 * 1024
_HELD_EACH = 256

Ref = tuple[str, bytes]


class Received(Struct, kw_only=True):
    """What taking in came to. ``objects`` were in the pack, ``added`` of them new; ``moved`` are the names of refs that
    moved; ``diverged`` those that have several heads now; ``offered`` the names that the pack offered; ``renamed`` the
    new id of this store, where it had to go on under one."""

    objects: int = 0
    added: int = 0
    moved: list[str] = []
    diverged: list[str] = []
    offered: list[str] = []
    renamed: str | None = None
    identity: str = ""


class Checked:
    """A pack that was read to its end and found right; nothing of it is stored yet."""

    def __init__(
        self, store: Store, spool: _Spool, links: list[bytes], refs: list[Ref], result: Received, why: str
    ) -> None:
        self.result = result
        self._store = store
        self._spool = spool
        self._links = links
        self._refs = refs
        self._why = why

    def keep(self) -> Received:
        """Store it, in one transaction."""
        _store(self._store, self._spool, self._links, self._refs, self.result, self._why)
        return self.result


@contextmanager
def check_pack(
    store: Store,
    source: Source,
    *,
    take_content: bool,
    pushed: bool = False,
    wanted: Callable[[str], bool] = lambda name: True,
    why: str = "receive",
    limits: Limits | None = None,
    on_progress: Callable[[int], None] = lambda count: None,
) -> Iterator[Checked]:
    """Read the pack that ``source`` gives, to be kept in ``store`` or not.

    ``take_content`` says whether the store keeps what was said; ``pushed`` that somebody else began this, who may not
    move this store's own chains; ``wanted`` which refs to take of those on offer; ``why`` goes into the reflog.
    ``on_progress`` is told of objects as they pass.

    Raises ``PackRefused`` or ``RefRefused`` for what may not come in, and what a commit raises; nothing has changed
    then.
    """
    database = store.database
    if not isinstance(database, Database):
        raise UsageError("a store in memory takes no packs")
    reader = PackReader(source, limits)
    if reader.header.hash != store.algorithm:
        raise PackRefused(
            f"its objects are keyed by {reader.header.hash}, and those of this store by {store.algorithm}",
            hint="stores of different hashes exchange through export and import",
        )
    if reader.header.content and not take_content:
        raise PackRefused(
            "it was made with content, and this store keeps none",
            hint="to keep it: objstore config content.keep on",
        )
    presumed = reader.presumed()
    offered = reader.refs()
    _check_may_move(store, offered, pushed=pushed, take_content=take_content)
    _check_presumed(store, presumed)
    check = PackCheck(presumed, take_content=take_content)
    with _Spool(database) as spool:
        for group in _groups(reader):
            with without_gc():
                check.check(group)
            spool.add(group)
            on_progress(len(group))
        check.finish()
        identity = reader.finish()
        _check_targets(store, check, offered)
        result = Received(
            objects=reader.header.entries, identity=identity.hex(), offered=[name for name, _ in offered]
        )
        refs = [ref for ref in offered if wanted(ref[0])]
        yield Checked(store, spool, check.links, refs, result, why)


def receive(store: Store, source: Source, *, dry_run: bool = False, **options: Any) -> Received:
    """Take the pack that ``source`` gives into ``store``; with ``dry_run`` all is checked and nothing stored. The
    other options, and what is raised, are those of ``check_pack``."""
    with check_pack(store, source, **options) as checked:
        return checked.result if dry_run else checked.keep()


def join_present(store: Store, refs: Sequence[Ref], why: str) -> Received:
    """Join refs whose objects this store has, without any pack; nothing is written where nothing moves."""
    database = store.database
    if not isinstance(database, Database):
        raise UsageError("a store in memory takes no refs")
    result = Received(offered=[name for name, _ in refs])
    with store.snapshot() as view:
        joined = join_refs(view, refs, own=store.store_id, why=why)
    result.diverged = joined.diverged
    if joined.moves:
        with _Spool(database) as spool:
            _store(store, spool, [], refs, result, why)
    return result


def _check_may_move(store: Store, offered: list[Ref], *, pushed: bool, take_content: bool) -> None:
    with store.snapshot() as view:
        for name, key in offered:
            place = place_of(name, key)
            if pushed and place.owner == store.store_id and key not in view:
                raise RefRefused(
                    name,
                    "is a chain of the receiving store itself, which no other may move",
                    hint="if that store was restored from a backup, run there: objstore fetch",
                )
            if name.startswith(CONTENT_REFS) and not take_content:
                raise RefRefused(
                    name,
                    "lists content, and the receiving store keeps none",
                    hint="objstore config content.keep on",
                )


def _check_presumed(store: Store, presumed: list[bytes]) -> None:
    with store.snapshot() as view:
        for key in presumed:
            if key not in view:
                raise PackRefused(
                    "the pack builds on it, and it is not in this store",
                    object=key.hex(),
                    hint="get what came before first, or make a pack that presumes nothing",
                )


def _check_targets(store: Store, check: PackCheck, offered: list[Ref]) -> None:
    with store.snapshot() as view:
        for name, key in offered:
            if key not in check and key not in view:
                raise PackRefused(
                    f"{name} points at it, and it is neither in the pack nor here", object=key.hex()
                )


def _groups(reader: PackReader) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    size = 0
    for block in reader.entries():
        group += block
        size += sum([len(data) for _, _, data in block])
        if len(group) >= _GROUP_OBJECTS or size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


class _Spool:
    """Objects that were checked, compressed as the store keeps them; in memory and, where they are many, the rest in a
    file of the store's folder that vanishes by itself. Compression runs in a thread beside the reading."""

    def __init__(self, database: Database) -> None:
        self._held: list[list[Prepared]] = []
        self._room = _HELD_BYTES
        self._file: Any = None
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="receive")
        self._waiting: Future[list[Prepared]] | None = None
        self.database = database

    def __enter__(self) -> _Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._file is not None:
            self._file.close()

    def add(self, group: list[Entry]) -> None:
        """Add objects; raises ``StorageError`` when the disk is full."""
        self._collect()
        self._waiting = self._pool.submit(prepare, [(key, kind, data) for kind, key, data in group])

    def _collect(self) -> None:
        if self._waiting is None:
            return
        group, self._waiting = self._waiting.result(), None
        self._room -= sum([len(payload) for _, _, _, payload in group]) + _HELD_EACH * len(group)
        if self._room >= 0:
            self._held.append(group)
            return
        data = msgspec.msgpack.encode(group)
        try:
            if self._file is None:
                self._file = TemporaryFile(dir=self.database.path)  # noqa: SIM115
            self._file.write(len(data).to_bytes(8, "big") + data)
        except OSError as error:
            raise StorageError(
                f"{self.database.path}: cannot be written: {error.strerror}", hint="is the disk full?"
            ) from None

    def groups(self) -> Iterator[list[Prepared]]:
        """All objects, in the groups in which they came; again on every call."""
        self._collect()
        yield from self._held
        if self._file is not None:
            self._file.seek(0)
            while head := self._file.read(8):
                yield _DECODER.decode(self._file.read(int.from_bytes(head, "big")))


_DECODER = msgspec.msgpack.Decoder(list[Prepared])


def _store(
    store: Store,
    spool: _Spool,
    links: list[bytes],
    refs: Sequence[Ref],
    result: Received,
    why: str,
) -> None:
    """The one transaction."""
    database = spool.database
    while True:
        try:
            with writing.write_transaction(database) as txn:
                _store_in(txn, store, database, spool, links, refs, result, why)
            break
        except lmdb.MapFullError:
            writing.grow(database)
    if result.renamed is not None:
        store.store_id = result.renamed


def _store_in(
    txn: Any,
    store: Store,
    database: Database,
    spool: _Spool,
    links: list[bytes],
    refs: Sequence[Ref],
    result: Received,
    why: str,
) -> None:
    own: str = txn.get(b"store", db=database.meta).decode()
    time = store.now()
    view = LmdbSnapshot(database, txn)
    result.renamed = None
    try:
        if foreign_heads(view, refs, own):
            result.renamed = new_store_id()
            go_on_as(txn, database, view, result.renamed, "copied store", who=store.who, time=time)
    finally:
        view.close()
    result.added = sum(writing.append(txn, database, group) for group in spool.groups())
    view = LmdbSnapshot(database, txn)  # the objects may have brought new kinds
    try:
        check_links(view, links)
        if result.renamed is None:
            joined = join_refs(view, refs, own=own, why=why)
        else:
            joined = join_refs(view, refs, own=result.renamed, given_up=own, why=why)
        batch = Batch(store.algorithm)
        batch.moves += joined.moves
        writing.move_refs(txn, database, batch, store.who, lambda: time)
        notify(view, batch, joined.moves)
    finally:
        view.close()
    for db, values in ((database.local, batch.local), (database.derived, batch.derived)):
        for key, value in values.items():
            if value is None:
                txn.delete(key, db=db)
            else:
                txn.put(key, value, db=db)
    result.moved = [move.name for move in joined.moves]
    result.diverged = joined.diverged
