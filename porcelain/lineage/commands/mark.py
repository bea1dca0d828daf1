"""``objstore lineage mark``: mark a file as one to keep, set aside or give up; clear a conflict."""

from __future__ import annotations

import msgspec

from objstore.errors import NotFound, UsageError
from objstore.store import Store
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, printable
from plumbing.interface.stores import open_store
from porcelain.importing.cursors import load_cursor, save_cursor
from porcelain.lineage.commands.curating import BY, UNDO, now, state, stated_lineage
from porcelain.lineage.curation.stating import CURATOR, conflicts_of, mark, withdraw
from porcelain.lineage.derived.lookup import find_node
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.tables.columns import MARK_TYPES

SUMMARY = "mark a file to be kept or given up, or clear a conflict"
USAGE = """lineage mark [--label NAME] [--reason TEXT] [--replacement FILE] [--by NAME] [--undo] [--json] FILE TYPE
lineage mark --clear-conflict [--json] FILE"""
OPTIONS = (
    Option("--label", "text", "NAME", "a name for what is marked", "text"),
    Option("--reason", "reason", "TEXT", "why", "text"),
    Option("--replacement", "replacement", "FILE", "the file that took its place", "text"),
    Option("--clear-conflict", help="the rewritten file is right as it is"),
    BY,
    UNDO,
    JSON,
)
EXAMPLES = (
    "objstore lineage mark 3f2a preserve --label 'the garden branch'",
    "objstore lineage mark --clear-conflict 3f2a",
)
ARGUMENTS = (1, 2)


def run(arguments: Arguments, context: Context) -> int:
    """State a mark. No mark ever deletes a file."""
    with open_store(context, write=True) as store:
        found = stated_lineage(store, [name for name in (arguments.args[0], arguments.replacement) if name])
        node = find_node(found, arguments.args[0])
        if arguments.clear_conflict:
            if len(arguments.args) != 1:
                raise UsageError("lineage mark: --clear-conflict takes a file only")
            beside = [one for one in found.nodes if (one.host, one.path) == (node.host, node.path)]
            cleared = withdraw(store, conflicts_of(found, beside))
            if not cleared:
                raise NotFound(f"{node.path}: has no conflict")
            _clear_cursor(store, node)
            with Writer(context.stdout) as out:
                if arguments.json:
                    out.json({"facts": [one.id for one in cleared], "result": "cleared"})
                else:
                    out.line(printable(f"cleared: {node.path}; both states stay in the store"))
            return 0
        if len(arguments.args) != 2:
            raise UsageError(f"lineage mark: name a type: {' '.join(MARK_TYPES)}")
        kind = arguments.args[1]
        instead = find_node(found, arguments.replacement) if arguments.replacement else None
        made = mark(
            node,
            kind,
            now(store),
            text=arguments.text,
            reason=arguments.reason,
            replacement=instead,
            curator=arguments.curator or CURATOR,
        )
        return state(store, [made], arguments, context, f"{kind}: {node.path}")


def _clear_cursor(store: Store, node: Node) -> None:
    with store.snapshot() as view:
        cursor = load_cursor(view, node.provider, node.path)
    if cursor is not None and cursor.state == "conflict":
        batch = store.batch()
        save_cursor(batch, msgspec.structs.replace(cursor, state="active"))
        store.commit(batch)
