"""``objstore lineage active``: how long projects and conversations were worked on."""

from __future__ import annotations

import msgspec

from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import Progress, counted, terminal_width
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.usage.active_time import (
    ProjectTime,
    SessionTime,
    project_times,
    session_times,
)
from porcelain.lineage.usage.blocks import length, united
from porcelain.lineage.usage.measuring import measured, work_out_many
from porcelain.lineage.views.names import Names
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
from porcelain.lineage.views.timeline_model import day_of
from porcelain.lineage.views.timeline_text import hours
from porcelain.lineage.views.view_document import MARK, Document, Grid, Section

SUMMARY = "how long projects and conversations were worked on"
USAGE = "lineage active [--sessions] [--format FORM] [-o FILE] [--labels TYPE,...]"
OPTIONS = (
    Option("--sessions", help="a row for each conversation instead of each project"),
    form_option(DOCUMENT_FORMS),
    HTML,
    JSON_FORM,
    OUTPUT,
    FORCE,
    LABEL_OPTION,
)
EXAMPLES = ("objstore lineage active", "objstore lineage active --sessions --json")
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """Print or write active times: pauses of half an hour end a block, nothing counts twice."""
    form, priority = form_of(arguments, DOCUMENT_FORMS), label_priority(arguments)
    with (
        open_indexed(context) as store,
        open_lineage(store) as indexed,
        Progress(context, "reading conversations") as progress,
    ):
        work_out_many(store, progress.advance)  # before anything of the view is held
        projection = indexed.projection()
        names = Names(projection.tables, priority)
        conversations = measured(store, progress.advance)
        sessions = session_times(conversations, projection, names.project, names.place)
    projects = project_times(sessions, names.repositories)
    if form == "json":
        write_view([_json(sessions, projects, projection.fold)], arguments, context)
        return 0
    section = Section(grid=_by_session(sessions, names) if arguments.sessions else _by_project(projects))
    total = length(united(block for one in projects for block in one.blocks))
    document = Document(
        kind="active",
        title="Active time",
        fold=projection.fold,
        says=(
            f"{hours(total)} in {counted(len(projects), 'project')}; a pause of half an hour ends a block of work, "
            "and what copies repeat is taken off.",
        ),
        sections=[section],
    )
    width = None if arguments.output else terminal_width(context.stdout, context.env)
    write_view(document_lines(document, form, width), arguments, context)
    return 0


def _by_project(projects: list[ProjectTime]) -> Grid:
    rows = [
        (
            one.project or "-",
            hours(one.active),
            f"{len(one.blocks):,}",
            f"{one.sessions:,}",
            day_of(one.blocks[0][0]) if one.blocks else "-",
            day_of(one.blocks[-1][1]) if one.blocks else "-",
            one.confidence,
            "; ".join(one.warnings),
        )
        for one in projects
    ]
    header = ("project", "active", "blocks", "conversations", "first", "last", "confidence", "")
    return Grid(header=header, rows=rows, right=(1, 2, 3))


def _by_session(sessions: list[SessionTime], names: Names) -> Grid:
    order = sorted(sessions, key=lambda one: (-one.active, one.session))
    rows = [
        (
            names.session(one.session),
            one.project or "-",
            hours(one.active),
            hours(one.repeated),
            f"{len(one.own):,}",
            f"{one.coverage:.0%}",
        )
        for one in order
    ]
    header = ("conversation", "project", "active", "repeated", "blocks", "records with a time")
    return Grid(header=header, rows=rows, right=(2, 3, 4, 5))


def _json(sessions: list[SessionTime], projects: list[ProjectTime], fold: str) -> str:
    """Times in milliseconds; blocks since 1970."""
    value = {
        "view": f"{MARK}: active",
        "fold": fold,
        "projects": [{**msgspec.structs.asdict(one), "active": one.active} for one in projects],
        "sessions": [
            {
                "session": one.session,
                "project": one.project,
                "active": one.active,
                "repeated": one.repeated,
                "blocks": one.own,
                "timedRecords": f"{one.coverage:.3f}",
            }
            for one in sessions
        ],
    }
    return msgspec.json.encode(value, order="sorted").decode()
