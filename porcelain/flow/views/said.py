"""What the steps of a conversation say: from the content that the store keeps, else from the agent's own files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import UNSET, Struct

from objstore.snapshot import Snapshot
from porcelain.flow.folders.export_chain import Chain
from porcelain.flow.views.content import Get, content_bytes
from porcelain.flow.views.source import TEXT_BYTES
from porcelain.importing.rereading import Contents, reread
from porcelain.providers.records import Part

#: What stands in place of a text that is not to be had.
UNAVAILABLE = "(text unavailable)"


class Said(Struct, frozen=True):
    """A part of a record that says something: ``content`` is the id of what it says, None for what the record only
    names; ``mark`` stands before every line of it."""

    mark: str
    part: Part
    content: str | None


def said(mark: str, part: Part) -> Said:
    """What a part says: its text, else its data."""
    content = part.content if isinstance(part.content, str) else part.data
    return Said(mark, part, content if isinstance(content, str) else None)


def reader(view: Snapshot, chain: Chain, wanted: Iterable[Said], algorithm: str) -> Get:
    """Gives content objects by key: those that the store keeps, and of the others those that ``wanted`` asks for and
    the agent's files hold."""
    missing = {one.content for one in wanted if one.content and bytes.fromhex(one.content) not in view}
    reread_: Contents = reread(view, chain.provider, chain.name, missing, algorithm) if missing else {}

    def get(key: bytes) -> tuple[str, bytes] | None:
        kept = view.get(key)
        return kept if kept is not None else reread_.get(key)

    return get


def said_lines(one: Said, get: Get) -> Iterator[str]:
    """The lines of what a part says, cut to ``TEXT_BYTES``; an image is only named."""
    if one.part.k == "media":
        media = one.part.media if one.part.media is not UNSET else "media"
        yield f"{one.mark} ({media}, {one.part.bytes:,} bytes)"
        return
    if one.content is None:
        if one.part.state != "available":
            yield f"{one.mark} ({one.part.state})"
        return
    data = content_bytes(get, one.content)
    if data is None:
        yield f"{one.mark} {UNAVAILABLE}"
        return
    for line in data[:TEXT_BYTES].decode("utf-8", "ignore").expandtabs().splitlines():
        yield f"{one.mark} {line}".rstrip()
    if len(data) > TEXT_BYTES:
        yield f"{one.mark} ... {len(data) - TEXT_BYTES:,} more bytes"
