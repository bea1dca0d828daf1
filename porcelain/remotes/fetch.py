"""``objstore fetch``: bring what another store has and this one has not."""

from __future__ import annotations

from plumbing.interface.options import Arguments, Context
from plumbing.interface.output import Writer
from plumbing.interface.stores import open_store
from porcelain.remotes.transfer import (
    EXCHANGE,
    bring_back_named,
    chosen_remote,
    fetch_from,
    fetched_document,
    tell_fetched,
)
from porcelain.remotes.urls import shown

SUMMARY = "bring what another store has and this one has not"
USAGE = "fetch [--refs PATTERN]... [--content] [--dry-run] [--json] [REMOTE]"
OPTIONS = EXCHANGE
EXAMPLES = (
    "objstore fetch",
    "objstore fetch laptop --refs 'session/*'",
    "objstore fetch ssh://example.org/srv/objstore --dry-run",
)
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Fetch from the remote that was named, or the one there is."""
    with open_store(context, write=True) as store, Writer(context.stdout) as out:
        with store.snapshot() as view:
            name, remote = chosen_remote(view, arguments, context.cwd)
        bring_back_named(store, arguments)
        result = fetch_from(store, name, remote, context, dry_run=arguments.dry_run)
        if arguments.json:
            out.json(fetched_document(result))
        else:
            tell_fetched(out, context, result, name or shown(remote.url), dry_run=arguments.dry_run)
    return 0
