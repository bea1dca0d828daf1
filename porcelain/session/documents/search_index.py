"""The full-text index over the chunks of all sources: a SQLite FTS5 file in the store's folder, derived and disposable.

It holds words and positions, no text: the text is read from the store. It knows the heads of the source chains that it
was made from. Where they have moved, documents that came or went are added or taken out; where the file is missing,
damaged or of another version, it is made anew. Nothing a person typed reaches FTS5 but as quoted words.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from objstore.database import Database
from objstore.errors import NotFound, StorageError
from objstore.snapshot import Snapshot
from objstore.store import Store, load
from porcelain.session.documents.documents import placed_chunks
from porcelain.session.documents.kinds import Document
from porcelain.session.documents.sources import heads, live_sources

FILE_NAME = "derived-search.sqlite"
#: ``PRAGMA user_version`` of the file; a change of the tables or the tokenizer needs another one.
VERSION = 1
_BUSY_SECONDS = 60.0
#: How much a word in the title counts against one in the text, in bm25.
_RANK = "bm25(4.0, 1.0)"
#: How many times as many chunks are looked at as are wanted, so that one long document does not fill all places.
_DEEPER = 8

_TABLES = """
CREATE TABLE state (heads BLOB NOT NULL);
CREATE TABLE documents (number INTEGER PRIMARY KEY, object BLOB NOT NULL UNIQUE, root BLOB NOT NULL,
  title TEXT NOT NULL);
CREATE TABLE chunks (number INTEGER PRIMARY KEY, document INTEGER NOT NULL, position INTEGER NOT NULL,
  object BLOB NOT NULL);
CREATE INDEX chunks_of_document ON chunks (document);
CREATE VIRTUAL TABLE words USING fts5(title, body, content='', tokenize='porter unicode61 remove_diacritics 2');
"""


class Hit(NamedTuple):
    """A chunk that matched: ids of chunk and document and the document's root (hex), the chunk's number in the
    document, the title, and bm25 (smaller is better)."""

    chunk: str
    document: str
    document_root: str
    position: int
    title: str
    rank: float


class Changes(NamedTuple):
    """What bringing the index up to date did: documents and chunks that came in, documents that went out."""

    added: int
    chunks: int
    removed: int


def quoted(words: Iterable[str], operator: str) -> str:
    """An FTS5 expression of quoted words (letters and digits only) joined by ``AND`` or ``OR``."""
    return f" {operator} ".join('"' + word.replace('"', '""') + '"' for word in words)


class SearchIndex:
    """An open index. Only words of letters and digits may be put into its expressions; see ``quoted``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def refresh(self, store: Store, *, on_document: Callable[[str], None] | None = None) -> Changes:
        """Bring the index to what ``store`` holds. ``on_document`` is told each title that is indexed."""
        with store.snapshot() as view:
            if self._state() == b"".join(heads(view)):
                return Changes(0, 0, 0)
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            # Looked at again under the lock: another process may have been here, with a newer view.
            with store.snapshot() as view:
                changes = self._update(view, on_document)
                run("DELETE FROM state")
                run("INSERT INTO state VALUES (?)", (b"".join(heads(view)),))
            run("COMMIT")
        except BaseException:
            run("ROLLBACK")
            raise
        return changes

    def _state(self) -> bytes | None:
        row = self._connection.execute("SELECT heads FROM state").fetchone()
        return None if row is None else bytes(row[0])

    def _update(self, view: Snapshot, on_document: Callable[[str], None] | None) -> Changes:
        live: dict[bytes, tuple[str, Document]] = {}
        for source in live_sources(view):
            live.setdefault(bytes.fromhex(source.document_id), (source.title, source.document))
        rows = self._connection.execute("SELECT number, object, title FROM documents").fetchall()
        known = {bytes(key): title for _, key, title in rows}
        titles = {key: title for key, (title, _) in live.items()}
        going = [row for row in rows if titles.get(bytes(row[1])) != row[2]]
        for number, key, title in going:
            self._remove(view, number, bytes(key), title)
            del known[bytes(key)]
        coming = [(key, *found) for key, found in live.items() if key not in known]
        count = 0
        for key, title, document in coming:
            if on_document is not None:
                on_document(title)
            run = self._connection.execute
            root = bytes.fromhex(document.document_root)
            number = run(
                "INSERT INTO documents (object, root, title) VALUES (?, ?, ?)", (key, root, title)
            ).lastrowid
            for placed in placed_chunks(view, document):
                made = run(
                    "INSERT INTO chunks (document, position, object) VALUES (?, ?, ?)",
                    (number, placed.position, bytes.fromhex(placed.id)),
                ).lastrowid
                run("INSERT INTO words (rowid, title, body) VALUES (?, ?, ?)", (made, title, placed.text))
                count += 1
        return Changes(len(coming), count, len(going))

    def _remove(self, view: Snapshot, number: int, document: bytes, title: str) -> None:
        # FTS5 keeps no text, so it must be told again what it is to forget.
        run = self._connection.execute
        rows = run("SELECT number, object FROM chunks WHERE document = ?", (number,)).fetchall()
        for chunk, key in rows:
            text = load(view, bytes(key), "document-chunk").text
            run(
                "INSERT INTO words (words, rowid, title, body) VALUES ('delete', ?, ?, ?)",
                (chunk, title, text),
            )
        run("DELETE FROM chunks WHERE document = ?", (number,))
        run("DELETE FROM documents WHERE object = ?", (document,))

    def search(self, expression: str, limit: int) -> list[Hit]:
        """The ``limit`` best chunks for an FTS5 expression, best first; of one document at most a third of them while
        there are others."""
        rows = self._connection.execute(
            "SELECT c.object, d.object, d.root, c.position, d.title, w.rank FROM"
            " (SELECT rowid, rank FROM words WHERE words MATCH ? AND rank MATCH ? ORDER BY rank LIMIT ?) AS w"
            " JOIN chunks AS c ON c.number = w.rowid JOIN documents AS d ON d.number = c.document"
            " ORDER BY w.rank, d.root, c.position",
            (expression, _RANK, _DEEPER * limit),
        )
        hits = [Hit(c.hex(), d.hex(), root.hex(), at, title, rank) for c, d, root, at, title, rank in rows]
        count: Counter[str] = Counter()
        taken: list[Hit] = []
        over: list[Hit] = []
        for hit in hits:
            count[hit.document] += 1
            (taken if count[hit.document] <= max(1, limit // 3) else over).append(hit)
        return sorted((taken + over)[:limit], key=lambda hit: (hit.rank, hit.document_root, hit.position))

    def count(self, expression: str, limit: int) -> int:
        """How many chunks match, counted up to ``limit``."""
        row = self._connection.execute(
            "SELECT count(*) FROM (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?)", (expression, limit)
        ).fetchone()
        return int(row[0])

    def chunks(self) -> int:
        """How many chunks there are."""
        return int(self._connection.execute("SELECT count(*) FROM chunks").fetchone()[0])


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA cache_size=-65536")
        version = _version(connection)
        if version == 0:
            connection.execute("BEGIN IMMEDIATE")
            version = _version(connection)
            if version == 0:
                for statement in _TABLES.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={VERSION}")
            connection.execute("COMMIT")
        if version not in (0, VERSION):
            raise sqlite3.DatabaseError(f"version {version}")
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def index_path(store: Store) -> str | None:
    """Where the index of a store is; None for a store in memory, whose index is in memory too."""
    return os.path.join(store.database.path, FILE_NAME) if isinstance(store.database, Database) else None


@contextmanager
def open_index(
    store: Store, *, on_document: Callable[[str], None] | None = None
) -> Iterator[tuple[SearchIndex, Changes]]:
    """The index of a store, brought up to date, and what that changed. Raises ``StorageError``."""
    path = index_path(store)
    try:
        connection, changes = _fresh(store, path, on_document)
    except (sqlite3.DatabaseError, NotFound) as error:
        if path is None or _is_busy(error):
            raise StorageError(f"{path or 'the search index'}: cannot be used: {error}") from None
        discard_index(store)
        try:
            connection, changes = _fresh(store, path, on_document)
        except sqlite3.Error as again:
            raise StorageError(f"{path}: cannot be written: {again}") from None
    try:
        yield SearchIndex(connection), changes
    except sqlite3.DatabaseError as error:
        raise StorageError(
            f"{path}: cannot be read: {error}", hint="run: objstore session source reindex"
        ) from None
    finally:
        connection.close()


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _fresh(
    store: Store, path: str | None, on_document: Callable[[str], None] | None
) -> tuple[sqlite3.Connection, Changes]:
    if path is not None and not os.path.exists(path):
        try:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError as error:
            raise StorageError(f"{path}: cannot be written: {error.strerror}") from None
    connection = _connect(path or ":memory:")
    try:
        return connection, SearchIndex(connection).refresh(store, on_document=on_document)
    except BaseException:
        connection.close()
        raise


def discard_index(store: Store) -> None:
    """Delete the index; the next question makes it anew."""
    path = index_path(store)
    if path is None:
        return
    for suffix in ("-journal", ""):
        try:
            os.unlink(path + suffix)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StorageError(f"{path}: cannot be removed: {error.strerror}") from None


def reindex(store: Store, *, on_document: Callable[[str], None] | None = None) -> Changes:
    """Make the index of a store anew."""
    discard_index(store)
    with open_index(store, on_document=on_document) as (_, changes):
        return changes
