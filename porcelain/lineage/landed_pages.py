"""The landed pages of a file in the view: which of a conversation's landing chains, and which reading in it, the file's
observation stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from objstore.chain import entries
from objstore.refs import unquote
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.landed import page_records
from porcelain.flow.naming import best_heads
from porcelain.lineage.events import ObservedFile
from porcelain.providers.records import Page, Record, page_record_ids


class _Reading(Struct):
    """A file as it was once read from its beginning: ids of its pages in order, how many records they hold, where the
    last page begins."""

    pages: list[str]
    records: int
    last_offset: int
    first_record: str


class LandedPages:
    """The landed pages of a file, from the chain that covers most of its conversation. A file that was rewritten, and a
    copy of it elsewhere, were read from the beginning again: each observation has the reading that it stands for."""

    def __init__(self, view: Snapshot) -> None:
        self._view = view
        self._heads: dict[tuple[str, str], list[bytes]] = {}
        self._readings: dict[bytes, dict[str, list[_Reading]]] = {}
        for (provider, name), head in best_heads(view, "landed").items():
            native = unquote(name).split("~", 1)[0]
            self._heads.setdefault((provider, native), []).append(head)

    def __call__(self, file: ObservedFile) -> Iterable[tuple[Page, Sequence[Record]]]:
        for page in self.pages(file):
            yield page, page_records(self._view, page)

    def pages(self, file: ObservedFile) -> Iterator[Page]:
        """The pages of a file in landing order, without their records."""
        reading = self._reading(file)
        for page_id in reading.pages if reading is not None else ():
            yield load(self._view, bytes.fromhex(page_id), "page")

    def _reading(self, file: ObservedFile) -> _Reading | None:
        found = [
            reading
            for head in self._heads.get((file.provider, file.native_id), ())
            for number, reading in enumerate(self._of_chain(head).get(file.src, ()))
            if reading.first_record == (file.first_record or "")
            and (file.differs is None or (number and self._holds(reading, file.differs)))
        ]
        enough = [reading for reading in found if reading.records >= file.records]
        return enough[0] if enough else max(found, key=lambda reading: reading.records, default=None)

    def _of_chain(self, head: bytes) -> dict[str, list[_Reading]]:
        """The readings in a landing chain by name of file. A page that does not stand behind the one before it in the
        file begins another."""
        known = self._readings.get(head)
        if known is not None:
            return known
        found = self._readings[head] = {}
        for _, entry in entries(self._view, head):
            for page_id in entry.pages:
                page = load(self._view, bytes.fromhex(page_id), "page")
                readings = found.setdefault(page.src, [])
                if not readings or page.offset <= readings[-1].last_offset:
                    readings.append(_Reading([], 0, page.offset, ""))
                reading = readings[-1]
                reading.first_record = reading.first_record or page.records[:64]
                reading.pages.append(page_id)
                reading.records += len(page.lengths)
                reading.last_offset = page.offset
        return found

    def _holds(self, reading: _Reading, record: str) -> bool:
        loaded = (load(self._view, bytes.fromhex(page_id), "page") for page_id in reading.pages)
        return any(record in page_record_ids(page) for page in loaded)
