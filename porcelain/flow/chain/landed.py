"""The landed pages of a conversation, and their records."""

from __future__ import annotations

from collections.abc import Iterator

from objstore.chain import entries
from objstore.errors import CheckFailed
from objstore.snapshot import Snapshot
from objstore.store import load, load_many
from porcelain.providers.records import Landing, Page, Record, page_record_ids


def pages(view: Snapshot, head: bytes) -> Iterator[Page]:
    """The pages of a landing chain, in order of ``seq``."""
    for _, entry in entries(view, head):
        if not isinstance(entry, Landing):
            raise CheckFailed(f"{head.hex()}: is not the head of a landing chain")
        for page_id in entry.pages:
            yield load(view, bytes.fromhex(page_id), "page")


def page_ids_after(view: Snapshot, head: bytes, through: int) -> list[str]:
    """Ids (hex) of the pages of a landing chain after page ``through``, in order of ``seq``; only the entries that name
    them are read."""
    found: list[list[str]] = []
    key: bytes | None = head
    while key is not None:
        entry: Landing = load(view, key, "landing")
        new = entry.through_seq - through
        if new <= 0:
            break
        found.append(entry.pages[-new:])
        key = bytes.fromhex(entry.previous) if isinstance(entry.previous, str) else None
    return [page_id for page_ids in reversed(found) for page_id in page_ids]


def page_records(view: Snapshot, page: Page) -> list[Record]:
    """The records of a page, in row order."""
    return load_many(view, [bytes.fromhex(record_id) for record_id in page_record_ids(page)], "record")
