"""``objstore count-objects``: count objects and bytes."""

from __future__ import annotations

from objstore.compression import decompress
from objstore.errors import StorageError
from objstore.values import CODEC, HEADER, KIND
from plumbing.interface.options import JSON, Option, parse
from plumbing.interface.output import Progress, Writer
from plumbing.interface.stores import open_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from objstore.database import LmdbSnapshot
    from plumbing.interface.options import Context

SUMMARY = "Count objects and the bytes they take, by type with -v."
USAGE = "count-objects [-v] [--json]"
OPTIONS = (
    Option(("-v", "--verbose"), "verbose", help="read every object: counts and bytes by type"),
    JSON,
)
EXAMPLES = ("objstore count-objects", "objstore count-objects -v")


def main(argv: Sequence[str], context: Context) -> int:
    """Print the counts."""
    arguments = parse(argv, OPTIONS, USAGE, most=0)
    with open_database(context) as database, database.snapshot() as view, Writer(context.stdout) as out:
        count, disk = view.count(), database.sizes()["size_disk"]
        if not arguments.verbose:
            if arguments.json:
                out.json({"count": count, "size_disk": disk})
            else:
                out.line(f"{count} objects, {disk} bytes on disk")
            return 0
        with Progress(context, "counting", total=count) as progress:
            kinds = _by_kind(view, progress)
        size, stored = (sum(row[n] for row in kinds.values()) for n in (1, 2))
        refs = sum(1 for _ in view.refs())
        if arguments.json:
            rows = {
                name: dict(zip(("count", "size", "size_stored"), row, strict=True))
                for name, row in kinds.items()
            }
            out.json(
                {
                    "count": count,
                    "refs": refs,
                    "size": size,
                    "size_disk": disk,
                    "size_stored": stored,
                    "types": rows,
                }
            )
            return 0
        out.line(f"count: {count}")
        out.line(f"size: {size}")
        out.line(f"size-stored: {stored}")
        out.line(f"size-disk: {disk}")
        out.line(f"refs: {refs}")
        for name, row in kinds.items():
            out.line("type: {} {} {} {}".format(name, *row))
    return 0


def _by_kind(view: LmdbSnapshot, progress: Progress) -> dict[str, list[int]]:
    """For each type, in order of name: objects, bytes of canonical JSON, and bytes as stored."""
    names = view.kind_names()
    rows = [[0, 0, 0] for _ in names]
    for arrival, value in view.arrivals(1, view.next_arrival()):
        try:
            row = rows[value[KIND]]
            row[1] += len(decompress(value[CODEC], value[HEADER:]))
        except (IndexError, StorageError):
            raise StorageError(f"object {arrival} is damaged", hint="run: objstore verify") from None
        row[0] += 1
        row[2] += len(value)
        progress.advance()
    return {name: row for name, row in sorted(zip(names, rows, strict=True)) if row[0]}
