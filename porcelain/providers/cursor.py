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


class Cursor(Struct, frozen=True, kw_only=True):
    """Where landing of one file stands.

    ``offset`` and ``ord`` are those of the next line. With ``open_line`` the last record came from a line whose newline
    had not been written: ``offset`` is the place right behind it and ``ord`` still that line's number. ``tail`` is the
    keyed hash of the bytes before ``offset``, ``slot`` that of the bytes that the agent rewrites in place; ``reader``
    the state of the reader; ``content`` whether content was kept; ``rules`` and ``parser`` what the bytes were read by.
    ``observation`` counts how often the file was found rewritten.
    ``state`` stays ``conflict`` after that until a person clears it. ``stamp`` is that of the source when it had been
    landed to its end.
    """

    provider: str
    conversation: str
    path: str
    src: str = ""
    kind: SourceKind = "transcript"
    stream: str | None = None
    batch: str | None = None
    device: int = 0
    inode: int = 0
    size: int = 0
    mtime_ns: int = 0
    offset: int = 0
    ord: int = 1
    open_line: bool = False
    tail: str = ""
    slot: str = ""
    stamp: str = ""
    reader: dict[str, str] = field(default_factory=dict)
    content: bool = False
    rules: str = ""
    parser: str = ""
    observation: int = 0
    state: State = "active"
    facts: SourceFacts = field(default_factory=SourceFacts)


def is_same_file(cursor: Cursor, stat: os.stat_result) -> bool:
    """Whether the file cannot have changed since the cursor was written."""
    return (
        cursor.size == stat.st_size
        and cursor.mtime_ns == stat.st_mtime_ns
        and cursor.inode == stat.st_ino
        and cursor.device == stat.st_dev
    )


def is_same_log(cursor: Cursor, stat: os.stat_result) -> bool:
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


def unchanged_files(cursors: Mapping[str, Cursor]) -> Seen:
    """What discovery may take for known: the paths among ``cursors`` whose files have not changed, or are conversations
    that may have grown, so that only landing opens them."""

    def seen(path: str) -> str | None:
        cursor = cursors.get(path)
        if cursor is None:
            return None
        try:
            stat = os.stat(path)
        except OSError:
            return None
        if is_same_file(cursor, stat):
            return "" if cursor.state == "left-out" else cursor.conversation
        return cursor.conversation if is_same_log(cursor, stat) else None

    return seen


def left_out_cursor(provider: str, left_out: LeftOut) -> Cursor | None:
    """A cursor that keeps discovery from reading a file again that holds no conversation; None if the file has changed
    or gone since it was looked at."""
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


def gone_sources(cursors: Iterable[Cursor]) -> list[str]:
    """The paths among ``cursors``, not yet known to be gone, at which no file is any more."""
    return [
        cursor.path
        for cursor in cursors
        if cursor.state not in ("gone", "left-out") and not os.path.lexists(cursor.path)
    ]
