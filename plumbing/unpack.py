"""``objstore unpack``: take a pack in."""

from __future__ import annotations

import os

from plumbing.interface.options import parse
from plumbing.interface.packing import RECEIVING, take, told
from plumbing.interface.stores import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbing.interface.options import Context

SUMMARY = "Check a pack and take it into the store."
USAGE = "unpack [--dry-run] [--json] [FILE]"
OPTIONS = RECEIVING
EXAMPLES = (
    "objstore unpack all.objpack",
    "ssh example.org objstore pack | objstore unpack",
    "objstore unpack --dry-run all.objpack",
)


def main(argv: Sequence[str], context: Context) -> int:
    """Take in the pack in FILE, or on standard input, whole or not at all."""
    from objstore.sync.bundles import FileSource

    arguments = parse(argv, OPTIONS, USAGE, most=1)
    with open_store(context, write=True) as store:
        if arguments.args and arguments.args[0] != "-":
            with FileSource(os.path.join(context.cwd, arguments.args[0])) as file:
                received = take(store, file, context, dry_run=arguments.dry_run, why="unpack")
        else:
            received = take(store, context.stdin, context, dry_run=arguments.dry_run, why="unpack")
    told(context, arguments, received)
    return 0
