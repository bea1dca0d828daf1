"""``objstore session show``: one node in full."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, chosen_node, chosen_session
from porcelain.session.commands.rendering import show_document, show_lines
from porcelain.session.commands.style import Style

SUMMARY = "one node in full"
USAGE = "session show [--sid SID] [--json] [NODE]"
OPTIONS: tuple[Option, ...] = (SID, JSON)
EXAMPLES = ("objstore session show", "objstore session show 3", "objstore session show --json fork")
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """The node that a Bates id, a number or a label names; without one, where you are."""
    named = arguments.args[0] if arguments.args else None
    with (
        open_store(context) as store,
        store.snapshot() as view,
        Writer(context.stdout) as out,
    ):
        session = chosen_session(view, arguments, named)
        seq = chosen_node(view, session, named)
        if arguments.json:
            out.json(show_document(view, session, seq))
            return 0
        for line in show_lines(view, session, seq, Style.of(context)):
            out.line(line)
    return 0
