"""``objstore receive-pack``: let another store push into one, over standard input and output."""

from __future__ import annotations

from plumbing.interface.options import Option, parse
from plumbing.interface.output import Writer
from plumbing.interface.packing import served_folder, told_first
from plumbing.interface.settings import keeps_content, setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbing.interface.options import Arguments, Context

SUMMARY = "Let another store push into a store."
USAGE = "receive-pack [--json] DIR"
OPTIONS = (Option("--json", help="print what the store would take as JSON, and serve nothing"),)
EXAMPLES = (
    "objstore receive-pack /srv/objstore",
    "objstore receive-pack --json ~/project",
)


def main(argv: Sequence[str], context: Context) -> int:
    """Answer requests until standard input ends; each pack is taken whole or refused."""
    arguments = parse(argv, OPTIONS, USAGE, least=1, most=1)
    with told_first(context, serving=not arguments.json):
        return _serve(arguments, context)


def _serve(arguments: Arguments, context: Context) -> int:
    from objstore.store import Store
    from objstore.sync.pipes import WRITE, serve
    from objstore.sync.stores import StoreTransport

    folder = served_folder(arguments.args[0], context.cwd)
    with Store.open(folder, lock_timeout=context.lock_timeout) as store:
        with store.snapshot() as view:
            content = keeps_content(view)
            store.who = setting(view, "user.name") or store.who
        if arguments.json:
            with Writer(context.stdout) as out:
                out.json({"content": content, "hash": store.algorithm, "store": store.store_id})
            return 0
        serve(StoreTransport(store, keeps_content=content), context.stdin, context.stdout, WRITE)
    return 0
