"""Whose the rows of a shared transcript are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porcelain.lineage.landed.strays import owners, parts
from porcelain.providers.records import Page, Record, Span

#: A row: session ("" where the line says none), id, parent.
Said = tuple[str, str | None, str | None]


def page(rows: Sequence[Said]) -> tuple[Page, list[Record]]:
    spans: list[Span] = []
    before = ""
    records = []
    for number, (session, name, parent) in enumerate(rows):
        if session and session != before:
            spans.append(Span(row=number, values={"session": session, "cwd": f"/home/ines/{session}"}))
            before = session
        said: dict[str, Any] = {"id": name, "parent": parent}
        stated = {key: value for key, value in said.items() if value is not None}
        records.append(Record(time=f"2026-03-01T10:00:{number:02}.000Z", **stated))
    made = Page(
        adapter="claude",
        at="2026-03-01T10:00:00.000Z",
        conversation="A",
        dialect="claude-code/1",
        digest="0" * 64,
        digests="0" * 12 * len(rows),
        kind="transcript",
        lengths=[9] * len(rows),
        offset=0,
        ord=1,
        provider="claude",
        records="".join(f"{number:064x}" for number in range(len(rows))),
        rules="",
        seq=1,
        spans=spans,
        src="A.jsonl",
        stream="main",
    )
    return made, records


def whose(*rows: Said) -> str:
    return "".join(name * (end - start) for name, start, end in owners("A", [page(rows)]))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # what is astray: after the file's own, and nothing of the file's own follows it
        ([("A", "1", None), ("B", "2", None), ("B", "3", "2")], "ABB"),
        ([("A", "1", None), ("B", "2", None), ("A", "3", "1")], "ABA"),
        # a line that names no session goes with the one before it
        ([("A", "1", None), ("B", "2", None), ("", None, None), ("A", "3", "1")], "ABBA"),
        # history: before the file's own, or followed by it over any number of steps
        ([("B", "1", None), ("B", "2", "1"), ("A", "3", "2")], "AAA"),
        ([("B", "1", None), ("B", "2", "1"), ("A", "3", None)], "AAA"),
        ([("A", None, None), ("B", "1", None), ("C", "2", "1"), ("A", "3", "2")], "AAAA"),
        ([("A", "1", None), ("B", "2", "1"), ("A", "3", "2"), ("B", "4", "9")], "AAAB"),
        # a file of which nothing is its own is whose its name says
        ([("B", "1", None), ("B", "2", "1")], "AA"),
        # several, and a circle
        ([("A", "1", None), ("B", "2", None), ("C", "3", None)], "ABC"),
        ([("A", "1", "2"), ("B", "2", "3"), ("B", "3", "2")], "AAA"),
    ],
)
def test_whose_a_row_is(rows: list[Said], expected: str) -> None:
    assert whose(*rows) == expected


said = st.tuples(
    st.sampled_from(("A", "B", "C", "")),
    st.none() | st.sampled_from("12345678"),
    st.none() | st.sampled_from("12345678"),
)


@given(st.lists(said, max_size=12), st.integers(0, 12))
def test_every_row_is_somebodys_once(rows: list[Said], cut: int) -> None:
    """However it was cut into pages: the file's own rows stay its own, and parts are the runs of ``owners``."""
    pages = [page(rows)]
    runs = owners("A", pages)
    assert [start for _, start, _ in runs] == [0, *(end for _, _, end in runs)][: len(runs)]
    assert sum(end - start for _, start, end in runs) == len(rows)
    assert all(one[0] != other[0] for one, other in pairwise(runs))
    names = whose(*rows)
    assert all(names[row] == "A" for row, (session, _, _) in enumerate(rows) if session == "A")
    found = parts("A", pages)
    assert bool(found) == bool(set(names) - {"A"})
    if found:
        assert (found[0].native_id, sum(part.records for part in found)) == ("A", len(rows))
        for part in found:
            mine = [row for start, end in part.rows for row in range(start, end)]
            assert [row for row, name in enumerate(names) if name == part.native_id] == mine
            assert part.first_record == f"{mine[0]:064x}" and part.size == 10 * len(mine)
    whole = [one for one in rows if one[0]]
    halves = [half for half in (rows[:cut], rows[cut:]) if half]
    if len(whole) == len(rows):  # a page states its first row's session anew
        assert owners("A", [page(half) for half in halves]) == runs
