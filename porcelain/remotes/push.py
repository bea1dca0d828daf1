"""``objstore push``: bring what this store has to another one that has not."""

from __future__ import annotations

import os

from objstore.errors import UsageError
from plumbing.interface.options import Arguments, Context
from plumbing.interface.output import Writer
from plumbing.interface.stores import open_store
from porcelain.remotes.transfer import EXCHANGE, chosen_remote, push_to, pushed_document, tell_pushed
from porcelain.remotes.urls import BUNDLE, parse_url, shown

SUMMARY = "bring what this store has to another one that has not"
USAGE = "push [--refs PATTERN]... [--content] [--dry-run] [--json] [REMOTE]"
OPTIONS = EXCHANGE
EXAMPLES = (
    "objstore push",
    "objstore push laptop --refs 'session/*'",
    "objstore push /mnt/stick/store --dry-run",
)
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Push to the remote that was named, or the one there is."""
    with open_store(context) as store, Writer(context.stdout) as out:
        with store.snapshot() as view:
            name, remote = chosen_remote(view, arguments, context.cwd)
        if parse_url(remote.url).kind == "bundle":
            raise UsageError(
                f"{remote.url}: nothing can be added to a bundle",
                hint=f"write a new one: objstore bundle create {os.path.splitext(remote.url)[0]}{BUNDLE}",
            )
        result = push_to(store, name, remote, context, dry_run=arguments.dry_run)
        if arguments.json:
            out.json(pushed_document(result))
        else:
            tell_pushed(out, result, name or shown(remote.url), dry_run=arguments.dry_run)
    return 0
