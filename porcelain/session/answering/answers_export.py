"""The public table ``providence_cache`` of a question-and-answer file, as a view of the answers of a store.

One row for each cache key: the answer that would be served, or, where none is live, the earliest. The proof column
shows for each passage that it is a chunk of its document.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from objstore import merkle
from objstore.errors import StorageError
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.output_file import replacing
from porcelain.session.answering.answers import Kept, all_answers, unverified_quotes
from porcelain.session.answering.kinds import AnswerSource
from porcelain.session.documents.chunking import leaf
from porcelain.session.documents.documents import placed_chunks

#: ``PRAGMA application_id`` of our files: "objq".
APPLICATION_ID = 0x6F626A71
_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_AT = 68

TABLE = """CREATE TABLE providence_cache (
  cache_key TEXT PRIMARY KEY,
  source_root TEXT NOT NULL,
  question_hash TEXT NOT NULL,
  model_profile_hash TEXT NOT NULL,
  conversation_hash TEXT NOT NULL,
  governance_policy_hash TEXT NOT NULL,
  schema_version TEXT NOT NULL,
  canonicalization_version TEXT NOT NULL,
  chunking_version TEXT NOT NULL,
  question_text TEXT NOT NULL,
  answer_text TEXT NOT NULL,
  merkle_proof TEXT NOT NULL,
  audit_mode TEXT NOT NULL CHECK (audit_mode IN ('STRICT', 'HYBRID', 'UNGROUNDED')),
  verifier_method TEXT NOT NULL,
  n_quotes INTEGER NOT NULL,
  n_verified INTEGER NOT NULL,
  unverified_quotes TEXT NOT NULL,
  falsification_state TEXT NOT NULL CHECK (falsification_state IN ('live', 'failed', 'stale', 'quarantined')),
  created_at TEXT NOT NULL,
  hit_count INTEGER NOT NULL DEFAULT 0,
  last_hit_at TEXT
)"""
_COLUMNS = 21


def export_answers(view: Snapshot, path: Path, *, overwrite: bool = False) -> int:
    """Write the table to the SQLite file ``path``; how many rows. A file there is replaced if it is such an export
    itself, or with ``overwrite``. Raises ``StorageError``."""
    with replacing(path, _is_ours, overwrite=overwrite) as partial:
        try:
            with closing(sqlite3.connect(partial, isolation_level=None)) as connection:
                for setting in ("journal_mode=OFF", f"application_id={APPLICATION_ID}", "user_version=1"):
                    connection.execute(f"PRAGMA {setting}")
                connection.execute("BEGIN")
                connection.execute(TABLE)
                marks = ",".join("?" * _COLUMNS)
                count = connection.executemany(
                    f"INSERT INTO providence_cache VALUES ({marks})", rows(view)
                ).rowcount
                connection.execute("COMMIT")
                return max(count, 0)
        except sqlite3.Error as error:
            raise StorageError(f"{path}: cannot write: {error}") from None


def _is_ours(head: bytes) -> bool:
    stated = head[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]
    return head.startswith(_MAGIC) and stated == APPLICATION_ID.to_bytes(4, "big")


def rows(view: Snapshot) -> Iterator[tuple[Any, ...]]:
    """The rows of the table, in order of cache key."""
    shown: dict[str, Kept] = {}
    for kept in all_answers(view):
        known = shown.get(kept.answer.cache_key)
        if known is None or _rank(kept) < _rank(known):
            shown[kept.answer.cache_key] = kept
    leaves = _Leaves(view)
    for key in sorted(shown):
        yield _row(shown[key], leaves)


def _rank(kept: Kept) -> tuple[bool, str, str]:
    return kept.state != "live", kept.answer.created_at, kept.id


def _row(kept: Kept, leaves: _Leaves) -> tuple[Any, ...]:
    answer, made_of = kept.answer, kept.answer.dimensions
    proof = {
        "context_root": made_of.source_root,
        "sources": [leaves.proof(source) for source in answer.sources],
    }
    return (
        answer.cache_key,
        made_of.source_root,
        made_of.question_hash,
        made_of.model_profile_hash,
        made_of.conversation_hash,
        made_of.governance_policy_hash,
        made_of.schema_version,
        made_of.canonicalization_version,
        made_of.chunking_version,
        answer.question,
        answer.text,
        _json(proof),
        answer.audit_mode,
        answer.verifier_method,
        len(answer.claims),
        sum(claim.status == "EVIDENCE_LINKED" for claim in answer.claims),
        _json(unverified_quotes(answer)),
        kept.state,
        answer.created_at,
        kept.hits,
        kept.last_hit,
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


class _Leaves:
    """The leaf hashes of documents, each read once."""

    def __init__(self, view: Snapshot) -> None:
        self._view = view
        self._known: dict[str, list[bytes] | None] = {}

    def _of(self, document_id: str) -> list[bytes] | None:
        if document_id not in self._known:
            key = bytes.fromhex(document_id)
            found = None
            if key in self._view:
                document = load(self._view, key, "document")
                found = [leaf(placed.text) for placed in placed_chunks(self._view, document)]
            self._known[document_id] = found
        return self._known[document_id]

    def proof(self, source: AnswerSource) -> dict[str, object]:
        """What shows that a passage is a chunk of its document; without siblings where the document is not here."""
        shown: dict[str, object] = {
            "document_root": source.document_root,
            "leaf_hash": source.leaf_hash,
            "leaf_index": source.position,
            "title": source.title,
        }
        leaves = self._of(source.document)
        if leaves is not None and source.position < len(leaves):
            document = merkle.proof_to_document(merkle.prove(leaves, source.position))
            shown["siblings"] = document["siblings"]
        return shown
