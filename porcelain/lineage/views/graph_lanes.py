"""Where the lines of a drawn thread run: for each row the lanes that pass it, and how its own line comes in."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from porcelain.lineage.views.graph_model import Placed


class Lanes(Struct, frozen=True, kw_only=True):
    """One row. ``through`` are the lanes whose line goes on below this row; ``parent`` is the row of the node that it
    hangs by, None for a root."""

    through: frozenset[int]
    parent: int | None


def lanes_of(placed: Sequence[Placed]) -> list[Lanes]:
    """The lanes of each row of a thread. A lane is as many steps to the right as the node that its line comes from."""
    row_of = {one.node.id: row for row, one in enumerate(placed)}
    parents = [row_of[one.below.source] if one.below is not None else None for one in placed]
    last: dict[int, int] = {}
    for row, parent in enumerate(parents):
        if parent is not None:
            last[parent] = row
    running: dict[int, int] = {}
    found = []
    for row, parent in enumerate(parents):
        running = {lane: end for lane, end in running.items() if end > row}
        if row in last:
            running[placed[row].depth] = last[row]
        found.append(Lanes(through=frozenset(running), parent=parent))
    return found
