"""What is new in the chains of facts and in the landed conversations since the index was made."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from msgspec import Struct

from objstore.chain import entries, entries_since, frame_keys
from objstore.errors import CheckFailed, NotFound
from objstore.snapshot import Snapshot
from porcelain.flow.chain.naming import ranked
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.store import read_facts
from porcelain.lineage.index.standing import lineage_heads
from porcelain.lineage.index.tables import in_parts, placed
from porcelain.lineage.landed.pages import native_of

#: Facts that are read together.
PART = 2048
#: Conversations whose heads are held.
_HELD = 1024


class OutOfStep(Exception):
    """The index cannot be brought up to date by what is new, and is made anew."""


class Claimed(Struct, frozen=True, array_like=True):
    """What the index knows of a fact: its revision, the key of the object that counts, whether it is withdrawn, the
    token of what it is about."""

    revision: int
    key: bytes
    removed: bool
    token: int | None


def new_facts(view: Snapshot, known: dict[str, str]) -> Iterator[list[tuple[bytes, Fact]]]:
    """The facts that the chains have beyond the heads in ``known``, in parts, with their keys. Raises ``OutOfStep``
    where a chain does not go on from where it was."""
    heads = lineage_heads(view)
    if not known.keys() <= heads.keys():
        raise OutOfStep
    for ref, head in heads.items():
        before = known.get(ref)
        if before == head:
            continue
        try:
            if before is None:
                chain = entries(view, bytes.fromhex(head))
            else:
                chain = entries_since(view, bytes.fromhex(head), bytes.fromhex(before))
        except (CheckFailed, NotFound):
            if before is None:
                raise
            raise OutOfStep from None
        keys = (name for key, entry in chain for name in frame_keys(view, view.kind(key) or "", entry))
        for part in in_parts(keys, PART):
            yield list(zip(part, read_facts(view, part), strict=True))


def known_claims(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Claimed]:
    """What the index knows of the facts with these ids."""
    found: dict[str, Claimed] = {}
    for part in in_parts(ids):
        rows = connection.execute(
            f"SELECT id, revision, key, removed, token FROM fact WHERE id IN ({placed(part)})", part
        )
        found.update(
            (name, Claimed(revision, key, bool(removed), token))
            for name, revision, key, removed, token in rows
        )
    return found


def moved_landings(connection: sqlite3.Connection, view: Snapshot) -> list[tuple[str, str]]:
    """Provider and native id of the conversations whose landing chains have moved, which the index now knows."""
    moved: set[tuple[str, str]] = set()
    rows = connection.execute("SELECT ref, head FROM landed ORDER BY ref")
    known = next(rows, None)
    news: list[tuple[str, bytes, str, str]] = []
    gone: list[tuple[str]] = []
    for ref, head in view.refs("landed/"):
        while known is not None and known[0] < ref:
            gone.append((known[0],))
            known = next(rows, None)
        if known is not None and known[0] == ref:
            same = known[1] == head
            known = next(rows, None)
            if same:
                continue
        parts = ref.split("/", 3)
        if len(parts) == 4:
            news.append((ref, head, parts[2], native_of(parts[3])))
            moved.add((parts[2], native_of(parts[3])))
    while known is not None:
        gone.append((known[0],))
        known = next(rows, None)
    if gone:
        raise OutOfStep
    connection.executemany("INSERT OR REPLACE INTO landed VALUES (?, ?, ?, ?)", news)
    return sorted(moved)


class IndexedHeads:
    """The heads of the landing chains of a conversation, as ``landed.pages.all_heads`` finds them."""

    def __init__(self, connection: sqlite3.Connection, view: Snapshot) -> None:
        self._run = connection.execute
        self._view = view
        self._held: dict[tuple[str, str], list[bytes]] = {}

    def __call__(self, provider: str, native: str) -> list[bytes]:
        found = self._held.get((provider, native))
        if found is None:
            rows = self._run(
                "SELECT ref, head FROM landed WHERE provider = ? AND native = ?", (provider, native)
            ).fetchall()
            found = self.hold(provider, native, rows)
        return found

    def hold(self, provider: str, native: str, rows: Sequence[tuple[str, bytes]]) -> list[bytes]:
        """Take the refs and heads of a conversation, as the index has them."""
        return self.take(provider, native, self._ranked(provider, rows))

    def take(self, provider: str, native: str, heads: list[bytes]) -> list[bytes]:
        """Take the heads of a conversation, as they were given before."""
        if len(self._held) >= _HELD:
            self._held.clear()
        self._held[provider, native] = heads
        return heads

    def _ranked(self, provider: str, rows: Sequence[tuple[str, bytes]]) -> list[bytes]:
        if len(rows) == 1:
            return [rows[0][1]]
        heads: dict[str, list[tuple[str, bytes]]] = {}
        for ref, head in rows:
            _, store, _, name = ref.split("/", 3)
            heads.setdefault(name, []).append((store, head))
        return [
            head
            for name in sorted(heads)
            for head in ranked(self._view, provider, name, "landed", heads[name])
        ]
