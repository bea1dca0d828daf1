"""``objstore session cd``: go to a node, so that the next question becomes a child of it."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, find_session
from porcelain.session.tree.places import move_to

SUMMARY = "go to a node"
USAGE = "session cd [--sid SID] [--json] NODE"
OPTIONS: tuple[Option, ...] = (SID, JSON)
EXAMPLES = ("objstore session cd 3", "objstore session cd fork")
ARGUMENTS = (1, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Print the Bates id of the node."""
    (where,) = arguments.args
    with open_store(context, write=True) as store, Writer(context.stdout) as out:
        with store.snapshot() as view:
            sid = find_session(view, arguments.sid, where)
        bates = move_to(store, sid, where)
        if arguments.json:
            out.json({"current_bates": bates, "session_id": sid})
        else:
            out.line(bates)
    return 0
