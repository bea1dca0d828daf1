"""Stage 8, segments: windows of activity of the main stream, cut where it was idle, with what keeps each open."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from msgspec import Struct

from porcelain.flow.assembly.streams import Stream
from porcelain.flow.assembly.talks import Talk
from porcelain.flow.assembly.tools import Tool
from porcelain.flow.formats.times import NS_PER_SECOND

#: Nanoseconds of idleness that cut a window.
IDLE_GAP = 600 * NS_PER_SECOND


class Segment(Struct):
    """A window: its main talks, its times in nanoseconds, the child talks that fall into it, the gates not met."""

    talks: list[Talk]
    start: int
    end: int
    children: list[Talk]
    gates_unmet: list[str]
    last: bool


def segments(
    main: Stream | None,
    talks: list[Talk],
    child_talks: list[Talk],
    tools: Iterable[Tool],
    children_missing: bool,
) -> list[Segment]:
    """The windows over the main stream's ``talks``; ``children_missing``: some announced child never landed."""
    if main is None or not talks:
        return []
    windows: list[Segment] = []
    before: Talk | None = None
    for talk in sorted(talks, key=lambda talk: talk.start):
        if before is None or (talk.start and before.end and talk.start - before.end > IDLE_GAP):
            windows.append(Segment([], talk.start, talk.end, [], [], False))
        window = windows[-1]
        window.talks.append(talk)
        window.end = max(window.end, talk.end)
        window.start = window.start or talk.start
        before = talk
    windows[-1].last = True
    starts = [window.start for window in windows]

    def window_at(time: int) -> int | None:
        index = bisect_right(starts, time) - 1
        return index if time and index >= 0 and time <= windows[index].end else None

    for talk in child_talks:
        index = window_at(talk.start)
        if index is not None:
            windows[index].children.append(talk)
    crossing: set[int] = set()
    for tool in tools:
        index = window_at(tool.request.time)
        if index is None:
            continue
        if tool.result is None or tool.results != 1 or window_at(tool.result.time) != index:
            crossing.add(index)
    newest = max(entry.time for entry in main.entries)
    for index, window in enumerate(windows):
        if window.last:
            window.gates_unmet.append("activity_boundary")
        if children_missing or index in crossing:
            window.gates_unmet.append("no_crossing_open_operation")
        if window.last or newest - window.end <= IDLE_GAP:
            window.gates_unmet.append("lateness_watermark")
    return windows
