"""``objstore flow conversations``: the conversations that have structure, and what they amount to."""

from __future__ import annotations

from collections.abc import Iterator

from objstore.errors import NotFound
from objstore.refs import unquote
from objstore.snapshot import Snapshot
from objstore.store import load
from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.stores import open_store
from porcelain.flow.chain.kinds import FlowRound
from porcelain.flow.chain.naming import best_heads, conversations
from porcelain.flow.commands.output import OUTPUT, Json, columns, print_answer

SUMMARY = "the conversations that have structure"
USAGE = "flow conversations [--provider P] [--json|--yaml]"
OPTIONS = (Option("--provider", "provider", "P", "only this agent's conversations", "text"), *OUTPUT)
EXAMPLES = ("objstore flow conversations", "objstore flow conversations --yaml")
ARGUMENTS = (0, 0)

#: Counts of a header, in the order in which they are told.
COUNTS = (
    *("talks", "steps", "streams", "segments", "unresolved", "changes"),
    *("lines_added", "lines_removed", "llm_calls", "subagents", "bash_runs"),
)


def run(arguments: Arguments, context: Context) -> int:
    """List them, the one used last first; counts that a chain does not state are null."""
    with open_store(context) as store, store.snapshot() as view:
        rows = list(conversation_rows(view))
    if not rows:
        raise NotFound("the store holds no structure yet", hint="objstore import")
    if arguments.provider is not None:
        rows = [row for row in rows if row["provider"] == arguments.provider]
    rows.sort(key=lambda row: (row["to"] or "", row["id"]), reverse=True)
    print_answer(arguments, context, rows, lambda rows: _lines(rows, context))
    return 0


def conversation_rows(view: Snapshot) -> Iterator[Json]:
    """One row a conversation, from the last header of the chain that covers most."""
    origins: dict[tuple[str, str], list[str]] = {}
    for origin, provider, name, _ in conversations(view, "flow"):
        origins.setdefault((provider, name), []).append(origin)
    for (provider, name), head in best_heads(view, "flow").items():
        entry: FlowRound = load(view, head, "flow-round")
        yield {
            "id": unquote(name),
            "provider": provider,
            "origins": origins[provider, name],
            "title": entry.title or None,
            "rounds": entry.round,
            "from": entry.session_from_time or entry.from_time or None,
            "to": entry.session_through_time or entry.through_time or None,
            **{count: value if isinstance(value := getattr(entry, count), int) else None for count in COUNTS},
        }


def _lines(rows: list[Json], context: Context) -> Iterator[str]:
    header = ("last", "agent", "id", "rounds", "talks", "calls", "steps", "agents", "open", "title")
    cells = [
        (
            (row["to"] or "-")[:16].replace("T", " "),
            row["provider"],
            row["id"],
            f"{row['rounds']:,}",
            *(
                "-" if row[name] is None else f"{row[name]:,}"
                for name in ("talks", "llm_calls", "steps", "subagents", "unresolved")
            ),
            row["title"] or "",
        )
        for row in rows
    ]
    return columns(context, header, cells, right=(3, 4, 5, 6, 7, 8))
