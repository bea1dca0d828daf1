"""The peer of sessions: the public tables in SQLite, written by hand as a careful program would.

It does what the schema asks for and nothing more: no objects, no answers, no labels. The file that it works on is an
export of ours, so both hold the same tree.
"""

from __future__ import annotations

import json
import sqlite3
from hashlib import sha256
from pathlib import Path

_ZERO = bytes(32)


def _canonical(value: dict[str, object]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _root(layer: list[bytes]) -> bytes:
    while len(layer) > 1:
        if len(layer) % 2:
            layer.append(layer[-1])
        layer = [sha256(b"\x03" + layer[n] + layer[n + 1]).digest() for n in range(0, len(layer), 2)]
    return layer[0]


class SqliteSession:
    """One session in a SQLite file, open for inserting."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        run = self._connection.execute
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        run("CREATE INDEX IF NOT EXISTS children ON nodes (parent_bates, subtree_hash)")
        self.sid, self.root, self.next_seq = run(
            "SELECT session_id, session_root, next_seq FROM session_meta"
        ).fetchone()
        (last,) = run("SELECT event_hash FROM session_audit_events ORDER BY seq DESC LIMIT 1").fetchone()
        self._event_hash = bytes.fromhex(last)

    def close(self) -> None:
        self._connection.close()

    def insert(self, turns: list[tuple[int, str]], answer: str, cache_key: str, created_at: str) -> None:
        """Add turns (parent's number, question) in one durable transaction."""
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        for parent, question in turns:
            self._insert(f"{self.sid}-{parent:06d}", question, answer, cache_key, created_at)
        run(
            "UPDATE session_meta SET session_root = ?, next_seq = ?, updated_at = ?",
            (self.root, self.next_seq, created_at),
        )
        run("COMMIT")

    def _insert(self, parent: str, question: str, answer: str, cache_key: str, created_at: str) -> None:
        run = self._connection.execute
        bates = f"{self.sid}-{self.next_seq:06d}"
        (above,) = run("SELECT node_hash FROM nodes WHERE bates = ?", (parent,)).fetchone()
        body = {
            "audit_mode": "STRICT",
            "bates": bates,
            "cache_key": cache_key,
            "created_at": created_at,
            "label": None,
            "parent_node_hash": above,
            "question": question,
        }
        node_hash = sha256(_canonical(body)).digest()
        subtree = sha256(b"\x00" + node_hash).hexdigest()
        run(
            "INSERT INTO nodes VALUES (?,?,?,?,?,?,?,?,?,?)",
            (
                bates,
                self.next_seq,
                parent,
                question,
                cache_key,
                "STRICT",
                created_at,
                None,
                node_hash.hex(),
                subtree,
            ),
        )
        at: str | None = parent
        while at is not None:
            digest, upper = run("SELECT node_hash, parent_bates FROM nodes WHERE bates = ?", (at,)).fetchone()
            rows = run("SELECT subtree_hash FROM nodes WHERE parent_bates = ? ORDER BY subtree_hash", (at,))
            children = _root([bytes.fromhex(row[0]) for row in rows])
            leaf = sha256(b"\x00" + bytes.fromhex(digest)).digest()
            subtree = sha256(b"\x03" + leaf + children).hexdigest()
            run("UPDATE nodes SET subtree_hash = ? WHERE bates = ?", (subtree, at))
            at = upper
        event = {
            "answer": answer,
            "bates": bates,
            "created_at": created_at,
            "event_type": "node_added",
            "node_hash": node_hash.hex(),
            "parent_bates": parent,
            "prev_root": self.root,
            "session_root": subtree,
        }
        text = _canonical(event)
        self._event_hash = sha256(self._event_hash + text).digest()
        run(
            "INSERT INTO session_audit_events VALUES (NULL,?,?,?,?,?,?,?)",
            ("node_added", bates, self.root, subtree, text.decode(), self._event_hash.hex(), created_at),
        )
        self.root = subtree
        self.next_seq += 1
