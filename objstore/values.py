"""The layout of a stored value: key (32 bytes), CRC-32 (4), kind number (1), codec (1), payload.

The checksum is over all that stands behind it.
"""

from __future__ import annotations

from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Where the checksum begins and ends; where kind number and codec stand; bytes before the payload.
CHECKSUM = 32
CHECKED = 36
KIND = 36
CODEC = 37
HEADER = 38


def pack_all(keys: Sequence[bytes], tags: Sequence[bytes], payloads: Sequence[bytes]) -> list[bytes]:
    """The stored values of these: keys, kind number with codec (2 bytes each), payloads."""
    begun = {tag: crc32(tag) for tag in set(tags)}
    sums = [
        crc32(payload, begun[tag]).to_bytes(4, "big") for tag, payload in zip(tags, payloads, strict=True)
    ]
    return list(map(b"".join, zip(keys, sums, tags, payloads, strict=True)))


def is_sound(value: bytes) -> bool:
    """Whether the checksum of a stored value (of at least ``HEADER`` bytes) is right."""
    return crc32(value[CHECKED:]) == int.from_bytes(value[CHECKSUM:CHECKED], "big")
