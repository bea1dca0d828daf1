"""The layout of a stored value: key (32 bytes), kind number (1), codec (1), CRC-32 (4), payload."""

from __future__ import annotations

from zlib import crc32

#: Bytes before the payload.
HEADER = 38


def checksum(kind: int, codec: int, payload: bytes) -> int:
    """CRC-32 of a stored value with its kind and codec numbers."""
    return crc32(payload, crc32(bytes((kind, codec))))


def pack(key: bytes, kind: int, codec: int, payload: bytes) -> bytes:
    """A stored value."""
    return key + bytes((kind, codec)) + checksum(kind, codec, payload).to_bytes(4, "big") + payload


def is_sound(value: bytes) -> bool:
    """Whether the checksum of a stored value (of at least ``HEADER`` bytes) is right."""
    return checksum(value[32], value[33], value[HEADER:]) == int.from_bytes(value[34:HEADER], "big")
