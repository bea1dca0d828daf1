"""OpenCode's database (since 1.2), read without touching it.

After normal use most of it stands in the log beside it (``-wal``). SQLite reads both, but it makes the files ``-wal``
and ``-shm`` where they are missing, and writes into ``-shm``. So a database is read in place only where both are there,
with ``-shm`` opened for reading, or where it has no such log; else a copy of both files in a private folder is read,
whose files are unlinked as soon as they are open.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from porcelain.providers.decoding import NONE
from porcelain.providers.documents_landing import ABOUT
from porcelain.providers.jsonlines import parse
from porcelain.providers.opencode_tree import About, compact, digest

_ANYTHING = msgspec.json.Decoder()
_MAGIC = b"SQLite format 3\0"
_WAL_HEADER = 32
#: How often a copy is begun again because the agent was writing.
_ATTEMPTS = 5
_NEEDED = {
    "session": {"id"},
    "message": {"id", "session_id", "time_created", "time_updated", "data"},
    "part": {"id", "message_id", "session_id", "time_updated", "data"},
}


class SessionRow(Struct, frozen=True):
    """A session in a database; ``messages`` is how many it has, ``share`` its part of all messages and parts,
    ``stamp`` changes whenever anything of it does."""

    id: str
    parent: str
    messages: int
    share: float
    stamp: str


class _Opened(Struct):
    stamp: str
    connection: sqlite3.Connection
    folder: tempfile.TemporaryDirectory[str] | None


#: Open copies by path: one is made for all sessions of a database.
_COPIES: dict[str, _Opened] = {}


def file_size(path: str) -> int:
    """Bytes of a database and its log; raises ``OSError``."""
    log = path + "-wal"
    return os.path.getsize(path) + (os.path.getsize(log) if os.path.exists(log) else 0)


def file_stamp(path: str) -> str:
    """From sizes and times of a database and its log: changes whenever either does. Raises ``OSError``."""
    stat = os.stat(path)
    text = f"{stat.st_size}.{stat.st_mtime_ns}.{stat.st_ino}"
    try:
        log = os.stat(path + "-wal")
    except FileNotFoundError:
        return text
    return f"{text}+{log.st_size}.{log.st_mtime_ns}" if log.st_size else text


@contextmanager
def open_database(path: str) -> Iterator[sqlite3.Connection]:
    """A connection to the database at ``path``, inside one read transaction; TEXT comes as bytes.

    A database in place is open only as long as it is looked at: an agent that comes to its end meanwhile could not
    put its log away. Raises ``OSError`` when it cannot be read or has other tables than are known, also for what
    happens inside.
    """
    with _os_errors():
        opened = _open(path)
        try:
            opened.connection.execute("BEGIN")
            yield opened.connection
            opened.connection.execute("ROLLBACK")
        except BaseException:
            _close(_COPIES.pop(path, opened))
            raise
        finally:
            if opened.folder is None:
                _close(opened)


def sessions(connection: sqlite3.Connection) -> list[SessionRow]:
    """All sessions, in order of their ids."""
    counted: dict[str, str] = {}
    messages: dict[str, int] = {}
    rows: Counter[str] = Counter()
    for table in ("message", "part"):
        for session, count, newest, total in connection.execute(
            "SELECT session_id, count(*), max(time_updated), total(time_updated)"
            f" FROM {table} GROUP BY session_id"
        ):
            name = _text(session)
            counted[name] = f"{counted.get(name, '')} {count} {newest} {total:.0f}"
            rows[name] += count
            if table == "message":
                messages[name] = count
    found: list[SessionRow] = []
    for row in _rows(connection, "SELECT * FROM session ORDER BY id"):
        about = _about(row)
        stamp = digest(msgspec.json.encode(about) + counted.get(about.id, "").encode())
        share = rows[about.id] / (rows.total() or 1)
        found.append(SessionRow(about.id, about.parent, messages.get(about.id, 0), share, stamp))
    return found


class DatabaseDocuments:
    """What a database holds of one session: the documents of ``providers.documents_landing``."""

    def __init__(self, connection: sqlite3.Connection, session: str) -> None:
        self._connection = connection
        self._session = session
        self._made: dict[str, int] = {}
        self._changed = 0

    def stamps(self) -> dict[str, str]:
        """From the times that rows were last written, and how many there are."""
        with _os_errors():
            stamps: dict[str, str] = {}
            own = self._about()
            if own is not None:
                stamps[ABOUT] = digest(own)
            for message, made, updated in self._connection.execute(
                "SELECT id, time_created, time_updated FROM message WHERE session_id = ?", (self._session,)
            ):
                name = _text(message)
                self._made[name] = made if isinstance(made, int) else 0
                stamps[name] = str(updated)
                self._note_change(updated)
            for message, count, newest, total in self._connection.execute(
                "SELECT message_id, count(*), max(time_updated), total(time_updated)"
                " FROM part WHERE session_id = ? GROUP BY message_id",
                (self._session,),
            ):
                name = _text(message)
                self._note_change(newest)
                if name in stamps:
                    stamps[name] += f".{count}.{newest}.{total:.0f}"
            return stamps

    def _note_change(self, milliseconds: object) -> None:
        if isinstance(milliseconds, int):
            self._changed = max(self._changed, milliseconds * 1_000_000)

    def changed(self) -> int:
        return self._changed

    def made(self, key: str) -> int:
        return self._made.get(key, 0)

    def read(self, key: str) -> dict[str, bytes]:
        with _os_errors():
            if key == ABOUT:
                own = self._about()
                return {ABOUT: own} if own is not None else {}
            found: dict[str, bytes] = {}
            for data in self._connection.execute("SELECT data FROM message WHERE id = ?", (key,)):
                found[key] = _document(data[0])
            for part, data in self._connection.execute(
                "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (key,)
            ):
                found[_text(part)] = _document(data)
            return found

    def _about(self) -> bytes | None:
        for row in _rows(self._connection, "SELECT * FROM session WHERE id = ?", (self._session,)):
            return msgspec.json.encode(_about(row))
        return None


def _rows(connection: sqlite3.Connection, query: str, values: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Rows as dictionaries: the columns differ from version to version."""
    cursor = connection.execute(query, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _about(row: dict[str, Any]) -> About:
    def count(name: str) -> int:
        value = row.get(name)
        return value if isinstance(value, int) else 0

    return About(
        id=_text(row.get("id")),
        parent=_text(row.get("parent_id")),
        project=_text(row.get("project_id")),
        directory=_text(row.get("directory")),
        title=_text(row.get("title")),
        version=_text(row.get("version")),
        created=count("time_created"),
        archived=count("time_archived"),
        share=_text(row.get("share_url")),
        permission=_json(row.get("permission")),
        revert=_json(row.get("revert")),
    )


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _document(value: object) -> bytes:
    if not isinstance(value, bytes):
        return b""
    return compact(value) if b"\n" in value or b'": ' in value else value


def _json(value: object) -> Raw:
    """A column that holds JSON text; nothing where it holds none, or what is not JSON."""
    if not isinstance(value, bytes):
        return NONE
    text = compact(value)
    try:
        return NONE if parse(_ANYTHING, text) is None else Raw(text)
    except msgspec.DecodeError:
        return NONE


@contextmanager
def _os_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise OSError(0, f"the database cannot be read ({type(error).__name__})") from error


# -- opening ---------------------------------------------------------------------------------------------------------


def _open(path: str) -> _Opened:
    stamp = file_stamp(path)
    known = _COPIES.get(path)
    if known is not None and known.stamp == stamp:
        return known
    if known is not None:
        _close(_COPIES.pop(path))
    opened = _open_in_place(path, stamp) or _open_copy(path, stamp)
    try:
        _check_tables(opened.connection)
    except (OSError, sqlite3.Error):
        _close(opened)
        raise
    if opened.folder is not None:
        _COPIES[path] = opened
    return opened


def _close(opened: _Opened) -> None:
    opened.connection.close()
    if opened.folder is not None:
        opened.folder.cleanup()


def _open_in_place(path: str, stamp: str) -> _Opened | None:
    """The database as it stands, if SQLite then neither makes nor writes any file."""
    with open(path, "rb") as file:
        head = file.read(20)
    if not head.startswith(_MAGIC):
        raise OSError(0, "not a database")
    log, index, journal = (os.path.exists(path + end) for end in ("-wal", "-shm", "-journal"))
    keeps_log = 2 in head[18:20]
    if journal or log != index or (keeps_log and not log):
        return None
    try:
        return _Opened(stamp, _connect(path, "mode=ro&readonly_shm=1"), None)
    except sqlite3.Error:
        return None


def _open_copy(path: str, stamp: str) -> _Opened:
    """A copy of the database and its log, taken at a moment between two checkpoints.

    The agent appends to the log, which does no harm: SQLite takes of it what is whole. It writes into the database only
    at a checkpoint, after which the log begins anew.
    """
    folder = tempfile.TemporaryDirectory(prefix="objstore-", ignore_cleanup_errors=True)
    copy = os.path.join(folder.name, "copy.db")
    for _ in range(_ATTEMPTS):
        before = _state(path)
        for end in ("", "-wal", "-journal"):
            try:
                shutil.copyfile(path + end, copy + end)
            except FileNotFoundError:
                if not end:
                    raise
                if os.path.exists(copy + end):
                    os.unlink(copy + end)
        if _state(path) == before:
            connection = _connect(copy, "mode=rw")
            if os.name == "posix":
                folder.cleanup()
            return _Opened(stamp, connection, folder)
    folder.cleanup()
    raise OSError(0, "the database changed while it was copied")


def _state(path: str) -> tuple[object, ...]:
    stat = os.stat(path)
    try:
        with open(path + "-wal", "rb") as log:
            head = log.read(_WAL_HEADER)
    except FileNotFoundError:
        head = b""
    return (stat.st_size, stat.st_mtime_ns, stat.st_ino, head)


def _connect(path: str, options: str) -> sqlite3.Connection:
    uri = f"{Path(path).absolute().as_uri()}?{options}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        connection.text_factory = bytes
        connection.execute("PRAGMA query_only = ON")
        # Opens the log and its index as well.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _check_tables(connection: sqlite3.Connection) -> None:
    for table, needed in _NEEDED.items():
        columns = {_text(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}
        if not needed <= columns:
            raise OSError(0, f"the database has no table {table} of a known form")
