"""``objstore session tree``: the tree of a session."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, terminal_width
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, chosen_session
from porcelain.session.commands.rendering import header_lines, tree_documents, tree_lines
from porcelain.session.commands.style import Style

SUMMARY = "the tree of a session"
USAGE = "session tree [--sid SID] [--json]"
OPTIONS: tuple[Option, ...] = (SID, JSON)
EXAMPLES = ("objstore session tree", "objstore session tree --sid 20260304-050607-9f1c --json")
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """A header and a line for each node; the root is left out."""
    with (
        open_store(context) as store,
        store.snapshot() as view,
        Writer(context.stdout) as out,
    ):
        session = chosen_session(view, arguments)
        if arguments.json:
            for document in tree_documents(view, session):
                out.json(document)
            return 0
        style = Style.of(context)
        for line in header_lines(session, style):
            out.line(line)
        width = terminal_width(context.stdout, context.env)
        for line in tree_lines(view, session, style, width=width):
            out.line(line)
    return 0
