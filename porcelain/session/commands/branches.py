"""``objstore session branches``: the nodes with two children or more."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, say
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, chosen_session
from porcelain.session.commands.rendering import branch_documents, branch_lines
from porcelain.session.commands.style import Style
from porcelain.session.tree.listing import branch_points

SUMMARY = "where a session branches"
USAGE = "session branches [--sid SID] [--json]"
OPTIONS: tuple[Option, ...] = (SID, JSON)
EXAMPLES = ("objstore session branches",)
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """Each branch point, and below it the questions that were asked there."""
    with (
        open_store(context) as store,
        store.snapshot() as view,
        Writer(context.stdout) as out,
    ):
        session = chosen_session(view, arguments)
        if arguments.json:
            for document in branch_documents(session):
                out.json(document)
            return 0
        for line in branch_lines(view, session, Style.of(context)):
            out.line(line)
        if not branch_points(session):
            say(context, f"{session.sid} does not branch")
    return 0
