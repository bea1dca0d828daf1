"""Values of the derived part of a store: compressed, with a checksum, so that a damaged one is as good as none."""

from __future__ import annotations

from zlib import crc32

from objstore.compression import ZSTD, compress, decompress
from objstore.errors import StorageError

#: Bytes of the checksum, and of the codec after it.
_CHECKSUM, _HEADER = 4, 5


def sealed(data: bytes) -> bytes:
    """``data`` as it is kept: a checksum over the rest, a codec, the payload."""
    codec, payload = compress(data, ZSTD)
    rest = bytes((codec,)) + payload
    return crc32(rest).to_bytes(_CHECKSUM, "big") + rest


def unsealed(value: bytes | None) -> bytes | None:
    """What ``sealed`` was given, or None where ``value`` is missing or damaged."""
    if value is None or len(value) <= _HEADER:
        return None
    if crc32(value[_CHECKSUM:]) != int.from_bytes(value[:_CHECKSUM], "big"):
        return None
    try:
        return decompress(value[_CHECKSUM], value[_HEADER:])
    except StorageError:
        return None
