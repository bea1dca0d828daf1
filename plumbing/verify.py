"""``objstore verify``: check every object, ref and chain."""

from __future__ import annotations

from objstore.errors import CheckFailed
from plumbing.interface.options import JSON, NUL, Option, parse
from plumbing.interface.output import Progress, Writer, counted, printable, say
from plumbing.interface.stores import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbing.interface.options import Context

SUMMARY = "Check every object, ref and chain of the store."
USAGE = "verify [--since=N] [--processes=N] [--json] [-z]"
OPTIONS = (
    Option(
        "--since", metavar="N", help="check only objects from arrival number N on", kind="integer", default=1
    ),
    Option(
        "--processes",
        metavar="N",
        help="use N processes; 0 (default) decides by size",
        kind="integer",
        default=0,
    ),
    JSON,
    NUL,
)
EXAMPLES = ("objstore verify", "objstore verify --json --processes 1")


def main(argv: Sequence[str], context: Context) -> int:
    """Print a line for each problem; exit 1 if there is one."""
    arguments = parse(argv, OPTIONS, USAGE, most=0)
    with open_store(context) as store, Writer(context.stdout, null=arguments.null) as out:
        with store.snapshot() as view:
            total = view.count()
        with Progress(context, "verify", total=total) as progress:
            report = store.verify(
                processes=arguments.processes, since=max(arguments.since, 1), on_progress=progress.advance
            )
        problems = [{"rule": p.rule, "what": p.what, "where": p.where} for p in report.problems]
        if arguments.json:
            out.json(
                {
                    "chains": report.chains,
                    "objects": report.objects,
                    "problems": problems,
                    "refs": report.refs,
                }
            )
        else:
            for problem in report.problems:
                out.line("\t".join(map(printable, (problem.where, problem.rule, problem.what))))
        out.flush()
        parts = [
            counted(n, what)
            for n, what in ((report.objects, "object"), (report.refs, "ref"), (report.chains, "chain"))
        ]
        found = counted(len(problems), "problem") if problems else "no problem"
        say(context, f"checked {', '.join(parts)}: {found}")
    return CheckFailed.exit_code if problems else 0
