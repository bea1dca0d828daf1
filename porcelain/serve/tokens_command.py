"""``objstore serve tokens``: the tokens that let clients in, made, listed and revoked."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, printable, say
from plumbing.interface.stores import open_store
from porcelain.serve.tokens import SCOPES, all_tokens, forget_token, keep_token, new_token

SUMMARY = "make, list and revoke the tokens that let clients in"
USAGE = """serve tokens [--json]
           serve tokens --add read|write [--label TEXT]
           serve tokens --revoke ID"""
OPTIONS = (
    Option(
        "--add", "add", help="make a token for reading, or for writing too", kind="choice", choices=SCOPES
    ),
    Option("--label", "label", "TEXT", "what it is for", "text"),
    Option("--revoke", "revoke", "ID", "have the token ID be good for nothing", "text"),
    JSON,
)
EXAMPLES = (
    "objstore serve tokens --add read --label laptop",
    "objstore serve tokens --revoke 1f00a2b3",
)
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """A new token is printed, once; afterwards only its hash is known."""
    if arguments.add and arguments.revoke:
        raise UsageError("serve tokens: --add and --revoke exclude each other")
    if arguments.label is not None and not arguments.add:
        raise UsageError("serve tokens: --label goes with --add")
    changes = bool(arguments.add or arguments.revoke)
    with open_store(context, write=changes) as store, Writer(context.stdout) as out, store.snapshot() as view:
        batch = store.batch()
        if arguments.add:
            identity, text, token = new_token(arguments.add, arguments.label or "", store.now())
            keep_token(batch, identity, token)
            store.commit(batch)
            out.line(text)
            say(context, f"it is shown this once; to revoke it: objstore serve tokens --revoke {identity}")
        elif arguments.revoke:
            forget_token(view, batch, arguments.revoke)
            store.commit(batch)
        else:
            for identity, token in all_tokens(view):
                if arguments.json:
                    out.json(
                        {
                            "created": token.created,
                            "id": identity,
                            "label": token.label,
                            "scope": token.scope,
                        }
                    )
                else:
                    out.line(
                        f"{identity}  {token.scope:<5}  {token.created}  {printable(token.label)}".rstrip()
                    )
    return 0
