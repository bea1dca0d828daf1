"""Opening sources: a file that the agent compressed is read as the bytes that it was made of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from porcelain.providers.files import open_file

#: How a file name ends that the agent has compressed with zstandard.
COMPRESSED = ".zst"


@contextmanager
def open_source(path: str) -> Iterator[tuple[BinaryIO, os.stat_result, int]]:
    """The bytes of the source at ``path``, the file's own stat, and how many bytes there are.

    A ``.zst`` file is unpacked into a nameless temporary file, in bounded memory, so that its bytes can be read from
    any place like those of a plain one; one that ends too early gives what it holds. Raises ``OSError``, also for bytes
    that are not zstandard's.
    """
    with open_file(path) as file:
        stat = os.fstat(file.fileno())
        if not path.endswith(COMPRESSED):
            yield file, stat, stat.st_size
            return
        import shutil
        from tempfile import TemporaryFile

        import zstandard

        with TemporaryFile() as unpacked:
            try:
                reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
                shutil.copyfileobj(cast(BinaryIO, reader), unpacked, 1024 * 1024)
            except zstandard.ZstdError as error:
                raise OSError(0, "not a zstandard file") from error
            unpacked.flush()
            yield cast(BinaryIO, unpacked), stat, unpacked.tell()


def read_head(path: str, size: int) -> bytes:
    """The first ``size`` bytes of the source at ``path``; raises ``OSError`` as ``open_source`` does."""
    with open_file(path) as file:
        if not path.endswith(COMPRESSED):
            return file.read(size)
        import zstandard

        try:
            return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read(size)
        except zstandard.ZstdError as error:
            raise OSError(0, "not a zstandard file") from error
