"""What must travel with a ref: all that its object needs, down to what the receiver has.

Objects of content (what was said in conversations) are reached only through objects that name them; they travel on
request. Other objects that are only named travel where they are present.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice
from typing import Any

from msgspec import Struct

from objstore import kinds
from objstore.batch import CONTENT_KINDS as PIECES
from objstore.errors import CheckFailed
from objstore.snapshot import Kept, Snapshot

#: Kinds that hold what was said, or list pieces of it.
CONTENT_KINDS = PIECES | {"chunks"}
#: Refs of the chains that say which content a store keeps.
CONTENT_REFS = "content/"
#: Objects read to learn what the receiver has beside the heads that it names. What lies deeper may be sent again,
#: which costs bytes and harms nothing.
_KNOWN_READS = 1024
#: Objects that are looked at for it, and that are read at a time.
_KNOWN_LOOKS = 32_768
_KNOWN_GROUP = 64
#: Objects that are decoded at a time; refs that are walked at a time, and twice as many where they led to few objects.
_GROUP = 1024
_REFS = 8
_FEW = 4096
#: Bytes of objects, as they are kept, that a selection holds so that they need not be looked up again, and what each
#: costs beside its own.
_HELD_BYTES = 32 * 1024 * 1024
_HELD_EACH = 64


class Selection(Struct, frozen=True, kw_only=True):
    """What goes into a pack: ids in the order of a pack, the names of their kinds, the refs on offer (name and id, by
    name), the ids that the receiver must have, ascending; and whether content was asked for. ``held`` has the first of
    the objects as the store keeps them."""

    content: bool
    held: dict[bytes, Kept] = {}
    kinds: frozenset[str]
    order: list[bytes]
    presumes: list[bytes]
    refs: list[tuple[str, bytes]]


def select(
    view: Snapshot,
    refs: Sequence[tuple[str, bytes]],
    have: Iterable[bytes] = (),
    *,
    content: bool = False,
    most: int | None = None,
) -> Selection:
    """All that ``refs`` need and the holder of the objects ``have``, and of all that those need, does not have.

    With ``most`` it stops taking refs in once there are so many objects: ``refs`` of the selection are those taken,
    at least some. Raises ``CheckFailed`` when an object needs one that is not here.
    """
    walk = _Walk(view, content)
    walk.note_known(have)
    taken: list[tuple[str, bytes]] = []
    rest = iter(sorted(refs, key=lambda ref: ref[0].encode()))
    together = _REFS
    while group := list(islice(rest, together)):
        before = len(walk.kinds)
        walk.add([key for _, key in group])
        taken += group
        if most is not None and len(walk.kinds) >= most:
            break
        if len(walk.kinds) - before < _FEW:
            together = min(2 * together, _GROUP)
    return Selection(
        content=content,
        held=walk.held,
        kinds=frozenset(walk.kinds.values()),
        order=list(walk.order()),
        presumes=sorted(walk.presumes),
        refs=taken,
    )


def select_all(
    view: Snapshot, refs: Sequence[tuple[str, bytes]], *, presumes: Iterable[bytes], content: bool
) -> Selection:
    """All objects that ``view`` has, to offer ``refs`` to who has ``presumes``."""
    walk = _Walk(view, content)
    walk.take_all()
    return Selection(
        content=content,
        kinds=frozenset(walk.kinds.values()),
        order=list(walk.order()),
        presumes=sorted(presumes),
        refs=sorted(refs, key=lambda ref: ref[0].encode()),
    )


class _Walk:
    """A walk over what objects need. ``kinds`` has every object that was found, ``known`` what the receiver has."""

    def __init__(self, view: Snapshot, content: bool) -> None:
        self._view = view
        self._content = content
        self._known: set[bytes] = set()
        self._leaf: dict[str, bool] = {}
        #: What each object that is no leaf needs of the pack: others that are no leaves, and whether there are leaves.
        self._above: dict[bytes, tuple[list[bytes], bool]] = {}
        self._room = _HELD_BYTES
        self.held: dict[bytes, Kept] = {}
        self.kinds: dict[bytes, str] = {}
        self.presumes: set[bytes] = set()

    def note_known(self, have: Iterable[bytes]) -> None:
        """Take note of what the receiver has: ``have``, and some of what those need, the nearest first."""
        waiting = deque(key for key in dict.fromkeys(have) if key in self._view)
        self._known.update(waiting)
        reads, looks = _KNOWN_READS, _KNOWN_LOOKS
        while waiting and reads > 0 and looks > 0:
            inner: list[bytes] = []
            while waiting and looks > 0 and len(inner) < min(reads, _KNOWN_GROUP):
                key = waiting.popleft()
                kind = self._view.kind(key)
                looks -= 1
                if kind is not None and not self._is_leaf(kind):
                    inner.append(key)
            reads -= len(inner)
            for _, needs, _ in self._decoded(inner, self._found(inner, {})):
                fresh = [key for key in needs if key not in self._known]
                self._known.update(fresh)
                waiting += fresh
                looks -= len(fresh) // 8  # to note one costs less than to look at it, and not nothing

    def add(self, roots: Sequence[bytes]) -> None:
        """Take in ``roots`` and all that they need."""
        self.presumes.update(self._known.intersection(roots))
        needed: dict[bytes, list[bytes]] = {}
        frontier = self._fresh(roots)
        while frontier:
            frontier.sort()  # the store's index is then visited in its own order
            inner: list[bytes] = []
            kept: list[Kept] = []
            for start in range(0, len(frontier), _GROUP):
                group = frontier[start : start + _GROUP]
                found = self._found(group, needed)
                names = [kind for kind, _ in found]
                self.kinds.update(zip(group, names, strict=True))
                if self._room > 0:
                    self._room -= sum([len(value) for _, value in found]) + _HELD_EACH * len(found)
                    self.held.update(zip(group, found, strict=True))
                branches = {kind for kind in set(names) if not self._is_leaf(kind)}
                if branches:
                    chosen = [kind in branches for kind in names]
                    inner += compress(group, chosen)
                    kept += compress(found, chosen)
            frontier = []
            for key, needs, others in self._decoded(inner, kept):
                self.presumes.update(self._known.intersection(needs))
                needed[key] = needs
                frontier += self._fresh(needs)
                frontier += self._fresh([name for name in others if self._follows(name)])
        self._note_above(needed)

    def take_all(self) -> None:
        """Take in all objects there are."""
        self.kinds = {key: found.kind for key, found in self._view.objects()}
        inner = [key for key, kind in self.kinds.items() if not self._is_leaf(kind)]
        needed: dict[bytes, list[bytes]] = {}
        for start in range(0, len(inner), _GROUP):
            group = inner[start : start + _GROUP]
            needed.update((key, needs) for key, needs, _ in self._decoded(group, self._found(group, {})))
        self._note_above(needed)

    def _note_above(self, needed: Mapping[bytes, list[bytes]]) -> None:
        """Note what each of these objects needs that is in the pack."""
        for key, needs in needed.items():
            here = [need for need in needs if need in self.kinds]
            above = [need for need in here if need in needed or need in self._above]
            self._above[key] = (above, len(above) < len(here))

    def _found(self, keys: list[bytes], needed: dict[bytes, list[bytes]]) -> list[Kept]:
        """The objects under ``keys`` as they are kept; ``needed`` says what needs them."""
        found = self._view.kept(keys)
        here = [one for one in found if one is not None]
        if len(here) < len(keys):
            raise self._missing(keys[found.index(None)], needed)
        return here

    def _missing(self, key: bytes, needed: dict[bytes, list[bytes]]) -> CheckFailed:
        owner = next((owner for owner, needs in needed.items() if key in needs), None)
        if owner is None:
            return CheckFailed(f"{key.hex()}: no such object", hint="run: objstore verify")
        return CheckFailed(
            f"{owner.hex()}: a {self.kinds[owner]} needs {key.hex()}, which is not here",
            hint="run: objstore verify",
        )

    def _fresh(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those of ``keys`` that were not met before, each once; they are met from now on."""
        fresh = dict.fromkeys([key for key in keys if key not in self.kinds and key not in self._known], "")
        self.kinds.update(fresh)
        return list(fresh)

    def _is_leaf(self, name: str) -> bool:
        """Whether objects of this kind lead nowhere. Without content, what an object that needs nothing names is
        content, or has a ref of its own."""
        leaf = self._leaf.get(name)
        if leaf is None:
            kind = kinds.lookup(name)
            leaf = kind.needs is kinds.nothing and (not self._content or kind.names is kinds.nothing)
            self._leaf[name] = leaf
        return leaf

    def _follows(self, name: bytes) -> bool:
        """Whether an object that is only named travels too."""
        kind = self._view.kind(name)
        return kind is not None and (self._content or kind not in CONTENT_KINDS)

    def _decoded(
        self, keys: list[bytes], kept: list[Kept]
    ) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]:
        """Each of ``keys``, whose objects are ``kept``, what it needs and what it names."""
        for start in range(0, len(keys), _GROUP):
            by_kind: dict[str, tuple[list[bytes], list[bytes]]] = {}
            group = keys[start : start + _GROUP]
            for key, found in zip(group, self._view.unpack(kept[start : start + _GROUP]), strict=True):
                same, values = by_kind.setdefault(found.kind, ([], []))
                same.append(key)
                values.append(found.data)
            for name, (same, values) in by_kind.items():
                kind = kinds.lookup(name)
                for key, obj in zip(same, _objects(name, values), strict=True):
                    needs, names = kind.needs(obj), kind.names(obj)
                    yield key, [*map(bytes.fromhex, needs)], [*map(bytes.fromhex, names)]

    def order(self) -> Iterator[bytes]:
        """All objects that were found, in the order of a pack: by height, kind and id."""
        levels: dict[tuple[int, str], list[bytes]] = defaultdict(list)
        height = self._heights().get
        for key, kind in self.kinds.items():
            levels[height(key, 0), kind].append(key)
        for level in sorted(levels):
            yield from sorted(levels[level])

    def _heights(self) -> dict[bytes, int]:
        heights: dict[bytes, int] = {}
        for start in self._above:
            waiting = [start]
            while waiting:
                key = waiting[-1]
                if key in heights:
                    waiting.pop()
                    continue
                inner, leaves = self._above[key]
                missing = [need for need in inner if need not in heights]
                if missing:
                    waiting += missing
                    continue
                waiting.pop()
                heights[key] = max([heights[need] + 1 for need in inner] + [int(leaves)])
        return heights


def _objects(name: str, values: list[bytes]) -> list[Any]:
    """The Structs of stored objects of one kind."""
    found = kinds.decode_all(name, values)
    return [kinds.decode(name, value) for value in values] if found is None else found
