"""``objstore pack``: write refs and all that they need as one stream."""

from __future__ import annotations

from plumbing.interface.options import Option, parse
from plumbing.interface.output import Writer, counted, human_size, say
from plumbing.interface.packing import SELECTING, pieces_of, selection_of
from plumbing.interface.stores import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbing.interface.options import Context

SUMMARY = "Write refs and all objects that they need as a pack."
USAGE = "pack [--refs PATTERN]... [--not NAME]... [--content] [--dry-run] [--json]"
OPTIONS = (
    *SELECTING,
    Option(("-n", "--dry-run"), "dry_run", help="write nothing; say how much it would be"),
    Option("--json", help="with --dry-run, print JSON instead of text"),
)
EXAMPLES = (
    "objstore pack > all.objpack",
    "objstore pack --refs 'session/*' | ssh example.org objstore unpack",
    "objstore pack --dry-run --json",
)


def main(argv: Sequence[str], context: Context) -> int:
    """Write the pack to standard output."""
    arguments = parse(argv, OPTIONS, USAGE, most=0)
    with open_store(context) as store, store.snapshot() as view:
        selection = selection_of(view, arguments)
        pieces = pieces_of(view, selection, store)
        if not arguments.dry_run:
            for piece in pieces:
                context.stdout.write(piece)
            context.stdout.flush()
            return 0
        size = sum(map(len, pieces))
        with Writer(context.stdout) as out:
            if arguments.json:
                out.json({"bytes": size, "objects": len(selection.order), "refs": len(selection.refs)})
            else:
                out.line(f"{len(selection.order)} objects, {len(selection.refs)} refs, {size} bytes")
        say(context, f"{counted(len(selection.order), 'object')} in {human_size(size)}")
    return 0
