"""Pages in the making: rows are added until a page is full, then it is closed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import msgspec
from msgspec import UNSET, Struct

from porcelain.providers.records import PAGE_BYTES, PAGE_RECORDS, Damage, Page, Record, Span

#: Writes a page and its records as the bytes of its ``.sd`` form.
SdBytes = Callable[[Page, list[Record]], bytes]

#: Bytes of surroundings in one page; keeps a page, as an object, far below the size that objects may have.
_SPAN_BYTES = 256 * 1024
#: Stands in a page while its ``.sd`` form is being written, which does not hold it.
NO_DIGEST = "0" * 64


class LandedPage(Struct):
    """A page, its records in row order, their canonical bytes, and the digests of those: their ids."""

    page: Page
    records: list[Record]
    encoded: list[bytes]
    keys: list[bytes]


class Row(Struct):
    """Where a record stood: line number, byte range, digest (12 hex) and surroundings."""

    ord: int
    offset: int
    length: int
    digest: str
    values: Mapping[str, str]


class PageBuilder:
    """Collects the rows of one page of a source. ``template`` is a page with the fields that the source determines."""

    def __init__(self, template: Page) -> None:
        self._template = template
        self._start()

    def _start(self) -> None:
        self.newest: str | None = None
        self._begin: tuple[int, int] | None = None
        self._source_bytes = 0
        self._span_bytes = 0
        self._next: tuple[int, int] | None = None
        self._values: Mapping[str, str] = {}
        self._digests: list[str] = []
        self._lengths: list[int] = []
        self._jumps: list[tuple[int, int, int]] = []
        self._spans: list[Span] = []
        self._damage: list[Damage] = []
        self._records: list[Record] = []
        self._encoded: list[bytes] = []
        self._keys: list[bytes] = []

    def is_empty(self) -> bool:
        return self._begin is None

    def has_room(self, length: int) -> bool:
        """Whether a line of ``length`` bytes may still go in."""
        return self._begin is None or (
            self._source_bytes + length <= PAGE_BYTES
            and len(self._keys) < PAGE_RECORDS
            and len(self._damage) < PAGE_RECORDS
            and self._span_bytes < _SPAN_BYTES
        )

    def add_line(self, length: int) -> None:
        """Count a line's bytes, newline included, towards the page's size."""
        self._source_bytes += length

    def add_record(self, row: Row, record: Record, key: bytes, encoded: bytes) -> bool:
        """Add a row, whose record has the digest ``key``; whether its surroundings differ from those of the row
        before."""
        index = len(self._keys)
        place = (row.ord, row.offset)
        if not index:
            self._begin = place
        elif place != self._next:
            self._jumps.append((index, *place))
        self._next = (row.ord + 1, row.offset + row.length + 1)
        changed = row.values is not self._values and row.values != self._values
        if changed:
            self._spans.append(Span(row=index, values=dict(row.values)))
            self._span_bytes += sum(len(value) for value in row.values.values())
        self._values = row.values
        self._keys.append(key)
        self._digests.append(row.digest)
        self._lengths.append(row.length)
        self._records.append(record)
        self._encoded.append(encoded)
        return changed

    def add_damage(self, damage: Damage) -> None:
        if self._begin is None:
            self._begin = (damage.ord, damage.offset)
        self._damage.append(damage)

    def close(self, seq: int, at: str, sd_bytes: SdBytes) -> LandedPage:
        """The page, stamped ``at``; the builder is empty again."""
        assert self._begin is not None
        page = msgspec.structs.replace(
            self._template,
            at=at,
            damage=self._damage or UNSET,
            digests="".join(self._digests),
            jumps=self._jumps or UNSET,
            lengths=self._lengths,
            offset=self._begin[1],
            ord=self._begin[0],
            records=b"".join(self._keys).hex(),
            seq=seq,
            spans=self._spans or UNSET,
        )
        digest = hashlib.sha256(sd_bytes(page, self._records)).hexdigest()
        page = msgspec.structs.replace(page, digest=digest)
        landed = LandedPage(page, self._records, self._encoded, self._keys)
        self._start()
        return landed
