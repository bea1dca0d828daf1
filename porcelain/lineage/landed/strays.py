"""Records of one conversation in the file of another.

Claude Code has written lines of one session into the file of another. They belong to the session that they name, and
the file is where they were seen. Lines of another session are also what a fork or a resumed copy begins with, in
versions that keep the session of what they copy. Those are its history and stay with it: what stands before the file's
own first line, and what a line of its own follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import UNSET, Struct

from porcelain.lineage.landed.record_times import record_times
from porcelain.providers.records import Page, Record, page_record_ids

#: Agents whose lines say to which session they belong, and whose files have been seen with those of others.
TELLING = frozenset({"claude"})

#: Rows of a file, counted from 0 through all of its pages: from and up to, in order.
Ranges = tuple[tuple[int, int], ...]


class Part(Struct, frozen=True, kw_only=True):
    """What of a file belongs to one conversation: its rows, how many they are and their bytes, the first and last time
    that they state, the object id of the first record, and the folders that they name, with the time of each."""

    native_id: str
    rows: Ranges
    records: int
    size: int
    first: str | None
    last: str | None
    first_record: str
    folders: tuple[tuple[str, str | None], ...] = ()


class _Row(Struct, frozen=True):
    session: str
    id: str | None
    before: tuple[str, ...]


def is_mixed(pages: Iterable[Page], native_id: str) -> bool:
    """Whether pages of the transcript of ``native_id`` have rows that name another session."""
    return any(
        page.kind == "transcript"
        and page.stream in ("main", UNSET)
        and any(span.values.get("session", native_id) != native_id for span in page.spans or ())
        for page in pages
    )


def owners(native_id: str, pages: Iterable[tuple[Page, Sequence[Record]]]) -> list[tuple[str, int, int]]:
    """Whose the rows of a transcript are: runs of rows, in order, each with the native id of its conversation."""
    rows = [row for page, records in pages for row in _rows(page, records)]
    runs: list[tuple[str, int, int]] = []
    for number, row in enumerate(rows):
        session = row.session or (runs[-1][0] if runs else native_id)
        if runs and runs[-1][0] == session:
            runs[-1] = (session, runs[-1][1], number + 1)
        else:
            runs.append((session, number, number + 1))
    begun = next((start for session, start, _ in runs if session == native_id), len(rows))
    history = _history(native_id, rows, runs)
    found: list[tuple[str, int, int]] = []
    for session, start, end in runs:
        whose = session if start > begun and start not in history else native_id
        if found and found[-1][0] == whose:
            found[-1] = (whose, found[-1][1], end)
        else:
            found.append((whose, start, end))
    return found


def _rows(page: Page, records: Sequence[Record]) -> Iterator[_Row]:
    spans = {span.row: span.values for span in page.spans or ()}
    session = ""
    for number, record in enumerate(records):
        if number in spans:
            session = spans[number].get("session", "")
        before = tuple(name for name in (record.parent, record.continues) if isinstance(name, str))
        yield _Row(session, record.id if isinstance(record.id, str) else None, before)


def _history(native_id: str, rows: Sequence[_Row], runs: Iterable[tuple[str, int, int]]) -> set[int]:
    """The beginnings of the runs of other sessions that a row of the file's own follows, over any number of steps."""
    run_of: dict[str, int] = {}
    before: dict[str, tuple[str, ...]] = {}
    work: list[str] = []
    for session, start, end in runs:
        for row in rows[start:end]:
            if session == native_id:
                work += row.before
            elif row.id is not None:
                run_of.setdefault(row.id, start)
                before.setdefault(row.id, row.before)
    found: set[int] = set()
    done: set[str] = set()
    while work:
        name = work.pop()
        if name in run_of and name not in done:
            done.add(name)
            found.add(run_of[name])
            work += before[name]
    return found


def parts(native_id: str, pages: Sequence[tuple[Page, Sequence[Record]]]) -> list[Part]:
    """What of a transcript belongs to whom, its own part first, then by native id; nothing where all is its own."""
    runs = owners(native_id, pages)
    others = sorted({whose for whose, _, _ in runs} - {native_id})
    if not others:
        return []
    whose = [name for name, start, end in runs for _ in range(start, end)]
    making = {name: _Making() for name in (native_id, *others)}
    number = 0
    for page, records in pages:
        spans = {span.row: span.values for span in page.spans or ()}
        values: dict[str, str] = {}
        times = record_times(page, records)
        for row, (name, length, time) in enumerate(
            zip(page_record_ids(page), page.lengths, times, strict=True)
        ):
            values = spans.get(row, values)
            making[whose[number]].add(name, length, time, values.get("cwd"))
            number += 1
    return [
        Part(
            native_id=name,
            rows=tuple((start, end) for mine, start, end in runs if mine == name),
            records=made.records,
            size=made.size,
            first=made.first or None,
            last=made.last or None,
            first_record=made.first_record,
            folders=tuple((folder, time or None) for folder, time in made.folders.items()),
        )
        for name, made in making.items()
    ]


class _Making:
    def __init__(self) -> None:
        self.records = 0
        self.size = 0
        self.first = ""
        self.last = ""
        self.first_record = ""
        self.folders: dict[str, str] = {}

    def add(self, name: str, length: int, time: str, folder: str | None) -> None:
        self.records += 1
        self.size += length + 1
        self.first_record = self.first_record or name
        if time:
            self.first = min(self.first or time, time)
            self.last = max(self.last, time)
        if folder:
            self.folders.setdefault(folder, time)


def within(rows: Ranges | None, number: int) -> bool:
    """Whether a row is one of ``rows``; every one is where those are None."""
    return rows is None or any(start <= number < end for start, end in rows)


def count_of(rows: Ranges) -> int:
    """How many rows these are."""
    return sum(end - start for start, end in rows)
