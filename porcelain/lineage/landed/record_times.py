"""When records were written, as far as anything says so.

A Codex fork repeats the lines of its origin with the time of the forking in every envelope. The id of a turn (UUIDv7)
keeps the time at which the turn began: where that is older than the thread, it dates the line, so that neither days nor
active time of a fork are wrong although the file of its origin is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from porcelain.lineage.facts.times import normal_time, time_of_ns
from porcelain.providers.codex_turns import uuid_milliseconds
from porcelain.providers.records import Page, Record, row_times

_UUID = 36


def record_times(page: Page, records: Sequence[Record]) -> Iterator[str]:
    """The time of each record of a page in the form of lineage, "" where none is known."""
    thread = uuid_milliseconds(page.conversation[:_UUID]) if page.provider == "codex" else None
    for record, outside in zip(records, row_times(page), strict=True):
        if isinstance(record.time, str):
            yield normal_time(record.time) or ""
            continue
        repeated = _repeated(record, thread) if thread is not None else None
        if repeated is not None:
            yield time_of_ns(repeated * 1_000_000) or ""
        else:
            yield (normal_time(outside) or "") if isinstance(outside, str) else ""


def _repeated(record: Record, thread: int) -> int | None:
    """When the turn of a record began, if that was before the thread did."""
    turn = record.run if isinstance(record.run, str) else ""
    if not turn and isinstance(record.call, str):
        turn = record.call[:_UUID]
    began = uuid_milliseconds(turn)
    return began if began is not None and began < thread else None
