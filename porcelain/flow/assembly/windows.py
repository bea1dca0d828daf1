"""New rows into a standing: segments (stage 8). Only the last one grows; those before it are closed, and what an
operation that was open in one of them comes to is all that may still change there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from porcelain.flow.assembly.intake import Disrupted, Fresh
from porcelain.flow.assembly.segments import IDLE_GAP
from porcelain.flow.assembly.standing import Standing, TalkKnown, Window
from porcelain.flow.assembly.streams import MAIN


def take_windows(standing: Standing, fresh: Fresh) -> None:
    """Segments after new rows: talks of the main stream make them, child talks and tool uses fall into them."""
    core, talks = standing.core, standing.talks
    windows = list(core.windows)
    news = [name for name in fresh.new_talks if _talk(standing, name).stream == MAIN]
    for name in fresh.moved_talks:
        talk, before = _talk(standing, name), talks.old(name)
        if talk.stream != MAIN or before is None:
            continue
        if talk.start != before.start or talk.window != len(windows) - 1:
            raise Disrupted("a talk that was over got earlier or longer")
        windows[-1] = _grown(windows[-1], talk, 0)
    for name in sorted(news, key=lambda name: _talk(standing, name).start):
        talk = standing.talks.edit(name, TalkKnown)  # type: ignore[arg-type]
        last = _talk(standing, core.last_talk) if core.last_talk else None
        if last is not None and talk.start < last.start:
            raise Disrupted("a talk began before one that was there")
        if last is None or (talk.start and last.end and talk.start - last.end > IDLE_GAP):
            if windows and len(windows) == len(core.windows) and talk.start <= windows[-1].end:
                raise Disrupted("a segment begins inside another one")
            windows.append(Window(talk.first, 0, talk.start, talk.end))
        windows[-1] = _grown(windows[-1], talk, 1)
        talk.window = len(windows) - 1
        core.last_talk = name
    core.windows = tuple(windows)
    _take_children(standing, fresh)
    _take_operations(standing, fresh)


def _talk(standing: Standing, name: str) -> TalkKnown:
    talk = standing.talks.get(name)
    assert talk is not None
    return talk


def _grown(window: Window, talk: TalkKnown, talks: int) -> Window:
    return Window(
        window.first,
        window.talks + talks,
        window.start or talk.start,
        max(window.end, talk.end),
        window.crossing,
    )


def _window_at(starts: Sequence[int], windows: Sequence[Window], time: int) -> int:
    index = bisect_right(starts, time) - 1
    return index if time and index >= 0 and time <= windows[index].end else -1


def _take_children(standing: Standing, fresh: Fresh) -> None:
    core, windows = standing.core, standing.core.windows
    starts = [window.start for window in windows]
    end = windows[-1].end if windows else 0
    names = dict.fromkeys(core.outside)
    names.update((name, None) for name in (*fresh.new_talks, *fresh.moved_talks))
    for name in names:
        talk = _talk(standing, name)
        if talk.stream == MAIN:
            continue
        index = _window_at(starts, windows, talk.start)
        if index != talk.window:
            standing.talks.edit(name, TalkKnown).window = index  # type: ignore[arg-type]
            fresh.talks.add(name)
        if index < 0 and talk.start and (not windows or talk.start > end):
            core.outside[name] = talk.start
        else:
            core.outside.pop(name, None)


def _take_operations(standing: Standing, fresh: Fresh) -> None:
    """Tool uses inside a segment must have their one result inside it as well."""
    core, windows = standing.core, standing.core.windows
    starts = [window.start for window in windows]
    end = windows[-1].end if windows else 0
    for name in fresh.tools:
        tool = standing.tools.get(name)
        if tool is not None and tool.request is not None and tool.asked:
            core.unsettled[name] = (tool.asked, tool.answered, tool.results)
    crossing: set[int] = set()
    settled = []
    for name, (asked, answered, results) in core.unsettled.items():
        index = _window_at(starts, windows, asked)
        if index < 0:
            if windows and asked <= end:
                settled.append(name)
        elif results == 1 and _window_at(starts, windows, answered) == index:
            settled.append(name)
        else:
            crossing.add(index)
    for name in settled:
        del core.unsettled[name]
    core.windows = tuple(
        window
        if window.crossing == (index in crossing)
        else Window(window.first, window.talks, window.start, window.end, index in crossing)
        for index, window in enumerate(windows)
    )
