"""``objstore lineage sessions``: the conversations and their sources, the latest first."""

from __future__ import annotations

from msgspec.structs import asdict

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, say, table, terminal_width
from plumbing.interface.stores import open_store
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.views.listing import SessionRow, session_rows

SUMMARY = "the conversations and their sources"
USAGE = "lineage sessions [--provider P] [--limit N] [--json] [WORD...]"
OPTIONS = (
    Option("--provider", "provider", "P", "only this agent's", "text"),
    Option(("-n", "--limit"), "limit", "N", "at most this many", "integer"),
    JSON,
)
EXAMPLES = (
    "objstore lineage sessions",
    "objstore lineage sessions -n 5 tidepool",
    "objstore lineage sessions --json",
)
ARGUMENTS = (0, None)


def run(arguments: Arguments, context: Context) -> int:
    """List conversations whose name, folder or id contains every WORD."""
    words = [word.casefold() for word in arguments.args]
    with open_store(context) as store, open_lineage(store) as indexed:
        if arguments.limit is not None and not words:
            projection, count = indexed.latest(arguments.limit, arguments.provider)
            rows = session_rows(projection)
        else:
            rows, count = session_rows(indexed.projection(stored=True)), None
    rows = [
        row
        for row in rows
        if (arguments.provider is None or row.provider == arguments.provider)
        and all(word in f"{row.label} {row.native_id}".casefold() for word in words)
    ]
    shown = rows if arguments.limit is None else rows[: arguments.limit]
    with Writer(context.stdout) as out:
        if arguments.json:
            for row in shown:
                out.json(asdict(row))
            return 0
        cells = [_cells(row) for row in shown]
        header = ("last", "agent", "id", "name", "records", "files", "")
        width = terminal_width(context.stdout, context.env)
        for line in table(cells, header, width=width, right=(4, 5)) if cells else ():
            out.line(line)
    hidden = (len(rows) if count is None else count) - len(shown)
    if hidden:
        say(context, f"{counted(hidden, 'conversation')} not shown")
    elif not rows:
        say(
            context,
            "no conversation matches"
            if words or arguments.provider
            else "no conversation yet: objstore import",
        )
    return 0


def _cells(row: SessionRow) -> tuple[str, ...]:
    last = row.last[:16].replace("T", " ") if row.last else "-"
    remarks = [
        text
        for count, text in (
            (row.absent, f"{row.absent} gone"),
            (row.damage, f"{row.damage} damaged"),
            (row.conflicts, "rewritten"),
        )
        if count
    ]
    return (
        last,
        row.provider,
        row.native_id[:13],
        row.label,
        f"{row.records:,}",
        f"{row.sources:,}",
        ", ".join(remarks),
    )
