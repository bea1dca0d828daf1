"""Writing many objects quickly: compression runs beside hashing, and transactions are large but bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from objstore.batch import Prepared, prepare
from objstore.digest import hasher, hasher_of_many

if TYPE_CHECKING:
    from types import TracebackType

    from objstore.store import Store

#: Objects, or bytes of them, compressed in one call: long enough that the two threads seldom wait for each other.
_GROUP_OBJECTS = 4096
_GROUP_BYTES = 4 * 1024 * 1024
#: A transaction holds at most about this many objects or bytes (compressed). Each rewrites nearly all of ``ids``, so
#: that larger ones are cheaper.
_TRANSACTION_OBJECTS = 64 * 1024
_TRANSACTION_BYTES = 32 * 1024 * 1024


class BulkWriter:
    """Adds objects in durable transactions of bounded size; use it as a context manager, or call ``flush`` at the end.

    Objects of a transaction become visible when it is committed; a process that is killed loses at most the
    uncommitted tail.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hash = hasher(store.algorithm)
        self._hash_all = hasher_of_many(store.algorithm)
        self._group: list[tuple[bytes, str, bytes]] = []
        self._group_bytes = 0
        self._waiting: deque[Future[list[Prepared]]] = deque()
        self._ready: list[Prepared] = []
        self._ready_bytes = 0
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compress")
        self.added = 0

    def put(self, kind: str, data: bytes) -> str:
        """Add an object of ``kind`` with these canonical bytes (the caller vouches for both); its id in hex."""
        key = self._hash(data)
        self._group.append((key, kind, data))
        self._group_bytes += len(data)
        if len(self._group) >= _GROUP_OBJECTS or self._group_bytes >= _GROUP_BYTES:
            self._compress_group()
        return key.hex()

    def put_all(self, objects: Sequence[tuple[str, bytes]]) -> list[str]:
        """``put`` of some objects, at most about as many as fill a group; their ids, in order."""
        datas = [data for _, data in objects]
        keys = self._hash_all(datas)
        self._group += [(key, kind, data) for key, (kind, data) in zip(keys, objects, strict=True)]
        self._group_bytes += sum(map(len, datas))
        if len(self._group) >= _GROUP_OBJECTS or self._group_bytes >= _GROUP_BYTES:
            self._compress_group()
        return [key.hex() for key in keys]

    def _compress_group(self) -> None:
        self._waiting.append(self._pool.submit(prepare, self._group))
        self._group, self._group_bytes = [], 0
        while self._waiting and (len(self._waiting) > 2 or self._waiting[0].done()):
            self._collect(self._waiting.popleft())

    def _collect(self, future: Future[list[Prepared]]) -> None:
        done = future.result()
        self._ready += done
        self._ready_bytes += sum(len(one[3]) for one in done)
        if len(self._ready) >= _TRANSACTION_OBJECTS or self._ready_bytes >= _TRANSACTION_BYTES:
            self._commit()

    def _commit(self) -> None:
        batch = self._store.batch()
        batch.add_prepared(self._ready)
        self._ready, self._ready_bytes = [], 0
        self.added += self._store.commit(batch)

    def flush(self) -> int:
        """Make everything added so far durable; how many objects were new since the writer was made."""
        if self._group:
            self._compress_group()
        while self._waiting:
            self._collect(self._waiting.popleft())
        if self._ready:
            self._commit()
        return self.added

    def __enter__(self) -> BulkWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)
