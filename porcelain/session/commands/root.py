"""``objstore session root``: the one hash that pins a session."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, chosen_session

SUMMARY = "the hash that pins a session"
USAGE = "session root [--sid SID] [--json]"
OPTIONS: tuple[Option, ...] = (SID, JSON)
EXAMPLES = ("objstore session root",)
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """Print the ``session_root``."""
    with open_store(context) as store, store.snapshot() as view, Writer(context.stdout) as out:
        session = chosen_session(view, arguments)
        if arguments.json:
            out.json(
                {
                    "events": session.state.event_count,
                    "head": session.state.head,
                    "session_id": session.sid,
                    "session_root": session.state.root,
                }
            )
        else:
            out.line(session.state.root)
    return 0
