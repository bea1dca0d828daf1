"""Opening the index in step with the store: one file beside the database, or a passing one where that cannot be.

What reads and derives is loaded when it is needed: an index that is in step with the store is opened without it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager, suppress

from porcelain.lineage.index.standing import is_fresh, landed_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from objstore.snapshot import Snapshot
    from objstore.store import Store
    from porcelain.lineage.index.reading import Indexed
    from porcelain.lineage.index.update import Work

NAME = "lineage.sqlite"
#: Seconds to wait for another process that brings the index up to date.
_PATIENCE = 60.0
_CACHE_KIB = 48 * 1024
_ATTEMPTS = 3


@contextmanager
def open_lineage(store: Store) -> Iterator[Indexed]:
    """A snapshot of ``store`` and the index of lineage, brought in step with it first."""
    from porcelain.lineage.index.reading import Indexed

    with open_index(store) as (connection, view):
        yield Indexed(connection, view)


@contextmanager
def open_index(store: Store) -> Iterator[tuple[sqlite3.Connection, Snapshot]]:
    """The same, for who reads the tables of the index only. Where the index cannot be kept (a folder that cannot be
    written to, a store in memory, a file that others hold), a passing one is made."""
    path = _path(store)
    for _ in range(_ATTEMPTS if path is not None else 0):
        connection = _usable(str(path))
        if connection is None:
            break
        with closing(connection), store.snapshot() as view:
            if _is_fresh(connection, view):
                yield connection, view
                return
        bring_up(store)
    from porcelain.lineage.index.update import update

    with closing(_passing()) as passing, store.snapshot() as view:
        passing.execute("BEGIN")
        update(passing, view, _folder(store))
        yield passing, view


def bring_up(store: Store) -> Work | None:
    """Bring the index of ``store`` up to date and say what that took; None where it cannot be kept."""
    from porcelain.lineage.index.update import update

    path = _path(store)
    for _ in range(2 if path is not None else 0):
        connection = _usable(str(path))
        if connection is None:
            return None
        with closing(connection):
            try:
                connection.execute("BEGIN IMMEDIATE")
                with store.snapshot() as view:
                    work = update(connection, view, _folder(store))
                connection.execute("COMMIT")
                connection.execute("PRAGMA journal_mode=WAL")  # see _connect
                return work
            except sqlite3.OperationalError:  # held by others, or no room
                return None
            except sqlite3.DatabaseError:  # damaged
                pass
        _delete(str(path))
    return None


def keep(store: Store, stamp: bytes, write: Callable[[sqlite3.Connection], None]) -> None:
    """Let ``write`` put into the index what follows from all that is landed, as it was when ``landed_stamp`` gave
    ``stamp``, under a name in ``state`` that begins with ``KEPT``: it goes when anything is landed. Nothing is kept
    where the index is not in step with that, or held by others."""
    path = _path(store)
    connection = _usable(path) if path is not None else None
    if connection is None:
        return
    with closing(connection), suppress(sqlite3.DatabaseError):
        connection.execute("BEGIN IMMEDIATE")
        with store.snapshot() as view:
            if landed_stamp(view) == stamp and is_fresh(connection, view):
                write(connection)
                connection.execute("COMMIT")


def remove(store: Store) -> None:
    """Delete the index; the next view makes it anew."""
    path = _path(store)
    if path is not None:
        _delete(path)


def _is_fresh(connection: sqlite3.Connection, view: Snapshot) -> bool:
    """Whether the index says what ``view`` does; it goes on doing so, in a transaction that is open from now on."""
    try:
        connection.execute("BEGIN")
        return is_fresh(connection, view)
    except sqlite3.DatabaseError:
        return False


def _folder(store: Store) -> str | None:
    return getattr(store.database, "path", None) or None


def _path(store: Store) -> str | None:
    folder = _folder(store)
    return os.path.join(folder, NAME) if folder else None


def _usable(path: str) -> sqlite3.Connection | None:
    """The index at ``path``, made where there is none or something else; None where that cannot be."""
    for attempt in (1, 2):
        try:
            connection = _connect(path)
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                return connection
            except sqlite3.DatabaseError:
                connection.close()
                raise
        except sqlite3.OperationalError:
            return None
        except sqlite3.DatabaseError:  # damaged, or no database
            if attempt == 2:
                return None
            _delete(path)
    return None


def _connect(path: str) -> sqlite3.Connection:
    if not os.path.exists(path):
        try:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError as error:
            raise sqlite3.OperationalError(str(error)) from None
    connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
    # A new file is filled without a log, which would hold all of it; from then on there is one, so that readers and the
    # one who brings it up to date need not wait for one another.
    log = "WAL" if os.path.getsize(path) else "DELETE"
    for setting in ("page_size=8192", f"journal_mode={log}", "synchronous=OFF", "temp_store=FILE"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    return connection


def _passing() -> sqlite3.Connection:
    connection = sqlite3.connect("", isolation_level=None)
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    return connection


def _delete(path: str) -> None:
    for name in (path, path + "-wal", path + "-shm"):
        with suppress(OSError):
            os.remove(name)
