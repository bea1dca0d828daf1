"""The writer's lock: one process writes at a time, and waiting for it has an end.

LMDB has a writer lock of its own, but waits for it without limit; this one is taken first. It is an advisory lock on an
open file, which the operating system drops when the process dies.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from objstore.errors import Conflict, StorageError

_POLL_SECONDS = 0.02

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def writer_lock(path: str, timeout: float, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock file ``path``; ``on_wait`` is called once if another process holds it.

    Raises ``Conflict`` after ``timeout`` seconds.
    """
    try:
        descriptor = os.open(
            path,
            os.O_RDWR | os.O_CREAT | os.O_CLOEXEC if os.name == "posix" else os.O_RDWR | os.O_CREAT,
            0o600,
        )
    except OSError as error:
        raise StorageError(f"{path}: cannot be opened: {error.strerror}") from None
    try:
        if not _try_lock(descriptor):
            if on_wait is not None:
                on_wait()
            deadline = time.monotonic() + timeout
            while not _try_lock(descriptor):
                if time.monotonic() >= deadline:
                    raise Conflict(
                        f"the store is locked by another writer: gave up after {timeout:g} s",
                        hint="wait for it to finish, or give --lock-timeout SECONDS",
                    )
                time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            _unlock(descriptor)
    finally:
        os.close(descriptor)
