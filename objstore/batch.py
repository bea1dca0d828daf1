"""What one transaction brings: objects, ref moves, and values of this machine, gathered before any lock is taken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from objstore.compression import CURRENT_CODEC, PLAIN, ZSTD, compress_many
from objstore.digest import hasher
from objstore.refs import RefMove, check_name

#: Kinds that hold people's content: compressed without the dictionary.
CONTENT_KINDS = frozenset({"text", "blob"})


class Prepared(NamedTuple):
    """An object ready to be written: hashed and compressed."""

    key: bytes
    kind: str
    codec: int
    payload: bytes


def prepare(objects: Iterable[tuple[bytes, str, bytes]]) -> list[Prepared]:
    """Compress ``(key, kind, canonical bytes)``, each group in one call."""
    plain: list[Prepared] = []
    groups: dict[int, tuple[list[tuple[bytes, str]], list[bytes]]] = {}
    for key, kind, data in objects:
        if len(data) < 24:
            plain.append(Prepared(key, kind, PLAIN, data))
            continue
        heads, values = groups.setdefault(ZSTD if kind in CONTENT_KINDS else CURRENT_CODEC, ([], []))
        heads.append((key, kind))
        values.append(data)
    for codec, (heads, values) in groups.items():
        plain += [
            Prepared(key, kind, used, payload)
            for (key, kind), (used, payload) in zip(heads, compress_many(values, codec), strict=True)
        ]
    return plain


class Batch:
    """Objects, ref moves and local values that are to become visible together.

    Nothing is written before ``Store.commit``; a batch that is thrown away leaves no trace.
    """

    def __init__(self, algorithm: str = "sha256") -> None:
        self._hash = hasher(algorithm)
        self._fresh: dict[bytes, tuple[str, bytes]] = {}
        self._prepared: list[Prepared] = []
        self.moves: list[RefMove] = []
        self.local: dict[bytes, bytes | None] = {}
        self.derived: dict[bytes, bytes | None] = {}

    def put(self, kind: str, data: bytes) -> str:
        """Add an object of ``kind`` with these canonical bytes (the caller vouches for both); its id in hex."""
        key = self._hash(data)
        self._fresh[key] = (kind, data)
        return key.hex()

    def add_prepared(self, objects: Iterable[Prepared]) -> None:
        """Add objects that were hashed and compressed elsewhere (by a worker process)."""
        self._prepared += objects

    def move_ref(self, name: str, new: str | None, old: str | None, why: str) -> None:
        """Move a ref in the same transaction; see ``RefMove``."""
        self.moves.append(RefMove(check_name(name), new, old, why))

    def set_local(self, key: bytes, value: bytes | None) -> None:
        """Set (or, with None, remove) a value of this machine only."""
        self.local[key] = value

    def set_derived(self, key: bytes, value: bytes | None) -> None:
        """Set (or, with None, remove) a value of the rebuildable indexes."""
        self.derived[key] = value

    def get(self, key: bytes) -> tuple[str, bytes] | None:
        """An object added by ``put`` and not yet committed: its kind and bytes."""
        return self._fresh.get(key)

    def prepared(self) -> list[Prepared]:
        """All objects, compressed; fresh ones are compressed now."""
        if self._fresh:
            self._prepared += prepare((key, kind, data) for key, (kind, data) in self._fresh.items())
            self._fresh.clear()
        return self._prepared

    def __len__(self) -> int:
        return len(self._fresh) + len(self._prepared)

    def __bool__(self) -> bool:
        return bool(self._fresh or self._prepared or self.moves or self.local or self.derived)
