"""Content objects back to bytes, where the store keeps them."""

from __future__ import annotations

import base64
from collections.abc import Callable

from objstore import kinds
from objstore.core import Blob, Chunks, ListOf, Text
from objstore.errors import CheckFailed

#: An object by its key: name of its kind and canonical bytes, or None.
Get = Callable[[bytes], tuple[str, bytes] | None]


def content_bytes(get: Get, content: str) -> bytes | None:
    """The bytes that the object ``content`` (id) holds, its pieces joined; None where one of them is not kept. Raises
    ``CheckFailed`` for an object that is no content."""
    found = get(bytes.fromhex(content))
    if found is None:
        return None
    obj = kinds.decode(found[0], found[1])
    if isinstance(obj, Text):
        return obj.text.encode("utf-8")
    if isinstance(obj, Blob):
        return base64.b64decode(obj.base64)
    if not isinstance(obj, Chunks):
        raise CheckFailed(f"{content}: a {found[0]} is no content")
    pieces: list[bytes] = []
    for name in obj.pieces:
        listed = get(bytes.fromhex(name))
        if listed is None:
            return None
        items = kinds.decode(listed[0], listed[1])
        for item in items.items if isinstance(items, ListOf) else ():
            piece = content_bytes(get, item)
            if piece is None:
                return None
            pieces.append(piece)
    return b"".join(pieces)
