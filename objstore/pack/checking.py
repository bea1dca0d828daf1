"""Holding the objects of a pack to their rules before any of them is stored: kind, form, order, references."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, groupby, islice
from operator import itemgetter, lt
from typing import Any

from objstore import kinds
from objstore.closure import CONTENT_KINDS
from objstore.digest import is_object_id
from objstore.errors import CheckFailed, ObjstoreError
from objstore.objects import check_stored, keys_of
from objstore.pack.format import PackRefused
from objstore.pack.reader import Entry
from objstore.snapshot import Snapshot

#: Entries of chains that are held decoded, since the next ones follow them.
_RECENT = 4096


class PackCheck:
    """The check of one pack, group by group. It holds ids and heights of what went by, and no object.

    ``presumed`` are the ids that the pack may need beside its own; ``take_content`` whether objects that hold what was
    said may come by themselves, which no object needs. ``links`` are the keys of the entries of chains, for the check
    of each against the one before.
    """

    def __init__(self, presumed: Iterable[bytes], *, take_content: bool) -> None:
        self._presumed = frozenset(presumed)
        self._take_content = take_content
        self._heights: dict[bytes, int] = {}
        self._last: tuple[int, str, bytes] = (0, "", b"")
        self._unclaimed: set[bytes] = set()
        self.links: list[bytes] = []

    def __contains__(self, key: object) -> bool:
        """Whether the object went by."""
        return key in self._heights

    def check(self, group: list[Entry]) -> None:
        """Check the entries that come next; raises ``PackRefused`` that names the object at fault."""
        for kind_name, run in groupby(group, itemgetter(0)):
            entries = list(run)
            keys = [key for _, key, _ in entries]
            kind = kinds.lookup(kind_name)
            objects = _objects(kind_name, entries)
            if kind.names is not kinds.nothing:
                _joined(kind_name, keys, [list(kind.names(obj)) for obj in objects])
            if kind.needs is kinds.nothing:
                self._take_leaves(kind_name, keys)
            else:
                needs = _keys_named(kind_name, keys, [list(kind.needs(obj)) for obj in objects])
                for key, needed in zip(keys, needs, strict=True):
                    height = self._height(key, kind_name, needed)
                    self._follow(height, kind_name, key)
                    self._heights[key] = height
                if kind.previous is not None:
                    self.links += keys
            if kind_name in CONTENT_KINDS and not self._take_content:
                self._unclaimed.update(keys)

    def _take_leaves(self, kind_name: str, keys: list[bytes]) -> None:
        """Take entries that need nothing."""
        ordered = (0, kind_name, keys[0]) > self._last and all(map(lt, keys, islice(keys, 1, None)))
        if not ordered:
            for key in keys:
                self._follow(0, kind_name, key)
                self._heights[key] = 0
        self._heights.update(dict.fromkeys(keys, 0))
        self._last = (0, kind_name, keys[-1])

    def _follow(self, height: int, kind_name: str, key: bytes) -> None:
        """Check that an entry stands where it must."""
        place = (height, kind_name, key)
        if place <= self._last:
            again = "comes twice" if key in self._heights else "is out of order"
            raise PackRefused(again, object=key.hex())
        self._last = place

    def _height(self, key: bytes, kind_name: str, needs: list[bytes]) -> int:
        below = [height for height in map(self._heights.get, needs) if height is not None]
        if len(below) < len(needs):
            for need in needs:
                if need not in self._heights and need not in self._presumed:
                    raise PackRefused(
                        f"a {kind_name} needs {need.hex()}, which is neither in the pack before it nor presumed",
                        object=key.hex(),
                    )
        if self._unclaimed:
            self._unclaimed.difference_update(needs)
        return 1 + max(below, default=-1)

    def finish(self) -> None:
        """Raise ``PackRefused`` where content came to a receiver that takes none."""
        if self._unclaimed and not self._take_content:
            raise PackRefused(
                "is content, and this store keeps none",
                object=min(self._unclaimed).hex(),
                hint="to keep it: objstore config content.keep on",
            )


def _keys_named(kind_name: str, owners: list[bytes], ids: list[list[str]]) -> list[list[bytes]]:
    """The keys that the ids in each of the objects ``owners`` stand for."""
    raw = _joined(kind_name, owners, ids)
    keys = iter(range(0, len(raw), 32))
    return [[raw[at : at + 32] for at in islice(keys, len(texts))] for texts in ids]


def _joined(kind_name: str, owners: list[bytes], ids: list[list[str]]) -> bytes:
    """All keys that the ids stand for, run together. Raises ``PackRefused`` where one is none."""
    raw = keys_of(list(chain.from_iterable(ids)))
    if raw is not None:
        return raw
    owner, wrong = next(
        (owner, text)
        for owner, texts in zip(owners, ids, strict=True)
        for text in texts
        if not is_object_id(text)
    )
    raise PackRefused(f"{kind_name}: {wrong[:64]!r} is not an object id", object=owner.hex())


def _objects(name: str, entries: list[Entry]) -> list[Any]:
    """The Structs of entries of one kind."""
    found = kinds.decode_all(name, [data for _, _, data in entries])
    return [_object(name, key, data) for _, key, data in entries] if found is None else found


def _object(name: str, key: bytes, data: bytes) -> Any:
    try:
        return check_stored(name, data)
    except ObjstoreError as error:
        raise PackRefused(error.message, object=key.hex()) from None


def check_links(view: Snapshot, links: Iterable[bytes]) -> None:
    """Check every entry of a chain in ``links`` against the ones before it, all of which ``view`` has. Raises
    ``PackRefused`` that names the entry."""
    recent: dict[bytes, tuple[kinds.Kind, Any]] = {}

    def read(key: bytes) -> tuple[kinds.Kind, Any]:
        known = recent.get(key)
        if known is None:
            found = view.get(key)
            if found is None:
                raise PackRefused("an entry of a chain names it, and it is not here", object=key.hex())
            known = (kinds.lookup(found.kind), kinds.decode(found.kind, found.data))
            recent[key] = known
            if len(recent) > _RECENT:
                del recent[next(iter(recent))]
        return known

    for key in links:
        kind, entry = read(key)
        assert kind.previous is not None
        before: list[Any] = []
        for text in kind.previous(entry):
            other, previous = read(bytes.fromhex(text))
            if other.previous is None:
                raise PackRefused(f"follows {text}, which is not the entry of a chain", object=key.hex())
            before.append(previous)
        try:
            if kind.check_link is not None:
                kind.check_link(entry, before)
        except CheckFailed as error:
            raise PackRefused(error.message, object=key.hex()) from None
