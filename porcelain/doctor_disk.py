"""What an agent's folders hold, counted without any of the readers: files, lines, messages, conversations.

The counts are taken from bytes and from the agents' own databases and lists in the plainest way there is, so that they
are a check on the readers and no echo of them. Nothing of what is counted is kept.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, cast

import zstandard
from msgspec import Struct

from porcelain.lineage.facts.times import time_of_ns

_CHUNK = 1024 * 1024
#: White space and the bytes of a byte order mark: a line of nothing else says nothing.
_BLANK = b" \t\r\n\v\f\xef\xbb\xbf"


class OnDisk(Struct, frozen=True, kw_only=True):
    """One file, or conversation in a database. ``lines`` are those that end and are not blank, ``tail`` says that
    another, not blank, does not end yet. ``lines`` is None where there is nothing to count."""

    path: str
    size: int
    modified: str | None
    lines: int | None = None
    tail: bool = False
    problem: str = ""


def on_disk(
    provider: str, root: Path, count: bool = True, advance: Callable[[int], object] = lambda _size: None
) -> Iterator[OnDisk]:
    """What ``root`` holds that may be a conversation of ``provider``, by path; lines are counted if ``count``."""
    if provider == "opencode":
        yield from _opencode(root)
        return
    for path in _files(provider, root):
        yield file_on_disk(path, count)
        advance(1)


def _files(provider: str, root: Path) -> Iterator[str]:
    folders = [root / name for name in ("sessions", "archived_sessions")] if provider == "codex" else [root]
    for start in folders:
        for folder, names, files in os.walk(start):
            names.sort()
            for name in sorted(files):
                if provider == "codex":
                    wanted = name.startswith("rollout-") and name.endswith((".jsonl", ".jsonl.zst", ".json"))
                else:
                    wanted = name.endswith(".jsonl")
                if wanted:
                    yield os.path.join(folder, name)


def file_on_disk(path: str, count: bool = True) -> OnDisk:
    """What one file holds."""
    try:
        stat = os.stat(path)
        lines, tail = (
            _counted(path) if count and stat.st_size and not path.endswith(".json") else (None, False)
        )
    except (OSError, zstandard.ZstdError) as error:
        return OnDisk(
            path=path, size=0, modified=None, problem=getattr(error, "strerror", None) or "unreadable"
        )
    return OnDisk(path=path, size=stat.st_size, modified=time_of_ns(stat.st_mtime_ns), lines=lines, tail=tail)


def _counted(path: str) -> tuple[int, bool]:
    with open(path, "rb") as file:
        if not path.endswith(".zst"):
            return count_lines(file)
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return count_lines(cast(BinaryIO, reader))


def count_lines(file: BinaryIO) -> tuple[int, bool]:
    """The lines of ``file`` that end and are not blank, and whether another, not blank, has no end."""
    lines, said = 0, False
    while chunk := file.read(_CHUNK):
        first, *others = chunk.split(b"\n")
        said = said or bool(first.strip(_BLANK))
        for part in others:
            lines += said
            said = bool(part.strip(_BLANK))
    return lines, said


def _opencode(root: Path) -> Iterator[OnDisk]:
    """Conversations in databases and in folders of documents: one line for the conversation, one for each message.
    ``root`` may be one of these itself."""
    databases = [root] if root.is_file() else sorted(root.glob("opencode*.db"))
    for database in databases:
        yield from _database(database)
    storage = root if (root / "message").is_dir() else root / "storage"
    for session in sorted(storage.glob("session/*/ses_*.json")):
        messages = storage / "message" / session.stem
        try:
            stat = os.stat(session)
            if not messages.is_dir():
                messages = storage / "message" / _stated_id(session)
            count = sum(name.endswith(".json") for name in os.listdir(messages)) if messages.is_dir() else 0
        except OSError as error:
            yield OnDisk(path=str(messages), size=0, modified=None, problem=error.strerror or "unreadable")
            continue
        yield OnDisk(
            path=str(messages), size=stat.st_size, modified=time_of_ns(stat.st_mtime_ns), lines=1 + count
        )


def _stated_id(session: Path) -> str:
    """The id in a conversation's document, where the file is called otherwise."""
    try:
        found = json.loads(session.read_bytes())["id"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return session.stem
    return found if isinstance(found, str) and os.sep not in found else session.stem


def _database(path: Path) -> Iterator[OnDisk]:
    try:
        stat = os.stat(path)
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute(
                "SELECT id, (SELECT COUNT(*) FROM message WHERE session_id = session.id) FROM session ORDER BY id"
            ).fetchall()
    except (OSError, sqlite3.Error):
        yield OnDisk(path=str(path), size=0, modified=None, problem="unreadable")
        return
    for session, messages in rows:
        yield OnDisk(
            path=f"{path}/{session}",
            size=stat.st_size,
            modified=time_of_ns(stat.st_mtime_ns),
            lines=1 + int(messages),
        )


def listed_ids(provider: str, root: Path) -> set[str]:
    """The ids of conversations that the agent's own lists of prompts or names state, whether or not there is a file of
    them. Only the ids are read from each line."""
    if provider == "claude":
        return _ids(root.parent / "history.jsonl", "sessionId")
    if provider == "codex":
        return _ids(root / "history.jsonl", "session_id") | _ids(root / "session_index.jsonl", "id")
    return set()


def _ids(path: Path, key: str) -> set[str]:
    found = set()
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    value = json.loads(line).get(key)
                except (ValueError, AttributeError, RecursionError):
                    continue
                if isinstance(value, str) and value:
                    found.add(value)
    except OSError:
        return set()
    return found
