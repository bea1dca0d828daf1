"""A session as a SQLite file with the public schema: a self-contained view that needs nothing but SQLite, the rule of
canonical JSON and three hash primitives to be verified.

The view holds the current tree and the order of events. The same session gives the same rows, and with the same SQLite
the same bytes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from objstore import kinds
from objstore.errors import StorageError
from objstore.garbage import without_gc
from objstore.objects import SESSION_NODE
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.output_file import replacing
from porcelain.session.integrity.runs import (
    EventRun,
    chain_in_runs,
    likely_events,
    patterns_of,
    read_event_runs,
)
from porcelain.session.tree.change import Session
from porcelain.session.tree.events import Event
from porcelain.session.tree.identity import bates_of
from porcelain.session.tree.nodes import Node
from porcelain.session.tree.places import current_seq
from porcelain.session.tree.replay import GROUP, in_groups, load_all

#: ``PRAGMA application_id`` of our files: "objs".
APPLICATION_ID = 0x6F626A73
_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_AT = 68

META_COLUMNS = (
    "session_id",
    "root_bates",
    "session_root",
    "current_bates",
    "next_seq",
    "created_at",
    "updated_at",
)
NODE_COLUMNS = (
    "bates",
    "seq",
    "parent_bates",
    "question",
    "cache_key",
    "audit_mode",
    "created_at",
    "label",
    "node_hash",
    "subtree_hash",
)
EVENT_COLUMNS = (
    "seq",
    "event_type",
    "bates",
    "prev_root",
    "session_root",
    "body",
    "event_hash",
    "created_at",
)

SCHEMA = (
    """CREATE TABLE session_meta (
    session_id      TEXT PRIMARY KEY,
    root_bates      TEXT NOT NULL,
    session_root    TEXT NOT NULL,
    current_bates   TEXT NOT NULL,
    next_seq        INTEGER NOT NULL,
    created_at      TEXT NOT NULL,
    updated_at      TEXT NOT NULL
)""",
    """CREATE TABLE nodes (
    bates           TEXT PRIMARY KEY,
    seq             INTEGER NOT NULL,
    parent_bates    TEXT REFERENCES nodes(bates),
    question        TEXT NOT NULL,
    cache_key       TEXT NOT NULL,
    audit_mode      TEXT NOT NULL,
    created_at      TEXT NOT NULL,
    label           TEXT,
    node_hash       TEXT NOT NULL,
    subtree_hash    TEXT NOT NULL
)""",
    """CREATE TABLE session_audit_events (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    event_type      TEXT NOT NULL,
    bates           TEXT,
    prev_root       TEXT NOT NULL,
    session_root    TEXT NOT NULL,
    body            TEXT NOT NULL,
    event_hash      TEXT NOT NULL,
    created_at      TEXT NOT NULL
)""",
)


def export_session(view: Snapshot, session: Session, path: Path, *, overwrite: bool = False) -> None:
    """Write a session to ``path``, whole or not at all.

    A file at ``path`` is replaced if it is such a view itself, or with ``overwrite``. Raises ``StorageError``.
    """
    with replacing(path, _is_ours, overwrite=overwrite) as partial:
        try:
            with without_gc(), closing(sqlite3.connect(partial, isolation_level=None)) as connection:
                _fill(connection, view, session)
        except sqlite3.Error as error:
            raise StorageError(f"{path}: cannot write: {error}") from None


def _is_ours(head: bytes) -> bool:
    stated = head[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]
    return head.startswith(_MAGIC) and stated == APPLICATION_ID.to_bytes(4, "big")


def _fill(connection: sqlite3.Connection, view: Snapshot, session: Session) -> None:
    for setting in (
        "page_size=4096",
        "encoding='UTF-8'",
        "journal_mode=OFF",
        "synchronous=OFF",
        "locking_mode=EXCLUSIVE",
        f"application_id={APPLICATION_ID}",
    ):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("BEGIN")
    for statement in SCHEMA:
        connection.execute(statement)
    sid, state = session.sid, session.state
    current = bates_of(sid, current_seq(view, session))
    meta = (
        sid,
        bates_of(sid, 0),
        state.root,
        current,
        state.next_seq,
        state.created_at,
        state.updated_at,
    )
    for table, columns, rows in (
        ("session_meta", META_COLUMNS, iter([meta])),
        ("nodes", NODE_COLUMNS, _node_rows(view, session)),
        ("session_audit_events", EVENT_COLUMNS, _event_rows(view, session)),
    ):
        places = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)
    connection.execute("COMMIT")


def _node_rows(view: Snapshot, session: Session) -> Iterator[tuple[Any, ...]]:
    """Rows of ``nodes``, parents before children."""
    sid = session.sid
    rows = session.index.rows()
    while group := list(islice(rows, GROUP)):
        digests = [digest for _, _, digest, _, _ in group]
        nodes: list[Node] | None = load_all(view, digests, SESSION_NODE)
        if nodes is None:
            nodes = [
                load(view, digest, SESSION_NODE) for digest in digests
            ]  # says which is not as it should be
        for (seq, above, digest, subtree, _), node in zip(group, nodes, strict=True):
            yield (
                node.bates,
                seq,
                None if above is None else bates_of(sid, above),
                node.question,
                node.cache_key,
                node.audit_mode,
                node.created_at,
                node.label,
                digest.hex(),
                subtree.hex(),
            )


def _event_rows(view: Snapshot, session: Session) -> Iterator[tuple[Any, ...]]:
    """Rows of ``session_audit_events``, oldest first."""
    patterns = patterns_of(session.sid)
    runs = {
        run.keys[-1].hex(): run
        for group in in_groups(likely_events(view, session.sid)[1:])
        for run in read_event_runs(view, patterns, group)
    }
    for part in chain_in_runs(view, session.state.head, runs):
        if isinstance(part, EventRun):
            yield from _rows_of_run(part)
        else:
            yield from (event_row(event) for _, event in part)


def _rows_of_run(run: EventRun) -> Iterator[tuple[Any, ...]]:
    texts = run.texts
    columns = (
        texts.bates,
        texts.prev_root,
        texts.session_root,
        texts.body,
        texts.event_hash,
        texts.created_at,
    )
    for seq, row in enumerate(zip(*columns, strict=True), run.last_seq - len(run.keys) + 1):
        bates, before, root, body, digest, time = [text.decode() for text in row]
        yield seq, "node_added", bates, before, root, body, digest, time


def event_row(event: Event) -> tuple[Any, ...]:
    """One event as a row of ``session_audit_events``."""
    body = event.body
    return (
        event.seq,
        body.event_type,
        body.bates,
        body.prev_root,
        body.session_root,
        kinds.encode(body).decode(),
        event.event_hash,
        body.created_at,
    )
