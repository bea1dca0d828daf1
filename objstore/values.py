"""The layout of a stored value: key (32 bytes), CRC-32 (4), kind number (1), codec (1), payload.

The checksum is over all that stands behind it.
"""

from __future__ import annotations

from zlib import crc32

#: Where the checksum begins and ends; where kind number and codec stand; bytes before the payload.
CHECKSUM = 32
CHECKED = 36
KIND = 36
CODEC = 37
HEADER = 38


def pack(key: bytes, kind: int, codec: int, payload: bytes) -> bytes:
    """A stored value."""
    head = bytes((kind, codec))
    return b"".join((key, crc32(payload, crc32(head)).to_bytes(4, "big"), head, payload))


def is_sound(value: bytes) -> bool:
    """Whether the checksum of a stored value (of at least ``HEADER`` bytes) is right."""
    return crc32(value[CHECKED:]) == int.from_bytes(value[CHECKSUM:CHECKED], "big")
