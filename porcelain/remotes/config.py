"""The remotes of a store: a name for the place of another one, and what is exchanged with it. They belong to this
machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import Struct

from objstore.batch import Batch
from objstore.errors import Conflict, NotFound, UsageError
from objstore.snapshot import Snapshot
from objstore.store import Store
from objstore.sync.manifest import Scope

_PREFIX = b"remote/"
_SEEN = b"remote-seen/"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
#: The program that is run on another machine.
PROGRAM = "objstore"


class Remote(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another store: where it is (``url``), which refs are exchanged with it (``patterns``; none: all), whether content
    is, and the program that serves it where one has to be run."""

    content: bool = False
    patterns: tuple[str, ...] = ()
    program: str = PROGRAM
    url: str

    def scope(self) -> Scope:
        """What is exchanged."""
        return Scope(content=self.content, patterns=self.patterns)


class Pusher(NamedTuple):
    """What a hub is told of the store that writes to it: its id, under which it does, and the hash that keys it."""

    store: str
    algorithm: str


def pusher(store: Store) -> Pusher:
    """What ``store`` is to a hub."""
    return Pusher(store.store_id, store.algorithm)


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Remote)


def check_name(name: str) -> str:
    """``name``, or ``UsageError`` for what no remote may be called (so that it is never taken for a path or URL)."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"{name[:40]!r}: not a name for a remote: letters, digits and . _ -")
    return name


def is_name(text: str) -> bool:
    """Whether ``text`` can be the name of a remote."""
    return _NAME.fullmatch(text) is not None


def find_remote(view: Snapshot, name: str) -> Remote | None:
    """The remote called ``name``, or None."""
    found = view.local(_PREFIX + name.encode()) if is_name(name) else None
    return None if found is None else _DECODER.decode(found)


def all_remotes(view: Snapshot) -> Iterator[tuple[str, Remote]]:
    """All remotes, by name."""
    for key, value in view.local_items(_PREFIX):
        yield key[len(_PREFIX) :].decode(), _DECODER.decode(value)


def add_remote(view: Snapshot, batch: Batch, name: str, remote: Remote) -> None:
    """Remember a remote; raises ``Conflict`` where there is one of that name."""
    if find_remote(view, check_name(name)) is not None:
        raise Conflict(f"{name}: there is a remote of that name", hint=f"objstore remote remove {name}")
    batch.set_local(_PREFIX + name.encode(), _ENCODER.encode(remote))


def remove_remote(view: Snapshot, batch: Batch, name: str) -> None:
    """Forget a remote; raises ``NotFound``."""
    if find_remote(view, name) is None:
        raise NotFound(f"{name}: no such remote", hint="list them with: objstore remote list")
    batch.set_local(_PREFIX + name.encode(), None)
    batch.set_local(_SEEN + name.encode(), None)


def _scope_key(scope: Scope) -> bytes:
    return msgspec.msgpack.encode(scope)


def seen_root(view: Snapshot, name: str, scope: Scope) -> bytes | None:
    """The root of the remote's manifest when all of ``scope`` was last fetched from it, or None."""
    found = view.local(_SEEN + name.encode())
    if found is None or found[32:] != _scope_key(scope):
        return None
    return found[:32]


def note_seen(batch: Batch, name: str, scope: Scope, root: bytes) -> None:
    """Remember that all of ``scope`` was fetched from a remote whose manifest had this root."""
    batch.set_local(_SEEN + name.encode(), root + _scope_key(scope))
