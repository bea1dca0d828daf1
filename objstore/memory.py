"""A store in memory: the same behaviour as the database on disk, in a page of plain Python.

Tests use it as the model that the real one is compared with, and as a fast double.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from objstore.batch import Batch
from objstore.compression import decompress
from objstore.errors import NotFound, RefMoved, UsageError
from objstore.refs import ANY, ReflogEntry, derived_resolver, is_local
from objstore.snapshot import Stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from objstore.snapshot import Kept


class MemorySnapshot:
    """A copy of everything; see ``snapshot.Snapshot``."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._objects = dict(database.objects)
        self._refs = dict(database.refs)
        self._local_refs = dict(database.local_refs)
        self._log = list(database.log)
        self._local = dict(database.local)
        self._derived = dict(database.derived)

    def get(self, key: bytes) -> Stored | None:
        return self._objects.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[Stored | None]:
        return [self._objects.get(key) for key in keys]

    def kept(self, keys: Sequence[bytes]) -> list[Kept | None]:
        return list(self.get_many(keys))

    def unpack(self, kept: Sequence[Kept]) -> list[Stored]:
        return [Stored(kind, data) for kind, data in kept]

    def get_verified(
        self, keys: Sequence[bytes], kind: str, digests: Callable[[list[bytes]], list[bytes]]
    ) -> list[bytes] | None:
        datas = [found.data for found in self.get_many(keys) if found is not None and found.kind == kind]
        return datas if digests(datas) == list(keys) else None

    def kind(self, key: bytes) -> str | None:
        found = self._objects.get(key)
        return None if found is None else found.kind

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def keys_from(self, prefix: bytes, odd_digit: int | None) -> Iterator[bytes]:
        for key in sorted(self._objects):
            if key.startswith(prefix) and (odd_digit is None or key[len(prefix)] >> 4 == odd_digit):
                yield key

    def count(self) -> int:
        return len(self._objects)

    def objects(self) -> Iterator[tuple[bytes, Stored]]:
        yield from self._objects.items()

    def ref(self, name: str) -> bytes | None:
        return (self._local_refs if is_local(name) else self._refs).get(name)

    def refs(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        for name in sorted(self._refs, key=lambda n: n.encode("utf-8", "surrogatepass")):
            if name.startswith(prefix):
                yield name, self._refs[name]

    def reflog(self, name: str) -> Iterator[ReflogEntry]:
        return (entry for entry in self._log if entry.name == name)

    def local(self, key: bytes) -> bytes | None:
        return self._local.get(key)

    def local_items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return ((key, self._local[key]) for key in sorted(self._local) if key.startswith(prefix))

    def derived(self, key: bytes) -> bytes | None:
        return self._derived.get(key)

    def derived_items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return ((key, self._derived[key]) for key in sorted(self._derived) if key.startswith(prefix))


class MemoryDatabase:
    """The twin of ``database.Database``."""

    def __init__(self, algorithm: str = "sha256", store: str = "0" * 16) -> None:
        self._meta = {"format": "1", "hash": algorithm, "store": store}
        self.objects: dict[bytes, Stored] = {}
        self.refs: dict[str, bytes] = {}
        self.local_refs: dict[str, bytes] = {}
        self.log: list[ReflogEntry] = []
        self.local: dict[bytes, bytes] = {}
        self.derived: dict[bytes, bytes] = {}

    def meta_text(self, name: str) -> str:
        return self._meta.get(name, "")

    def close(self) -> None:
        """Nothing to close."""

    @contextmanager
    def snapshot(self) -> Iterator[MemorySnapshot]:
        yield MemorySnapshot(self)

    def commit(self, batch: Batch, *, who: str, now: Callable[[], str]) -> int:
        """As ``Database.commit``."""
        objects = dict(self.objects)
        for key, kind, codec, payload in batch.prepared():
            objects.setdefault(key, Stored(kind, decompress(codec, payload)))
        refs, local_refs, log = dict(self.refs), dict(self.local_refs), list(self.log)
        time = now() if batch.moves else ""
        for move in batch.moves:
            if derived_resolver(move.name) is not None:
                raise UsageError(f"{move.name}: is derived and cannot be set")
            table = local_refs if is_local(move.name) else refs
            found = table.get(move.name)
            current = None if found is None else found.hex()
            if move.old not in (ANY, current):
                raise RefMoved(move.name, move.old, current)
            if move.new is None:
                table.pop(move.name, None)
            elif bytes.fromhex(move.new) not in objects:
                raise NotFound(f"{move.name}: cannot name {move.new}: no such object")
            else:
                table[move.name] = bytes.fromhex(move.new)
            if table is refs and move.new != current:
                log.append(ReflogEntry(move.name, len(log) + 1, current, move.new, time, who, move.why))
        added = len(objects) - len(self.objects)
        self.objects, self.refs, self.local_refs, self.log = objects, refs, local_refs, log
        for mine, values in ((self.local, batch.local), (self.derived, batch.derived)):
            for name, value in values.items():
                if value is None:
                    mine.pop(name, None)
                else:
                    mine[name] = value
        return added
