"""Content objects: text, data and images of a conversation, apart from the records that name them.

A record names its content by the id that the object has whether or not it is stored. A ``ContentSink`` computes the
id and, when the store's owner keeps content, hands the object's bytes on.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from objstore.core import BLOB_PIECE, Blob, Chunks, ListOf, Text, list_pieces
from objstore.digest import hasher
from objstore.kinds import encode


class ContentSink:
    """Turns content into object ids.

    ``keep`` says whether the objects are wanted; when they are, ``found`` collects ``(kind, canonical bytes)`` in an
    order in which every object follows the objects it needs. ``algorithm`` is the hash of the store.
    """

    def __init__(self, *, keep: bool, algorithm: str = "sha256") -> None:
        self.keep = keep
        self.algorithm = algorithm
        self._hash = hasher(algorithm)
        self.found: list[tuple[str, bytes]] = []

    def text(self, text: str) -> str:
        """The id (hex) of the object that holds ``text``; text over 256 KiB of UTF-8 is cut into pieces."""
        if len(text) * 4 <= BLOB_PIECE:
            return self._add("text", encode(Text(text=text)))
        data = text.encode("utf-8")
        if len(data) <= BLOB_PIECE:
            return self._add("text", encode(Text(text=text)))
        pieces: list[str] = []
        start = 0
        while start < len(data):
            end = min(start + BLOB_PIECE, len(data))
            while end < len(data) and data[end] & 0xC0 == 0x80:
                end -= 1
            pieces.append(self._add("text", encode(Text(text=data[start:end].decode("utf-8")))))
            start = end
        return self._chunks("text/plain; charset=utf-8", len(data), pieces)

    def blob(self, data: bytes, media_type: str) -> str:
        """The id (hex) of the object that holds ``data``; bytes over 256 KiB are cut into pieces."""

        def piece(part: bytes) -> str:
            return self._add(
                "blob", encode(Blob(base64=base64.b64encode(part).decode("ascii"), media_type=media_type))
            )

        if len(data) <= BLOB_PIECE:
            return piece(data)
        pieces = [piece(data[i : i + BLOB_PIECE]) for i in range(0, len(data), BLOB_PIECE)]
        return self._chunks(media_type, len(data), pieces)

    def _chunks(self, media_type: str, size: int, pieces: list[str]) -> str:
        ids: list[str] = []
        for group in list_pieces(pieces):
            ids.append(self._add("list", encode(ListOf(items=group))))
        return self._add("chunks", encode(Chunks(media_type=media_type, pieces=ids, size=size)))

    def _add(self, kind: str, data: bytes) -> str:
        if self.keep:
            self.found.append((kind, data))
        return self._hash(data).hex()


Redactor = Callable[[bytes], bytes]
