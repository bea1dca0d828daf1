"""The objects of documents: a chunk of text, the document that lists its chunks, and the fact that a store has added
a document under a name.

A document says nothing of where it was found, so that the same text added on two machines is one object. Where it was
found, and what it is called, is what the fact says. A fact needs its document: what was cited stays checkable after the
document was removed from the list.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from objstore.core import ObjectId
from objstore.errors import CheckFailed
from objstore.kinds import MAX_SAFE_INTEGER, Kind, register

Count = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
Positive = Annotated[int, Meta(ge=1, le=MAX_SAFE_INTEGER)]

_SOURCE_ID = re.compile(r"source_[0-9a-f]{32}", re.ASCII)


class DocumentChunk(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run of a document's text, as it came, with secrets replaced."""

    text: Annotated[str, Meta(min_length=1)]
    type: Literal["document-chunk"] = "document-chunk"


class Document(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text as cut into chunks. ``chunks`` are ids of ``list`` objects that name the ``count`` chunks in order;
    ``document_root`` is the Merkle root over their leaf hashes; ``size`` is the text's length in bytes of UTF-8;
    ``extractor`` and ``rules`` say how the text was got from the file and by which rules secrets were replaced."""

    chunking_version: str
    chunks: list[ObjectId]
    count: Positive
    document_root: ObjectId
    extractor: str
    media_type: str
    rules: str
    size: Positive
    type: Literal["document"] = "document"


class SourceAdded(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frame of ``sources/<store>``: from here on ``uri`` is found under ``title`` with the text of ``document``; with
    ``tombstone`` it is no longer."""

    document: ObjectId | UnsetType = UNSET
    id: str
    revision: Positive
    title: str
    tombstone: bool | UnsetType = UNSET
    type: Literal["source"] = "source"
    uri: str


def _check_source(frame: SourceAdded) -> None:
    if _SOURCE_ID.fullmatch(frame.id) is None:
        raise CheckFailed(f"{frame.id[:40]!r}: not the id of a source")
    if frame.tombstone is False:
        raise CheckFailed(f"{frame.id}: tombstone: false is written by leaving it out")
    if (frame.document is UNSET) is (frame.tombstone is UNSET):
        raise CheckFailed(f"{frame.id}: has a document unless it is a tombstone")


def _document_of(frame: SourceAdded) -> list[str]:
    return [] if isinstance(frame.document, UnsetType) else [frame.document]


CHUNK = register(Kind(name="document-chunk", struct=DocumentChunk))
DOCUMENT = register(Kind(name="document", struct=Document, needs=lambda document: document.chunks))
SOURCE = register(Kind(name="source", struct=SourceAdded, needs=_document_of, check=_check_source))
