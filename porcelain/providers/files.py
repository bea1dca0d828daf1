"""Opening an agent's files: only ordinary ones, and without waiting."""

from __future__ import annotations

import errno
import os
from stat import S_ISREG
from typing import BinaryIO


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """``path``, opened for reading bytes. Raises ``OSError`` for what is no ordinary file, such as a pipe, at once."""
    file = open(path, "rb", opener=_at_once)  # noqa: SIM115  the caller closes it
    if not S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a file", os.fspath(path))
    return file


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
