"""``objstore sync``: pull, then push."""

from __future__ import annotations

from plumbing.interface.options import Arguments, Context
from plumbing.interface.output import Writer
from plumbing.interface.stores import open_store
from porcelain.remotes.pull import GRAFT, pull_from, tell_pulled
from porcelain.remotes.transfer import (
    EXCHANGE,
    bring_back_named,
    chosen_remote,
    fetched_document,
    push_to,
    pushed_document,
    tell_pushed,
)
from porcelain.remotes.urls import shown

SUMMARY = "pull, then push: afterwards both stores have the same"
USAGE = "sync [--graft] [--refs PATTERN]... [--content] [--dry-run] [--json] [REMOTE]"
OPTIONS = (GRAFT, *EXCHANGE)
EXAMPLES = ("objstore sync", "objstore sync --graft laptop")
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Sync with the remote that was named, or the one there is."""
    dry_run = arguments.dry_run
    with open_store(context, write=True) as store, Writer(context.stdout) as out:
        with store.snapshot() as view:
            name, remote = chosen_remote(view, arguments, context.cwd)
        bring_back_named(store, arguments)
        fetched, grafted = pull_from(store, name, remote, context, dry_run=dry_run, graft=arguments.graft)
        pushed = push_to(store, name, remote, context, dry_run=dry_run)
        if arguments.json:
            out.json(
                {
                    "fetched": fetched_document(fetched) | {"grafted": grafted},
                    "pushed": pushed_document(pushed),
                }
            )
        else:
            where = name or shown(remote.url)
            tell_pulled(out, context, fetched, grafted, where, dry_run=dry_run)
            tell_pushed(out, pushed, where, dry_run=dry_run)
    return 0
