"""``objstore session list``: the sessions, the one with the latest event first."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, say, table, terminal_width
from plumbing.interface.stores import open_store
from porcelain.session.tree.listing import Summary, list_sessions

SUMMARY = "the sessions, latest first"
USAGE = "session list [--json]"
OPTIONS: tuple[Option, ...] = (JSON,)
EXAMPLES = ("objstore session list", "objstore session list --json")
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """One line a session."""
    with open_store(context) as store, store.snapshot() as view:
        found = list_sessions(view)
    with Writer(context.stdout) as out:
        if arguments.json:
            for one in found:
                out.json(_document(one))
        elif found:
            header = ("session", "last event", "turns", "at", "root")
            width = terminal_width(context.stdout, context.env)
            for line in table([_cells(one) for one in found], header, width=width, right=(2,), whole=(0,)):
                out.line(line)
        else:
            say(context, "there is no session yet: objstore session")
    return 0


def _cells(one: Summary) -> tuple[str, ...]:
    if one.root is None or one.current is None:
        where = f"{len(one.heads)} heads: objstore session graft {one.sid}"
        return one.sid, one.updated_at, f"{one.turns:,}", "", where
    return one.sid, one.updated_at, f"{one.turns:,}", str(int(one.current[-6:])), one.root


def _document(one: Summary) -> dict[str, object]:
    return {
        "created_at": one.created_at,
        "current_bates": one.current,
        "events": one.events,
        "heads": list(one.heads),
        "session_id": one.sid,
        "session_root": one.root,
        "turns": one.turns,
        "updated_at": one.updated_at,
    }
