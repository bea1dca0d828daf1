"""Chains: append-only sequences of immutable entries, each naming the one before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from objstore import kinds
from objstore.errors import CheckFailed, NotFound
from objstore.snapshot import Snapshot


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
