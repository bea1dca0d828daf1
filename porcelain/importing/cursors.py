"""Cursors in a store's ``local`` database: one value a source file, found again by provider and path."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import msgspec

from objstore.batch import Batch
from objstore.damage import RESTORE
from objstore.digest import hash_bytes
from objstore.errors import StorageError
from objstore.snapshot import Snapshot
from objstore.store import Store
from porcelain.providers.cursor import Cursor, CursorHead

_Head = TypeVar("_Head", bound=CursorHead)

_PREFIX = b"cursor/"
_HASH_KEY = b"hash-key"
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Cursor)
_HEADS = msgspec.json.Decoder(CursorHead)


def _key(provider: str, path: str) -> bytes:
    return _PREFIX + provider.encode() + b"/" + hash_bytes(os.fsencode(path))[:16]


def load_cursors(view: Snapshot, provider: str) -> dict[str, Cursor]:
    """All cursors of a provider's sources, by path. Raises ``StorageError`` where one is damaged, as the next do."""
    return _load(view, provider, _DECODER.decode)


def load_heads(view: Snapshot, provider: str) -> dict[str, CursorHead]:
    """What tells unchanged files of all cursors of a provider's sources, by path."""
    return _load(view, provider, _HEADS.decode)


def _load(view: Snapshot, provider: str, decode: Callable[[bytes], _Head]) -> dict[str, _Head]:
    try:
        found = [decode(value) for _, value in view.local_items(_PREFIX + provider.encode() + b"/")]
    except msgspec.MsgspecError:
        raise _damaged(provider) from None
    return {cursor.path: cursor for cursor in found}


def _damaged(provider: str) -> StorageError:
    return StorageError(
        f"what was imported of {provider} is not known: the store's database is damaged", hint=RESTORE
    )


def load_cursor(view: Snapshot, provider: str, path: str) -> Cursor | None:
    """The cursor of one source, or None."""
    value = view.local(_key(provider, path))
    try:
        return _DECODER.decode(value) if value is not None else None
    except msgspec.MsgspecError:
        raise _damaged(provider) from None


def save_cursor(batch: Batch, cursor: Cursor) -> None:
    """Keep a cursor, in the transaction that stores what it covers."""
    batch.set_local(_key(cursor.provider, cursor.path), _ENCODER.encode(cursor))


def hash_key(store: Store) -> bytes:
    """The key of the hashes over raw bytes, made at the first import; it never leaves the machine."""
    with store.snapshot() as view:
        key = view.local(_HASH_KEY)
    if key is None:
        key = os.urandom(32)
        batch = store.batch()
        batch.set_local(_HASH_KEY, key)
        store.commit(batch)
    return key
