"""``objstore session import``: verify a SQLite file and take its session in."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, say
from porcelain.session.commands.choosing import given_path, open_or_make
from porcelain.session.exchange.sqlite_import import import_session

SUMMARY = "verify such a file and take its session in"
USAGE = "session import [--allow-secrets] [--json] FILE"
OPTIONS: tuple[Option, ...] = (
    Option("--allow-secrets", "allow_secrets", help="take it although a question looks like a secret"),
    JSON,
)
EXAMPLES = ("objstore session import talk.db",)
ARGUMENTS = (1, 1)
_DONE = {
    "continued": "goes on from what was here",
    "diverged": "parted from what was here, and is kept beside it",
    "known": "was here already",
    "new": "is new",
}


def run(arguments: Arguments, context: Context) -> int:
    """Print the session's id; nothing is stored unless every hash in the file is right."""
    path = given_path(context, arguments.args[0])
    path.stat()  # before a store is made for it
    with open_or_make(context) as store:
        done = import_session(store, path, allow_secrets=arguments.allow_secrets)
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(
                {
                    "events": done.events,
                    "nodes": done.nodes,
                    "outcome": done.outcome,
                    "session_id": done.sid,
                    "session_root": done.root,
                }
            )
        else:
            out.line(done.sid)
    counts = f"{counted(done.nodes, 'node')}, {counted(done.events, 'event')}"
    say(context, f"{done.sid}: verified, {counts}: {_DONE[done.outcome]}")
    if done.outcome == "diverged":
        say(context, f"unite them with: objstore session graft {done.sid}")
    return 0
