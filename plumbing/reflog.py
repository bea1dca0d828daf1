"""``objstore reflog``: where a ref has been."""

from __future__ import annotations

from objstore.errors import NotFound
from plumbing.interface.options import JSON, NUL, Option, parse
from plumbing.interface.output import Writer, printable
from plumbing.interface.stores import NO_ID, open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbing.interface.options import Context

SUMMARY = "Where a ref has been, the newest move first."
USAGE = "reflog [--count=N] [--reverse] [--json] [-z] NAME"
OPTIONS = (
    Option(("-n", "--count"), "count", "N", "stop after N moves", "integer"),
    Option("--reverse", help="the oldest move first"),
    JSON,
    NUL,
)
EXAMPLES = ("objstore reflog tag/start", "objstore reflog -n 1 --json tag/start")


def main(argv: Sequence[str], context: Context) -> int:
    """Print a line for each move of a ref."""
    arguments = parse(argv, OPTIONS, USAGE, least=1, most=1)
    name = arguments.args[0]
    with (
        open_store(context) as store,
        store.snapshot() as view,
        Writer(context.stdout, null=arguments.null) as out,
    ):
        moves = list(view.reflog(name))
        if not moves and view.ref(name) is None:
            raise NotFound(
                f"{name}: no such ref, and none in the past", hint="list refs with: objstore show-ref"
            )
        if not arguments.reverse:
            moves.reverse()
        for move in moves[: arguments.count]:
            if arguments.json:
                out.json(
                    {
                        field: getattr(move, field)
                        for field in ("name", "new", "number", "old", "time", "who", "why")
                    }
                )
            else:
                out.line(
                    f"{move.old or NO_ID} {move.new or NO_ID} {move.time} {printable(move.who)}\t{printable(move.why)}"
                )
    return 0
