"""Chains: append-only sequences of immutable entries, each naming the one before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET

from objstore import kinds
from objstore.batch import Batch
from objstore.core import ListOf, Round, list_pieces
from objstore.errors import CheckFailed, NotFound
from objstore.snapshot import Snapshot


class RoundHead(NamedTuple):
    """Where a plain chain stands: the id (hex) of its last round and its number; None and 0 for an empty one."""

    id: str | None
    number: int


def round_head(view: Snapshot, ref: str) -> RoundHead:
    """Where the plain chain under ``ref`` stands. Raises ``CheckFailed`` when the ref names something else."""
    key = view.ref(ref)
    if key is None:
        return RoundHead(None, 0)
    found = view.get(key)
    if found is None or found.kind != "round":
        raise CheckFailed(f"{ref}: does not name a round")
    return RoundHead(key.hex(), kinds.decode("round", found.data).round)


def append_round(batch: Batch, chain: str, ref: str, head: RoundHead, frames: Sequence[str]) -> RoundHead:
    """Add a round with these frames (ids, already in the batch or the store) and move ``ref`` from ``head`` to it."""
    lists = [batch.put("list", kinds.encode(ListOf(items=items))) for items in list_pieces(frames)]
    entry = Round(
        chain=chain,
        frames=lists,
        previous=UNSET if head.id is None else head.id,
        round=head.number + 1,
    )
    made = batch.put("round", kinds.encode(entry))
    batch.move_ref(ref, made, head.id, f"round {entry.round}")
    return RoundHead(made, entry.round)


def _entry(view: Snapshot, key: bytes) -> tuple[kinds.Kind, Any]:
    found = view.get(key)
    if found is None:
        raise NotFound(f"{key.hex()}: a chain names this entry, and it is not here")
    kind = kinds.lookup(found.kind)
    if kind.previous is None:
        raise CheckFailed(f"{key.hex()}: a {found.kind} is not the entry of a chain")
    return kind, kinds.decode(found.kind, found.data)


def entries(view: Snapshot, head: bytes) -> list[tuple[bytes, Any]]:
    """The entries that ``head`` ends, oldest first: every entry stands after all those it names as previous.

    Entries with several predecessors (grafts) are allowed; each entry appears once. Raises ``NotFound`` for a missing
    entry, ``CheckFailed`` for an object that is no chain entry.
    """
    order: list[tuple[bytes, Any]] = []
    done: set[bytes] = set()
    waiting: list[tuple[bytes, Any, list[bytes]]] = []

    def open_entry(key: bytes) -> None:
        kind, obj = _entry(view, key)
        assert kind.previous is not None
        waiting.append((key, obj, [bytes.fromhex(i) for i in kind.previous(obj)]))

    open_entry(head)
    while waiting:
        key, obj, before = waiting[-1]
        while before and before[-1] in done:
            before.pop()
        if before:
            open_entry(before[-1])
            continue
        waiting.pop()
        if key not in done:
            done.add(key)
            order.append((key, obj))
    return order


def entries_since(view: Snapshot, head: bytes, known: bytes | None) -> list[tuple[bytes, Any]]:
    """The entries after ``known`` up to ``head``, oldest first, of a chain whose entries have one predecessor each.

    Costs only the new entries. With ``known`` None, all of them. Raises ``CheckFailed`` when ``known`` is not on it.
    """
    found: list[tuple[bytes, Any]] = []
    key: bytes | None = head
    while key is not None and key != known:
        kind, obj = _entry(view, key)
        assert kind.previous is not None
        found.append((key, obj))
        before = list(kind.previous(obj))
        if len(before) > 1:
            raise CheckFailed(f"{key.hex()}: has several predecessors")
        key = bytes.fromhex(before[0]) if before else None
    if key != known:
        raise CheckFailed(f"{known.hex() if known else ''}: is not on the chain of {head.hex()}")
    return found[::-1]


def frame_keys(view: Snapshot, kind_name: str, entry: Any) -> Iterator[bytes]:
    """Keys of the frames of one entry, in order; ``list`` objects are opened."""
    kind = kinds.lookup(kind_name)
    for text in kind.frames(entry) if kind.frames is not None else ():
        key = bytes.fromhex(text)
        found = view.get(key)
        if found is None:
            raise NotFound(f"{text}: a round names this frame, and it is not here")
        if found.kind == "list":
            for item in kinds.decode("list", found.data).items:
                yield bytes.fromhex(item)
        else:
            yield key
