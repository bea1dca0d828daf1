"""Opening the store that a command works on, and naming objects in it."""

from __future__ import annotations

import os

from objstore.errors import UsageError
from objstore.snapshot import resolve
from plumbing.interface.output import encode, read_batches, say
from plumbing.interface.settings import setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from objstore.database import Database
    from objstore.snapshot import Snapshot
    from objstore.store import Store
    from plumbing.interface.options import Arguments, Context

#: How an id that is not there is written, where a line has a place for one.
NO_ID = "0" * 64


def open_store(context: Context, *, write: bool = False) -> Store:
    """The store of ``context``, for reading only unless ``write``; its moves of refs are signed with the configured
    ``user.name``. Close it. Raises ``NotFound`` where there is none; see ``Store.open``."""
    from objstore.store import Store

    store = Store.open(
        context.store_path(),
        read_only=not write,
        lock_timeout=context.lock_timeout,
        on_wait=lambda: say(context, f"waiting for another writer (up to {context.lock_timeout:g} s)"),
    )
    if write:
        try:
            with store.snapshot() as view:
                store.who = setting(view, "user.name") or store.who
            _settle(store, context)
        except BaseException:
            store.close()
            raise
    return store


def _settle(store: Store, context: Context) -> None:
    """Go on under a new id where the folder turns out to be a copy, and say so."""
    import platform

    from objstore.origin import settle

    if settle(store, platform.node() or "localhost") is not None:
        say(
            context,
            f"{context.store_path()}: is a copy of another store: it goes on under the id {store.store_id}",
        )


def open_database(context: Context) -> Database:
    """The database of the store, for reading only, where a command looks below objects and refs."""
    from objstore.database import Database

    return Database.open(context.store_path(), read_only=True)


def resolve_all(view: Snapshot, names: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Each name and the key of the object that it names; raises as ``resolve``."""
    for raw in names:
        name = os.fsdecode(raw)
        yield name, resolve(view, name)


def names_given(command: str, arguments: Arguments, context: Context) -> Iterator[list[bytes]]:
    """The names that a command is to work on, in the batches in which they come: its arguments, or with ``--stdin``
    the lines of standard input."""
    if arguments.stdin:
        if arguments.args:
            raise UsageError(
                f"{command}: names are given as arguments or by --stdin, not both",
                hint=f"objstore {command} --help",
            )
        return read_batches(context.stdin, null=arguments.null)
    if not arguments.args:
        raise UsageError(f"{command}: too few arguments", hint=f"objstore {command} --help")
    return iter([[encode(name) for name in arguments.args]])


def abbreviate(view: Snapshot, key: bytes, least: int) -> str:
    """The fewest digits of ``key``, at least ``least``, that begin no other key of the store."""
    digits = key.hex()
    shared = 0
    for other in view.keys_from(key[: least // 2], None):
        if other != key:
            text = other.hex()
            shared = max(shared, next(n for n in range(64) if text[n] != digits[n]))
    return digits[: max(least, shared + 1)]
