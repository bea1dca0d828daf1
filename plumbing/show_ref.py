"""``objstore show-ref``: list refs and the ids they point at."""

from __future__ import annotations

from objstore.errors import NotFound, UsageError
from objstore.snapshot import resolve
from plumbing.interface.options import JSON, NUL, Option, parse
from plumbing.interface.output import Writer
from plumbing.interface.stores import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from objstore.snapshot import Snapshot
    from plumbing.interface.options import Context

SUMMARY = "List refs and the ids they point at."
USAGE = """show-ref [--json] [-z] [PATTERN...]
show-ref --verify [--json] [-z] NAME..."""
OPTIONS = (
    Option("--verify", help="take whole names, local and derived ones too, instead of patterns"),
    JSON,
    NUL,
)
EXAMPLES = ("objstore show-ref", "objstore show-ref start", "objstore show-ref --verify tag/start")


def main(argv: Sequence[str], context: Context) -> int:
    """Print a line for each ref that a pattern matches, or for all."""
    arguments = parse(argv, OPTIONS, USAGE)
    names: list[str] = arguments.args
    if arguments.verify and not names:
        raise UsageError("show-ref: --verify needs a name", hint="objstore show-ref --help")
    with (
        open_store(context) as store,
        store.snapshot() as view,
        Writer(context.stdout, null=arguments.null) as out,
    ):
        count = 0
        for name, key in _verified(view, names) if arguments.verify else _matching(view, names):
            count += 1
            if arguments.json:
                out.json({"id": key.hex(), "name": name})
            else:
                out.line(f"{key.hex()} {name}")
        if names and not count:
            raise NotFound(f"{names[0]}: matches no ref" if len(names) == 1 else "no ref matches")
    return 0


def _verified(view: Snapshot, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for name in names:
        if "/" not in name:
            raise NotFound(f"{name}: no such ref")
        yield name, resolve(view, name)


def _matching(view: Snapshot, patterns: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Refs whose names are, or end with, the whole parts of a pattern; all of them without patterns."""
    endings = tuple("/" + pattern.strip("/") for pattern in patterns)
    for name, key in view.refs():
        if not endings or ("/" + name).endswith(endings):
            yield name, key
