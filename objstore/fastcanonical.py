"""The functions of ``objstore.canonical`` for many objects: the same results and errors, faster.

msgspec does the work where it provably agrees with the reference. What it lets through that canonical JSON
refuses is found by cheap tests over the bytes that never miss; where one of them only suspects something, the
reference decides, and every error is the reference's own.
"""

from __future__ import annotations

import re
from itertools import compress
from typing import Any

import msgspec

from objstore import canonical
from objstore.canonical import MAX_DEPTH, MAX_SIZE

_ENCODER = msgspec.json.Encoder(order="sorted")
_DIGITS_TO_ZERO = bytes(0x30 if 0x31 <= byte <= 0x39 else byte for byte in range(256))
_LONG_NUMBER = b"0" * 16
_NEGATIVE_ZERO = re.compile(rb"-0(?:[,\]}\s]|$)")


class _FloatSeen(Exception):
    """Stops msgspec at the first float; the reference then says where it is."""


def _refuse_float(_text: str) -> None:
    raise _FloatSeen


_DECODER = msgspec.json.Decoder(float_hook=_refuse_float)


def _plain(data: bytes) -> bool:
    """True if the value whose canonical bytes are ``data`` is surely on the domain, False if in doubt.

    It is known to come from JSON text without a float. Left to exclude are keys that are not printable
    ASCII (all would show as a byte over 0x7e or an escape), integers of 16 digits or more, and depth.
    """
    return (
        data.isascii()
        and b"\\" not in data
        and b"\x7f" not in data
        and _LONG_NUMBER not in data.translate(_DIGITS_TO_ZERO)
        and data.count(b"[") + data.count(b"{") <= MAX_DEPTH
    )


def _load(data: bytes) -> tuple[Any, bytes] | None:
    """The value of a JSON text and its canonical bytes; None where the reference has to look at it."""
    if len(data) > MAX_SIZE:
        return None
    try:
        value = _DECODER.decode(data)
        written = _ENCODER.encode(value)
    except (msgspec.DecodeError, RecursionError, _FloatSeen):
        return None
    if written != data and (
        # msgspec keeps the last of two equal keys; a colon is lost then, and only escapes bring one in
        written.count(b":") != data.count(b":") or b"u003" in data or _NEGATIVE_ZERO.search(data)
    ):
        return None
    if not _plain(written):
        canonical.check(value)
    return value, written


def encode(value: object) -> bytes:
    """As ``canonical.encode``."""
    canonical.check(value)
    data = _ENCODER.encode(value)
    return data if len(data) <= MAX_SIZE else canonical.encode(value)


def canonicalize(data: bytes) -> bytes:
    """As ``canonical.canonicalize``."""
    loaded = _load(data)
    return canonical.canonicalize(data) if loaded is None else loaded[1]


def parse(data: bytes) -> Any:
    """As ``canonical.parse``."""
    loaded = _load(data)
    return canonical.parse(data) if loaded is None else loaded[0]


def are_canonical(texts: list[bytes]) -> bool:
    """Whether ``decode`` takes every one of these, found out for those together of which nothing is in doubt."""
    if any([len(text) > MAX_SIZE for text in texts]):
        return False
    chosen = [_plain(text) for text in texts]
    plain = list(compress(texts, chosen))
    joined = b"\n".join(plain)
    try:
        # What is canonical has no raw line feed in it.
        values = _DECODER.decode_lines(joined)
        if len(values) != len(plain) or _ENCODER.encode_lines(values) != joined + (b"\n" if plain else b""):
            return False
        for text, passed in zip(texts, chosen, strict=True):
            if not passed:
                decode(text)
    except (msgspec.DecodeError, RecursionError, _FloatSeen, canonical.CanonicalError):
        return False
    return True


def decode(data: bytes) -> Any:
    """As ``canonical.decode``."""
    loaded = _load(data)
    if loaded is None or loaded[1] != data:
        return canonical.decode(data)
    return loaded[0]
