"""``objstore session sid``: the session that a command means."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, chosen_session

SUMMARY = "the session that is meant"
USAGE = "session sid [--sid SID] [--json]"
OPTIONS: tuple[Option, ...] = (SID, JSON)
EXAMPLES = ("objstore session sid",)
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """Print the whole session id."""
    with open_store(context) as store, store.snapshot() as view, Writer(context.stdout) as out:
        sid = chosen_session(view, arguments).sid
        if arguments.json:
            out.json({"session_id": sid})
        else:
            out.line(sid)
    return 0
