"""Writing an exported file: whole or not at all, and never over a file that is not such an export."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from objstore.errors import StorageError

#: Bytes from the start of a file by which an export is known.
HEAD_BYTES = 256


@contextmanager
def replacing(path: Path, is_ours: Callable[[bytes], bool], *, overwrite: bool) -> Iterator[Path]:
    """The path of a new empty file beside ``path``, for the caller to fill; it takes the place of ``path`` when the
    block ends well, and is removed when it does not.

    ``is_ours`` tells from the first ``HEAD_BYTES`` of an existing file whether it is an export of this kind; any other
    file is replaced only with ``overwrite``. Raises ``StorageError``.
    """
    try:
        if path.is_dir():
            raise StorageError(f"{path}: is a directory", hint="name a file")
        if path.exists() and not path.is_file():
            raise StorageError(f"{path}: is no ordinary file", hint="name a file")
        if not overwrite and path.exists():
            with path.open("rb") as existing:
                head = existing.read(HEAD_BYTES)
            if head and not is_ours(head):
                raise StorageError(
                    f"{path}: exists and was not written by this command",
                    hint="choose another name, or say that it may be overwritten",
                )
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
        os.close(handle)
    except OSError as error:
        raise _cannot_write(path, error) from None
    partial = Path(name)
    try:
        yield partial
        _flush(partial)
        partial.replace(path)
        _flush(path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from None
    finally:
        partial.unlink(missing_ok=True)


def _cannot_write(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path}: cannot write: {error.strerror or error}")


def _flush(path: Path) -> None:
    if os.name == "nt":
        return  # neither a folder nor a file opened for reading can be flushed there
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
