"""How refs of two stores become those of one. Nothing is chosen by a clock or by who asks, so the order in which stores
meet does not matter; what cannot be told apart by ancestry is kept side by side.

A name says by which rule it joins:

* Its second part is the id of a store (``lineage/<store>``, ``landed/<store>/...``): that store's own chain. Only that
  store moves it, so elsewhere it is wound forward to the longer of the two.
* Its last part is the id that it points at (``session/<sid>/heads/<id>``, ``answer/<key>/<id>``): a member of a set.
  The set is united; a member that another one goes back to is dropped.
* Any other (``tag/<name>``): set by hand, the first one stays.

Where a chain of one store, or a name, stands for several things of which none goes back to another (a folder of a store
was copied, two people chose one name), all are kept, each under the name with ``@`` and the first digits of its id: at
the end, or behind the id of the store.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping

from msgspec import Struct

from objstore import kinds
from objstore.closure import CONTENT_KINDS, CONTENT_REFS
from objstore.errors import CheckFailed
from objstore.refs import MAX_NAME, RefMove, derived_resolver, is_declined, is_local
from objstore.snapshot import Snapshot

STORE_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
_OBJECT_ID = re.compile(r"[0-9a-f]{64}", re.ASCII)
_APART = re.compile(r"(.*)@([0-9a-f]{16})", re.ASCII)
#: First parts of names that are always members of a set.
SETS = ("session", "answer")
#: Bytes that setting a name apart adds to it.
_APART_BYTES = 17


class RefRefused(CheckFailed):
    """A ref that may not be moved by another store. ``name`` is the ref."""

    def __init__(self, name: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{name}: {reason}", hint=hint)
        self.name = name


class Place(Struct, frozen=True):
    """What a ref name means: ``group`` is the set it belongs to (a prefix that ends in a slash) or the name itself,
    without what sets it apart; ``is_member`` whether it is a set; ``owner`` the store whose chain it is, or None."""

    group: str
    is_member: bool
    owner: str | None


class Joined(Struct):
    """What joining comes to: the moves; names of sets and chains that have several heads now (sessions that went on in
    several places, chains of copied stores, names that stand for several things)."""

    moves: list[RefMove]
    diverged: list[str]


def place_of(name: str, key: bytes) -> Place:
    """What the ref ``name``, which points at ``key``, means. Raises ``RefRefused`` for one that cannot be exchanged."""
    if is_local(name) or derived_resolver(name) is not None:
        raise RefRefused(name, "is kept by each store for itself and is not exchanged")
    parts = name.split("/")
    digits = key.hex()
    owned = _is_owned(parts)
    if not owned and _OBJECT_ID.fullmatch(parts[-1]):
        if parts[-1] == digits:
            return Place(name[:-64], True, None)
        if parts[0] in SETS:
            raise RefRefused(name, f"points at {digits}, and its name says something else")
    at = 1 if owned else -1
    apart = _APART.fullmatch(parts[at])
    if apart is not None and digits.startswith(apart[2]):
        parts[at] = apart[1]
    elif len(name.encode()) > MAX_NAME - _APART_BYTES:
        raise RefRefused(name, f"is too long to be exchanged: more than {MAX_NAME - _APART_BYTES} bytes")
    return Place("/".join(parts), False, parts[1] if owned else None)


def _is_owned(parts: list[str]) -> bool:
    """Whether a name is that of a store's own chain."""
    return len(parts) > 1 and STORE_ID.fullmatch(parts[1].partition("@")[0]) is not None


def place_of_name(name: str) -> Place:
    """What a name means whatever it points at, as far as can be told."""
    parts = name.split("/")
    owned = _is_owned(parts)
    if not owned and _OBJECT_ID.fullmatch(parts[-1]):
        return Place(name[:-64], True, None)
    at = 1 if owned else -1
    apart = _APART.fullmatch(parts[at])
    if apart is not None:
        parts[at] = apart[1]
    return Place("/".join(parts), False, parts[1] if owned else None)


def set_apart(place: Place, key: bytes) -> str:
    """The name under which ``key`` is kept where it is not the only one."""
    parts = place.group.split("/")
    parts[1 if place.owner is not None else -1] += "@" + key.hex()[:16]
    return "/".join(parts)


def is_offered(name: str, key: bytes, view: Snapshot, *, content: bool) -> bool:
    """Whether a ref of a store may leave it: without ``content`` none that leads to what was said by itself."""
    return content or not (name.startswith(CONTENT_REFS) or view.kind(key) in CONTENT_KINDS)


def join_refs(
    view: Snapshot,
    incoming: Iterable[tuple[str, bytes]],
    *,
    own: str,
    why: str,
    given_up: str | None = None,
) -> Joined:
    """The moves that take ``incoming`` refs, whose objects ``view`` has, into the store ``own``. Chains of that store
    itself are left alone (see ``foreign_heads``), and so are names that were removed from it on purpose.
    ``given_up`` is the id under which this store wrote before it had to go on under another one: its branches stand
    under the new id, so the old one is left to the other writer. Raises ``RefRefused``."""
    groups: dict[Place, set[bytes]] = {}
    for name, key in incoming:
        place = place_of(name, key)
        if place.owner != own and not is_declined(view, name):
            groups.setdefault(place, set()).add(key)
    joined = Joined([], [])
    for place, keys in groups.items():
        before = dict(members(view, place))
        heads = maximal(view, keys | set(before.values()))
        if place.owner is not None and place.owner == given_up and len(heads) > 1:
            heads -= set(before.values())
        if len(heads) > 1 and (not place.is_member or _is_entry(view, next(iter(heads)))):
            joined.diverged.append(place.group.rstrip("/"))
        after = _names(place, heads)
        if after != before:  # one of several may also have been set by hand, under the name alone
            joined.moves += _moves(before, after, why)
    return joined


def members(view: Snapshot, place: Place) -> list[tuple[str, bytes]]:
    """The refs that a store has in a place."""
    if place.is_member:
        return [(name, key) for name, key in view.refs(place.group) if name == place.group + key.hex()]
    found = []
    key = view.ref(place.group)
    if key is not None:
        found.append((place.group, key))
    head, tail = place.group, ""
    if place.owner is not None:
        parts = place.group.split("/", 2)
        head, tail = "/".join(parts[:2]), "".join("/" + part for part in parts[2:])
    for name, key in view.refs(head + "@"):
        if name == f"{head}@{key.hex()[:16]}{tail}":
            found.append((name, key))
    return found


def _names(place: Place, heads: set[bytes]) -> dict[str, bytes]:
    if place.is_member:
        return {place.group + key.hex(): key for key in heads}
    if len(heads) == 1:
        return {place.group: next(iter(heads))}
    return {set_apart(place, key): key for key in heads}


def _moves(before: Mapping[str, bytes], after: Mapping[str, bytes], why: str) -> list[RefMove]:
    moves: list[RefMove] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old != new:
            moves.append(RefMove(name, new.hex() if new else None, old.hex() if old else None, why))
    return moves


def foreign_heads(view: Snapshot, incoming: Iterable[tuple[str, bytes]], own: str) -> list[tuple[str, bytes]]:
    """Those of ``incoming`` refs that are chains of the store ``own`` and end in something it does not have: somebody
    else wrote under its id, since its folder was copied, or it was restored from a backup."""
    return [ref for ref in incoming if place_of(*ref).owner == own and ref[1] not in view]


def previous_entries(view: Snapshot, key: bytes) -> list[bytes] | None:
    """The predecessors of the entry of a chain; None for anything else."""
    found = view.get(key)
    kind = kinds.lookup(found.kind) if found is not None else None
    if found is None or kind is None or kind.previous is None:
        return None
    return [bytes.fromhex(text) for text in kind.previous(kinds.decode(found.kind, found.data))]


def _is_entry(view: Snapshot, key: bytes) -> bool:
    name = view.kind(key)
    return name is not None and kinds.lookup(name).previous is not None


def maximal(view: Snapshot, keys: Iterable[bytes]) -> set[bytes]:
    """``keys`` without those that another one of them goes back to, by the predecessors of entries of chains.

    All are walked back side by side, so that a chain which was only wound forward costs what is new of it.
    """
    heads = set(keys)
    if len(heads) < 2:
        return heads
    seen: set[bytes] = set()
    waiting = deque(sorted(key for key in heads if _is_entry(view, key)))
    if len(waiting) < 2:
        return heads
    while waiting and len(heads) > 1:
        for before in previous_entries(view, waiting.popleft()) or ():
            if before not in seen:
                seen.add(before)
                heads.discard(before)
                waiting.append(before)
    return heads
