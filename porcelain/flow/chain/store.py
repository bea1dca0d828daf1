"""The chain of rounds of a conversation in a store, and what assembly reads there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

import msgspec

from objstore import kinds
from objstore.canonical import MAX_SIZE
from objstore.chain import entries, frame_keys
from objstore.compression import ZSTD, compress, decompress
from objstore.core import ListOf, list_pieces
from objstore.errors import CheckFailed
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.assembly import Head, Written
from porcelain.flow.assembly.entries import Landed, from_page
from porcelain.flow.chain.kinds import FlowRound, from_frame, from_round, to_frames, to_header
from porcelain.flow.chain.landed import page_ids_after, page_records, pages
from porcelain.flow.formats.sf import Round

Put = Callable[[str, bytes], str]
#: Files that are kept when they were read, or need not be packed: more than a round covers as a rule.
KEPT_FILES = 32
_LANDED = msgspec.msgpack.Decoder(Landed)


def landed_files(view: Snapshot, head: bytes) -> list[Landed]:
    """What assembly reads of a landing chain."""
    return [from_page(page, page_records(view, page)) for page in pages(view, head)]


def pack(file: Landed) -> bytes:
    """A file as it is put away while others are read: the byte that says how it is compressed, then the rest."""
    codec, payload = compress(msgspec.msgpack.encode(file), ZSTD)
    return bytes((codec,)) + payload


def _unpack(packed: bytes) -> Landed:
    return _LANDED.decode(decompress(packed[0], packed[1:]))


class LandedFiles(Sequence[Landed]):
    """What assembly reads of a landing chain after page ``through``, and of files that are not stored yet, all but the
    first of which are packed. Each is read when it is asked for, and only the last few are kept: a conversation may be
    larger than memory."""

    def __init__(
        self, view: Snapshot, head: bytes | None, through: int, fresh: Sequence[Landed | bytes]
    ) -> None:
        self._view = view
        #: Ids of pages, then files that are not stored; of these the numbers that this sequence has.
        self._stored = page_ids_after(view, head, through) if head is not None else []
        self._fresh = fresh
        self._range = range(len(self._stored) + len(fresh))
        self._kept: dict[int, Landed] = {}

    def __len__(self) -> int:
        return len(self._range)

    @overload
    def __getitem__(self, index: int) -> Landed: ...
    @overload
    def __getitem__(self, index: slice) -> LandedFiles: ...
    def __getitem__(self, index: int | slice) -> Landed | LandedFiles:
        if isinstance(index, slice):
            part = LandedFiles.__new__(LandedFiles)
            part.__dict__ = {**self.__dict__, "_range": self._range[index]}
            return part
        number = self._range[index]
        found = self._kept.get(number)
        if found is None:
            while len(self._kept) >= KEPT_FILES:
                del self._kept[next(iter(self._kept))]
            found = self._kept[number] = self._read(number)
        return found

    def _read(self, number: int) -> Landed:
        if number >= len(self._stored):
            file = self._fresh[number - len(self._stored)]
            return _unpack(file) if isinstance(file, bytes) else file
        page = load(self._view, bytes.fromhex(self._stored[number]), "page")
        return from_page(page, page_records(self._view, page))


def chain_head(view: Snapshot, head: bytes | None) -> Head:
    """Where a chain of rounds stands; only its last round is read."""
    if head is None:
        return Head()
    entry: FlowRound = load(view, head, "flow-round")
    return Head(entry.round, entry.commit, to_header(entry))


def put_round(written: Written, previous: str | None, put: Put) -> str:
    """Store a round and its frames; the id of the round object. Raises ``CheckFailed`` for a frame that is larger than
    an object may be: no pack could carry it."""
    round_ = written.round
    ids: list[str] = []
    for kind, frames in (
        ("flow-node", round_.nodes),
        ("flow-relation", round_.relations),
        ("flow-unresolved", round_.unresolved),
    ):
        encoded = kinds.encode_all([from_frame(frame) for frame in frames])
        largest = max(map(len, encoded), default=0)
        if largest > MAX_SIZE:
            raise CheckFailed(
                f"{round_.header.conversation}: round {round_.header.round}: a frame of {largest:,} bytes: "
                f"at most {MAX_SIZE:,} can be stored"
            )
        ids += [put(kind, data) for data in encoded]
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
