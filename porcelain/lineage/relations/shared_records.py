"""Which transcripts hold the same landed records, found through an index and not by comparing all pairs.

A landed record has no place and nothing that varies between copies, so a copied entry is the same object in every file.
Sharing one counts as evidence when the record carries the provider's own id, or when at least ``RUN`` records stand one
after another in both files. Records without an id and a time say the same in any conversation (settings, mode lines);
they count for nothing, and bring no files together.

The index holds 8 bytes a record, whatever their number; only files that share something are looked at again.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.lineage.landed.events import ObservedFile
from porcelain.lineage.landed.pages import LandedPages
from porcelain.lineage.landed.strays import Part, is_mixed, parts, within
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.relations.prefixes import Prefix
from porcelain.providers.records import Record, page_record_ids

#: Records in a row that are evidence although none has an id.
RUN = 20
#: Leading rows (headers, titles) in which a copy may differ from what it was copied from.
HEAD = 4
#: Entries that say what a file is: two files that were begun at one moment may have the same.
HEADERS = frozenset({"session", "session_meta", "session_start", "title"})
#: Of a record that many files hold, this many are looked at, the oldest.
HOLDERS = 64
#: Older files that one file is compared with, those that share most.
CANDIDATES = 3
#: Records in one pass over the index; bounds the memory of the set of what was seen.
_PASS = 1_000_000


class Comparison(Struct, frozen=True, kw_only=True):
    """What an older and a newer transcript have in common: records shared, the longest run of them, whether one has a
    provider's id, and the common prefix, in which texts may differ where ids and times do not."""

    shared: int
    run: int
    identified: bool
    prefix: Prefix
    exact: bool = True

    @property
    def is_evidence(self) -> bool:
        return self.identified or self.run >= RUN


class Evidence(Protocol):
    """What landed records say about nodes."""

    def pairs(self, nodes: Sequence[Node], /) -> Iterable[tuple[str, str]]:
        """Pairs (older, newer) of node ids that share records, for each newer one the older ones that share most."""

    def compare(self, source: Node, target: Node) -> Comparison | None:
        """What two nodes have in common; None where the landed records of one are not in the store."""

    def retold(self, source: Node, target: Node) -> int:
        """How many records from the beginning on say the same in both, under whatever ids and times."""

    def parts(self, node: Node, /) -> Sequence[Part]:
        """What of a transcript belongs to which conversation, its own part first; nothing where all is its own."""

    def record_ids(self, node: Node, /) -> Sequence[str]:
        """The ids of a node's records in order."""


class NoEvidence:
    """For a fold whose landed records are not at hand."""

    def pairs(self, nodes: Sequence[Node]) -> Iterable[tuple[str, str]]:
        return ()

    def compare(self, source: Node, target: Node) -> Comparison | None:
        return None

    def retold(self, source: Node, target: Node) -> int:
        return 0

    def parts(self, node: Node) -> Sequence[Part]:
        return ()

    def record_ids(self, node: Node) -> Sequence[str]:
        return ()


class LandedEvidence:
    """Evidence from the landed pages of a store."""

    def __init__(self, view: Snapshot, pages: LandedPages | None = None) -> None:
        self._view = view
        self._pages = LandedPages(view) if pages is None else pages
        self._ids: dict[str, list[str]] = {}
        self._records: dict[str, Record] = {}

    def pairs(self, nodes: Sequence[Node]) -> Iterator[tuple[str, str]]:
        by_age = sorted((node for node in nodes if node.records), key=lambda node: node.order)
        keys = [self.keys(node) for node in by_age]
        telling = {key for key in _repeated(keys) if self.tells(key)}
        return nearest(by_age, [telling.intersection(found) for found in keys])

    def tells(self, key: int) -> bool:
        """Whether a record whose id begins with these 8 bytes says anything about the files that hold it."""
        prefix = key.to_bytes(8, "big", signed=True)
        return any(_tells_apart(self._record(found.hex())) for found in self._records_from(prefix))

    def _records_from(self, prefix: bytes) -> Iterator[bytes]:
        return (key for key in self._view.keys_from(prefix, None) if self._view.kind(key) == "record")

    def compare(self, source: Node, target: Node) -> Comparison | None:
        left, right = self.record_ids(source), self.record_ids(target)
        if not left or not right:
            return None
        place = {record: row for row, record in reversed(list(enumerate(left)))}
        shared = run = best = 0
        identified = False
        before = -2
        for record in right:
            row = place.get(record)
            if row is None:
                before, run = -2, 0
                continue
            found = self._record(record)
            counts = _tells_apart(found)
            shared += counts
            identified = identified or (counts and isinstance(found.id, str))
            run = (run if row == before + 1 else 0) + counts
            best = max(best, run)
            before = row
        prefix, exact = self._prefix(left, right)
        return Comparison(shared=shared, run=best, identified=identified, prefix=prefix, exact=exact)

    def retold(self, source: Node, target: Node) -> int:
        count = 0
        for one, other in zip(self._told(source), self._told(target), strict=False):
            if one != other:
                break
            count += 1
        return count

    def _told(self, node: Node) -> Iterator[tuple[object, ...]]:
        """What the records of a transcript say, each without its ids and times; only as many are read as are taken."""
        number = 0
        for page in self._pages.pages(observed(node)):
            for record in page_record_ids(page):
                said = _said(self._record(record)) if within(node.rows, number) else None
                number += 1
                if said is not None:
                    yield said

    def _prefix(self, left: list[str], right: list[str]) -> tuple[Prefix, bool]:
        """The common prefix behind the heads, which count as shared, and whether all of it is the same objects."""
        start = _aligned(left, right) or self._alike_from(left, right)
        if start is None:
            return Prefix(shared=0, source=len(left), target=len(right)), True
        i, j = start
        exact = True
        while i < len(left) and j < len(right):
            if left[i] != right[j]:
                if not _same_but_text(self._record(left[i]), self._record(right[j])):
                    break
                exact = False
            i, j = i + 1, j + 1
        target = len(right) - (j - i)
        return Prefix(shared=i, source=len(left), target=max(target, i)), exact

    def _alike_from(self, left: list[str], right: list[str]) -> tuple[int, int] | None:
        places = ((i, j) for i in range(min(HEAD, len(left))) for j in range(min(HEAD, len(right))))
        for i, j in sorted(places, key=lambda place: (sum(place), place)):
            if _same_but_text(self._record(left[i]), self._record(right[j])):
                return i, j
        return None

    def parts(self, node: Node) -> Sequence[Part]:
        file = observed(node)
        if not is_mixed(self._pages.pages(file), node.native_id):
            return ()
        return parts(node.native_id, list(self._pages(file)))

    def record_ids(self, node: Node) -> list[str]:
        """All ids of a transcript's records; those of the last few transcripts are held."""
        found = self._ids.get(node.id)
        if found is None:
            text = "".join(page.records for page in self._pages.pages(observed(node)))
            found = [text[at : at + 64] for at in range(0, len(text), 64)]
            if node.rows is not None:
                found = [name for start, end in node.rows for name in found[start:end]]
            while len(self._ids) >= 8:
                del self._ids[next(iter(self._ids))]
            self._ids[node.id] = found
        return found

    def _record(self, record: str) -> Record:
        found = self._records.get(record)
        if found is None:
            if len(self._records) >= 65536:
                self._records.clear()
            found = self._records[record] = load(self._view, bytes.fromhex(record), "record")
        return found

    def keys(self, node: Node) -> array[int]:
        """The first 8 bytes of each record id of a transcript, as signed numbers; none of a guest, whose host has
        them."""
        return array("q") if node.guest_of is not None else record_keys(self._pages, observed(node))


def record_keys(pages: LandedPages, file: ObservedFile) -> array[int]:
    """The first 8 bytes of each record id of a file, as signed numbers."""
    keys = array("q")
    for page in pages.pages(file):
        keys.extend(array("q", bytes.fromhex(page.records))[::4])
    if sys.byteorder == "little":
        keys.byteswap()
    return keys


def nearest(by_age: Sequence[Node], keys: Sequence[Iterable[int]]) -> Iterator[tuple[str, str]]:
    """For each node the older ones with which it shares most; ``keys`` are those of records that several nodes hold."""
    holders: dict[int, list[int]] = defaultdict(list)
    for number, (node, mine) in enumerate(zip(by_age, keys, strict=True)):
        shared = Counter(older for key in mine for older in holders[key])
        best = sorted(shared, key=lambda older: (-shared[older], older))[:CANDIDATES]
        yield from ((by_age[older].id, node.id) for older in best)
        for key in mine:
            if len(holders[key]) < HOLDERS:
                holders[key].append(number)


class Known:
    """Evidence given as a mapping, for folds without a store; pairs are ids of older and newer node."""

    def __init__(
        self,
        comparisons: Mapping[tuple[str, str], Comparison],
        retold: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        self._comparisons = dict(comparisons)
        self._retold = dict(retold or {})

    def pairs(self, nodes: Sequence[Node]) -> list[tuple[str, str]]:
        return sorted(self._comparisons)

    def compare(self, source: Node, target: Node) -> Comparison | None:
        return self._comparisons.get((source.id, target.id))

    def retold(self, source: Node, target: Node) -> int:
        return self._retold.get((source.id, target.id), 0)

    def parts(self, node: Node) -> Sequence[Part]:
        return ()

    def record_ids(self, node: Node) -> Sequence[str]:
        return ()


def observed(node: Node) -> ObservedFile:
    """The file of a node, as pages are asked for: of a guest that of its host."""
    if node.guest_of is not None:
        return observed(node.guest_of)
    return ObservedFile(
        observation=node.id,
        session=node.session,
        source=node.source,
        provider=node.provider,
        native_id=node.native_id,
        src=node.src,
        first_record=node.first_record,
        differs=node.differs,
        records=node.records,
    )


def _repeated(files: list[array[int]]) -> set[int]:
    """The keys that stand in more than one file, in as many passes as keep the set of seen keys small."""
    total = sum(map(len, files))
    passes = max(1, -(-total // _PASS))
    repeated: set[int] = set()
    for number in range(passes):
        seen: set[int] = set()
        for file in files:
            mine = set(file) if passes == 1 else {key for key in file if key % passes == number}
            repeated |= seen & mine
            seen |= mine
    return repeated


def _aligned(left: list[str], right: list[str]) -> tuple[int, int] | None:
    """Where the first shared record stands in both, if that is within the heads."""
    heads = {record: row for row, record in reversed(list(enumerate(left[: HEAD + 1])))}
    found = [(heads[record], row) for row, record in enumerate(right[: HEAD + 1]) if record in heads]
    return min(found, key=lambda place: (sum(place), place), default=None)


def _tells_apart(record: Record) -> bool:
    """Whether a record that stands in two files says anything about them."""
    return record.entry not in HEADERS and (isinstance(record.id, str) or isinstance(record.time, str))


def _said(record: Record) -> tuple[object, ...] | None:
    """What a record says: its texts by their hashes, its calls by name and size. None for one that says nothing."""
    parts = [
        (part.k, part.name, part.bytes) if part.k == "call" else (part.k, part.content, part.bytes)
        for part in record.parts or ()
        if part.k in ("call", "reasoning", "result", "text")
    ]
    return (record.entry, record.role, *parts) if parts and record.entry not in HEADERS else None


def _same_but_text(one: Record, other: Record) -> bool:
    """Whether two records are one entry whose texts may differ: same provider's id or time, same shape."""
    if not (isinstance(one.id, str) or isinstance(one.time, str)):
        return False
    return (one.entry, one.id, one.parent, one.role, one.time, one.call, one.tool) == (
        other.entry,
        other.id,
        other.parent,
        other.role,
        other.time,
        other.call,
        other.tool,
    ) and [part.k for part in one.parts or ()] == [part.k for part in other.parts or ()]
