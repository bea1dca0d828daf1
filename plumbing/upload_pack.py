"""``objstore upload-pack``: serve a store to one that fetches, over standard input and output."""

from __future__ import annotations

from plumbing.interface.options import Option, parse
from plumbing.interface.output import Writer
from plumbing.interface.packing import served_folder, told_first
from plumbing.interface.settings import keeps_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbing.interface.options import Arguments, Context

SUMMARY = "Serve a store to one that fetches from it."
USAGE = "upload-pack [--json] DIR"
OPTIONS = (Option("--json", help="print what the store offers as JSON, and serve nothing"),)
EXAMPLES = (
    "objstore upload-pack /srv/objstore",
    "objstore upload-pack --json ~/project",
)


def main(argv: Sequence[str], context: Context) -> int:
    """Answer requests until standard input ends; nothing is ever written."""
    arguments = parse(argv, OPTIONS, USAGE, least=1, most=1)
    with told_first(context, serving=not arguments.json):
        return _serve(arguments, context)


def _serve(arguments: Arguments, context: Context) -> int:
    from objstore.store import Store
    from objstore.sync.manifest import Scope
    from objstore.sync.pipes import READ, serve
    from objstore.sync.stores import StoreTransport

    folder = served_folder(arguments.args[0], context.cwd)
    with Store.open(folder, read_only=True) as store:
        with store.snapshot() as view:
            content = keeps_content(view)
        transport = StoreTransport(store, keeps_content=content)
        if not arguments.json:
            serve(transport, context.stdin, context.stdout, READ)
            return 0
        hello = transport.hello(Scope(content=content))
        with Writer(context.stdout) as out:
            out.json(
                {
                    "content": hello.content,
                    "hash": hello.hash,
                    "refs": hello.refs,
                    "root": hello.root.hex(),
                    "store": hello.store,
                    "version": hello.version,
                }
            )
    return 0
