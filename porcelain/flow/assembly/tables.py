"""Tables of a standing: values by name, read where they are asked for, changed on trial, kept in small buckets.

A table that was loaded reads a bucket when a name in it is first asked for, so that the cost of going on depends on
the names that new rows touch and not on how many there are. Changes wait in a layer of their own until ``commit``:
``old`` still answers from below it, and ``rollback`` forgets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Generic, TypeVar
from zlib import crc32

import msgspec

from objstore.errors import CheckFailed
from porcelain.flow.chain.sealing import sealed, unsealed

V = TypeVar("V")
#: Entries that a bucket should hold, and at how many on average the table is cut anew.
FULL_BUCKET, OVERFULL_BUCKET = 64, 256


class DamagedStanding(CheckFailed):
    """What was saved cannot be read: it is made again from the landed rows."""


def decoded(value: bytes | None, decoder: msgspec.msgpack.Decoder[V]) -> V:
    """The sealed value that is saved under a key; ``DamagedStanding`` for anything else."""
    data = unsealed(value)
    if data is None:
        raise DamagedStanding("a part of the saved standing is missing or damaged")
    try:
        return decoder.decode(data)
    except msgspec.DecodeError:
        raise DamagedStanding("a part of the saved standing does not read") from None


class Table(Generic[V]):
    """Values of one Struct type by name. A value is never changed in place: ``edit`` gives a copy to change."""

    def __init__(
        self,
        kind: type[V],
        *,
        buckets: int = 0,
        count: int = 0,
        load: Callable[[int], bytes | None] | None = None,
    ) -> None:
        self.count = count
        self.buckets = buckets
        self._kind = kind
        self._load = load
        self._decoder: msgspec.msgpack.Decoder[dict[str, V]] = msgspec.msgpack.Decoder(dict[str, kind])  # type: ignore[valid-type]
        self._loaded: dict[int, dict[str, V]] = {}
        self._values: dict[str, V] = {}
        self._layer: dict[str, V] = {}
        self._dirty: set[int] = set()

    def old(self, name: str) -> V | None:
        """The value as of the last ``commit``."""
        if self._load is None:
            return self._values.get(name)
        return self._bucket(crc32(name.encode("utf-8", "surrogatepass")) % self.buckets).get(name)

    def get(self, name: str) -> V | None:
        """The value as it is now."""
        found = self._layer.get(name)
        return found if found is not None else self.old(name)

    def put(self, name: str, value: V) -> V:
        """Set a value."""
        self._layer[name] = value
        return value

    def edit(self, name: str, make: Callable[[], V]) -> V:
        """The value, to be changed: a copy, or what ``make`` gives where there is none."""
        found = self._layer.get(name)
        if found is None:
            before = self.old(name)
            found = self._layer[name] = make() if before is None else copy(before)
        return found

    @property
    def changed(self) -> dict[str, V]:
        """What was set since the last ``commit``."""
        return self._layer

    def rollback(self) -> None:
        """Forget what was set since the last ``commit``."""
        self._layer = {}

    def commit(self) -> None:
        """Keep what was set."""
        if self._load is None:
            self._values.update(self._layer)
            self.count = len(self._values)
        else:
            for name, value in self._layer.items():
                number = crc32(name.encode("utf-8", "surrogatepass")) % self.buckets
                bucket = self._bucket(number)
                self.count += name not in bucket
                bucket[name] = value
                self._dirty.add(number)
        self._layer = {}

    def saved(self) -> Iterator[tuple[int, bytes]]:
        """The buckets that must be written, by number; all of them when the table was made or cut anew."""
        if self._load is not None and self.count <= self.buckets * OVERFULL_BUCKET:
            for number in sorted(self._dirty):
                yield number, sealed(msgspec.msgpack.encode(self._loaded[number]))
            return
        for number in range(self.buckets if self._load is not None else 0):
            self._values.update(self._bucket(number))
        self._load, self._loaded = None, {}
        self.buckets = self.count // FULL_BUCKET + 1
        cut: list[dict[str, V]] = [{} for _ in range(self.buckets)]
        for name, value in self._values.items():
            cut[crc32(name.encode("utf-8", "surrogatepass")) % self.buckets][name] = value
        for number, bucket in enumerate(cut):
            yield number, sealed(msgspec.msgpack.encode(bucket))

    def _bucket(self, number: int) -> dict[str, V]:
        found = self._loaded.get(number)
        if found is None:
            assert self._load is not None
            found = self._loaded[number] = decoded(self._load(number), self._decoder)
        return found
