"""``objstore session back``: go to the node above."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, find_session
from porcelain.session.tree.places import move_back

SUMMARY = "go to the node above"
USAGE = "session back [--sid SID] [--json]"
OPTIONS: tuple[Option, ...] = (SID, JSON)
EXAMPLES = ("objstore session back",)
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """Print the Bates id of the node above."""
    with open_store(context, write=True) as store, Writer(context.stdout) as out:
        with store.snapshot() as view:
            sid = find_session(view, arguments.sid)
        bates = move_back(store, sid)
        if arguments.json:
            out.json({"current_bates": bates, "session_id": sid})
        else:
            out.line(bates)
    return 0
