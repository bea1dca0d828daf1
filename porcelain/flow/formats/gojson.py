"""JSON bytes as Go's ``encoding/json`` writes them, the serialiser of the public ``sf/1`` and ``sd/1`` formats.

On Structs declared in key order, ``msgspec`` writes the same bytes except for five characters, which Go escapes inside
strings. They cannot stand outside a string in JSON, so replacing them in the finished bytes is exact; it costs a scan
where they are absent, which is nearly always.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

_ENCODER = msgspec.json.Encoder()
_HTML = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))
#: U+2028 and U+2029, which Go escapes whether or not HTML escaping is on.
_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


def escape_separators(data: bytes) -> bytes:
    """``data`` (finished JSON) with the line and paragraph separators escaped: HTML escaping off."""
    if not data.isascii():
        for raw, escaped in _SEPARATORS:
            data = data.replace(raw, escaped)
    return data


def escape_html(data: bytes) -> bytes:
    """``data`` (finished JSON) with ``< > &`` and the separators escaped: what ``json.Marshal`` does."""
    for raw, escaped in _HTML:
        if raw in data:
            data = data.replace(raw, escaped)
    return escape_separators(data)


def has_separators(data: bytes) -> bool:
    """True where ``escape_separators`` would change something."""
    return not data.isascii() and any(raw in data for raw, _ in _SEPARATORS)


def encode(frame: Struct) -> bytes:
    """One Struct as JSON in field order, not escaped yet."""
    return _ENCODER.encode(frame)


def encode_lines(frames: Iterable[Struct]) -> bytes:
    """Structs as JSON lines, each with its newline, not escaped yet."""
    return _ENCODER.encode_lines(frames)


def string(text: str) -> str:
    """``text`` as a JSON string with its quotes, for attributes that are put together by hand."""
    return _ENCODER.encode(text).decode("utf-8")
