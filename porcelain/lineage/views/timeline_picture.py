"""The picture of a timeline: a row for each project or conversation, time from left to right."""

from __future__ import annotations

from porcelain.lineage.views import svg_drawing as svg
from porcelain.lineage.views.timeline_model import DAY, Axis, Line, Timeline, day_of, time_of

_LABEL = 330
_GAP = 14
_TIME = 900
_TOP = 34
_ROW = {"project": 30, "session": 20}
_HEAD = 26
_LEAST = 2.5
#: Dates are repeated beside a project's name after this many pixels.
_DATES = 500
#: Pixels between two marks of the axis, at least: a date takes 67.
_BETWEEN = 84
_HOUR = DAY // 24
#: Of a time so short that it has hardly any midnight in it, hours are marked too.
_HOURS: tuple[int, ...] = (_HOUR // 12, _HOUR // 4, _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR)
_SHORT = 3 * DAY
_STEPS: tuple[int, ...] = (DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 182 * DAY, 365 * DAY)


def timeline_picture(timeline: Timeline) -> str:
    """The SVG element of a timeline."""
    axis = Axis(timeline.lines, _TIME)
    height_of = _ROW[timeline.kind]
    places: dict[str, float] = {}
    stripes, words, bars = [], [], []
    y, project = float(_TOP), ""
    width = _LABEL + _GAP + _TIME
    dates = [_TOP - 14.0]
    for number, line in enumerate(timeline.lines):
        if timeline.kind == "session" and line.project != project:
            project = line.project
            y += _HEAD if number else _HEAD - 8
            words.append(svg.text(0, y - 6, project, _LABEL, tone="faint", path=True))
            if y - dates[-1] > _DATES:
                dates.append(y - 6)
        if number % 2:
            stripes.append(svg.bar(0, y, width, height_of, "stripe"))
        places[line.id] = y + height_of / 2
        words.append(_label(line, timeline, y + height_of / 2 + 4))
        bars += _bars(line, axis, y + height_of / 2, height_of)
        y += height_of
    marks = _axis(axis, y, [*dates, y + 14])
    steps = []
    for step in timeline.steps:
        x, start, end = _LABEL + _GAP + axis.x(step.time), places[step.source], places[step.target]
        bend = min(22.0, abs(end - start) / 2)
        side = svg.number(x - bend)
        path = f"M{svg.number(x)} {svg.number(start)}C{side} {svg.number(start)} {side} {svg.number(end)} "
        steps.append(svg.line(f"{path}{svg.number(x)} {svg.number(end)}", f"thin {step.relation}"))
    title = f"{timeline.kind} timeline"
    return svg.picture(width + 4, y + 22, [*stripes, *marks, *bars, *steps, *words], title)


def _label(line: Line, timeline: Timeline, y: float) -> str:
    said = line.label
    if timeline.kind == "project":
        return svg.text(0, y, said, _LABEL, path=True, title=f"{said}: {line.sessions} conversations")
    title = f"{said}, {line.provider}, {time_of(line.first)} to {time_of(line.last)}"
    shown = line.label if line.label != line.project else f"{line.provider} {line.native_id}"
    return svg.text(10, y, shown, _LABEL - 10, small=True, path=shown.startswith("/"), title=title)


def _bars(line: Line, axis: Axis, middle: float, height: float) -> list[str]:
    left = _LABEL + _GAP
    start, end = axis.x(line.first), axis.x(line.last)
    found = [svg.bar(left + start, middle - 1, max(end - start, 1), 2, "life")]
    tall = height - 8
    for blocks, tone, word in ((line.repeated, "copy", "repeated "), (line.blocks, "bar", "")):
        drawn = -1.0
        for first, last in blocks:
            x, until = axis.x(first), axis.x(last)
            if until <= drawn:  # nothing of it would be seen
                continue
            width = max(until - x, _LEAST)
            title = f"{line.label}: {word}{time_of(first)[:16]} to {time_of(last)[:16]}"
            found.append(svg.bar(left + x, middle - tall / 2, width, tall, tone, title))
            drawn = x + width
    return found


def _axis(axis: Axis, bottom: float, dates: list[float]) -> list[str]:
    """Dates, within a day hours, in the lines ``dates``, and where a quiet time is left out."""
    left = _LABEL + _GAP
    parts = []
    for start, end in axis.gaps:
        x = left + (axis.x(start) + axis.x(end)) / 2
        parts.append(svg.line(f"M{svg.number(x)} {_TOP - 8}V{svg.number(bottom)}", "gap"))
    last, day = -1.0 * _BETWEEN, ""
    for start, end in axis.pieces:
        step = _step(axis, start, end)
        time = start
        while time <= end:
            x = axis.x(time)
            if x - last >= _BETWEEN and x <= _TIME - 60:
                parts.append(svg.line(f"M{svg.number(left + x)} {_TOP - 8}V{svg.number(bottom)}", "rule"))
                said = time_of(time)[11:16] if day_of(time) == day else day_of(time)
                for y in dates:
                    parts.append(svg.text(left + x, y, said, 80, small=True))
                last, day = x, day_of(time)
            time = (time // min(step, DAY)) * min(step, DAY) + step
    return parts


def _step(axis: Axis, start: int, end: int) -> int:
    pixels = axis.x(end) - axis.x(start)
    for step in (*(_HOURS if end - start < _SHORT else ()), *_STEPS):
        if (end - start) / step * _BETWEEN <= max(pixels, 1):
            return step
    return _STEPS[-1]
