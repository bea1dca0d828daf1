"""Blocks of time: times that lie at most half an hour apart belong to one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: The longest pause (milliseconds) within a block.
PAUSE = 30 * 60 * 1000

#: From and to, in milliseconds since 1970.
Block = tuple[int, int]


def blocks_of(times: Iterable[int]) -> list[Block]:
    """The blocks of ``times`` (milliseconds since 1970, in any order)."""
    found: list[Block] = []
    for time in sorted(times):
        if found and time - found[-1][1] <= PAUSE:
            found[-1] = (found[-1][0], time)
        else:
            found.append((time, time))
    return found


def united(blocks: Iterable[Block]) -> list[Block]:
    """``blocks`` without overlaps, in order."""
    found: list[Block] = []
    for start, end in sorted(blocks):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def without(blocks: Sequence[Block], taken: Sequence[Block]) -> list[Block]:
    """The parts of ``blocks`` that ``taken`` does not cover; both in order and without overlaps."""
    found: list[Block] = []
    at = 0
    for start, end in blocks:
        while at < len(taken) and taken[at][1] < start:
            at += 1
        reached, index, covered = start, at, False
        while index < len(taken) and taken[index][0] <= end:
            if taken[index][0] > reached:
                found.append((reached, taken[index][0]))
            reached = max(reached, taken[index][1])
            covered = True
            index += 1
        if reached < end or not covered:
            found.append((reached, end))
    return found


def length(blocks: Iterable[Block]) -> int:
    """The milliseconds in ``blocks``."""
    return sum(end - start for start, end in blocks)
