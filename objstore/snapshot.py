"""Reading a store: one unchanging view of everything in it.

``Snapshot`` is what every reader in the project works with; the LMDB database and its in-memory twin both give one.
"""

from __future__ import annotations

from collections import namedtuple

from objstore.errors import AmbiguousId, NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import NamedTuple, Protocol

    from objstore.refs import ReflogEntry

    class Stored(NamedTuple):
        """One object as stored: the name of its kind and its canonical bytes."""

        kind: str
        data: bytes

else:
    Protocol = object
    Stored = namedtuple("Stored", "kind data")


#: The name of an object's kind, and the object as its database keeps it.
Kept = tuple[str, bytes]


class Snapshot(Protocol):
    """A view of a store as of one moment. Keys are raw 32-byte digests; names are text."""

    def get(self, key: bytes) -> Stored | None:
        """The object, or None."""

    def get_many(self, keys: Sequence[bytes]) -> list[Stored | None]:
        """``get`` of each, in the order asked."""

    def kept(self, keys: Sequence[bytes]) -> list[Kept | None]:
        """Each object as it is kept, or None, in the order asked; quickest in ascending order. For who looks at kinds
        first, and at the objects later or not at all."""

    def unpack(self, kept: Sequence[Kept]) -> list[Stored]:
        """The objects that were kept so. Raises ``StorageError`` for one that is damaged."""

    def get_verified(
        self, keys: Sequence[bytes], kind: str, digests: Callable[[list[bytes]], list[bytes]]
    ) -> list[bytes] | None:
        """The bytes of objects of one kind, in the order asked, or None where any is not here or does not hash to its
        key; ``digests`` is the store's ``digest.hasher_of_many``. The quickest way to read what is to be verified."""

    def kind(self, key: bytes) -> str | None:
        """The name of the object's kind, or None; cheaper than ``get``."""

    def __contains__(self, key: object) -> bool: ...

    def keys_from(self, prefix: bytes, odd_digit: int | None) -> Iterator[bytes]:
        """Keys that begin with ``prefix`` (at least 2 bytes), and whose next half byte is ``odd_digit`` if given."""

    def count(self) -> int:
        """How many objects there are."""

    def objects(self) -> Iterator[tuple[bytes, Stored]]:
        """All objects in the order in which they arrived."""

    def ref(self, name: str) -> bytes | None:
        """Where the ref stands (ordinary and local refs), or None."""

    def refs(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        """Ordinary refs whose names begin with ``prefix``, in order of name."""

    def reflog(self, name: str) -> Iterator[ReflogEntry]:
        """The moves of one ref, oldest first."""

    def local(self, key: bytes) -> bytes | None:
        """A value of this machine only, or None."""

    def local_items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Values of this machine only whose keys begin with ``prefix``, in order of key."""

    def derived(self, key: bytes) -> bytes | None:
        """A value of the rebuildable indexes, or None."""

    def derived_items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Values of the rebuildable indexes whose keys begin with ``prefix``, in order of key."""


#: Fewest digits that an abbreviated id may have.
MIN_ABBREVIATION = 4
_HEX = frozenset("0123456789abcdef")


def expand_id(snapshot: Snapshot, text: str) -> bytes:
    """The key that a full or abbreviated id (at least 4 hex digits) names.

    Raises ``UsageError`` for text that is no id, ``NotFound`` or ``AmbiguousId``.
    """
    digits = text.lower()
    if not _HEX.issuperset(digits) or len(digits) > 64:
        raise UsageError(f"{text[:80]}: not an object id: expected up to 64 hexadecimal digits")
    if len(digits) < MIN_ABBREVIATION:
        raise UsageError(f"{text}: too short: an abbreviated id has at least {MIN_ABBREVIATION} digits")
    if len(digits) == 64:
        key = bytes.fromhex(digits)
        if key not in snapshot:
            raise NotFound(f"{digits}: no such object")
        return key
    whole = bytes.fromhex(digits[: len(digits) // 2 * 2])
    found: list[bytes] = []
    for key in snapshot.keys_from(whole, int(digits[-1], 16) if len(digits) % 2 else None):
        found.append(key)
        if len(found) > 4:
            break
    if not found:
        raise NotFound(f"{digits}: no such object")
    if len(found) > 1:
        raise AmbiguousId(digits, [k.hex() for k in found])
    return found[0]


def resolve(snapshot: Snapshot, text: str) -> bytes:
    """The key that a ref name, a derived ref name, or a full or abbreviated id names."""
    from objstore.refs import derived_resolver

    if "/" in text:
        resolver = derived_resolver(text)
        if resolver is not None:
            computed = resolver(snapshot, text)
            if computed is None:
                raise NotFound(f"{text}: no such ref")
            return bytes.fromhex(computed)
        key = snapshot.ref(text)
        if key is None:
            raise NotFound(f"{text}: no such ref", hint="list them with: objstore show-ref")
        return key
    return expand_id(snapshot, text)
