"""``objstore session chain-check``: recompute every hash of sessions."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, printable, say
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, find_session
from porcelain.session.integrity.checking import Check, chain_check, check_all

SUMMARY = "check the hashes of sessions"
USAGE = "session chain-check [--sid SID] [--replay] [--json]"
OPTIONS = (
    Option("--sid", "sid", "SID", "only this session (default: all)", SID.kind),
    Option("--replay", "replay", help="check every earlier root too"),
    JSON,
)
EXAMPLES = ("objstore session chain-check", "objstore session chain-check --replay --json")
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """One line a head: verified, unchained, or corrupted and where; 1 when any is not verified."""
    return check(arguments, context, replay=arguments.replay)


def check(arguments: Arguments, context: Context, *, replay: bool = False) -> int:
    """Check the session that ``--sid`` names, or all; with ``replay`` every earlier root too."""
    with open_store(context) as store, store.snapshot() as view:
        path: str = store.database.path  # type: ignore[union-attr]
        if arguments.sid is None:
            checks = check_all(view, replay=replay, path=path)
        else:
            checks = chain_check(view, find_session(view, arguments.sid), replay=replay, path=path)
    with Writer(context.stdout) as out:
        for one in checks:
            if arguments.json:
                out.json(_document(one))
            else:
                out.line(printable(_line(one)))
    bad = {one.sid for one in checks if one.status != "verified"}
    result = f"{len(bad)} not verified" if bad else "all verified"
    say(context, f"checked {counted(len({one.sid for one in checks}), 'session')}: {result}")
    return 1 if bad else 0


def _line(check: Check) -> str:
    if check.status == "verified":
        counts = f"{counted(check.nodes, 'node')}, {counted(check.events, 'event')}"
        return f"{check.sid}: verified: {counts}, root {check.root}"
    if check.status == "unchained":
        return f"{check.sid}: unchained: no event is here"
    where = "" if check.index is None else f" at event {check.index}"
    return f"{check.sid}: corrupted{where}: {check.reason}: {check.place}: {check.what}"


def _document(check: Check) -> dict[str, object]:
    return {
        "events": check.events,
        "head": check.head,
        "index": check.index,
        "nodes": check.nodes,
        "place": check.place,
        "reason": check.reason,
        "session_id": check.sid,
        "session_root": check.root,
        "status": check.status,
        "what": check.what,
    }
