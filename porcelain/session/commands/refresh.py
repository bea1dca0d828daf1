"""``objstore session refresh``: what a page that holds a root of a session lacks."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, chosen_session
from porcelain.session.exchange.refresh import changes_since, encode_delta, encode_fetched, fetch_node
from porcelain.session.tree.identity import is_bates

SUMMARY = "what changed since a root that somebody holds"
USAGE = """session refresh [--sid SID] [--have ROOT] [--json]
           session refresh [--sid SID] --fetch [--json] BATES..."""
OPTIONS = (
    SID,
    Option("--have", "have", "ROOT", "the root that is held (default: none)", "text"),
    Option("--fetch", "fetch", help="print nodes instead, by Bates id"),
    JSON,
)
EXAMPLES = (
    'objstore session refresh --have "$(cat held-root)"',
    "objstore session refresh --fetch 20260304-050607-9f1c-000003",
)
ARGUMENTS = (0, None)


def run(arguments: Arguments, context: Context) -> int:
    """JSON as it goes over the wire, asked for or not: one delta, or one node a line."""
    if arguments.fetch != bool(arguments.args):
        what = "--fetch needs Bates ids" if arguments.fetch else f"unexpected argument {arguments.args[0]!r}"
        raise UsageError(f"session refresh: {what}", hint="objstore session refresh --help")
    if arguments.fetch and arguments.have is not None:
        raise UsageError(
            "session refresh: --have and --fetch exclude each other", hint="objstore session refresh --help"
        )
    for text in arguments.args:
        if not is_bates(text):
            raise UsageError(f"session refresh: {text[:60]!r} is not a Bates id: expected SID-NNNNNN")
    first = arguments.args[0] if arguments.args else None
    with open_store(context) as store, store.snapshot() as view, Writer(context.stdout) as out:
        session = chosen_session(view, arguments, first)
        for bates in arguments.args:
            out.line(encode_fetched(fetch_node(view, session, bates)))
        if not arguments.fetch:
            out.line(encode_delta(changes_since(view, session, arguments.have)))
    return 0
