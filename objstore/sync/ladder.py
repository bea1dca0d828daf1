"""Saying what one has of a chain in few words: its heads, and entries before them at growing distances, so that the
other side finds one that both have without asking again."""

from __future__ import annotations

from collections.abc import Iterable

from objstore.snapshot import Snapshot
from objstore.sync.joining import members, place_of_name, previous_entries

#: Entries that are walked back in one chain, and in one question altogether.
_WALK = 4096
_WALK_ALL = 65_536


def known_entries(view: Snapshot, names: Iterable[str]) -> list[bytes]:
    """Ids of entries that ``view`` has of the chains in the places of ``names``."""
    found: dict[bytes, None] = {}
    budget = _WALK_ALL
    for place in dict.fromkeys(map(place_of_name, names)):
        for _, head in members(view, place):
            found[head] = None
            budget -= _climb(view, head, min(budget, _WALK), found)
    return list(found)


def _climb(view: Snapshot, head: bytes, most: int, found: dict[bytes, None]) -> int:
    """Add entries at distances 1, 2, 4 ... before ``head``, by first predecessors; how many were read."""
    key, distance, wanted = head, 0, 1
    while distance < most:
        before = previous_entries(view, key)
        distance += 1
        if not before:
            found[key] = None  # the first of its chain
            break
        key = before[0]
        if distance == wanted:
            found[key] = None
            wanted *= 2
    return distance
