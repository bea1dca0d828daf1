"""The chain of rounds of a conversation in a store, and what assembly reads there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from objstore import kinds
from objstore.chain import entries, frame_keys
from objstore.core import ListOf, list_pieces
from objstore.errors import CheckFailed
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.assembly import Head, Written
from porcelain.flow.entries import Landed, from_page
from porcelain.flow.kinds import FlowRound, from_frame, from_round, to_frames, to_header
from porcelain.flow.landed import page_records, pages, pages_after
from porcelain.flow.sf import Round

Put = Callable[[str, bytes], str]
_KIND_OF = {"SfNode": "flow-node", "SfRelation": "flow-relation", "SfUnresolved": "flow-unresolved"}


def landed_files(view: Snapshot, head: bytes) -> list[Landed]:
    """What assembly reads of a landing chain."""
    return [from_page(page, page_records(view, page)) for page in pages(view, head)]


def files_after(view: Snapshot, head: bytes, through: int) -> list[Landed]:
    """What assembly reads of a landing chain after page ``through``."""
    return [from_page(page, page_records(view, page)) for page in pages_after(view, head, through)]


def chain_head(view: Snapshot, head: bytes | None) -> Head:
    """Where a chain of rounds stands; only its last round is read."""
    if head is None:
        return Head()
    entry: FlowRound = load(view, head, "flow-round")
    return Head(entry.round, entry.commit, to_header(entry))


def put_round(written: Written, previous: str | None, put: Put) -> str:
    """Store a round and its frames; the id of the round object."""
    round_ = written.round
    ids = [
        put(_KIND_OF[type(frame).__name__], kinds.encode(from_frame(frame)))
        for group in (round_.nodes, round_.relations, round_.unresolved)
        for frame in group
    ]
    lists = [put("list", kinds.encode(ListOf(items=items))) for items in list_pieces(ids)]
    return put("flow-round", kinds.encode(from_round(round_, lists, previous)))


def stored_rounds(view: Snapshot, head: bytes) -> Iterator[tuple[bytes, FlowRound, Round]]:
    """The rounds of a chain, oldest first: object key, round object, and the round as it stands in a file."""
    for key, entry in entries(view, head):
        if not isinstance(entry, FlowRound):
            raise CheckFailed(f"{head.hex()}: is not the head of a chain of rounds")
        yield key, entry, stored_round(view, entry)


def stored_round(view: Snapshot, entry: FlowRound) -> Round:
    """The round of an object, as it stands in a file."""
    keys = list(frame_keys(view, "flow-round", entry))
    return Round(to_header(entry), *to_frames(view, keys), entry.commit)
