"""The kinds that every store has: text, bytes, pieces of either, lists of ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Literal

from msgspec import Meta, Struct

from objstore.kinds import MAX_SAFE_INTEGER, Kind, register

#: Bytes of content in one object; more than this becomes a ``chunks`` object.
BLOB_PIECE = 256 * 1024
#: Ids in one ``list`` object.
LIST_ITEMS = 4096

ObjectId = Annotated[str, Meta(min_length=64, max_length=64, pattern="^[0-9a-f]{64}$")]


class Text(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Up to 256 KiB of text."""

    text: str
    type: Literal["text"] = "text"


class Blob(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Up to 256 KiB of bytes, in base64."""

    base64: str
    media_type: str
    type: Literal["blob"] = "blob"


class Chunks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text or bytes over 256 KiB: ``pieces`` are ids of ``list`` objects that name the pieces in order; ``size`` is
    the number of bytes in all."""

    media_type: str
    pieces: list[ObjectId]
    size: Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
    type: Literal["chunks"] = "chunks"


class ListOf(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Up to 4,096 ids."""

    items: Annotated[list[ObjectId], Meta(max_length=LIST_ITEMS)]
    type: Literal["list"] = "list"


def list_pieces(ids: Iterable[str]) -> Iterator[list[str]]:
    """Cut ``ids`` into runs that fit one ``list`` object each."""
    rest = iter(ids)
    while piece := list(islice(rest, LIST_ITEMS)):
        yield piece


TEXT = register(Kind(name="text", struct=Text))
BLOB = register(Kind(name="blob", struct=Blob))
CHUNKS = register(Kind(name="chunks", struct=Chunks, needs=lambda c: c.pieces))
LIST = register(Kind(name="list", struct=ListOf, needs=lambda l: l.items))
