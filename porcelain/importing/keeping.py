"""The chain ``content/<store>``: which content objects this store keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from objstore.core import ObjectId
from objstore.kinds import Kind, register
from objstore.store import Store

CONTENT_CHAIN = "content"


class ContentKept(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frame: from here on the store keeps the content objects that the ``list`` objects ``content`` name."""

    content: list[ObjectId]
    id: str
    revision: int
    tombstone: bool | UnsetType = UNSET
    type: Literal["content-kept"] = "content-kept"


register(Kind(name="content-kept", struct=ContentKept, needs=lambda frame: frame.content))


def content_ref(store: Store) -> str:
    """The ref of the chain of kept content that this store writes."""
    return f"content/{store.store_id}"


def content_frame(lists: Sequence[str]) -> ContentKept:
    """The frame for content named by these ``list`` objects (ids)."""
    return ContentKept(content=list(lists), id=f"kept/{lists[0]}", revision=1)
