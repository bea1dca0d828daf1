"""The names of Codex's threads, which stand together in ``session_index.jsonl``: each line states that of one thread.

A thread's lines are a source of their own in its conversation, a part of that file. Its first name is the program's
own, made of what was asked; later ones a person gave.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from msgspec import UNSET, Struct

from porcelain.providers.content import ContentSink
from porcelain.providers.cursor import CursorHead
from porcelain.providers.decoding import NAME_LENGTH
from porcelain.providers.reader import ReaderState, Source
from porcelain.providers.records import Record
from porcelain.providers.times import instant

#: The file in Codex's folder, and the ``src`` of a thread's part of it.
INDEX = "session_index.jsonl"
_STAMP_DIGITS = 20


class _Name(Struct):
    id: str | None = None
    thread_name: str | None = None
    updated_at: str | None = None


_NAME = msgspec.json.Decoder(_Name)


def read_index(folder: Path) -> dict[str, bytes]:
    """The lines of each thread in the index of Codex's ``folder``; nothing where there is none."""
    try:
        data = (folder / INDEX).read_bytes()
    except OSError:
        return {}
    found: dict[str, bytes] = {}
    for line in data.split(b"\n"):
        try:
            thread = _NAME.decode(line).id
        except msgspec.DecodeError:
            continue
        if thread:
            found[thread] = found.get(thread, b"") + line + b"\n"
    return found


def index_stamp(folder: Path) -> str:
    """What changes whenever the index of Codex's ``folder`` does; empty where there is none."""
    try:
        stat = os.stat(folder / INDEX)
    except OSError:
        return ""
    return f"{stat.st_dev}.{stat.st_ino}.{stat.st_size}.{stat.st_mtime_ns}"


def known_names(folder: Path, cursors: Mapping[str, CursorHead]) -> dict[str, Source]:
    """The sources that earlier imports found in the index of Codex's ``folder``, by thread, as they were."""
    inside = str(folder / INDEX) + os.sep
    return {
        path.removeprefix(inside): _source(path, cursor.stamp)
        for path, cursor in cursors.items()
        if path.startswith(inside) and cursor.state != "gone"
    }


def name_source(folder: Path, thread: str, lines: bytes) -> Source:
    """The source that the ``lines`` of a thread are."""
    return _source(str(folder / INDEX / thread), hashlib.sha256(lines).hexdigest()[:_STAMP_DIGITS])


def _source(path: str, stamp: str) -> Source:
    return Source(path=path, src=INDEX, kind="journal", stream=None, stamp=stamp)


@lru_cache(maxsize=1)
def _read_as(folder: Path, _stamp: str) -> dict[str, bytes]:
    """The index, read once for all of its threads while it stays as it is."""
    return read_index(folder)


@contextmanager
def open_part(source: Source) -> Iterator[tuple[BinaryIO, os.stat_result, int]]:
    """The lines of the thread whose names ``source`` are, as they stand now; see ``reader.PartProvider``."""
    index, thread = os.path.split(source.path)
    stat = os.stat(index)
    folder = Path(index).parent
    lines = _read_as(folder, index_stamp(folder)).get(thread, b"")
    with tempfile.TemporaryFile() as file:
        file.write(lines)
        file.flush()
        yield cast(BinaryIO, file), stat, len(lines)


def name_record(data: bytes, state: ReaderState, sink: ContentSink) -> Record:
    """The record of one line; the name in clear unless it is the first one."""
    stated = _NAME.decode(data)
    title = stated.thread_name
    given = "_named" in state.values and title is not None and len(title) <= NAME_LENGTH
    state.values["_named"] = "1"
    return Record(
        entry=INDEX.partition(".")[0],
        label=title if given and title is not None else UNSET,
        label_content=sink.text(title) if title and not given else UNSET,
        time=stated.updated_at if stated.updated_at and instant(stated.updated_at) else UNSET,
    )
