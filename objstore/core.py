"""The kinds that every store has: text, bytes, pieces of either, lists of ids, and rounds of plain chains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from objstore.errors import CheckFailed
from objstore.kinds import MAX_SAFE_INTEGER, Kind, register

#: Bytes of content in one object; more than this becomes a ``chunks`` object.
BLOB_PIECE = 256 * 1024
#: Ids in one ``list`` object.
LIST_ITEMS = 4096

#: An id inside an object. That it is hexadecimal is checked when an object is taken in, not at each reading.
ObjectId = Annotated[str, Meta(min_length=64, max_length=64)]


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


class Round(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of a plain chain: ``chain`` says which (``lineage``, ``content`` ...), ``frames`` are ids of ``list``
    objects that name its frames in order, ``round`` counts from 1."""

    chain: Annotated[str, Meta(min_length=1)]
    frames: list[ObjectId]
    previous: ObjectId | UnsetType = UNSET
    round: Annotated[int, Meta(ge=1, le=MAX_SAFE_INTEGER)]
    type: Literal["round"] = "round"


def _previous(entry: Round) -> list[str]:
    return [entry.previous] if isinstance(entry.previous, str) else []


def _check_link(entry: Round, before: list[Round]) -> None:
    number = before[0].round if before else 0
    if entry.round != number + 1:
        raise CheckFailed(f"round {entry.round} of {entry.chain} follows round {number}")
    if before and before[0].chain != entry.chain:
        raise CheckFailed(f"a round of {entry.chain} follows one of {before[0].chain}")


def list_pieces(ids: Iterable[str]) -> Iterator[list[str]]:
    """Cut ``ids`` into runs that fit one ``list`` object each."""
    rest = iter(ids)
    while piece := list(islice(rest, LIST_ITEMS)):
        yield piece


TEXT = register(Kind(name="text", struct=Text))
BLOB = register(Kind(name="blob", struct=Blob))
CHUNKS = register(Kind(name="chunks", struct=Chunks, needs=lambda c: c.pieces))
LIST = register(Kind(name="list", struct=ListOf, needs=lambda listed: listed.items))
ROUND = register(
    Kind(
        name="round",
        struct=Round,
        needs=lambda entry: _previous(entry) + entry.frames,
        previous=_previous,
        frames=lambda entry: entry.frames,
        check_link=_check_link,
    )
)
