"""``objstore ls-objects``: list the objects of a store."""

from __future__ import annotations

from objstore.values import KIND
from plumbing.interface.options import JSON, NUL, Option, parse
from plumbing.interface.output import Writer
from plumbing.interface.stores import open_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbing.interface.options import Context

SUMMARY = "List the objects of the store in the order in which they arrived."
USAGE = "ls-objects [--type=TYPE]... [--long] [--json] [-z]"
OPTIONS = (
    Option(
        "--type",
        metavar="TYPE",
        help="only objects of this type; may be given several times",
        kind="text",
        many=True,
    ),
    Option(("-l", "--long"), "long", help="print type and size too"),
    JSON,
    NUL,
)
EXAMPLES = ("objstore ls-objects --type=text", "objstore ls-objects --long | sort -k3 -n | tail")


def main(argv: Sequence[str], context: Context) -> int:
    """Print a line for each object."""
    arguments = parse(argv, OPTIONS, USAGE, most=0)
    wanted = frozenset(arguments.type)
    with (
        open_database(context) as database,
        database.snapshot() as view,
        Writer(context.stdout, null=arguments.null) as out,
    ):
        if arguments.long or arguments.json:
            for key, (kind, data) in view.objects():
                if wanted and kind not in wanted:
                    continue
                if arguments.json:
                    out.json({"id": key.hex(), "size": len(data), "type": kind})
                else:
                    out.line(f"{key.hex()} {kind} {len(data)}")
            return 0
        numbers = {number for number, kind in enumerate(view.kind_names()) if kind in wanted}
        for _, value in view.arrivals(1, view.next_arrival()):
            if not wanted or value[KIND] in numbers:
                out.line(value[:32].hex())
    return 0
