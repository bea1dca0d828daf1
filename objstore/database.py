"""The LMDB environment under a store: its layout, opening, reading and committing.

Layout (named databases, keys and values in bytes, numbers big-endian):

=========  ==================================================================================================
objects    arrival number (8) -> key (32), kind number (1), codec (1), CRC-32 (4), payload
ids        first 2 bytes of the key -> sorted entries of the next 6 bytes of the key and an arrival number (5)
refs       name -> key (32)
reflog     name, NUL, counter (8) -> JSON ``{"new","old","time","who","why"}``
meta       format, hash, store, next, reflog, kinds
local      values of this machine: never packed
derived    rebuildable indexes
=========  ==================================================================================================

Objects are appended in the order of arrival, so that writing touches few pages and wastes none; ``ids`` finds them by
key. Two keys that agree in their first 8 bytes are two entries of one bucket, told apart by the key in ``objects``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import lmdb

from objstore.batch import Batch, Prepared, checksum
from objstore.compression import decompress
from objstore.errors import Conflict, NotFound, RefMoved, StorageError, UsageError
from objstore.lock import writer_lock
from objstore.refs import ANY, ReflogEntry, derived_resolver, is_local
from objstore.snapshot import Stored

if TYPE_CHECKING:
    from types import TracebackType

FORMAT = 1
_BUCKET = 2
_ENTRY_KEY = 6
_HEADER = 38
_LOCAL_REF = b"ref/"
#: Map sizes to try, largest first: address space is reserved, not memory or disk.
_MAP_SIZES = (1 << 40, 1 << 36, 1 << 32, 1 << 30)
_MAX_READERS = 512

_open_paths: set[str] = set()


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")


class LmdbSnapshot:
    """A read transaction on a database; see ``snapshot.Snapshot``."""

    def __init__(self, database: Database, txn: Any) -> None:
        self._database = database
        self._txn = txn
        self._ids = txn.cursor(db=database.ids)
        self._objects = database.objects
        self._kinds = _kind_names(txn, database)

    def close(self) -> None:
        self._ids.close()

    def _stored(self, key: bytes) -> bytes | None:
        """The raw value of the object, or None."""
        cursor = self._ids
        rest = key[_BUCKET : _BUCKET + _ENTRY_KEY]
        if not cursor.set_range_dup(key[:_BUCKET], rest):
            return None
        get = self._txn.get
        while True:
            entry = cursor.value()
            if entry[:_ENTRY_KEY] != rest:
                return None
            value: bytes | None = get(b"\0\0\0" + entry[_ENTRY_KEY:], db=self._objects)
            if value is not None and value[:32] == key:
                return value
            if not cursor.next_dup():
                return None

    def get(self, key: bytes) -> Stored | None:
        value = self._stored(key)
        return None if value is None else self._unpack(value, key)

    def _unpack(self, value: bytes, key: bytes) -> Stored:
        kind, codec, payload = value[32], value[33], value[_HEADER:]
        if checksum(kind, codec, payload) != int.from_bytes(value[34:_HEADER], "big") or kind >= len(
            self._kinds
        ):
            raise StorageError(
                f"{key.hex()}: damaged: stored bytes do not match their checksum", hint="run: objstore verify"
            )
        return Stored(self._kinds[kind], decompress(codec, payload))

    def kind(self, key: bytes) -> str | None:
        value = self._stored(key)
        if value is None:
            return None
        return self._kinds[value[32]] if value[32] < len(self._kinds) else "?"

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and self._stored(key) is not None

    def keys_from(self, prefix: bytes, odd_digit: int | None) -> Iterator[bytes]:
        cursor = self._txn.cursor(db=self._database.ids)
        rest = prefix[_BUCKET : _BUCKET + _ENTRY_KEY]
        found = cursor.set_range_dup(prefix[:_BUCKET], rest) if rest else cursor.set_key(prefix[:_BUCKET])
        while found:
            entry = cursor.value()
            if not entry.startswith(rest):
                return
            value = self._txn.get(b"\0\0\0" + entry[_ENTRY_KEY:], db=self._objects)
            key = value[:32] if value is not None else b""
            if key.startswith(prefix) and (odd_digit is None or key[len(prefix)] >> 4 == odd_digit):
                yield key
            found = cursor.next_dup()

    def count(self) -> int:
        return int(self._txn.stat(db=self._objects)["entries"])

    def objects(self) -> Iterator[tuple[bytes, Stored]]:
        for _, value in self._txn.cursor(db=self._objects):
            yield value[:32], self._unpack(value, value[:32])

    def arrivals(self, first: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Raw values of arrival numbers ``first`` up to but not ``stop``."""
        cursor = self._txn.cursor(db=self._objects)
        if cursor.set_range(_number(first)):
            for number, value in cursor:
                arrival = int.from_bytes(number, "big")
                if arrival >= stop:
                    return
                yield arrival, value

    def next_arrival(self) -> int:
        """The arrival number that the next object gets."""
        return int.from_bytes(self._txn.get(b"next", db=self._database.meta), "big")

    def index_entries(self) -> Iterator[tuple[bytes, int]]:
        """All of ``ids``: the first 8 bytes of a key, and an arrival number."""
        for bucket, entry in self._txn.cursor(db=self._database.ids):
            yield bucket + entry[:_ENTRY_KEY], int.from_bytes(entry[_ENTRY_KEY:], "big")

    def is_indexed(self, key: bytes, arrival: int) -> bool:
        """Whether ``ids`` leads from ``key`` to ``arrival``."""
        entry = key[_BUCKET : _BUCKET + _ENTRY_KEY] + arrival.to_bytes(5, "big")
        return bool(self._ids.set_key_dup(key[:_BUCKET], entry))

    def index_count(self) -> int:
        """How many entries ``ids`` has."""
        return int(self._txn.stat(db=self._database.ids)["entries"])

    def kind_names(self) -> list[str]:
        """The names of kinds by number."""
        return list(self._kinds)

    def ref(self, name: str) -> bytes | None:
        encoded = name.encode("utf-8", "surrogatepass")
        if not encoded or len(encoded) > 511 - len(_LOCAL_REF):
            return None
        if is_local(name):
            found: bytes | None = self._txn.get(_LOCAL_REF + encoded, db=self._database.local)
        else:
            found = self._txn.get(encoded, db=self._database.refs)
        return found

    def refs(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        for name, key in self._items(self._database.refs, prefix.encode("utf-8", "surrogatepass")):
            yield name.decode("utf-8"), key

    def reflog(self, name: str) -> Iterator[ReflogEntry]:
        import json

        prefix = name.encode("utf-8", "surrogatepass") + b"\0"
        for key, value in self._items(self._database.reflog, prefix):
            entry = json.loads(value)
            number = int.from_bytes(key[len(prefix) :], "big")
            yield ReflogEntry(
                name, number, entry["old"], entry["new"], entry["time"], entry["who"], entry["why"]
            )

    def local(self, key: bytes) -> bytes | None:
        found: bytes | None = self._txn.get(key, db=self._database.local)
        return found

    def local_items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._items(self._database.local, prefix)

    def derived(self, key: bytes) -> bytes | None:
        found: bytes | None = self._txn.get(key, db=self._database.derived)
        return found

    def derived_items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._items(self._database.derived, prefix)

    def _items(self, db: Any, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        cursor = self._txn.cursor(db=db)
        if cursor.set_range(prefix) if prefix else cursor.first():
            for key, value in cursor:
                if not key.startswith(prefix):
                    return
                yield key, value


class Database:
    """An open LMDB environment. One per path and process; close it, or use it as a context manager."""

    def __init__(
        self, path: str, env: Any, *, read_only: bool, lock_timeout: float, on_wait: Callable[[], None] | None
    ) -> None:
        self.path = path
        self.read_only = read_only
        self.lock_timeout = lock_timeout
        self.on_wait = on_wait
        self._env = env
        names = (b"objects", b"ids", b"refs", b"reflog", b"meta", b"local", b"derived")
        try:
            opened = {
                n: env.open_db(n, dupsort=n == b"ids", dupfixed=n == b"ids", create=not read_only)
                for n in names
            }
        except (lmdb.NotFoundError, lmdb.ReadonlyError):
            raise NotFound(f"{path}: not an objstore store", hint="make one with: objstore init") from None
        self.objects, self.ids, self.refs, self.reflog, self.meta, self.local, self.derived = opened.values()

    @classmethod
    def create(cls, path: str, algorithm: str, *, map_size: int | None = None) -> str:
        """Make a new store in the folder ``path`` (made if absent); its store id. An existing store is refused."""
        if os.path.exists(os.path.join(path, "data.mdb")):
            raise Conflict(f"{path}: is a store already")
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{path}: cannot be made: {error.strerror}") from None
        store = os.urandom(8).hex()
        database = cls.open(path, map_size=map_size, _fresh=True)
        try:
            with database._writing() as txn:
                for name, value in (
                    (b"format", str(FORMAT).encode()),
                    (b"hash", algorithm.encode()),
                    (b"store", store.encode()),
                    (b"next", _number(1)),
                    (b"reflog", _number(1)),
                    (b"kinds", b""),
                ):
                    txn.put(name, value, db=database.meta)
        finally:
            database.close()
        return store

    @classmethod
    def open(
        cls,
        path: str,
        *,
        read_only: bool = False,
        map_size: int | None = None,
        lock_timeout: float = 60.0,
        on_wait: Callable[[], None] | None = None,
        _fresh: bool = False,
    ) -> Database:
        """Open the store in the folder ``path``.

        Raises ``NotFound`` where there is none, ``StorageError`` for a store of a newer format or one that cannot be
        opened. ``map_size`` (bytes) overrides the map's address space, for tests and tight systems.
        """
        real = os.path.realpath(path)
        if not _fresh and not os.path.isfile(os.path.join(real, "data.mdb")):
            raise NotFound(f"{path}: no store here", hint="make one with: objstore init")
        if real in _open_paths:
            raise UsageError(f"{path}: already open in this process")
        env = _open_environment(real, read_only, map_size)
        try:
            database = cls(real, env, read_only=read_only, lock_timeout=lock_timeout, on_wait=on_wait)
            if not _fresh:
                database._check_format(path)
        except BaseException:
            env.close()
            raise
        _open_paths.add(real)
        if not read_only:
            env.reader_check()
        return database

    def _check_format(self, shown: str) -> None:
        with self._env.begin(db=self.meta) as txn:
            found = txn.get(b"format")
        if found is None:
            raise NotFound(f"{shown}: not an objstore store", hint="make one with: objstore init")
        if not found.isdigit() or int(found) > FORMAT:
            raise StorageError(
                f"{shown}: store format {found.decode('ascii', 'replace')[:20]}: this program knows up to {FORMAT}",
                hint="the store was written by a newer objstore: upgrade",
            )

    def close(self) -> None:
        """Close the environment; snapshots of it must be finished."""
        self._env.close()
        _open_paths.discard(self.path)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def meta_text(self, name: str) -> str:
        """A value of ``meta`` as text: ``format``, ``hash``, ``store``."""
        with self._begin() as txn:
            return (txn.get(name.encode(), db=self.meta) or b"").decode()

    def sizes(self) -> dict[str, int]:
        """Bytes on disk and counts, for ``count-objects``."""
        status = os.stat(os.path.join(self.path, "data.mdb"))
        blocks = getattr(status, "st_blocks", None)
        return {"size_disk": blocks * 512 if blocks is not None else status.st_size}

    def _begin(self, *, write: bool = False) -> Any:
        try:
            return self._env.begin(write=write)
        except lmdb.MapResizedError:
            self._env.set_mapsize(0)
            return self._env.begin(write=write)
        except lmdb.ReadersFullError:
            self._env.reader_check()
            return self._env.begin(write=write)

    @contextmanager
    def snapshot(self) -> Iterator[LmdbSnapshot]:
        """One unchanging view; keep it short, since it keeps old pages alive."""
        with self._begin() as txn:
            snapshot = LmdbSnapshot(self, txn)
            try:
                yield snapshot
            finally:
                snapshot.close()

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        if self.read_only:
            raise StorageError(f"{self.path}: opened for reading only")
        with writer_lock(os.path.join(self.path, "write.lock"), self.lock_timeout, self.on_wait):
            try:
                with self._begin(write=True) as txn:
                    yield txn
            except lmdb.DiskError as error:
                raise StorageError(
                    f"{self.path}: cannot be written: {error}", hint="is the disk full?"
                ) from None

    def commit(self, batch: Batch, *, who: str, now: Callable[[], str]) -> int:
        """Write a batch in one durable transaction; how many of its objects were new.

        Raises ``RefMoved`` when a compare-and-swap lost, ``NotFound`` when a ref would name an absent object,
        ``Conflict`` when the lock was not to be had, ``StorageError`` when the disk refuses: nothing is written then.
        """
        objects = batch.prepared()
        while True:
            try:
                with self._writing() as txn:
                    added = _append(txn, self, objects)
                    _move_refs(txn, self, batch, who, now)
                    for db, values in ((self.local, batch.local), (self.derived, batch.derived)):
                        for key, value in values.items():
                            if value is None:
                                txn.delete(key, db=db)
                            else:
                                txn.put(key, value, db=db)
                return added
            except lmdb.MapFullError:
                self._grow()

    def _grow(self) -> None:
        """Double the map; only systems that could not reserve a large one ever come here."""
        size = self._env.info()["map_size"]
        try:
            self._env.set_mapsize(size * 2)
        except (lmdb.Error, MemoryError, OverflowError) as error:
            raise StorageError(
                f"{self.path}: the database map is full and cannot grow beyond {size} bytes: {error}"
            ) from None


def _open_environment(path: str, read_only: bool, map_size: int | None) -> Any:
    failure: Exception | None = None
    for size in (map_size,) if map_size is not None else _MAP_SIZES:
        for locking in (True, False) if read_only else (True,):
            try:
                return lmdb.open(
                    path,
                    map_size=size,
                    max_dbs=16,
                    max_readers=_MAX_READERS,
                    readonly=read_only,
                    lock=locking,
                    mode=0o600,
                )
            except MemoryError as error:
                failure = error
            except lmdb.InvalidError as error:
                raise StorageError(f"{path}: not a database, or damaged: {error}") from None
            except lmdb.Error as error:
                failure = error
                if "Cannot allocate memory" not in str(error) and not read_only:
                    raise StorageError(f"{path}: cannot be opened: {error}") from None
    raise StorageError(f"{path}: cannot be opened: {failure}")


def _kind_names(txn: Any, database: Database) -> list[str]:
    """Names of kinds by number; a number is this store's own and never reused."""
    text: bytes = txn.get(b"kinds", db=database.meta) or b""
    return text.decode().split("\n") if text else []


def _append(txn: Any, database: Database, objects: Sequence[Prepared]) -> int:
    """Write the objects that are not there yet, in the order given."""
    if not objects:
        return 0
    kinds = _kind_names(txn, database)
    numbers = {name: number for number, name in enumerate(kinds)}
    for kind in {one[1]: None for one in objects}:
        if kind not in numbers:
            numbers[kind] = len(kinds)
            kinds.append(kind)
    if len(kinds) > 255:
        raise StorageError("more than 255 kinds of object in one store")
    first = arrival = int.from_bytes(txn.get(b"next", db=database.meta), "big")
    ids = txn.cursor(db=database.ids)
    find, value_of, get, objects_db = ids.set_range_dup, ids.value, txn.get, database.objects
    seen: set[bytes] = set()
    fresh: list[Prepared] = []
    for one in objects:
        key = one[0]
        if key in seen:
            continue
        seen.add(key)
        rest = key[_BUCKET : _BUCKET + _ENTRY_KEY]
        known = False
        if find(key[:_BUCKET], rest):
            entry = value_of()
            while entry[:_ENTRY_KEY] == rest:
                stored = get(b"\0\0\0" + entry[_ENTRY_KEY:], db=objects_db)
                if stored is not None and stored[:32] == key:
                    known = True
                    break
                if not ids.next_dup():
                    break
                entry = value_of()
        if not known:
            fresh.append(one)
    if not fresh:
        return 0
    rows: list[tuple[bytes, bytes]] = []
    entries: list[tuple[bytes, bytes]] = []
    for key, kind, codec, payload in fresh:
        number = numbers[kind]
        head = bytes((number, codec))
        rows.append(
            (
                arrival.to_bytes(8, "big"),
                key + head + checksum(number, codec, payload).to_bytes(4, "big") + payload,
            )
        )
        entries.append((key[:_BUCKET], key[_BUCKET : _BUCKET + _ENTRY_KEY] + arrival.to_bytes(5, "big")))
        arrival += 1
    txn.cursor(db=database.objects).putmulti(rows, append=True)
    entries.sort()
    ids.putmulti(entries)
    txn.put(b"next", _number(arrival), db=database.meta)
    txn.put(b"kinds", "\n".join(kinds).encode(), db=database.meta)
    return arrival - first


def _move_refs(txn: Any, database: Database, batch: Batch, who: str, now: Callable[[], str]) -> None:
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
            db, key = (database.local, _LOCAL_REF + name) if local else (database.refs, name)
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
                name + b"\0" + _number(counter),
                json.dumps(entry, sort_keys=True).encode(),
                db=database.reflog,
            )
            counter += 1
    finally:
        snapshot.close()
    txn.put(b"reflog", _number(counter), db=database.meta)
