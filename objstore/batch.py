"""What one transaction brings: objects, ref moves, and values of this machine, gathered before any lock is taken."""

from __future__ import annotations

from collections.abc import Iterable

from objstore.compression import CURRENT_CODEC, PLAIN, ZSTD, compress_many
from objstore.digest import hasher
from objstore.refs import RefMove, check_name

#: Kinds that hold people's content: compressed without the dictionary.
CONTENT_KINDS = frozenset({"text", "blob"})
#: Values of fewer bytes are not worth compressing.
_SMALL = 24


#: An object ready to be written: key, name of the kind, codec, payload.
Prepared = tuple[bytes, str, int, bytes]


def prepare(objects: Iterable[tuple[bytes, str, bytes]]) -> list[Prepared]:
    """Compress ``(key, kind, canonical bytes)``, each group in one call."""
    groups: dict[int, list[tuple[bytes, str, bytes]]] = {}
    for one in objects:
        codec = PLAIN if len(one[2]) < _SMALL else ZSTD if one[1] in CONTENT_KINDS else CURRENT_CODEC
        group = groups.get(codec)
        if group is None:
            group = groups[codec] = []
        group.append(one)
    done: list[Prepared] = []
    for codec, group in groups.items():
        codecs, payloads = compress_many([data for _, _, data in group], codec)
        done += [
            (key, kind, used, payload)
            for (key, kind, _), used, payload in zip(group, codecs, payloads, strict=True)
        ]
    return done


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
