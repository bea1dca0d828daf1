"""``objstore lineage usage``: the tokens of all model calls, each counted once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from sqlite3 import Connection
from typing import Any

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Progress, Writer, counted, say, table, terminal_width
from porcelain.lineage.facts.identity import session_id
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.usage.kept import fresh_totals, kept_totals
from porcelain.lineage.usage.rules import Tokens
from porcelain.lineage.usage.totals import BY, Group, Totals, Wanted, totals
from porcelain.lineage.views.names import Names
from porcelain.lineage.views.options import open_indexed

SUMMARY = "tokens of all model calls, each counted once"
USAGE = "lineage usage [--by day|model|project|session] [--provider P] [--since DAY] [--until DAY] [--limit N] [--json]"
OPTIONS = (
    Option(
        "--by", "by", help="what a row stands for (default: day)", kind="choice", choices=BY, default="day"
    ),
    Option("--provider", "provider", "P", "only this agent's", "text"),
    Option("--since", "since", "DAY", "from this day on, as 2026-05-22 (UTC)", "text"),
    Option("--until", "until", "DAY", "up to this day", "text"),
    Option(("-n", "--limit"), "limit", "N", "at most this many rows", "integer"),
    JSON,
)
EXAMPLES = (
    "objstore lineage usage",
    "objstore lineage usage --by model --since 2026-05-01",
    "objstore lineage usage --by session -n 10 --json",
)
ARGUMENTS = (0, 0)

#: What is left out first where a line would be longer than the terminal is wide.
_SPARE = ("seen", "stated", "reasoning")
_HEADER = ("calls", "input", "cache read", "cache write", "output", "reasoning", "total", "seen", "stated")


def run(arguments: Arguments, context: Context) -> int:
    """Print a row for each day, model, project or session, and the sum."""
    for day in (arguments.since, arguments.until):
        if day is not None and not _is_day(day):
            raise UsageError(f"{day}: is no day", hint="write it as 2026-05-22")
    wanted = Wanted(provider=arguments.provider, since=arguments.since, until=arguments.until)

    def ask(usage: Connection) -> Totals:
        return totals(usage, arguments.by, wanted, names.project_of_folder)

    with open_indexed(context) as store:
        with open_lineage(store) as indexed:
            fold = indexed.fold
            named = arguments.by in ("project", "session")
            names = Names(indexed.projection().tables if named else defaultdict(list))
            found = kept_totals(indexed, ask)
        if found is None:
            with Progress(context, "reading conversations") as progress:
                found = fresh_totals(store, ask, progress.advance)
    shown = found.groups if arguments.limit is None else found.groups[: arguments.limit]
    labels = [names.session(session_id(one.provider, one.name)) if one.provider else "" for one in shown]
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(_document(found, shown, labels, fold))
            return 0
        rows = [_cells(one, label) for one, label in zip(shown, labels, strict=True)]
        width = terminal_width(context.stdout, context.env)
        if rows:
            header = (("agent", "id", "name") if found.by == "session" else (found.by,)) + _HEADER
            first = len(header) - len(_HEADER)
            rows.append(("total", *("" for _ in range(first - 1)), *_figures(found.total)))
            kept = _that_fit([header, *rows], first, width)
            table_rows = [[row[column] for column in kept] for row in (header, *rows)]
            for line in table(table_rows[1:], table_rows[0], width=width, right=range(first, len(kept))):
                out.line(line)
            missing = [name for column, name in enumerate(header) if column not in kept]
    for line in _said(found, len(found.groups) - len(shown)):
        say(context, line)
    if rows and missing:
        say(context, f"the terminal is too narrow for: {', '.join(missing)}")
    return 0


def _that_fit(rows: Sequence[Sequence[str]], first: int, width: int | None) -> list[int]:
    """The columns to show, of which those from ``first`` on are numbers: all, or without spare ones."""
    kept = list(range(len(rows[0])))
    for name in _SPARE:
        widest = [max(len(row[column]) for row in rows) for column in kept]
        least = [min(one, 20) for one in widest[:first]] + widest[first:]
        if width is None or sum(least) + 2 * (len(least) - 1) <= width:
            break
        kept.remove(rows[0].index(name))
    return kept


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _cells(one: Group, label: str) -> tuple[str, ...]:
    own = (one.provider, one.name[:13], label) if one.provider else (one.name,)
    return (*own, *_figures(one))


def _figures(one: Group) -> tuple[str, ...]:
    numbers = (one.calls, *one.counted, one.counted.total, one.seen, one.stated.total)
    return tuple(f"{number:,}" for number in numbers)


def _said(found: Totals, hidden: int) -> Iterator[str]:
    total = found.total
    if not total.calls:
        yield "no model call with tokens is known here: objstore import"
        return
    yield (
        f"counted once: {counted(total.calls, 'call')}, {total.counted.total:,} tokens; files state "
        f"{counted(total.seen, 'call')}, {total.stated.total:,} tokens, in {counted(found.files, 'file')}"
    )
    if total.inferred:
        yield (
            f"{counted(total.inferred, 'copy').replace('copys', 'copies')} known by time, model and figures only "
            "(inferred)"
        )
    if hidden:
        yield f"{counted(hidden, 'row')} not shown"
    yield from found.remarks


def _document(found: Totals, shown: list[Group], labels: list[str], fold: str) -> dict[str, Any]:
    return {
        "by": found.by,
        "conversations": found.conversations,
        "files": found.files,
        "fold": fold,
        "remarks": found.remarks,
        "rows": [_object(one, label) for one, label in zip(shown, labels, strict=True)],
        "total": _object(found.total, ""),
    }


def _object(one: Group, label: str) -> dict[str, Any]:
    value: dict[str, Any] = {
        "calls": one.calls,
        "counted": _tokens(one.counted),
        "inferred": one.inferred,
        "name": one.name,
        "seen": one.seen,
        "stated": _tokens(one.stated),
    }
    if one.provider:
        value |= {"label": label, "provider": one.provider}
    return value


def _tokens(tokens: Tokens) -> dict[str, int]:
    return {
        "cacheRead": tokens.cache_read,
        "cacheWrite": tokens.cache_write,
        "input": tokens.input,
        "output": tokens.output,
        "reasoning": tokens.reasoning,
        "total": tokens.total,
    }
