"""What a way to another store must offer, and what the two sides tell each other.

A transport is small on purpose: five requests, of which only ``push`` changes anything. One suite of tests,
``tests/objstore/sync/test_transports.py``, is run against every one of them. A store that others keep as plain files (a
bucket, a branch) answers the same requests from the manifests it finds there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from objstore.sync.manifest import Node, Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from objstore.pack.reader import Source

#: The version of the requests; another one is refused with what to do.
PROTOCOL = 1


class Hello(Struct, frozen=True, kw_only=True):
    """What a store says first: whether it keeps content, the hash that keys it, how many refs it offers in the scope
    and the root of their manifest, its id, and the version of the protocol."""

    content: bool
    hash: str
    refs: int
    root: bytes
    store: str
    version: int = PROTOCOL


class Receipt(Struct, frozen=True, kw_only=True):
    """What a push came to: objects that were new there, names of refs that moved, and of those that have several heads
    there now."""

    added: int
    diverged: list[str]
    moved: list[str]


class Traffic(Struct):
    """Work that a transport did: requests, and bytes sent and received, as near to the wire as it can count."""

    requests: int = 0
    sent: int = 0
    received: int = 0


class Transport(Protocol):
    """A way to another store. Every method may raise the errors of ``objstore.errors``: those of the other side as if
    they were raised here, and ``StorageError`` when it cannot be reached or the connection is cut."""

    traffic: Traffic

    def hello(self, scope: Scope) -> Hello:
        """Who is there, and the root of its manifest in ``scope``."""

    def nodes(self, scope: Scope, prefixes: Sequence[str]) -> Sequence[Node]:
        """Nodes of its manifest."""

    def entries(self, names: Sequence[str]) -> list[bytes]:
        """Ids that it has of the chains under these names, or under others in the same place (``joining.Place``): the
        heads, and entries before them at growing distances."""

    def fetch(self, scope: Scope, names: Sequence[str], have: Sequence[bytes], most: int) -> Iterator[Source]:
        """Packs that bring the refs ``names`` to a store that has ``have`` and all that it needs, to be received in
        order, each read to its end before the next is taken, perhaps by another thread. Each offers refs with all that
        they need beside what came before. Where there is more than about ``most`` objects, some of ``names`` may be
        left out for the next call."""

    def push(self, pack: Iterable[bytes]) -> Receipt:
        """Have the other side receive a pack."""

    def close(self) -> None:
        """Give it up; nothing that was not acknowledged is promised."""


class PieceSource:
    """A ``Source`` out of pieces of bytes."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = b""
        self._at = 0

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        while self._at >= len(self._rest):
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest, self._at = piece, 0
        part = self._rest[self._at : self._at + size]
        self._at += len(part)
        return part
