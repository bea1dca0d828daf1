"""``objstore session graft``: unite the heads of a session that went on in several places."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, say
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, find_session
from porcelain.session.tree.graft import graft_heads

SUMMARY = "unite a session that went on in several places"
USAGE = "session graft [--sid SID] [--json] [SID]"
OPTIONS: tuple[Option, ...] = (SID, JSON)
EXAMPLES = ("objstore session graft 20260304-050607-9f1c",)
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Print the event id of the one head that is left, and what came in."""
    if arguments.args and arguments.sid is not None:
        raise UsageError("session graft: name the session once", hint="objstore session graft --help")
    named = arguments.args[0] if arguments.args else arguments.sid
    with open_store(context, write=True) as store:
        with store.snapshot() as view:
            sid = find_session(view, named)
        done = graft_heads(store, sid)
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(
                {
                    "head": done.head,
                    "labels": [one.bates for one in done.labels],
                    "nodes": [one.bates for one in done.nodes],
                    "session_id": sid,
                    "united": done.united,
                }
            )
        else:
            out.line(done.head)
    if not done.united:
        say(context, f"{sid}: has one head, there is nothing to unite")
        return 0
    say(
        context,
        f"{sid}: united {counted(len(done.united), 'head')}: {counted(len(done.nodes), 'node')} "
        f"and {counted(len(done.labels), 'label')} came in",
    )
    return 0
