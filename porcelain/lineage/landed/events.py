"""Rows of the ``events`` table: landed records at their places, with counts and names but no text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from porcelain.lineage.facts.identity import event_id
from porcelain.lineage.facts.projection import Projection, with_columns
from porcelain.lineage.landed.record_times import record_times
from porcelain.lineage.landed.strays import Ranges, count_of, within
from porcelain.providers.records import Page, Record, page_record_ids

#: One event, in the order of the columns of ``schema.EVENTS``, as SQLite holds them.
EventRow = tuple[str | int | None, ...]


class ObservedFile(Struct, frozen=True, kw_only=True):
    """The file whose events are asked for. ``provider``, ``native_id`` and ``src`` say which pages are its own;
    ``first_record`` and ``differs`` tell it from earlier states of the same file; ``source`` is its source's id.
    Where conversations share a file, ``rows`` are those of one of them (see ``strays``), and ``session`` is its."""

    observation: str
    session: str | None
    source: str | None
    provider: str
    native_id: str
    src: str
    first_record: str | None
    differs: str | None
    records: int
    rows: Ranges | None = None


class EventSource(Protocol):
    """Where the landed pages of a file come from, in landing order, each with its records in row order. A file whose
    pages the store does not have gives none."""

    def __call__(self, file: ObservedFile, /) -> Iterable[tuple[Page, Sequence[Record]]]: ...


#: How many events a file of a view has.
EventCount = Callable[[ObservedFile], int]


def stated_count(file: ObservedFile) -> int:
    """An ``EventCount`` for a view whose landed pages are not at hand: what is known of the file."""
    return file.records if file.rows is None else count_of(file.rows)


def no_events(_file: ObservedFile) -> Iterable[tuple[Page, Sequence[Record]]]:
    """An ``EventSource`` for a view without events."""
    return ()


def observed_files(projection: Projection) -> Iterator[ObservedFile]:
    """The files of a view, by observation id."""
    providers = {row["id"]: row["provider"] for row in projection.tables["sources"]}
    providers |= {row["id"]: row["provider"] for row in projection.tables["sessions"]}
    guests = _guests(projection)
    for row in projection.tables["session_observations"]:
        if row["id"] in guests.places:
            yield guests.places[row["id"]]
            continue
        metadata = row["metadata_json"]
        provider = providers.get(row["session_id"]) or providers.get(row["source_id"])
        if provider is None or row["provider_session_id"] is None or "src" not in metadata:
            continue
        yield ObservedFile(
            observation=row["id"],
            session=row["session_id"],
            source=row["source_id"],
            provider=provider,
            native_id=row["provider_session_id"],
            src=metadata["src"],
            first_record=metadata.get("first_record"),
            differs=metadata.get("differs"),
            records=metadata.get("records", 0),
            rows=guests.left.get(row["id"]),
        )


class _Guests(Struct):
    """Conversations in the files of others: what each is of which file, and what is left to the files' own."""

    places: dict[str, ObservedFile]
    left: dict[str, Ranges]


def _guests(projection: Projection) -> _Guests:
    found = _Guests({}, {})
    columns = ("id", "session_id", "source_id", "metadata_json")
    for row in with_columns(projection.tables["session_observations"], *columns):
        inside = row["metadata_json"].get("inside")
        if inside is None:
            continue
        host = inside["host"]
        found.left[inside["observation"]] = tuple(map(tuple, inside["left"]))
        found.places[row["id"]] = ObservedFile(
            observation=row["id"],
            session=row["session_id"],
            source=row["source_id"],
            provider=host["provider"],
            native_id=host["native_id"],
            src=host["src"],
            first_record=host.get("first_record"),
            differs=host.get("differs"),
            records=host["records"],
            rows=tuple(map(tuple, inside["rows"])),
        )
    return found


def event_rows(projection: Projection, pages_of: EventSource) -> Iterator[EventRow]:
    """The events of all files of a view, file by file; one page is held at a time."""
    for file in observed_files(projection):
        ordinal = 0
        for page, records in pages_of(file):
            for row in _page_rows(file, page, records, ordinal):
                if file.rows is None or within(file.rows, ordinal):
                    yield row
                ordinal += 1


def _page_rows(file: ObservedFile, page: Page, records: Sequence[Record], ordinal: int) -> Iterator[EventRow]:
    jumps = {row: (line, offset) for row, line, offset in page.jumps or ()}
    line, offset, digests = page.ord, page.offset, page.digests
    ids, times = page_record_ids(page), list(record_times(page, records))
    for index, (name, record, length) in enumerate(zip(ids, records, page.lengths, strict=True)):
        if index in jumps:
            line, offset = jumps[index]
        yield (
            event_id(file.observation, offset, name),
            file.session,
            file.source,
            file.provider,
            record.id or None,
            record.entry or "unknown",
            times[index] or None,
            ordinal + index,
            record.role or None,
            record.tool or None,
            _summary(record),
            None,
            f'{{"digest":"{digests[12 * index : 12 * index + 12]}"}}',
            file.observation,
            line,
            offset,
            length,
            name,
        )
        line += 1
        offset += length + 1


def _summary(record: Record) -> str | None:
    """The kinds of the parts of a record and the tools it calls: ``reasoning, 2 text, call Bash``."""
    parts = record.parts
    if not parts:
        return None
    counts: dict[str, int] = {}
    for part in parts:
        word = f"call {part.name}" if part.k == "call" and part.name else part.k
        counts[word] = counts.get(word, 0) + 1
    if len(counts) == len(parts):
        return ", ".join(counts)
    return ", ".join(word if count == 1 else f"{count} {word}" for word, count in counts.items())
