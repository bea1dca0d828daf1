"""``objstore flow stats``: what the structure of one conversation, or of all, adds up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from objstore.errors import NotFound
from plumbing.interface.options import Arguments, Context
from plumbing.interface.stores import open_store
from porcelain.flow.chain.fold_store import stored_fold
from porcelain.flow.chain.folding import Fold
from porcelain.flow.chain.naming import best_heads, find_conversation
from porcelain.flow.commands.conversations import COUNTS, conversation_rows
from porcelain.flow.commands.output import OUTPUT, Json, columns, no_structure, print_answer

SUMMARY = "what the structure of conversations adds up to"
USAGE = "flow stats [--json|--yaml] [ID]"
OPTIONS = OUTPUT
EXAMPLES = ("objstore flow stats", "objstore flow stats 3f2a --json")
ARGUMENTS = (0, 1)

_GROUPS = {
    "kinds": "nodes",
    "relations": "relations",
    "quality": "quality of relations",
    "unresolved": "unresolved",
}


def run(arguments: Arguments, context: Context) -> int:
    """Sums by agent from the last headers; with ID, the kinds of everything in its fold."""
    with open_store(context) as store, store.snapshot() as view:
        if arguments.args:
            provider, name = find_conversation(view, arguments.args[0])
            head = best_heads(view, "flow").get((provider, name))
            if head is None:
                raise no_structure(provider, name)
            one = _of_fold(stored_fold(view, head)) | {"provider": provider}
            print_answer(arguments, context, [one], lambda rows: _fold_lines(rows[0]))
            return 0
        rows = list(conversation_rows(view))
    if not rows:
        raise NotFound("the store holds no structure yet", hint="objstore import")
    print_answer(arguments, context, _sums(rows), lambda sums: _lines(sums, context))
    return 0


def _sums(rows: list[Json]) -> list[Json]:
    agents: dict[str, Json] = {}
    for row in rows:
        for name in (row["provider"], "total"):
            sums = agents.setdefault(
                name, {"provider": name, "conversations": 0, "rounds": 0, **dict.fromkeys(COUNTS, 0)}
            )
            sums["conversations"] += 1
            for count in ("rounds", *COUNTS):
                sums[count] += row[count] or 0
    total = agents.pop("total")
    return [*(agents[name] for name in sorted(agents)), total]


def _lines(sums: list[Json], context: Context) -> Iterator[str]:
    names = ("conversations", "rounds", "talks", "llm_calls", "steps", "subagents", "bash_runs", "unresolved")
    header = (
        "agent",
        "conversations",
        "rounds",
        "talks",
        "calls",
        "steps",
        "agents",
        "bash",
        "open",
        "lines",
    )
    cells = [
        (
            row["provider"],
            *(f"{row[name]:,}" for name in names),
            f"+{row['lines_added']:,} -{row['lines_removed']:,}",
        )
        for row in sums
    ]
    return columns(context, header, cells, right=(1, 2, 3, 4, 5, 6, 7, 8, 9))


def _of_fold(fold: Fold) -> Json:
    header = fold.header
    assert header is not None
    return {
        "id": header.conversation,
        "round": fold.round,
        "digest": fold.digest,
        "throughSeq": fold.through_seq,
        "kinds": _counted(node.kind for node in fold.nodes.values()),
        "relations": _counted(relation.type for relation in fold.relations.values()),
        "quality": _counted(relation.quality for relation in fold.relations.values()),
        "unresolved": _counted(f"{one.kind} {one.state}" for one in fold.unresolved.values()),
    }


def _counted(names: Iterator[str]) -> dict[str, int]:
    """How often each name comes, the most frequent first, then by name."""
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))


def _fold_lines(row: Json) -> Iterator[str]:
    yield f"{row['provider']} {row['id']}"
    yield f"  round {row['round']}, {row['digest'][:12]}, landed through seq {row['throughSeq']}"
    for group, title in _GROUPS.items():
        if not row[group]:
            continue
        yield ""
        yield f"{title}: {sum(row[group].values()):,}"
        for name, count in row[group].items():
            yield f"  {name:<28}{count:>9,}"
