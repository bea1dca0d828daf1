"""``objstore lineage move``: move all conversations of a folder to another one, on record and, when told, on disk."""

from __future__ import annotations

import os

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, printable
from plumbing.interface.stores import open_store
from porcelain.lineage.adapters.hosts import host_label
from porcelain.lineage.commands.curating import now
from porcelain.lineage.curation.moves import copy_files, facts_of_move, plan_move
from porcelain.lineage.curation.stating import learn
from porcelain.lineage.index.opening import open_lineage

SUMMARY = "record that a folder's conversations moved with it"
USAGE = "lineage move --from DIR --to DIR [--apply] [--copy] [--operation ID] [--json]"
OPTIONS = (
    Option("--from", "from_cwd", "DIR", "the folder as it was", "text"),
    Option("--to", "to_cwd", "DIR", "the folder as it is", "text"),
    Option("--apply", help="record it; without, only show what would be recorded"),
    Option("--copy", help="copy the files too, into the new folder's place; none is changed or deleted"),
    Option("--operation", "operation", "ID", "an id for the whole (default: by the two folders)", "text"),
    JSON,
)
EXAMPLES = (
    "objstore lineage move --from ~/src/tidepool --to ~/code/tidepool",
    "objstore lineage move --from ~/src/tidepool --to ~/code/tidepool --apply --copy",
)
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """Show or record the move of every conversation of a folder and of those below it."""
    if not arguments.from_cwd or not arguments.to_cwd:
        raise UsageError("lineage move: name both folders: --from DIR --to DIR")
    if arguments.copy and not arguments.apply:
        raise UsageError("lineage move: --copy copies only with --apply")
    before, after = (
        os.path.normpath(os.path.join(context.cwd, os.path.expanduser(text)))
        for text in (arguments.from_cwd, arguments.to_cwd)
    )
    if before == after:
        raise UsageError("lineage move: both folders are the same")
    with open_store(context, write=arguments.apply) as store:
        with store.snapshot() as view:
            host = host_label(view)
        with open_lineage(store) as indexed:
            found = indexed.everything()
        plan = plan_move(found, host, before, after, arguments.operation)
        copied = copy_files([*plan.moves, *plan.known]) if arguments.copy else []
        if arguments.apply:
            learn(store, facts_of_move(plan, host, now(store), arguments.copy))
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(
                {
                    "applied": bool(arguments.apply),
                    "copied": len(copied),
                    "known": len(plan.known),
                    "left": [node.path for node in plan.left],
                    "moves": [{"from": move.node.path, "to": move.destination} for move in plan.moves],
                    "operation": plan.operation,
                }
            )
            return 0
        for move in plan.moves:
            out.line(printable(f"{move.node.path}\n  -> {move.destination}".replace("\n", " ")))
        for node in plan.left:
            reason = "its file is gone" if not node.present else f"{node.provider} keeps no folders"
            out.line(printable(f"left: {node.path}: {reason}"))
        done = "recorded" if arguments.apply else "to record (--apply records)"
        parts = [f"{counted(len(plan.moves), 'conversation')} {done}"]
        if plan.known:
            parts.append(f"{len(plan.known):,} recorded before")
        if arguments.copy:
            parts.append(f"{counted(len(copied), 'file')} copied")
        out.line("; ".join(parts))
    return 0
