"""``objstore pull``: fetch, and make what arrived ready to work with."""

from __future__ import annotations

from msgspec import structs

from objstore.store import Store
from objstore.sync.exchange import Fetched
from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import Writer, counted
from plumbing.interface.stores import open_store
from porcelain.remotes.config import Remote
from porcelain.remotes.transfer import (
    EXCHANGE,
    bring_back_named,
    chosen_remote,
    diverged_sessions,
    fetch_from,
    fetched_document,
    moved_sessions,
    tell_fetched,
)
from porcelain.remotes.urls import shown
from porcelain.session.tree.graft import graft_heads
from porcelain.session.tree.names import heads, heads_prefix, session_ids
from porcelain.session.tree.store import refresh_index

SUMMARY = "fetch, and unite sessions that went on in several places if asked to"
USAGE = "pull [--graft] [--refs PATTERN]... [--content] [--dry-run] [--json] [REMOTE]"
GRAFT = Option("--graft", help="unite sessions that went on in several places")
OPTIONS = (GRAFT, *EXCHANGE)
EXAMPLES = ("objstore pull", "objstore pull --graft laptop")
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Pull from the remote that was named, or the one there is."""
    with open_store(context, write=True) as store, Writer(context.stdout) as out:
        with store.snapshot() as view:
            name, remote = chosen_remote(view, arguments, context.cwd)
        bring_back_named(store, arguments)
        result, grafted = pull_from(
            store, name, remote, context, dry_run=arguments.dry_run, graft=arguments.graft
        )
        if arguments.json:
            out.json(fetched_document(result) | {"grafted": grafted})
        else:
            tell_pulled(out, context, result, grafted, name or shown(remote.url), dry_run=arguments.dry_run)
    return 0


def pull_from(
    store: Store, name: str, remote: Remote, context: Context, *, dry_run: bool, graft: bool
) -> tuple[Fetched, list[str]]:
    """What was fetched, and the sessions that were united, among them those that had diverged before."""
    result = fetch_from(store, name, remote, context, dry_run=dry_run)
    if dry_run:
        return result, []
    with store.snapshot() as view:
        several = [sid for sid in session_ids(view) if len(heads(view, sid)) > 1]
    for sid in several if graft else ():
        graft_heads(store, sid)
    for sid in moved_sessions(result.moved):
        if sid not in several:
            refresh_index(store, sid)
    others = [one for one in result.diverged if not diverged_sessions([one])]
    left = [] if graft else [heads_prefix(sid).rstrip("/") for sid in several]
    return structs.replace(result, diverged=others + left), several if graft else []


def tell_pulled(
    out: Writer, context: Context, result: Fetched, grafted: list[str], where: str, *, dry_run: bool
) -> None:
    """Say what a pull came to."""
    tell_fetched(out, context, result, where, dry_run=dry_run)
    if grafted:
        out.line(f"{counted(len(grafted), 'session')} united: {' '.join(grafted)}")
