"""Digests of objects: the hash algorithms that a store can be keyed by, and the text form of an object id.

A digest is 32 raw bytes; in text it is 64 lower-case hex digits, called an object id.
"""

from __future__ import annotations

from objstore.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Algorithms that may key a store; the first is the default.
ALGORITHMS = ("sha256", "blake3")

#: Length of every digest, in bytes.
DIGEST_SIZE = 32

_HEX = frozenset("0123456789abcdef")


def hasher(algorithm: str) -> Callable[[bytes], bytes]:
    """The function from bytes to their 32-byte digest; ask once and keep it where many objects are hashed.

    Raises ``UsageError`` for an unknown algorithm, and for ``blake3`` where its package is not installed.
    """
    if algorithm == "sha256":
        from hashlib import sha256

        def _sha256(data: bytes) -> bytes:
            return sha256(data).digest()

        return _sha256
    if algorithm != "blake3":
        raise UsageError(
            f"{algorithm[:40]!r}: unknown hash algorithm",
            hint="choose one of: " + ", ".join(ALGORITHMS),
        )
    try:
        from blake3 import blake3
    except ImportError:
        raise UsageError(
            "blake3: the package for this hash algorithm is not installed",
            hint='pip install "objstore-cli[blake3]"',
        ) from None

    def _blake3(data: bytes) -> bytes:
        return blake3(data).digest()

    return _blake3


def hasher_of_many(algorithm: str) -> Callable[[list[bytes]], list[bytes]]:
    """As ``hasher``, for a list at a time: without a call of ours for each."""
    if algorithm == "sha256":
        from hashlib import sha256

        return lambda values: [sha256(value).digest() for value in values]
    one = hasher(algorithm)
    return lambda values: [one(value) for value in values]


def hash_bytes(data: bytes, algorithm: str = "sha256") -> bytes:
    """The 32-byte digest of ``data``. Raises ``UsageError`` as ``hasher`` does."""
    return (_hashers.get(algorithm) or _kept_hasher(algorithm))(data)


#: Those that were asked for, by algorithm: making one costs more than hashing something small.
_hashers: dict[str, Callable[[bytes], bytes]] = {}


def _kept_hasher(algorithm: str) -> Callable[[bytes], bytes]:
    found = _hashers[algorithm] = hasher(algorithm)
    return found


def is_object_id(text: str) -> bool:
    """True for 64 lower-case hex digits and nothing else."""
    return len(text) == 64 and _HEX.issuperset(text)
