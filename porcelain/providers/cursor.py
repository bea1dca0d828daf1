"""How far a source has been landed: kept in a store's ``local`` database, never packed, never in an object.

A cursor tells an unchanged file from its inode, size and time without reading it, and an appended one from a keyed hash
of the bytes before the place where reading stopped. The key stays in the store, so that nothing that leaves the machine
can be compared with the raw bytes of a source.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

from porcelain.providers.reader import Container, LeftOut, Seen, SourceKind

#: Bytes before the cursor that are compared.
TAIL = 1024 * 1024
#: Distinct values of one kind, and titles, that are remembered of one source.
REMEMBERED = 64

State = Literal["active", "pending", "gone", "conflict", "left-out"]


class SourceFacts(Struct):
    """What a source has said up to its cursor.

    ``first_time`` and ``last_time`` are instants (UTC, trimmed); ``first_record`` is an object id. ``values`` has, for
    each kind of surroundings (``session cwd branch version forked_from``), the distinct values and the time of the
    record that stated each first ("" where it has none); ``titles`` are the names that a person gave, in order, with
    their times. ``differs``, after a rewrite, is the id of the first record that is not what stood there before.
    """

    lines: int = 0
    records: int = 0
    damage_count: int = 0
    damage_bytes: int = 0
    pending_bytes: int = 0
    first_record: str | None = None
    first_time: str | None = None
    last_time: str | None = None
    differs: str | None = None
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    titles: list[tuple[str, str]] = field(default_factory=list)

    def copy(self) -> SourceFacts:
        """Facts that can go on changing apart from these."""
        return SourceFacts(
            **{
                name: getattr(self, name)
                for name in self.__struct_fields__
                if name not in ("values", "titles")
            },
            values={key: dict(found) for key, found in self.values.items()},
            titles=list(self.titles),
        )


class CursorHead(Struct, frozen=True, kw_only=True):
    """What of a cursor tells whether its file has anything new: of files that have not, no more is read.

    ``content`` says whether content was kept; ``rules`` and ``parser`` what the bytes were read by. ``state`` stays
    ``conflict`` after a rewrite until a person clears it. ``stamp`` is that of the source when it had been landed to
    its end. ``offset`` is that of the next line.
    """

    conversation: str
    path: str
    src: str = ""
    stream: str | None = None
    device: int = 0
    inode: int = 0
    size: int = 0
    mtime_ns: int = 0
    offset: int = 0
    stamp: str = ""
    content: bool = False
    rules: str = ""
    parser: str = ""
    state: State = "active"


class Cursor(CursorHead, frozen=True, kw_only=True):
    """Where landing of one file stands.

    ``ord`` is the number of the next line. With ``open_line`` the last record came from a line whose newline had not
    been written: ``offset`` is the place right behind it and ``ord`` still that line's number. ``tail`` is the keyed
    hash of the bytes before ``offset``, ``slot`` that of the bytes that the agent rewrites in place; ``reader`` the
    state of the reader. ``observation`` counts how often the file was found rewritten.
    """

    provider: str
    kind: SourceKind = "transcript"
    batch: str | None = None
    ord: int = 1
    open_line: bool = False
    tail: str = ""
    slot: str = ""
    reader: dict[str, str] = field(default_factory=dict)
    observation: int = 0
    facts: SourceFacts = field(default_factory=SourceFacts)


def is_same_file(cursor: CursorHead, stat: os.stat_result) -> bool:
    """Whether the file cannot have changed since the cursor was written."""
    return (
        cursor.size == stat.st_size
        and cursor.mtime_ns == stat.st_mtime_ns
        and cursor.inode == stat.st_ino
        and cursor.device == stat.st_dev
    )


def is_same_log(cursor: CursorHead, stat: os.stat_result) -> bool:
    """Whether the file is the one that the cursor is about and has not become shorter: by all signs an agent went on
    writing it. Landing compares what stood there before."""
    return (
        cursor.size <= stat.st_size
        and cursor.inode == stat.st_ino
        and cursor.device == stat.st_dev
        and cursor.state in ("active", "pending", "conflict")
    )


def tail_digest(descriptor: int, offset: int, key: bytes, start: int = 0) -> str:
    """Keyed hash (hex) of the up to ``TAIL`` bytes before ``offset``, none of them before ``start``; ``key`` is at most
    64 bytes."""
    from hashlib import blake2b

    start = max(start, offset - TAIL)
    keyed = blake2b(key=key, digest_size=16)
    while start < offset and (piece := os.pread(descriptor, offset - start, start)):
        keyed.update(piece)
        start += len(piece)
    return keyed.hexdigest()


class KnownFiles(Seen):
    """What discovery may take for known: the paths among ``cursors`` whose files have not changed, or are conversations
    that may have grown, so that only landing opens them. A file that has not changed is looked at once."""

    def __init__(self, cursors: Mapping[str, CursorHead]) -> None:
        self.cursors = cursors
        self._unchanged: set[str] = set()

    def __call__(self, path: str) -> str | None:
        cursor = self.cursors.get(path)
        if cursor is None:
            return None
        if path not in self._unchanged:
            try:
                stat = os.stat(path)
            except OSError:
                return None
            if not is_same_file(cursor, stat):
                return cursor.conversation if is_same_log(cursor, stat) else None
            self._unchanged.add(path)
        return "" if cursor.state == "left-out" else cursor.conversation

    def has_bytes(self, path: str) -> bool:
        return self.cursors[path].size > 0 if self.is_unchanged(path) else super().has_bytes(path)

    def stream(self, path: str) -> str | None:
        cursor = self.cursors.get(path)
        return cursor.stream if cursor is not None and cursor.state != "gone" else None

    def is_unchanged(self, path: str) -> bool:
        """Whether the file cannot have changed since it was landed or left out."""
        self(path)
        return path in self._unchanged


def left_out_cursor(provider: str, left_out: LeftOut) -> Cursor | None:
    """A cursor that keeps discovery from reading a file again that holds no conversation; None if the file has changed
    or gone since it was looked at."""
    if not left_out.mtime_ns:
        return None
    try:
        stat = os.stat(left_out.path)
    except OSError:
        return None
    if (stat.st_size, stat.st_mtime_ns) != (left_out.size, left_out.mtime_ns):
        return None
    return Cursor(
        provider=provider,
        conversation="",
        path=left_out.path,
        device=stat.st_dev,
        inode=stat.st_ino,
        size=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        state="left-out",
    )


def container_cursor(provider: str, container: Container) -> Cursor:
    """A cursor that keeps discovery from opening a container again that has not changed."""
    return Cursor(
        provider=provider, conversation="", path=container.path, stamp=container.stamp, state="left-out"
    )


def is_known(cursor: Cursor, known: CursorHead | None) -> bool:
    """Whether the cursor of something left out is the one that ``known`` is the head of; it has no more than that."""
    return known is not None and all(
        getattr(known, name) == getattr(cursor, name) for name in CursorHead.__struct_fields__
    )


def gone_sources(cursors: Iterable[CursorHead]) -> list[str]:
    """The paths among ``cursors``, not yet known to be gone, at which no file is any more."""
    return [
        cursor.path
        for cursor in cursors
        if cursor.state not in ("gone", "left-out") and not os.path.lexists(cursor.path)
    ]
