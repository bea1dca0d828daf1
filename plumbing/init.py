"""``objstore init``: create a store."""

from __future__ import annotations

import os

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Option, parse
from plumbing.interface.output import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbing.interface.options import Context

SUMMARY = "Create a store and print its folder."
USAGE = "init [--hash ALGORITHM] [--json] [DIR]"
OPTIONS = (
    Option(
        "--hash",
        "hash",
        "ALGORITHM",
        "key objects by sha256 (default) or blake3",
        "choice",
        choices=("sha256", "blake3"),
    ),
    JSON,
)
EXAMPLES = ("objstore init", "objstore init ~/project", "objstore --store /srv/store init --hash blake3")


def main(argv: Sequence[str], context: Context) -> int:
    """Make a store: in ``DIR/.objstore``, or without DIR where commands look for it."""
    arguments = parse(argv, OPTIONS, USAGE, most=1)
    if arguments.args and context.store is not None:
        raise UsageError("init: give DIR or --store, not both", hint="objstore init --help")
    if arguments.args:
        path = os.path.normpath(os.path.join(context.cwd, arguments.args[0], ".objstore"))
    else:
        path = context.store_path()
    from objstore.store import Store

    algorithm = arguments.hash or "sha256"
    with Store.init(path, algorithm=algorithm) as store, Writer(context.stdout) as out:
        if arguments.json:
            out.json({"hash": algorithm, "path": path, "store": store.store_id})
        else:
            out.line(path)
    return 0
