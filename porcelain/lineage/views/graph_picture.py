"""The picture of a thread: a row for each node, lines at the left, words at the right."""

from __future__ import annotations

from porcelain.lineage.views import svg_drawing as svg
from porcelain.lineage.views.graph_lanes import lanes_of
from porcelain.lineage.views.graph_model import Placed, Thread
from porcelain.lineage.views.graph_words import also_words, facts_of, link_words, state_of

_ROW = 44
_LANE = 20
_LEFT = 16
_TOP = 26
#: Pixels for what a node is called, and for what is said about it.
_LABEL = 540
_FACTS = 900
_GAP = 12
#: Lanes beyond this one share it, so that no thread grows to the right without end.
_LAST_LANE = 30
_TONES = {
    "deletion candidate": "bad",
    "gone": "bad",
    "superseded": "warn",
    "archived": "warn",
    "resume here": "good",
    "can be resumed": "good",
    "preserve": "good",
    "intentional branch": "good",
}


def thread_picture(thread: Thread) -> str:
    """The SVG element of a thread."""
    deepest = min(max((placed.depth for placed in thread.placed), default=0), _LAST_LANE)
    left = _LEFT + deepest * _LANE + 22
    lines: list[str] = []
    dots: list[str] = []
    words: list[str] = []
    width = float(left + _LABEL)
    for row, (placed, lanes) in enumerate(zip(thread.placed, lanes_of(thread.placed), strict=True)):
        if lanes.parent is not None and placed.below is not None:
            path = _path(thread.placed[lanes.parent], lanes.parent, placed, row)
            lines.append(svg.line(path, placed.below.relation))
        node = placed.node
        tone = "resume" if node.resume else "here" if node.present else "absent"
        dots.append(svg.dot(_x(placed), _y(row), 5, tone, " ".join(state_of(node)) or "here"))
        said, end = _words(placed, left, _y(row))
        words += said
        width = max(width, end)
    stripes = [
        svg.bar(0, _y(row) - 20, width + _GAP, _ROW, "stripe") for row in range(1, len(thread.placed), 2)
    ]
    height = _TOP + len(thread.placed) * _ROW - 8
    return svg.picture(width + _GAP, height, [*stripes, *lines, *dots, *words], thread.label)


def _x(placed: Placed) -> float:
    return _LEFT + min(placed.depth, _LAST_LANE) * _LANE


def _y(row: int) -> float:
    return _TOP + row * _ROW


def _path(parent: Placed, parent_row: int, placed: Placed, row: int) -> str:
    """Straight down, and round a corner where the node stands further right."""
    x, y = svg.number(_x(parent)), svg.number(_y(parent_row) + 5)
    if _x(parent) == _x(placed):
        return f"M{x} {y}V{svg.number(_y(row) - 5)}"
    return f"M{x} {y}V{svg.number(_y(row) - 9)}q0 9 9 9H{svg.number(_x(placed) - 5)}"


def _words(placed: Placed, left: float, y: float) -> tuple[list[str], float]:
    """The two lines of words of a node, and where they end."""
    node = placed.node
    parts = [svg.text(left, y - 1, node.label, _LABEL, title=node.path, path=node.label.startswith("/"))]
    x = left + min(svg.width_of(node.label), _LABEL) + _GAP
    chips = []
    if placed.below is not None:
        why = f"{placed.below.rule} {placed.below.time or ''}".strip()
        chips.append((link_words(placed.below), placed.below.relation, why))
    chips += [(said, _TONES.get(said, ""), "") for said in state_of(node)]
    for said, tone, title in chips:
        element, width = svg.chip(x, y - 1, said, tone, title)
        parts.append(element)
        x += width + 6
    facts = "; ".join([facts_of(node), *also_words(placed)])
    parts.append(svg.text(left, y + 15, facts, _FACTS, small=True))
    return parts, max(x, left + min(svg.width_of(facts, small=True), _FACTS))
