"""``objstore session export``: a session as a SQLite file that verifies by itself."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, say
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, chosen_session, given_path
from porcelain.session.exchange.sqlite_view import export_session

SUMMARY = "write a session as a SQLite file"
USAGE = "session export [--sid SID] [--force] [--json] FILE"
OPTIONS: tuple[Option, ...] = (SID, Option("--force", help="replace FILE even if it is no export"), JSON)
EXAMPLES = ("objstore session export talk.db",)
ARGUMENTS = (1, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Write the file; one that is an export already is replaced."""
    path = given_path(context, arguments.args[0])
    with open_store(context) as store, store.snapshot() as view:
        session = chosen_session(view, arguments)
        export_session(view, session, path, overwrite=arguments.force)
    state = session.state
    if arguments.json:
        with Writer(context.stdout) as out:
            out.json(
                {
                    "events": state.event_count,
                    "file": str(path),
                    "nodes": state.node_count,
                    "session_id": session.sid,
                    "session_root": state.root,
                }
            )
        return 0
    counts = f"{counted(state.node_count, 'node')}, {counted(state.event_count, 'event')}"
    say(context, f"wrote {arguments.args[0]}: {session.sid}, {counts}, root {state.root}")
    return 0
