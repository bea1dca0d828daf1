"""``objstore session new``: begin a session."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer
from porcelain.session.commands.choosing import open_or_make
from porcelain.session.tree.store import new_session

SUMMARY = "begin a session"
USAGE = "session new [--json]"
OPTIONS: tuple[Option, ...] = (JSON,)
EXAMPLES = ("objstore session new", "sid=$(objstore session new)")
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """Print the id of the new session."""
    with open_or_make(context) as store, Writer(context.stdout) as out:
        sid, state = new_session(store)
        if arguments.json:
            out.json({"created_at": state.created_at, "session_id": sid, "session_root": state.root})
        else:
            out.line(sid)
    return 0
