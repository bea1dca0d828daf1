"""What the commands about packs share: choosing refs, where a pack comes from and goes, and how a receipt is told."""

from __future__ import annotations

import os
from contextlib import contextmanager

from objstore.errors import NotFound, ObjstoreError, UsageError
from objstore.snapshot import resolve
from plumbing.interface.options import JSON, Option
from plumbing.interface.output import Writer, counted, say
from plumbing.interface.settings import keeps_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from objstore.closure import Selection
    from objstore.pack.reader import Source
    from objstore.snapshot import Snapshot
    from objstore.store import Store
    from objstore.sync.receiving import Received
    from plumbing.interface.options import Arguments, Context

#: What goes into a pack.
REFS = Option(
    "--refs", "refs", "PATTERN", "only refs like PATTERN (* matches slashes too)", "text", many=True
)
NOT = Option("--not", "exclude", "NAME", "the receiver has NAME and all that it needs", "ref", many=True)
CONTENT = Option("--content", help="with what was said in conversations")
SELECTING = (REFS, NOT, CONTENT)
DRY_RUN = Option(("-n", "--dry-run"), "dry_run", help="check everything and change nothing")
RECEIVING = (DRY_RUN, JSON)


def selection_of(view: Snapshot, arguments: Arguments) -> Selection:
    """What the options ``SELECTING`` ask for. Raises ``NotFound`` where no ref matches."""
    from objstore.closure import select
    from objstore.sync.manifest import Scope, manifest_of

    scope = Scope(content=arguments.content, patterns=tuple(arguments.refs))
    refs = manifest_of(view, scope).refs()
    if not refs:
        raise NotFound(
            "no ref matches" if arguments.refs else "the store has no refs to pack",
            hint="list them with: objstore show-ref",
        )
    have = [resolve(view, name) for name in arguments.exclude]
    return select(view, refs, have, content=arguments.content)


def pieces_of(view: Snapshot, selection: Selection, store: Store) -> Iterator[bytes]:
    """The bytes of the pack."""
    from objstore.pack.writer import pack_stream

    return pack_stream(view, selection, store.algorithm)


def take(store: Store, source: Source, context: Context, *, dry_run: bool, why: str) -> Received:
    """Receive a pack as the person's own doing; content too where the store keeps it."""
    from objstore.sync.receiving import receive
    from plumbing.interface.output import Progress

    with store.snapshot() as view:
        content = keeps_content(view)
    with Progress(context, why) as progress:
        return receive(
            store, source, take_content=content, why=why, dry_run=dry_run, on_progress=progress.advance
        )


def told(context: Context, arguments: Arguments, received: Received) -> None:
    """Print the refs that moved, or all that is known as JSON, and say what came in."""
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(
                {
                    "added": received.added,
                    "diverged": received.diverged,
                    "identity": received.identity,
                    "moved": received.moved,
                    "objects": received.objects,
                    "renamed": received.renamed,
                }
            )
        else:
            for name in received.moved:
                out.line(name)
    if arguments.dry_run:
        say(context, f"checked {counted(received.objects, 'object')}: nothing is wrong, nothing was stored")
        return
    say(context, f"{counted(received.objects, 'object')}, {received.added:,} of them new")
    tell_renamed(context, received.renamed)


def tell_renamed(context: Context, renamed: str | None) -> None:
    """Say that the store goes on under a new id, if it does."""
    if renamed is not None:
        say(
            context,
            "another store wrote under this one's id, so this one was copied or restored from a backup: "
            f"it goes on as {renamed}, and both histories are kept",
        )


def served_folder(path: str, cwd: str) -> str:
    """The folder of the store that ``path`` means: itself, or the ``.objstore`` in it."""
    if not path or path.startswith("-"):
        raise UsageError(f"{path!r}: not the folder of a store")
    whole = os.path.normpath(os.path.join(cwd, path))
    inner = os.path.join(whole, ".objstore")
    if not os.path.isfile(os.path.join(whole, "data.mdb")) and os.path.isdir(inner):
        return inner
    return whole


@contextmanager
def told_first(context: Context, *, serving: bool) -> Iterator[None]:
    """Tell the other side an error that comes up before any request was answered, too."""
    try:
        yield
    except ObjstoreError as error:
        if serving:
            from objstore.sync.messages import FAILURE, failure_body, write_frame

            write_frame(context.stdout, FAILURE, failure_body(error))
            context.stdout.flush()
        raise


def one_argument(command: str, args: Sequence[str], what: str) -> str:
    """The one argument of a command."""
    if len(args) != 1:
        raise UsageError(f"{command}: takes {what}", hint=f"objstore {command} --help")
    return args[0]
