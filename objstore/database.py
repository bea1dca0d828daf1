"""The LMDB environment under a store: its layout, opening, and reading; ``writing`` commits.

Layout (named databases, keys and values in bytes, numbers big-endian):

=========  ==================================================================================================
objects    arrival number (8) -> key (32), CRC-32 (4), kind number (1), codec (1), payload
ids        one name -> sorted entries: first 4 bytes of a key, arrival number (5)
refs       name -> key (32)
reflog     name, NUL, counter (8) -> JSON ``{"new","old","time","who","why"}``
meta       format, hash, store, next, reflog, kinds
local      values of this machine: never packed
derived    rebuildable indexes
=========  ==================================================================================================

Objects are appended in the order of arrival, so that writing touches few pages and wastes none; ``ids`` finds them by
key. It is one run of fixed-size entries, the densest thing LMDB has; keys that agree in their first 4 bytes are
neighbours there, told apart by the key in ``objects``.
"""

from __future__ import annotations

import os
from zlib import crc32

import lmdb

from objstore.compression import decompress, unpack_all
from objstore.damage import refuse_if_cut
from objstore.errors import Conflict, NotFound, StorageError, UsageError
from objstore.refs import ReflogEntry, is_local
from objstore.snapshot import Stored
from objstore.values import CHECKED, CHECKSUM, CODEC, HEADER, KIND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Any

    from objstore.batch import Batch
    from objstore.snapshot import Kept

FORMAT = 1
#: The one name in ``ids``, and how many bytes of a key stand in its entries.
INDEX = b"k"
ENTRY_KEY = 4
LOCAL_REF = b"ref/"
#: Map sizes to try, largest first: address space is reserved, not memory or disk.
_MAP_SIZES = (1 << 40, 1 << 36, 1 << 32, 1 << 30)
_MAX_READERS = 512

_tuple = tuple.__new__  # what a named tuple is made by, without its call in between

_open_paths: set[str] = set()


def number_key(value: int) -> bytes:
    """A number as a key that sorts as the number does."""
    return value.to_bytes(8, "big")


class LmdbSnapshot:
    """A read transaction on a database; see ``snapshot.Snapshot``."""

    def __init__(self, database: Database, txn: Any) -> None:
        self._database = database
        self._txn = txn
        self._ids = txn.cursor(db=database.ids)
        self._find, self._entry, self._get = self._ids.set_range_dup, self._ids.value, txn.get
        self._objects = database.objects
        self._kinds = kind_names(txn, database)
        #: The same for every number that a byte can be.
        self._names = [*self._kinds, *["?"] * 256][:256]

    def __enter__(self) -> LmdbSnapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._txn.abort()

    def close(self) -> None:
        """Give up the cursor; the transaction is the opener's."""
        self._ids.close()

    def _stored(self, key: bytes) -> bytes | None:
        """The raw value of the object, or None."""
        start = key[:ENTRY_KEY]
        found = self._find(INDEX, start)
        while found:
            entry = self._entry()
            if not entry.startswith(start):
                return None
            value: bytes | None = self._get(b"\0\0\0" + entry[ENTRY_KEY:], None, self._objects)
            if value is not None and value.startswith(key):
                return value
            found = self._ids.next_dup()
        return None

    def get(self, key: bytes) -> Stored | None:
        value = self._stored(key)
        return None if value is None else self._unpack(value)

    def _unpack(self, value: bytes) -> Stored:
        # What ``is_sound`` and ``decompress`` do, in place: every read comes through here.
        if crc32(value[CHECKED:]) != int.from_bytes(value[CHECKSUM:CHECKED], "big"):
            raise StorageError(
                f"{value[:32].hex()}: damaged: stored bytes do not match their checksum",
                hint="run: objstore verify",
            )
        return _tuple(Stored, (self._kinds[value[KIND]], decompress(value[CODEC], value[HEADER:])))

    def get_many(self, keys: Sequence[bytes]) -> list[Stored | None]:
        """``get`` of each, in the order asked. Index, checksums and compression are each gone through in one pass, the
        index in its own order."""
        order = sorted(set(keys))
        here = {key: one for key, one in zip(order, self.kept(order), strict=True) if one is not None}
        found = dict(zip(here, self.unpack(list(here.values())), strict=True))
        return [found.get(key) for key in keys]

    def kept(self, keys: Sequence[bytes]) -> list[Kept | None]:
        find, entry_here, get, objects = self._find, self._entry, self._get, self._objects
        names = self._names
        found: list[Kept | None] = []
        for key in keys:
            # The first entry of the index is nearly always the right one; ``_stored`` looks at its neighbours.
            value = None
            if find(INDEX, key[:ENTRY_KEY]):
                value = get(b"\0\0\0" + entry_here()[ENTRY_KEY:], None, objects)
                if value is None or not value.startswith(key):
                    value = self._stored(key)
            found.append(None if value is None else (names[value[KIND]], value))
        return found

    def unpack(self, kept: Sequence[Kept]) -> list[Stored]:
        values = [value for _, value in kept]
        if not all([crc32(v[CHECKED:]) == int.from_bytes(v[CHECKSUM:CHECKED], "big") for v in values]):
            for value in values:
                self._unpack(value)  # says which
        datas = [value[HEADER:] for value in values]
        codecs = [value[CODEC] for value in values]
        for codec in set(codecs):
            places = [at for at, one in enumerate(codecs) if one == codec]
            if len(places) == len(datas):
                datas = unpack_all(codec, datas)
                break
            for at, data in zip(places, unpack_all(codec, [datas[at] for at in places]), strict=True):
                datas[at] = data
        return [_tuple(Stored, (name, data)) for (name, _), data in zip(kept, datas, strict=True)]

    def get_verified(
        self, keys: Sequence[bytes], kind: str, digests: Callable[[list[bytes]], list[bytes]]
    ) -> list[bytes] | None:
        # Not in the order of the index, as in ``get_many``: then every value would have to be put back in its place.
        values = [value for key in keys if (value := self._stored(key)) is not None]
        if len(values) != len(keys) or kind not in self._kinds:
            return None
        heads = {value[KIND:HEADER] for value in values}
        number = self._kinds.index(kind)
        if any(len(head) != HEADER - KIND or head[0] != number for head in heads):
            return None
        if [crc32(v[CHECKED:]) for v in values] != [
            int.from_bytes(v[CHECKSUM:CHECKED], "big") for v in values
        ]:
            return None
        if len(heads) == 1:
            datas = unpack_all(values[0][CODEC], [value[HEADER:] for value in values])
        else:
            datas = [decompress(value[CODEC], value[HEADER:]) for value in values]
        return datas if digests(datas) == list(keys) else None

    def kind(self, key: bytes) -> str | None:
        value = self._stored(key)
        if value is None:
            return None
        return self._names[value[KIND]]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and self._stored(key) is not None

    def keys_from(self, prefix: bytes, odd_digit: int | None) -> Iterator[bytes]:
        cursor = self._txn.cursor(db=self._database.ids)
        start = prefix[:ENTRY_KEY]
        found = cursor.set_range_dup(INDEX, start)
        while found:
            entry = cursor.value()
            if not entry.startswith(start):
                return
            value = self._txn.get(b"\0\0\0" + entry[ENTRY_KEY:], db=self._objects)
            key = value[:32] if value is not None else b""
            if key.startswith(prefix) and (odd_digit is None or key[len(prefix)] >> 4 == odd_digit):
                yield key
            found = cursor.next_dup()

    def count(self) -> int:
        return int(self._txn.stat(db=self._objects)["entries"])

    def objects(self) -> Iterator[tuple[bytes, Stored]]:
        for _, value in self._txn.cursor(db=self._objects):
            yield value[:32], self._unpack(value)

    def arrivals(self, first: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Raw values of arrival numbers ``first`` up to but not ``stop``."""
        cursor = self._txn.cursor(db=self._objects)
        if cursor.set_range(number_key(first)):
            for number, value in cursor:
                arrival = int.from_bytes(number, "big")
                if arrival >= stop:
                    return
                yield arrival, value

    def next_arrival(self) -> int:
        """The arrival number that the next object gets."""
        return int.from_bytes(self._txn.get(b"next", db=self._database.meta), "big")

    def values(self, first: int, stop: int) -> Iterator[tuple[bytes, bytes]]:
        """Raw values of arrival numbers ``first`` up to but not ``stop``, each after the entry that must lead to it in
        ``ids`` (its last 5 bytes are the arrival number)."""
        cursor = self._txn.cursor(db=self._database.objects)
        end = number_key(stop)
        if cursor.set_range(number_key(first)):
            for number, value in cursor:
                if number >= end:
                    return
                yield value[:ENTRY_KEY] + number[3:], value

    def not_indexed(self, entries: list[bytes]) -> Iterator[bytes]:
        """Those of ``entries``, as ``values`` gives them, that are not in ``ids``; sorts them."""
        find = self._ids.set_key_dup
        entries.sort()  # neighbours in the tree are then looked up one after the other
        for entry in entries:
            if not find(INDEX, entry):
                yield entry

    def index_count(self) -> int:
        """How many entries ``ids`` has."""
        return int(self._txn.stat(db=self._database.ids)["entries"])

    def kind_names(self) -> list[str]:
        """The names of kinds by number."""
        return list(self._kinds)

    def ref(self, name: str) -> bytes | None:
        encoded = name.encode("utf-8", "surrogatepass")
        if not encoded or len(encoded) > 511 - len(LOCAL_REF):
            return None
        if is_local(name):
            found: bytes | None = self._txn.get(LOCAL_REF + encoded, db=self._database.local)
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
        self.env = env
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
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{path}: cannot be made: {error.strerror}") from None
        store = os.urandom(8).hex()
        database = cls.open(path, map_size=map_size, _fresh=True)
        try:
            with database.begin() as txn:
                if txn.get(b"format", db=database.meta) is not None:
                    raise Conflict(f"{path}: is a store already")
            with database.begin(write=True) as txn:
                for name, value in (
                    (b"format", str(FORMAT).encode()),
                    (b"hash", algorithm.encode()),
                    (b"store", store.encode()),
                    (b"next", number_key(1)),
                    (b"reflog", number_key(1)),
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
            refuse_if_cut(real, env)
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
        with self.env.begin(db=self.meta) as txn:
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
        self.env.close()
        _open_paths.discard(self.path)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def meta_text(self, name: str) -> str:
        """A value of ``meta`` as text: ``format``, ``hash``, ``store``."""
        with self.begin() as txn:
            return (txn.get(name.encode(), db=self.meta) or b"").decode()

    def sizes(self) -> dict[str, int]:
        """Bytes on disk and counts, for ``count-objects``."""
        status = os.stat(os.path.join(self.path, "data.mdb"))
        blocks = getattr(status, "st_blocks", None)
        return {"size_disk": blocks * 512 if blocks is not None else status.st_size}

    def begin(self, *, write: bool = False) -> Any:
        """An LMDB transaction, after another process grew the map or died with a snapshot open too."""
        try:
            return self.env.begin(write=write)
        except lmdb.MapResizedError:
            self.env.set_mapsize(0)
            return self.env.begin(write=write)
        except lmdb.ReadersFullError:
            self.env.reader_check()
            return self.env.begin(write=write)

    def snapshot(self) -> LmdbSnapshot:
        """One unchanging view, to be used in a ``with`` statement; keep it short, since it keeps old pages alive."""
        return LmdbSnapshot(self, self.begin())

    def commit(self, batch: Batch, *, who: str, now: Callable[[], str]) -> int:
        """Write a batch in one durable transaction; how many of its objects were new. See ``writing.commit``."""
        from objstore.writing import commit

        return commit(self, batch, who=who, now=now)


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


def kind_names(txn: Any, database: Database) -> list[str]:
    """Names of kinds by number; a number is this store's own and never reused."""
    text: bytes = txn.get(b"kinds", db=database.meta) or b""
    return text.decode().split("\n") if text else []
