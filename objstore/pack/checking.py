"""Holding the objects of a pack to their rules before any of them is stored: kind, form, order, references."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from objstore import kinds
from objstore.closure import CONTENT_KINDS
from objstore.errors import CheckFailed, ObjstoreError
from objstore.objects import check_stored
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
        for (kind_name, key, _), obj in zip(group, _objects(group), strict=True):
            kind = kinds.lookup(kind_name)
            height = 0
            if kind.needs is not kinds.nothing:
                height = self._height(key, kind_name, kind.needs(obj))
                if kind.previous is not None:
                    self.links.append(key)
            place = (height, kind_name, key)
            if place <= self._last:
                again = "comes twice" if key in self._heights else "is out of order"
                raise PackRefused(again, object=key.hex())
            self._last = place
            self._heights[key] = height
            if kind_name in CONTENT_KINDS:
                self._unclaimed.add(key)

    def _height(self, key: bytes, kind_name: str, needs: Iterable[str]) -> int:
        height = 0
        for text in needs:
            need = bytes.fromhex(text)
            below = self._heights.get(need)
            if below is not None:
                height = max(height, below + 1)
                self._unclaimed.discard(need)
            elif need not in self._presumed:
                raise PackRefused(
                    f"a {kind_name} needs {text}, which is neither in the pack before it nor presumed",
                    object=key.hex(),
                )
        return height

    def finish(self) -> None:
        """Raise ``PackRefused`` where content came to a receiver that takes none."""
        if self._unclaimed and not self._take_content:
            raise PackRefused(
                "is content, and this store keeps none",
                object=min(self._unclaimed).hex(),
                hint="to keep it: objstore config content.keep on",
            )


def _objects(group: list[Entry]) -> list[Any]:
    """The Structs of the entries, in their order; None for objects of kinds that need nothing, which were checked."""
    by_kind: dict[str, list[int]] = {}
    for at, (name, _, _) in enumerate(group):
        by_kind.setdefault(name, []).append(at)
    objects: list[Any] = [None] * len(group)
    for name, places in by_kind.items():
        found = kinds.decode_all(name, [group[at][2] for at in places])
        if found is None:
            found = [_object(name, *group[at][1:]) for at in places]
        for at, obj in zip(places, found, strict=True):
            objects[at] = obj
    return objects


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
