"""Which sessions are kept: the most recent ones, and those that a process holds open.

Only refs and the index go; objects stay until the store's own collection. A session that was removed stays gone here
when another store still has it (``derived_refs``), until somebody brings it back: ``bring_back``.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from objstore.database import Database
from objstore.errors import RefMoved, StorageError, UsageError
from objstore.refs import ANY
from objstore.store import Store
from porcelain.session.tree import names
from porcelain.session.tree.identity import check_sid
from porcelain.session.tree.index import drop_index
from porcelain.session.tree.listing import last_event_time

_FOLDER = "open-sessions"


class Collected(NamedTuple):
    """What a collection did: sessions removed, and those that would have gone but are open."""

    removed: list[str]
    open: list[str]


@contextmanager
def hold_open(store: Store, sid: str) -> Iterator[None]:
    """Keep a session from being removed while the block runs; any number of processes can."""
    check_sid(sid)
    with _locked(store, sid, fcntl.LOCK_SH):
        yield


@contextmanager
def _locked(store: Store, sid: str, how: int) -> Iterator[bool]:
    """The lock of one session, as a file of the store; whether it was to be had."""
    if not isinstance(store.database, Database):
        yield True
        return
    folder = os.path.join(store.database.path, _FOLDER)
    path = os.path.join(folder, sid)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageError(f"{path}: cannot be opened: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def collect(store: Store, keep: int, *, confirmed: bool = False) -> Collected:
    """Remove all but the ``keep`` most recent sessions, by the time of the last event, then by sid.

    Raises ``UsageError`` for a negative number, and for 0 that was not ``confirmed``.
    """
    if keep < 0:
        raise UsageError(f"{keep}: cannot keep fewer than 0 sessions")
    if keep == 0 and not confirmed:
        raise UsageError("keeping 0 sessions removes all of them", hint="confirm it with: --yes")
    with store.snapshot() as view:
        found = sorted(((last_event_time(view, sid), sid) for sid in names.session_ids(view)), reverse=True)
    result = Collected([], [])
    for _, sid in found[keep:]:
        with _locked(store, sid, fcntl.LOCK_EX | fcntl.LOCK_NB) as free:
            if free and _remove(store, sid):
                result.removed.append(sid)
            else:
                result.open.append(sid)
    return result


def _remove(store: Store, sid: str) -> bool:
    """Take the refs and the index of a session away; False when it moved meanwhile, so that it is in use."""
    batch = store.batch()
    with store.snapshot() as view:
        for head in names.heads(view, sid):
            batch.move_ref(names.head_ref(sid, head), None, head, "gc")
        batch.move_ref(names.current_ref(sid), None, ANY, "gc")
        drop_index(batch, view, sid)
    batch.set_local(names.removed_key(sid), store.now().encode())
    try:
        store.commit(batch)
    except RefMoved:
        return False
    return True


def bring_back(store: Store, sids: Iterable[str]) -> None:
    """Let sessions that were removed come back with what is next fetched."""
    batch = store.batch()
    for sid in sids:
        batch.set_local(names.removed_key(sid), None)
    store.commit(batch)
