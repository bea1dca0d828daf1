"""``objstore session label``: name a node, or take its name away."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, say
from plumbing.interface.stores import open_store
from porcelain.providers.redaction import redact_text
from porcelain.session.commands.choosing import SID, chosen_node, chosen_session
from porcelain.session.tree.store import set_label

SUMMARY = "name a node"
USAGE = """session label [--sid SID] [--node NODE] [--json] NAME
           session label --remove [--sid SID] [--node NODE] [--json]"""
OPTIONS = (
    SID,
    Option("--node", "node", "NODE", "the node (default: where you are)", "text"),
    Option("--remove", "remove", help="take the name away"),
    JSON,
)
EXAMPLES = ("objstore session label fork", "objstore session label --node 3 'the second try'")
ARGUMENTS = (0, None)


def run(arguments: Arguments, context: Context) -> int:
    """Print the session's new root: the label is inside the hash."""
    name = " ".join(arguments.args)
    if bool(name) == arguments.remove:
        what = "--remove takes no name" if name else "no name was given"
        raise UsageError(f"session label: {what}", hint="objstore session label --help")
    with open_store(context, write=True) as store, Writer(context.stdout) as out:
        with store.snapshot() as view:
            session = chosen_session(view, arguments, arguments.node)
            seq = chosen_node(view, session, arguments.node)
        label = None if arguments.remove else redact_text(name)
        done = set_label(store, session.sid, seq, label)
        if arguments.json:
            out.json(
                {
                    "bates": done.bates,
                    "label": label,
                    "minted": done.minted,
                    "node_hash": done.node_hash,
                    "session_id": session.sid,
                    "session_root": done.session_root,
                }
            )
        else:
            out.line(done.session_root)
    say(context, f"{done.bates}: {counted(done.minted, 'node')} minted again")
    return 0
