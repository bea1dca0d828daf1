"""What a hub asks of its storage, and how its files are named."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from objstore.pack.reader import Source

WRITERS, SEGMENTS, PACKS, GONE = "writers/", "segments/", "packs/", "gone/"
#: Where files stand that may be needed no more.
KEPT_WHILE_NEEDED = (SEGMENTS, PACKS)
_NAME = re.compile(r"(?:segments|packs)/[0-9a-f]{64}\.([0-9a-f]{1,64})\.(\d{1,12})", re.ASCII)


class Lost(Exception):
    """A race was lost: the file is no longer what it was."""


class Files(Protocol):
    """The files of a hub. A ``tag`` stands for one state of a file. All raise ``StorageError`` where the hub cannot be
    reached. ``get`` and ``open`` are called by several threads at once."""

    def list(self, prefix: str) -> Mapping[str, str]:
        """The files below ``prefix``, and their tags."""

    def get(self, name: str, tag: str | None = None) -> bytes:
        """What a file holds; raises ``NotFound``, and ``Lost`` where it does not stand at ``tag`` (None: wherever)."""

    def open(self, name: str) -> AbstractContextManager[Source]:
        """A file to be read bit by bit; raises ``NotFound``."""

    def create(self, name: str, source: Source, size: int) -> None:
        """Make a file; where it is there already, it stays as it is. It need not be seen before ``replace``."""

    def replace(self, name: str, data: bytes, tags: Mapping[str, str], needed: Collection[str]) -> None:
        """Write the file of a writer, on the condition that it stands at its tag among ``tags`` (or is not there, where
        it has none); raises ``Lost``. ``tags`` are those of all writers' files, as they were when it was found that
        ``needed`` are the names of all segments and packs that are needed afterwards. Where that can be done at the
        same moment the others are removed, on the condition that all writers' files stand at their tags; who has
        listed them before still reads them."""

    def times(self, prefix: str) -> Mapping[str, float] | None:
        """The files below ``prefix`` and when they were written, in seconds, by the clock of the storage; None where
        ``replace`` removes what is not needed."""

    def discard(self, names: Sequence[str]) -> None:
        """Remove these files, where they are there."""


class Born(NamedTuple):
    """Who made a file, and at which turn."""

    writer: str
    turn: int


def name_of(digest: str, writer: str, turn: int) -> str:
    """The name of a file, without its folder."""
    return f"{digest}.{writer}.{turn}"


def digest_of(name: str) -> str:
    """The SHA-256 that a name of either format (without its folder) says."""
    return name.partition(".")[0]


def born(name: str) -> Born | None:
    """Who made the file of this name (with its folder); None where the name does not say."""
    found = _NAME.fullmatch(name)
    return None if found is None else Born(found[1], int(found[2]))
