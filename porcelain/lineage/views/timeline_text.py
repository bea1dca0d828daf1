"""A timeline as a document: a table, and the picture."""

from __future__ import annotations

from plumbing.interface.output import counted
from porcelain.lineage.views.timeline_model import Timeline, time_of
from porcelain.lineage.views.timeline_picture import timeline_picture
from porcelain.lineage.views.view_document import Document, Grid, Section

TITLES = {"project": "Project timeline", "session": "Session timeline"}


def timeline_document(timeline: Timeline, *, pictures: bool = False) -> Document:
    """The document of a timeline."""
    says = [
        f"{counted(len(timeline.lines), timeline.kind)}, {counted(len(timeline.steps), 'step')} between them."
    ]
    if timeline.untimed:
        says.append(f"{counted(timeline.untimed, 'conversation')} without a time not shown.")
    sections = []
    if pictures and timeline.lines:
        sections.append(
            Section(
                says=(
                    "Bars are times of activity, grey ones repeat those of the origin; a dotted line stands for more "
                    "than a quiet week.",
                ),
                figure=timeline_picture(timeline),
            )
        )
    sections.append(Section(heading="Table" if pictures else "", grid=_grid(timeline)))
    return Document(
        kind="timeline", title=TITLES[timeline.kind], fold=timeline.fold, says=tuple(says), sections=sections
    )


def _grid(timeline: Timeline) -> Grid:
    rows = []
    for line in timeline.lines:
        own = (str(line.sessions),) if timeline.kind == "project" else (line.project,)
        label = line.native_id if line.label == line.project and line.native_id else line.label
        rows.append((label, *own, line.provider, _when(line.first), _when(line.last), hours(line.active)))
    second = "conversations" if timeline.kind == "project" else "project"
    right = (1, 5) if timeline.kind == "project" else (5,)
    return Grid(header=(timeline.kind, second, "agent", "first", "last", "active"), rows=rows, right=right)


def _when(time: int) -> str:
    return time_of(time)[:16].replace("T", " ")


def hours(milliseconds: int) -> str:
    """A length of time as hours and minutes."""
    minutes = round(milliseconds / 60_000)
    return f"{minutes // 60}:{minutes % 60:02} h"
