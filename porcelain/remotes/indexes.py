"""Keeping the index of facts true when chains of other stores arrive, at the cost of what is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from objstore.batch import Batch
from objstore.chain import entries, entries_since, frame_keys
from objstore.errors import CheckFailed
from objstore.fold import Envelope
from objstore.refs import RefMove
from objstore.snapshot import Snapshot
from porcelain.lineage.facts.store import INDEX

_ENVELOPE = msgspec.json.Decoder(Envelope)
_GROUP = 1024


def facts_arrived(view: Snapshot, batch: Batch, moves: Sequence[RefMove]) -> None:
    """Take the facts of the rounds that are new into the index: of each fact the highest (revision, object) counts, so
    that the order of arrival does not matter."""
    for move in moves:
        if move.new is None:
            continue
        for key, entry in _new_entries(view, bytes.fromhex(move.new), move.old):
            kind = view.kind(key)
            if kind is None:
                continue
            keys = list(frame_keys(view, kind, entry))
            for start in range(0, len(keys), _GROUP):
                _absorb(view, batch, keys[start : start + _GROUP])


def _new_entries(view: Snapshot, new: bytes, old: str | None) -> list[tuple[bytes, Any]]:
    try:
        return entries_since(view, new, None if old is None else bytes.fromhex(old))
    except CheckFailed:  # another branch stood there before
        return entries(view, new)


def _absorb(view: Snapshot, batch: Batch, keys: list[bytes]) -> None:
    for key, found in zip(keys, view.get_many(keys), strict=True):
        if found is None or found.kind != "fact":
            continue
        frame = _ENVELOPE.decode(found.data)
        place = INDEX + frame.id.encode()
        value = frame.revision.to_bytes(8, "big") + key
        known = batch.derived.get(place) or view.derived(place)
        if known is None or known < value:
            batch.set_derived(place, value)
