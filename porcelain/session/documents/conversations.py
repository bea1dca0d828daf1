"""The text of an imported conversation, for stores that keep content: what person and agent said, in order.

Adding one makes documents of it, and documents go where the store goes: whoever adds one has chosen that.
"""

from __future__ import annotations

from collections.abc import Iterator

from objstore.core import ListOf
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.chain.landed import page_records, pages
from porcelain.flow.chain.naming import best_heads
from porcelain.providers.records import Record

#: How the text of a conversation is made; a change of it needs another name.
EXTRACTOR = "conversation-1"
MEDIA_TYPE = "text/vnd.objstore.conversation"
_SPEAKERS = frozenset({"user", "assistant"})


def conversation_uri(provider: str, conversation: str) -> str:
    """The URI under which a conversation (id as quoted in refs) is a source."""
    return f"conversation:{provider}/{conversation}"


def conversation_text(view: Snapshot, provider: str, conversation: str) -> str:
    """What was said in a conversation (id as quoted in refs): one paragraph a message, the speaker in front, what was
    said word for word again left out; empty when none of it is kept here."""
    head = best_heads(view, "landed").get((provider, conversation))
    if head is None:
        return ""
    said: dict[str, None] = {}
    for page in pages(view, head):
        for record in page_records(view, page):
            text = "\n".join(_texts(view, record)).strip()
            if text:
                said[f"{record.role}: {text}\n\n"] = None
    return "".join(said)


def _texts(view: Snapshot, record: Record) -> Iterator[str]:
    if record.role not in _SPEAKERS:
        return
    for part in record.parts or ():
        if part.k == "text" and isinstance(part.content, str):
            text = content_text(view, part.content)
            if text is not None:
                yield text


def content_text(view: Snapshot, content_id: str) -> str | None:
    """The text of a content object (whole or in pieces), or None when it is not kept here or is no text."""
    found = view.get(bytes.fromhex(content_id))
    if found is None or found.kind not in ("text", "chunks"):
        return None
    if found.kind == "text":
        text: str = load(view, bytes.fromhex(content_id), "text").text
        return text
    pieces: list[str] = []
    for listed in load(view, bytes.fromhex(content_id), "chunks").pieces:
        items: ListOf = load(view, bytes.fromhex(listed), "list")
        for item in items.items:
            piece = view.get(bytes.fromhex(item))
            if piece is None or piece.kind != "text":
                return None
            pieces.append(load(view, bytes.fromhex(item), "text").text)
    return "".join(pieces)
