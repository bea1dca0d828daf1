"""The landed pages of a file in the view: which of a conversation's landing chains, and which reading in it, the file's
observation stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from objstore.chain import entries
from objstore.refs import unquote
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.chain.landed import page_records
from porcelain.flow.chain.naming import ranked_heads
from porcelain.lineage.landed.events import ObservedFile
from porcelain.lineage.landed.strays import count_of
from porcelain.providers.records import Page, Record, page_record_ids

#: Agents that rewrite a line at the beginning of a file in place.
REWRITE_IN_PLACE = frozenset({"oh-my-pi"})
#: Chains whose readings are held, and pages.
_CHAINS = 1024
_PAGES = 64

#: The landing chains of a conversation: their heads by provider and native id, in order of the chains' names, and of
#: one name the one first that covers most.
Heads = Callable[[str, str], Sequence[bytes]]


class _Reading(Struct):
    """A file as it was once read from its beginning: ids of its pages in order, how many records they hold, where the
    last page begins and ends."""

    pages: list[str]
    records: int
    last_offset: int
    end: int
    first_record: str


class LandedPages:
    """The landed pages of a file, from whichever chain of its conversation has them. A file that was rewritten, and a
    copy of it elsewhere, were read from the beginning again: each observation has the reading that it stands for."""

    def __init__(self, view: Snapshot, heads: Heads | None = None) -> None:
        self._view = view
        self._heads = all_heads(view) if heads is None else heads
        self._readings: dict[bytes, dict[str, list[_Reading]]] = {}
        self._pages: dict[str, Page] = {}

    def __call__(self, file: ObservedFile) -> Iterable[tuple[Page, Sequence[Record]]]:
        for page in self.pages(file):
            yield page, page_records(self._view, page)

    def pages(self, file: ObservedFile) -> Iterator[Page]:
        """The pages of a file in landing order, without their records."""
        reading = self._reading(file)
        for page_id in reading.pages if reading is not None else ():
            yield self._page(page_id)

    def count(self, file: ObservedFile) -> int:
        """How many records of a file were landed: none of one that says what another form of it does, which was."""
        reading = self._reading(file)
        if reading is None:
            return 0
        return reading.records if file.rows is None else count_of(file.rows)

    def _page(self, page_id: str) -> Page:
        found = self._pages.get(page_id)
        if found is None:
            while len(self._pages) >= _PAGES:
                del self._pages[next(iter(self._pages))]
            found = self._pages[page_id] = load(self._view, bytes.fromhex(page_id), "page")
        return found

    def _reading(self, file: ObservedFile) -> _Reading | None:
        found = [
            reading
            for head in self._heads(file.provider, file.native_id)
            for number, reading in enumerate(self._of_chain(head).get(file.src, ()))
            if reading.first_record == (file.first_record or "")
            and (file.differs is None or (number and self._holds(reading, file.differs)))
        ]
        # The same file may have gone on differently on another machine: what has as many records is the file's own.
        exact = [reading for reading in found if reading.records == file.records]
        enough = [reading for reading in found if reading.records >= file.records]
        if exact or enough:
            return (exact or enough)[0]
        return max(found, key=lambda reading: reading.records, default=None)

    def _of_chain(self, head: bytes) -> dict[str, list[_Reading]]:
        """The readings in a landing chain by name of file. A page that does not stand behind the one before it in the
        file begins another."""
        known = self._readings.get(head)
        if known is not None:
            return known
        while len(self._readings) >= _CHAINS:
            del self._readings[next(iter(self._readings))]
        found: dict[str, list[_Reading]] = {}
        self._readings[head] = found
        for _, entry in entries(self._view, head):
            for page_id in entry.pages:
                page = self._page(page_id)
                readings = found.setdefault(page.src, [])
                if not readings or _begins_anew(page, readings[-1]):
                    readings.append(_Reading([], 0, page.offset, 0, ""))
                reading = readings[-1]
                reading.first_record = reading.first_record or page.records[:64]
                reading.pages.append(page_id)
                reading.records += len(page.lengths)
                reading.last_offset = max(reading.last_offset, page.offset)
                reading.end = max(reading.end, _end(page))
        return found

    def _holds(self, reading: _Reading, record: str) -> bool:
        loaded = (self._page(page_id) for page_id in reading.pages)
        return any(record in page_record_ids(page) for page in loaded)


def _begins_anew(page: Page, reading: _Reading) -> bool:
    """Whether a page begins another reading of its file than ``reading``, and does not go on with it. A line that the
    agent has rewritten in place at the file's beginning is landed once more, in front of what was appended."""
    if page.offset > reading.last_offset:
        return False
    if page.offset or page.provider not in REWRITE_IN_PLACE or len(page.lengths) != 1:
        behind = [offset for row, _, offset in page.jumps or () if row == 1]
        return page.offset != 0 or not behind or behind[0] < reading.end
    return False


def _end(page: Page) -> int:
    """Where in the file the last record of a page ends."""
    row, _, offset = page.jumps[-1] if page.jumps else (0, 0, page.offset)
    rest = page.lengths[row:]
    return offset + sum(rest) + max(len(rest) - 1, 0)


def all_heads(view: Snapshot) -> Heads:
    """The heads of every conversation, found at once."""
    found: dict[tuple[str, str], list[bytes]] = {}
    for (provider, name), heads in ranked_heads(view, "landed").items():
        found.setdefault((provider, native_of(name)), []).extend(heads)
    return lambda provider, native: found.get((provider, native), ())


def native_of(name: str) -> str:
    """The native id of the conversation whose chains are called ``name`` (as quoted)."""
    return unquote(name).split("~", 1)[0]
