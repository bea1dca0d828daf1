"""What push, pull, fetch, clone and sync share: which remote is meant, the exchange, and how it is told."""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import structs

from objstore.errors import NotFound, UsageError
from objstore.snapshot import Snapshot
from objstore.store import Store
from objstore.sync.exchange import Fetched, Pushed, fetch, push
from objstore.sync.manifest import Scope
from objstore.sync.transport import Transport
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Progress, Writer, counted, printable
from plumbing.interface.packing import tell_renamed
from plumbing.interface.settings import keeps_content
from porcelain.remotes.config import Remote, all_remotes, find_remote, is_name, note_seen, pusher, seen_root
from porcelain.remotes.urls import open_transport, parse_url, shown
from porcelain.session.tree.names import removed_sessions
from porcelain.session.tree.retention import bring_back

REFS = Option(
    "--refs", "refs", "PATTERN", "only refs like PATTERN (* matches slashes too)", "text", many=True
)
CONTENT = Option("--content", help="with what was said in conversations, where both stores keep it")
PROGRAM_OPTION = Option(
    "--program", "program", "PROGRAM", "how objstore is called on the other machine", "text"
)
DRY_RUN = Option(("-n", "--dry-run"), "dry_run", help="work everything out and change nothing")
EXCHANGE = (REFS, CONTENT, PROGRAM_OPTION, DRY_RUN, JSON)
#: The remote that is meant where none is named.
DEFAULT = "origin"


def named_remote(view: Snapshot, arguments: Arguments) -> tuple[str, Remote]:
    """The name ("" for none) of the remote that was typed, or of the one there is, and the remote."""
    return _typed(view, arguments.args[0]) if arguments.args else _default(view)


def chosen_remote(view: Snapshot, arguments: Arguments, cwd: str) -> tuple[str, Remote]:
    """``named_remote``, with what the options say about it."""
    name, remote = named_remote(view, arguments)
    if arguments.refs:
        remote = structs.replace(remote, patterns=tuple(arguments.refs))
    if arguments.content:
        remote = structs.replace(remote, content=True)
    if arguments.program:
        remote = structs.replace(remote, program=arguments.program)
    parse_url(remote.url)
    return name, remote


def _typed(view: Snapshot, text: str) -> tuple[str, Remote]:
    remote = find_remote(view, text)
    if remote is not None:
        return text, remote
    if is_name(text) and not os.path.exists(text):
        raise NotFound(f"{text}: no such remote", hint=f"objstore remote add {text} URL")
    return "", Remote(url=text)


def _default(view: Snapshot) -> tuple[str, Remote]:
    remotes = dict(all_remotes(view))
    if not remotes:
        raise NotFound("the store has no remote", hint=f"objstore remote add {DEFAULT} URL")
    name = DEFAULT if DEFAULT in remotes else next(iter(remotes))
    if len(remotes) > 1 and name != DEFAULT:
        raise UsageError("which remote?", hint="name one of: " + " ".join(remotes))
    return name, remotes[name]


def bring_back_named(store: Store, arguments: Arguments) -> None:
    """Let sessions that were removed here come back, where ``--refs`` names them."""
    with store.snapshot() as view:
        named = [sid for sid in removed_sessions(view) if any(sid in pattern for pattern in arguments.refs)]
    if named and not arguments.dry_run:
        bring_back(store, named)


def fetch_from(store: Store, name: str, remote: Remote, context: Context, *, dry_run: bool) -> Fetched:
    """Fetch from a remote, and remember its root where all was fetched."""
    with open_transport(remote, context) as transport:
        return fetch_over(transport, store, name, remote, context, dry_run=dry_run)


def fetch_over(
    transport: Transport, store: Store, name: str, remote: Remote, context: Context, *, dry_run: bool
) -> Fetched:
    """``fetch_from`` over a transport that is open."""
    with store.snapshot() as view:
        content = keeps_content(view)
        scope = _scope(remote, content)
        seen = seen_root(view, name, scope) if name else None
    with Progress(context, f"fetch from {name or shown(remote.url)}") as progress:
        result = fetch(
            store,
            transport,
            scope,
            keeps_content=content,
            seen=seen,
            dry_run=dry_run,
            on_progress=progress.advance,
        )
    if name and not dry_run and result.root not in (None, seen):
        batch = store.batch()
        note_seen(batch, name, scope, result.root)
        store.commit(batch)
    return result


def _scope(remote: Remote, content: bool) -> Scope:
    """What is exchanged. A bundle has what it has: content comes along where it is kept."""
    scope = remote.scope()
    if parse_url(remote.url).kind == "bundle":
        return structs.replace(scope, content=content)
    return scope


def push_to(store: Store, name: str, remote: Remote, context: Context, *, dry_run: bool) -> Pushed:
    """Push to a remote."""
    with (
        open_transport(remote, context, None if dry_run else pusher(store)) as transport,
        Progress(context, f"push to {name or shown(remote.url)}") as progress,
    ):
        return push(store, transport, remote.scope(), dry_run=dry_run, on_progress=progress.advance)


def fetched_document(result: Fetched) -> dict[str, object]:
    """What ``--json`` prints of a fetch."""
    return {
        "added": result.added,
        "differed": result.differed,
        "diverged": result.diverged,
        "moved": result.moved,
        "objects": result.objects,
        "renamed": result.renamed,
        "store": result.store,
    }


def pushed_document(result: Pushed) -> dict[str, object]:
    """What ``--json`` prints of a push."""
    return {
        "added": result.added,
        "behind": result.behind,
        "diverged": result.diverged,
        "moved": result.moved,
        "objects": result.objects,
        "sent": result.sent,
        "store": result.store,
    }


def tell_fetched(out: Writer, context: Context, result: Fetched, where: str, *, dry_run: bool) -> None:
    """Say what a fetch came to."""
    if dry_run:
        out.line(
            f"{printable(where)}: {counted(result.differed, 'ref')} would be fetched, "
            f"{counted(result.objects, 'object')}"
        )
        return
    if not result.differed:
        out.line(f"{printable(where)}: nothing new")
    else:
        out.line(
            f"{printable(where)}: {counted(result.added, 'new object')}, "
            f"{counted(len(result.moved), 'ref')} moved"
        )
    for line in diverged_lines(result.diverged):
        out.line(line)
    tell_renamed(context, result.renamed)


def tell_pushed(out: Writer, result: Pushed, where: str, *, dry_run: bool) -> None:
    """Say what a push came to."""
    if dry_run:
        out.line(
            f"{printable(where)}: {counted(result.sent, 'ref')} would be pushed, "
            f"{counted(result.objects, 'object')}"
        )
    elif not result.sent:
        out.line(f"{printable(where)}: nothing to push")
    else:
        out.line(
            f"{printable(where)}: {counted(result.added, 'new object')} there, "
            f"{counted(len(result.moved), 'ref')} moved"
        )
    for line in diverged_lines(result.diverged, "there "):
        out.line(line)
    if result.behind:
        out.line(
            f"{counted(len(result.behind), 'ref')} not pushed, which the other store has further: objstore fetch"
        )


def diverged_lines(names: Iterable[str], where: str = "") -> list[str]:
    """What to say, and to type, about what has several heads."""
    lines: list[str] = []
    for name in names:
        parts = name.split("/")
        if parts[0] == "session" and parts[-1] == "heads":
            lines.append(
                f"session {parts[1]} {where}went on in several places; to unite them: objstore session graft {parts[1]}"
            )
        elif parts[0] == "tag":
            lines.append(
                f"{name} {where}stands for several objects, all kept: objstore show-ref shows them as {name}@..."
            )
        else:
            lines.append(
                f"{name} {where}was written by several stores under one id; all are kept side by side"
            )
    return [printable(line) for line in lines]


def diverged_sessions(names: Iterable[str]) -> list[str]:
    """The ids of the sessions among what has several heads."""
    parts = [name.split("/") for name in names]
    return [one[1] for one in parts if one[0] == "session" and one[-1] == "heads" and len(one) == 3]


def moved_sessions(names: Iterable[str]) -> list[str]:
    """The ids of the sessions among refs that moved, each once."""
    parts = [name.split("/") for name in names]
    return list(dict.fromkeys(one[1] for one in parts if one[0] == "session" and len(one) == 4))
