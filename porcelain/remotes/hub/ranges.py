"""Sets of records by number: for each writer the ranges (first, behind the last), in order and apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from porcelain.remotes.hub.records import Ranges


def united(sets: Iterable[Ranges]) -> Ranges:
    """All that is in any of the sets."""
    found: dict[str, list[tuple[int, int]]] = {}
    for one in sets:
        for writer, ranges in one.items():
            found.setdefault(writer, []).extend(ranges)
    return {writer: _joined(sorted(ranges)) for writer, ranges in sorted(found.items())}


def _joined(ordered: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first, behind in ordered:
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(behind, found[-1][1]))
        else:
            found.append((first, behind))
    return found


def holds(whole: Ranges, part: Ranges) -> bool:
    """Whether all of ``part`` is in ``whole``."""
    return all(
        any(first <= start and stop <= behind for first, behind in whole.get(writer, ()))
        for writer, ranges in part.items()
        for start, stop in ranges
    )


def holds_below(part: Ranges, limits: Mapping[str, int], but: Ranges) -> bool:
    """Whether ``part`` has a number below the limit of its writer that is not in ``but``."""
    for writer, ranges in part.items():
        limit = limits.get(writer, 0)
        for first, behind in ranges:
            at = first
            for start, stop in but.get(writer, ()):
                if start <= at < stop:
                    at = stop
            if at < min(behind, limit):
                return True
    return False
