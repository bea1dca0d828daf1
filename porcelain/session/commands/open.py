"""``objstore session``: the interactive session, and the options that stand for the commands of the public page."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from porcelain.session.commands import answering, chain_check, gc, tree
from porcelain.session.commands import list as listing
from porcelain.session.commands.answering import asking_of
from porcelain.session.commands.choosing import SID, find_session, open_or_make
from porcelain.session.tree.change import open_session
from porcelain.session.tree.store import new_session

SUMMARY = "ask in a session, at the terminal"
USAGE = """session [--sid SID] [--retrieval-keywords WORDS] [--anew]
           session --answerer openai --model NAME [--url URL] [--sid SID] [--retrieval-keywords WORDS] [--anew]
           session --list [--json]
           session --tree [--sid SID] [--json]
           session --chain-check [--sid SID] [--json]
           session --gc N [--yes] [--json]
           session COMMAND ..."""
OPTIONS = (
    Option("--sid", "sid", "SID", "resume this session (default: begin a new one)", SID.kind),
    Option("--list", "list", help="list the sessions"),
    Option("--tree", "tree", help="print the tree of a session"),
    Option("--chain-check", "chain_check", help="check the hashes of one session, or of all"),
    Option("--gc", "gc", "N", "keep the N sessions with the latest events", "integer"),
    Option("--yes", "yes", help="keep 0 sessions without being asked"),
    *answering.OPTIONS,
    JSON,
)
EXAMPLES = (
    "objstore session",
    "objstore session --sid 20260304-050607-9f1c",
    "objstore session --tree --sid 20260304-050607-9f1c",
    "objstore session ask When was the lighthouse first lit?",
)
ARGUMENTS = (0, 0)
_HINT = "objstore session --help"


def run(arguments: Arguments, context: Context) -> int:
    """Open the interactive session, or do what one option asks for."""
    modes = {
        "--list": arguments.list,
        "--tree": arguments.tree,
        "--chain-check": arguments.chain_check,
        "--gc": arguments.gc is not None,
    }
    wanted = [flag for flag, given in modes.items() if given]
    if len(wanted) > 1:
        raise UsageError(f"session: {wanted[0]} and {wanted[1]} exclude each other", hint=_HINT)
    if not wanted:
        return _interactive(arguments, context)
    if arguments.sid is not None and wanted[0] in ("--list", "--gc"):
        raise UsageError(f"session: {wanted[0]} takes no --sid", hint=_HINT)
    if wanted[0] == "--list":
        return listing.run(arguments, context)
    if wanted[0] == "--tree":
        return tree.run(arguments, context)
    if wanted[0] == "--gc":
        return gc.keep(arguments.gc, arguments, context)
    return chain_check.check(arguments, context)


def _interactive(arguments: Arguments, context: Context) -> int:
    if arguments.json or arguments.yes:
        flag = "--json" if arguments.json else "--yes"
        raise UsageError(f"session: {flag} does not go with an interactive session", hint=_HINT)
    if not (context.stdin.isatty() and context.stdout.isatty()):
        raise UsageError(
            "session: an interactive session needs a terminal",
            hint="without one: objstore session ask QUESTION",
        )
    ask = asking_of("session", arguments, context.env)
    from porcelain.session.repl.loop import converse

    with open_or_make(context) as store:
        if arguments.sid is None:
            sid, _ = new_session(store)
        else:
            with store.snapshot() as view:
                sid = open_session(view, find_session(view, arguments.sid)).sid
        return converse(store, sid, ask, context, resumed=arguments.sid is not None)
