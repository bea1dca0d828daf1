"""``objstore remote list``: the remotes of the store."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context
from plumbing.interface.output import Writer, table, terminal_width
from plumbing.interface.stores import open_store
from porcelain.remotes.config import all_remotes
from porcelain.remotes.urls import shown

SUMMARY = "list the remotes of the store"
USAGE = "remote list [--json]"
OPTIONS = (JSON,)
EXAMPLES = ("objstore remote list",)
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """Print name, place, and what is exchanged."""
    with open_store(context) as store, store.snapshot() as view:
        remotes = list(all_remotes(view))
    with Writer(context.stdout) as out:
        if arguments.json:
            for name, remote in remotes:
                out.json(
                    {
                        "content": remote.content,
                        "name": name,
                        "patterns": list(remote.patterns),
                        "program": remote.program,
                        "url": shown(remote.url),
                    }
                )
            return 0
        rows = [
            (
                name,
                shown(remote.url),
                " ".join(remote.patterns) or "all refs",
                "with content" if remote.content else "",
            )
            for name, remote in remotes
        ]
        for line in table(rows, width=terminal_width(context.stdout, context.env)):
            out.line(line)
    return 0
