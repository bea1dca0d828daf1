"""``objstore flow unresolved``: the ends that are missing, and why."""

from __future__ import annotations

from collections.abc import Iterator

from objstore.errors import NotFound
from objstore.store import load
from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import counted, say
from plumbing.interface.stores import open_store
from porcelain.flow.chain.fold_store import stored_fold
from porcelain.flow.chain.naming import best_heads, find_conversation
from porcelain.flow.commands.output import OUTPUT, Json, columns, no_structure, print_answer

SUMMARY = "the ends that are missing, and why"
USAGE = "flow unresolved [--all] [--json|--yaml] [ID]"
OPTIONS = (Option("--all", help="also those that were resolved, or never will be"), *OUTPUT)
EXAMPLES = ("objstore flow unresolved", "objstore flow unresolved 3f2a --all")
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """List the open ends of one conversation, or of all."""
    rows: list[Json] = []
    with open_store(context) as store, store.snapshot() as view:
        heads = best_heads(view, "flow")
        if arguments.args:
            wanted = find_conversation(view, arguments.args[0])
            if wanted not in heads:
                raise no_structure(*wanted)
            heads = {wanted: heads[wanted]}
        elif not heads:
            raise NotFound("the store holds no structure yet", hint="objstore import")
        for (provider, name), head in heads.items():
            if not arguments.all and load(view, head, "flow-round").unresolved == 0:
                continue
            for entry in sorted(stored_fold(view, head).unresolved.values(), key=lambda one: one.id):
                if arguments.all or entry.state == "open":
                    rows.append(
                        {
                            "provider": provider,
                            "conversation": name,
                            "kind": entry.kind,
                            "ref": entry.ref or None,
                            "reason": entry.reason or None,
                            "state": entry.state,
                            "since": entry.revision,
                        }
                    )
    print_answer(arguments, context, rows, lambda rows: _lines(rows, context, all_=arguments.all))
    if not rows:
        say(context, "nothing is unresolved")
    elif not arguments.json and not arguments.yaml:
        say(context, counted(len(rows), "end"))
    return 0


def _lines(rows: list[Json], context: Context, *, all_: bool) -> Iterator[str]:
    header = ("conversation", "kind", "ref", *(("state",) if all_ else ()), "reason")
    cells = [
        (
            f"{row['provider']}/{row['conversation']}",
            row["kind"],
            row["ref"] or "-",
            *((row["state"],) if all_ else ()),
            row["reason"] or "-",
        )
        for row in rows
    ]
    return columns(context, header, cells)
