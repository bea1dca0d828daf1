"""``objstore rev-parse``: turn names into ids."""

from __future__ import annotations

from objstore.errors import NotFound, UsageError
from objstore.snapshot import MIN_ABBREVIATION
from plumbing.interface.options import JSON, NUL, Option, parse
from plumbing.interface.output import Writer
from plumbing.interface.stores import abbreviate, names_given, open_store, resolve_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbing.interface.options import Context

SUMMARY = "Turn refs and abbreviated ids into full ids, or ids into short ones."
USAGE = """rev-parse [--short[=N]] [--json] [-z] NAME...
rev-parse [--short[=N]] [--json] [-z] --stdin
rev-parse --verify [--short[=N]] [--json] [-z] NAME"""
OPTIONS = (
    Option(
        "--short",
        metavar="[=N]",
        help="as few digits as tell it from all others, at least N (7)",
        kind="integer",
    ),
    Option("--verify", help="take exactly one name; with objstore -q, say nothing if it names no object"),
    Option("--stdin", help="read names from standard input, one a line"),
    JSON,
    NUL,
)
EXAMPLES = ("objstore rev-parse tag/start", "objstore rev-parse --short 5f3a77c2d1")

#: Digits of a shortened id where no number is given.
_SHORT = 7


def main(argv: Sequence[str], context: Context) -> int:
    """Print the id that each name stands for."""
    arguments = parse(_with_default(argv), OPTIONS, USAGE)
    if arguments.verify and (arguments.stdin or len(arguments.args) != 1):
        raise UsageError("rev-parse: --verify takes exactly one name", hint="objstore rev-parse --help")
    if arguments.short is not None and not MIN_ABBREVIATION <= arguments.short <= 64:
        raise UsageError(f"rev-parse: --short: {arguments.short} is not between {MIN_ABBREVIATION} and 64")
    batches = names_given("rev-parse", arguments, context)
    with (
        open_store(context) as store,
        store.snapshot() as view,
        Writer(context.stdout, null=arguments.null) as out,
    ):
        try:
            for batch in batches:
                for name, key in resolve_all(view, batch):
                    found = key.hex() if arguments.short is None else abbreviate(view, key, arguments.short)
                    if arguments.json:
                        out.json({"id": found, "name": name, "type": view.kind(key)})
                    else:
                        out.line(found)
                out.flush()
        except NotFound:
            if arguments.verify and context.quiet:
                return NotFound.exit_code
            raise
    return 0


def _with_default(argv: Sequence[str]) -> list[str]:
    """``argv`` with the number that ``--short`` may leave out: its value is joined to it or not given."""
    words = list(argv)
    end = words.index("--") if "--" in words else len(words)
    return [f"--short={_SHORT}" if word == "--short" else word for word in words[:end]] + words[end:]
