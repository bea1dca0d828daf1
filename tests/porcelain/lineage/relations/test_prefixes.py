"""Common prefixes of transcripts, with the folders of a move neutralised."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porcelain.lineage.relations.prefixes import Prefix, compare_lines, graded


def lines(count: int, mark: str = "", start: int = 0) -> list[bytes]:
    return [json.dumps({"n": number, "by": mark}).encode() + b"\n" for number in range(start, count)]


@pytest.mark.parametrize(
    ("source", "shared", "target", "grade"),
    [
        (19, 19, 25, None),
        (20, 20, 25, "medium"),
        (100, 94, 200, None),
        (100, 95, 200, "medium"),
        (100, 80, 100, "medium"),
        (100, 79, 100, None),
        (100, 30, 30, "medium"),
        (30, 30, 30, "medium"),
        (30, 30, 35, "medium"),
    ],
)
def test_what_a_prefix_is_worth(source: int, shared: int, target: int, grade: str | None) -> None:
    left = lines(shared) + lines(source, "a", shared)
    right = lines(shared) + lines(target, "b", shared)
    found = compare_lines(left, right, None, None)
    assert found == Prefix(shared=shared, source=source, target=target)
    assert graded(found) == grade


def test_a_manifest_or_link_makes_it_high() -> None:
    assert graded(Prefix(shared=33, source=100, target=100), backed=True) == "high"
    assert graded(Prefix(shared=19, source=19, target=19), backed=True) is None


@pytest.mark.parametrize("escaped", [False, True])
def test_a_move_that_rewrites_the_folder_everywhere(escaped: bool) -> None:
    """Line 6 mentions the folder: where that is not neutralised the prefix ends at 5."""
    old, new = "/home/ines/garden", "/home/ines/orchard"
    rows = [{"n": number, "text": f"look in {old}/beds" if number == 5 else "yes"} for number in range(40)]
    source = [json.dumps(row).encode() for row in rows]
    if escaped:
        source = [line.replace(b"/", b"\\/") for line in source]
    forms = ((old, new), (old.replace("/", "\\/"), new.replace("/", "\\/")))
    target = source
    for before, after in forms:
        target = [line.replace(before.encode(), after.encode()) for line in target]
    assert target != source
    assert compare_lines(source, target, old, new) == Prefix(shared=40, source=40, target=40)
    assert compare_lines(source, target, None, None).shared == 5


def test_a_new_folder_within_the_old_one_and_one_named_in_both() -> None:
    old, new = "/w", "/w/b"
    source = [b'"/w/x"', b'"/w/b"', b'"/w/b/y"']
    target = [line.replace(b"/w", b"/w/b") for line in source]
    assert compare_lines(source, target, old, new).shared == 3
    # a line that names the new folder was left as it is when the old one was replaced
    assert compare_lines([b'"/n and /o"'], [b'"/n and /n"'], "/o", "/n").shared == 1


def test_writing_does_not_matter_and_text_does() -> None:
    assert compare_lines([b'{"a": 1, "b": 2}\r\n', b"\n"], [b'{"b":2,"a":1}'], None, None).is_whole_source
    assert compare_lines([b'{"a":1}'], [b'{"a":2}'], None, None).shared == 0
    assert compare_lines([b"no json {"], [b"no json {"], None, None).shared == 1


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_counts(shared: int, left: int, right: int) -> None:
    source = lines(shared) + lines(shared + left, "a", shared)
    target = lines(shared) + lines(shared + right, "b", shared)
    found = compare_lines(iter(source), iter(target), None, None)
    assert found == Prefix(shared=shared, source=shared + left, target=shared + right)
