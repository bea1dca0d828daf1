"""The public face of the library: open or make a store, put and get objects, move refs, walk chains, fold, verify.

>>> with Store.open(path) as store:
...     with store.snapshot() as view:
...         obj = get_object(view, "session/.../head")

Ids are 64 lower-case hex digits everywhere in this module; objects are plain JSON values or kind Structs. All errors
are children of ``errors.ObjstoreError``.
"""

from __future__ import annotations

import os

from objstore.database import Database
from objstore.errors import CheckFailed, NotFound, UsageError
from objstore.snapshot import Snapshot, Stored, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Any

    from objstore.batch import Batch
    from objstore.bulk import BulkWriter
    from objstore.fold import Fold
    from objstore.memory import MemoryDatabase
    from objstore.verify import Report


def utc_now() -> str:
    """The clock of reflogs and import runs: RFC 3339 UTC with seconds."""
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Store:
    """A store on disk.

    ``who`` names the writer in reflogs; ``now`` is the clock used there (injected, so that tests and rebuilds repeat).
    """

    def __init__(
        self, database: Database | MemoryDatabase, *, who: str = "objstore", now: Callable[[], str] = utc_now
    ) -> None:
        self.database = database
        self.who = who
        self.now = now
        self.algorithm = database.meta_text("hash")
        self.store_id = database.meta_text("store")

    @classmethod
    def init(cls, path: str | os.PathLike[str], *, algorithm: str = "sha256", **options: Any) -> Store:
        """Make a store in the folder ``path`` and open it; ``algorithm`` is ``sha256`` or ``blake3`` (optional extra).

        Raises ``Conflict`` where one exists, ``StorageError`` where the folder cannot be made.
        """
        from objstore.digest import hasher

        hasher(algorithm)
        Database.create(os.fspath(path), algorithm, map_size=options.get("map_size"))
        return cls.open(path, **options)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        map_size: int | None = None,
        lock_timeout: float = 60.0,
        on_wait: Callable[[], None] | None = None,
        who: str = "objstore",
        now: Callable[[], str] = utc_now,
    ) -> Store:
        """Open the store in the folder ``path``; see ``Database.open`` for options and errors."""
        database = Database.open(
            os.fspath(path),
            read_only=read_only,
            map_size=map_size,
            lock_timeout=lock_timeout,
            on_wait=on_wait,
        )
        return cls(database, who=who, now=now)

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- reading ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """One unchanging view of the store, for any number of reads."""
        return self.database.snapshot()

    def get(self, name: str) -> Any:
        """The JSON value of the object that an id (abbreviated or not) or ref names. Raises ``NotFound``."""
        from objstore.canonical import decode

        return decode(self.get_bytes(name))

    def get_bytes(self, name: str) -> bytes:
        """The canonical bytes of the object that an id or ref names."""
        with self.snapshot() as view:
            return read(view, resolve(view, name)).data

    def ref(self, name: str) -> str | None:
        """Where a ref stands, or None."""
        with self.snapshot() as view:
            key = view.ref(name)
        return key.hex() if key is not None else None

    def refs(self, prefix: str = "") -> dict[str, str]:
        """Ordinary refs whose names begin with ``prefix``, and where they stand."""
        with self.snapshot() as view:
            return {name: key.hex() for name, key in view.refs(prefix)}

    # -- writing ------------------------------------------------------------------------------------------------------

    def batch(self) -> Batch:
        """An empty batch for this store's hash."""
        from objstore.batch import Batch

        return Batch(self.algorithm)

    def commit(self, batch: Batch) -> int:
        """Write a batch in one durable transaction; how many objects were new. See ``Database.commit`` for errors."""
        return self.database.commit(batch, who=self.who, now=self.now) if batch else 0

    def put(self, value: Any) -> str:
        """Store one JSON value as an object and return its id. Raises ``CheckFailed`` for what may not be an object."""
        from objstore.objects import check_object

        kind, data = check_object(value)
        batch = self.batch()
        found = batch.put(kind, data)
        self.commit(batch)
        return found

    def update_ref(self, name: str, new: str | None, old: str | None, why: str = "") -> None:
        """Move one ref by compare-and-swap: ``old`` is where it must stand (None: nowhere); ``new`` None deletes it."""
        batch = self.batch()
        batch.move_ref(name, new, old, why)
        self.commit(batch)

    def writer(self) -> BulkWriter:
        """A writer for many objects, in durable transactions of bounded size."""
        from objstore.bulk import BulkWriter

        return BulkWriter(self)

    # -- chains ------------------------------------------------------------------------------------------------------

    def chain(self, name: str) -> list[str]:
        """Ids of the entries of the chain that ``name`` (ref or id) is the head of, oldest first."""
        from objstore.chain import entries

        with self.snapshot() as view:
            return [key.hex() for key, _ in entries(view, resolve(view, name))]

    def fold(self, *names: str, at: int | None = None) -> Fold:
        """The joined fold of the chains that ``names`` are heads of; ``at`` stops after that many rounds of each."""
        from objstore.fold import fold_chains

        with self.snapshot() as view:
            return fold_chains(view, [resolve(view, n) for n in names], at=at)

    def verify(
        self, *, processes: int = 0, since: int = 1, on_progress: Callable[[int], None] | None = None
    ) -> Report:
        """Check everything that is stored; see ``verify.verify``."""
        from objstore.verify import verify

        if not isinstance(self.database, Database):
            raise UsageError("a store in memory has nothing to verify")
        return verify(self.database, processes=processes, since=since, on_progress=on_progress)


def read(view: Snapshot, key: bytes) -> Stored:
    """The object, or ``NotFound``."""
    found = view.get(key)
    if found is None:
        raise NotFound(f"{key.hex()}: no such object")
    return found


def load(view: Snapshot, key: bytes, *kinds: str) -> Any:
    """The Struct of the object; ``CheckFailed`` when it is of none of the ``kinds`` given."""
    from objstore.kinds import decode

    found = read(view, key)
    if kinds and found.kind not in kinds:
        raise CheckFailed(f"{key.hex()}: is a {found.kind}, not a {' or '.join(kinds)}")
    return decode(found.kind, found.data)


def load_many(view: Snapshot, keys: Sequence[bytes], *kinds: str) -> list[Any]:
    """``load`` of each, in order; quicker than one by one."""
    from objstore.kinds import decode

    objects: list[Any] = []
    for key, found in zip(keys, view.get_many(keys), strict=True):
        if found is None:
            raise NotFound(f"{key.hex()}: no such object")
        if kinds and found.kind not in kinds:
            raise CheckFailed(f"{key.hex()}: is a {found.kind}, not a {' or '.join(kinds)}")
        objects.append(decode(found.kind, found.data))
    return objects
