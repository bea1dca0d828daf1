"""Documents as objects: a text is cut into chunks, the chunks are listed, and their Merkle root names the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from objstore import kinds
from objstore.core import ListOf, list_pieces
from objstore.errors import CheckFailed
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.providers.redaction import RULES, redact_text
from porcelain.session.documents.chunking import CHUNKING, chunks, document_root, leaf
from porcelain.session.documents.kinds import Document, DocumentChunk

Put = Callable[[str, bytes], str]


class Placed(NamedTuple):
    """A chunk of a document: its object id (hex), its text, and its number from 0."""

    id: str
    text: str
    position: int


class Made(NamedTuple):
    """A document that was put: object id (hex), the object, and the bytes of its text."""

    id: str
    document: Document


def put_document(put: Put, text: str, *, media_type: str, extractor: str) -> Made:
    """Put the document that ``text`` is, and its chunks. Secrets are replaced first: one could lie across a cut."""
    text = redact_text(text)
    ids: list[str] = []
    leaves: list[bytes] = []
    for chunk in chunks(text):
        ids.append(put("document-chunk", kinds.encode(DocumentChunk(text=chunk))))
        leaves.append(leaf(chunk))
    document = Document(
        chunking_version=CHUNKING,
        chunks=[put("list", kinds.encode(ListOf(items=items))) for items in list_pieces(ids)],
        count=len(ids),
        document_root=document_root(leaves).hex(),
        extractor=extractor,
        media_type=media_type,
        rules=RULES,
        size=len(text.encode()),
    )
    return Made(put("document", kinds.encode(document)), document)


def chunk_ids(view: Snapshot, document: Document) -> list[str]:
    """The ids (hex) of a document's chunks, in order."""
    found: list[str] = []
    for listed in document.chunks:
        found += load(view, bytes.fromhex(listed), "list").items
    return found


def chunk_text(view: Snapshot, chunk_id: str) -> str:
    """The text of a chunk. Raises ``NotFound``."""
    text: str = load(view, bytes.fromhex(chunk_id), "document-chunk").text
    return text


def placed_chunks(view: Snapshot, document: Document) -> Iterator[Placed]:
    """The chunks of a document, in order."""
    for position, chunk_id in enumerate(chunk_ids(view, document)):
        yield Placed(chunk_id, chunk_text(view, chunk_id), position)


def check_document(view: Snapshot, document_id: str) -> Document:
    """The document, once its chunks were found to have the number, size and Merkle root that it states. Raises
    ``CheckFailed``."""
    document: Document = load(view, bytes.fromhex(document_id), "document")
    leaves: list[bytes] = []
    size = 0
    for placed in placed_chunks(view, document):
        leaves.append(leaf(placed.text))
        size += len(placed.text.encode())
    if (len(leaves), size) != (document.count, document.size):
        raise CheckFailed(
            f"{document_id}: {len(leaves)} chunks of {size} bytes are not what the document states"
        )
    if document_root(leaves).hex() != document.document_root:
        raise CheckFailed(f"{document_id}: the chunks do not have the root that the document states")
    return document
