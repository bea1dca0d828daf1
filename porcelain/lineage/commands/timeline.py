"""``objstore lineage timeline``: when projects and conversations were active."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import Progress, terminal_width
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.usage.measuring import measured, work_out_many
from porcelain.lineage.views.mermaid import gantt
from porcelain.lineage.views.options import (
    DOCUMENT_FORMS,
    FORCE,
    HTML,
    JSON_FORM,
    LABEL_OPTION,
    OUTPUT,
    document_lines,
    form_of,
    form_option,
    label_priority,
    open_indexed,
    write_view,
)
from porcelain.lineage.views.timeline_model import Timeline, make_timeline, time_of
from porcelain.lineage.views.timeline_text import TITLES, timeline_document
from porcelain.lineage.views.view_document import MARK

_FORMS = (*DOCUMENT_FORMS, "mermaid")
SUMMARY = "when projects and conversations were active"
USAGE = "lineage timeline [--sessions] [--format FORM] [-o FILE] [--labels TYPE,...] [WORD...]"
OPTIONS = (
    Option("--sessions", help="a row for each conversation instead of each project"),
    form_option(_FORMS),
    HTML,
    JSON_FORM,
    OUTPUT,
    FORCE,
    LABEL_OPTION,
)
EXAMPLES = (
    "objstore lineage timeline",
    "objstore lineage timeline --sessions --html -o sessions.html tidepool",
)
ARGUMENTS = (0, None)


def run(arguments: Arguments, context: Context) -> int:
    """Print or write the timeline of the projects whose name contains every WORD."""
    form, priority = form_of(arguments, _FORMS), label_priority(arguments)
    words = [word.casefold() for word in arguments.args]
    with (
        open_indexed(context) as store,
        open_lineage(store) as indexed,
        Progress(context, "reading conversations") as progress,
    ):
        work_out_many(store, progress.advance)  # before anything of the view is held
        projection = indexed.projection()
        timeline = make_timeline(
            projection,
            measured(store, progress.advance),
            "session" if arguments.sessions else "project",
            priority=priority,
            wanted=lambda project: all(word in project.casefold() for word in words),
        )
    width = None if arguments.output else terminal_width(context.stdout, context.env)
    write_view(_lines(timeline, form, width), arguments, context)
    return 0


def _lines(timeline: Timeline, form: str, width: int | None) -> Iterator[str]:
    if form == "json":
        return iter([json_text(timeline)])
    rows = [(line.project, line.label, time_of(line.first), time_of(line.last)) for line in timeline.lines]
    diagram = gantt(TITLES[timeline.kind], timeline.fold, rows)
    if form == "mermaid":
        return diagram
    return document_lines(timeline_document(timeline, pictures=form == "html"), form, width, diagram)


def json_text(timeline: Timeline) -> str:
    """The timeline as one JSON object; times in milliseconds since 1970."""
    value = {
        "view": f"{MARK}: timeline",
        "kind": timeline.kind,
        "fold": timeline.fold,
        "untimed": timeline.untimed,
        "rows": [{**msgspec.structs.asdict(line), "active": line.active} for line in timeline.lines],
        "steps": [msgspec.structs.asdict(step) for step in timeline.steps],
    }
    return msgspec.json.encode(value, order="sorted").decode()
