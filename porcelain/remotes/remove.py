"""``objstore remote remove``: forget a remote; nothing that came from it is lost."""

from __future__ import annotations

from plumbing.interface.options import Arguments, Context
from plumbing.interface.stores import open_store
from porcelain.remotes.config import remove_remote

SUMMARY = "forget a remote; what came from it stays"
USAGE = "remote remove NAME"
OPTIONS = ()
EXAMPLES = ("objstore remote remove stick",)
ARGUMENTS = (1, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Forget it."""
    with open_store(context, write=True) as store:
        batch = store.batch()
        with store.snapshot() as view:
            remove_remote(view, batch, arguments.args[0])
        store.commit(batch)
    return 0
