from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore.nesting import MAX_NESTING, is_too_deep
from porcelain.providers import jsonlines
from porcelain.providers.jsonlines import Line, read_entries, read_lines, repair, repair_surrogates
from porcelain.providers.records import Record


def read_object(data: bytes) -> tuple[Record, Mapping[str, str]]:
    stated = msgspec.json.decode(data, type=dict[str, Any])
    return Record(id=str(stated.get("id")), label=str(stated.get("text"))), {}


def is_entry(fields: Mapping[str, msgspec.Raw]) -> bool:
    return "id" in fields


def taken(line: bytes) -> list[tuple[str, bytes]]:
    """Ids of the records, or reasons of the damage, each with the bytes it covers."""
    found = []
    for entry in read_entries(line, read_object, is_entry):
        name = entry.damage if entry.record is None else entry.record.id
        found.append((str(name), line[entry.start : entry.start + entry.length]))
    return found


def lines_of(data: bytes, **start: int) -> list[Line]:
    return list(read_lines(io.BytesIO(data), start.get("offset", 0), start.get("ord", 1), len(data)))


A = b'{"id":"a"}'
B = b'{"id":"b","deep":{"id":"inner"}}'


def test_lines_have_numbers_offsets_and_say_whether_they_end() -> None:
    assert lines_of(b"ab\n\nc") == [
        Line(1, 0, b"ab", True),
        Line(2, 3, b"", True),
        Line(3, 4, b"c", False),
    ]


def test_reading_goes_on_at_an_offset_and_stops_at_the_end_that_was_given() -> None:
    assert list(read_lines(io.BytesIO(b"ab\ncd\nef\n"), 3, 2, 7)) == [
        Line(2, 3, b"cd", True),
        Line(3, 6, b"e", False),
    ]


@given(st.binary(max_size=60).map(lambda b: b.replace(b"x", b"\n")), st.integers(1, 7))
def test_lines_join_to_the_file_whatever_the_block_size(data: bytes, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonlines, "BLOCK", block)
        found = lines_of(data)
    assert b"".join(line.data + b"\n" * line.ended for line in found) == data
    assert [data[line.offset : line.offset + len(line.data)] for line in found] == [x.data for x in found]
    assert [line.ord for line in found] == list(range(1, len(found) + 1))


def test_only_0x0a_ends_a_line() -> None:
    text = '{"id":"a","text":"one\u2028two\u2029three\x85"}'.encode()
    assert [line.data for line in lines_of(text + b"\n")] == [text]
    (entry,) = read_entries(text, read_object, is_entry)
    assert entry.record is not None
    assert entry.record.label == "one\u2028two\u2029three\x85"


def test_a_whole_line_is_one_entry() -> None:
    assert taken(A) == [("a", A)]
    assert taken(A + b"\r") == [("a", A + b"\r")]


def test_a_byte_order_mark_is_no_damage() -> None:
    assert taken(jsonlines.BOM + A) == [("a", A)]


def test_glued_records() -> None:
    assert taken(A + B) == [("a", A), ("b", B)]
    assert taken(A + b" \r" + B + b"\r") == [("a", A), ("b", B)]


def test_braces_inside_a_string_do_not_cut_a_record() -> None:
    tricky = rb'{"id":"t","text":"x}{\"id\":1}{ \\"}'
    assert taken(tricky) == [("t", tricky)]
    assert taken(tricky + A) == [("t", tricky), ("a", A)]


def test_a_cut_record_before_a_whole_one() -> None:
    assert taken(b'{"type":"x","prNu' + B) == [("cut-record", b'{"type":"x","prNu'), ("b", B)]
    assert taken(b'{"id":"c","text":"half' + A + B) == [
        ("cut-record", b'{"id":"c","text":"half'),
        ("a", A),
        ("b", B),
    ]


def test_a_piece_of_a_cut_record_is_no_record() -> None:
    """The nested object ends right where the record is cut, so everything behind it parses; it has no id."""
    cut = b'{"id":"c","in":{"x":1}'
    assert taken(cut + A) == [("cut-record", cut), ("a", A)]
    # Cut the other way round: what is left is the tail of a record, and none of its objects is a record.
    assert taken(b'"in":{"x":1}}') == [("not-json", b'"in":{"x":1}}')]
    assert taken(b'{"x":1}}' + A) == [("cut-record", b'{"x":1}}'), ("a", A)]


def test_nothing_is_salvaged_unless_all_the_rest_is_whole() -> None:
    line = b'{"id":"c","t' + A + b'{"id":"d'
    assert taken(line) == [("cut-record", line)]


def test_a_whole_record_before_a_cut_one() -> None:
    assert taken(A + b'{"id":"c","t') == [("a", A), ("cut-record", b'{"id":"c","t')]


def test_nul_runs() -> None:
    nuls = bytes(512)
    assert taken(nuls + A) == [("nul-run", nuls), ("a", A)]
    assert taken(A + nuls) == [("a", A), ("nul-run", nuls)]
    assert taken(nuls) == [("nul-run", nuls)]
    assert taken(b'{"id":"c' + nuls + A) == [("cut-record", b'{"id":"c'), ("nul-run", nuls), ("a", A)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"garbage", "not-json"),
        (b"{'id':1}", "not-json"),
        (b'{"id":NaN}', "not-json"),
        (b'{"id":"a","text":"a\x01b"}', "not-json"),
        (b'{"id":"a"', "cut-record"),
        (b'["id"]', "not-an-object"),
        (b"null", "not-an-object"),
        (b'{"id":' + b"[" * 9000 + b"]" * 9000 + b"}", "too-deep"),
        (b'{"id":' + b"[" * MAX_NESTING + b"]" * MAX_NESTING + b"}", "too-deep"),
    ],
)
def test_a_line_that_is_no_record_is_damage_with_a_reason(line: bytes, reason: str) -> None:
    assert taken(line) == [(reason, line)]


def test_lone_surrogates_become_replacement_characters_and_pairs_stay() -> None:
    line = rb'{"id":"a","text":"\udcb2 \ud83d\ude00 \ud83d \\ud83d \ud83d\ud83d\ude00"}'
    (entry,) = read_entries(line, read_object, is_entry)
    assert entry.record is not None
    assert entry.record.label == "\ufffd \U0001f600 \ufffd \\ud83d \ufffd\U0001f600"
    assert len(repair_surrogates(line)) == len(line)


@given(st.lists(st.sampled_from([r"\ud83d", r"\ude00", r"\\", "u", "d83d", "x", r"\n"]), max_size=8))
def test_surrogates_are_repaired_as_the_standard_library_reads_them(pieces: list[str]) -> None:
    source = '"' + "".join(pieces) + '"'
    loose = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in json.loads(source))
    repaired = json.loads(repair_surrogates(source.encode()))
    assert repaired == loose


def test_wrong_utf8_is_replaced_and_noted() -> None:
    line = b'{"id":"a","text":"caf\xe9 \xff b\xc3\xa9"}'
    found = read_entries(line, read_object, is_entry)
    assert [(e.damage, line[e.start : e.start + e.length]) for e in found] == [
        (None, line),
        ("not-utf8", b"\xe9 \xff"),
    ]
    assert found[0].record is not None
    assert found[0].record.label == "caf\ufffd \ufffd bé"


@given(st.binary(max_size=40))
def test_repair_gives_utf8_and_the_range_of_what_was_not(data: bytes) -> None:
    clean, foreign = repair(data)
    clean.decode()
    if foreign is None:
        assert data.decode() is not None
    else:
        start, length = foreign
        data[:start].decode()
        data[start + length :].decode()
        assert length > 0


_PIECES = st.sampled_from(
    [
        A,
        B,
        b"\0\0",
        b"x",
        b" ",
        b'{"id":"c","t',
        b'{"y":{"z":1}',
        b'"',
        b"}",
        b"{",
        b"\\",
        b"\xff",
        b"\xef\xbb\xbf",
    ]
)


@given(st.lists(_PIECES, max_size=9).map(b"".join))
def test_every_byte_of_a_line_is_in_one_entry_or_is_blank(line: bytes) -> None:
    """No entry reaches outside the line, none overlaps another, and between them is only white space."""
    at = 0
    for entry in read_entries(line, read_object, is_entry):
        if entry.damage == "not-utf8":
            continue
        assert jsonlines.is_blank(line[at : entry.start])
        assert entry.start >= at and entry.length > 0
        at = entry.start + entry.length
    assert at <= len(line)
    assert jsonlines.is_blank(line[at:])


def test_a_long_damaged_line_ends_in_time_that_is_not_quadratic() -> None:
    line = b'{"cut":"' + b'{"id":"x' * 40_000
    (entry,) = read_entries(line, read_object, is_entry)
    assert entry.damage == "cut-record"
    assert entry.length == len(line)


@given(st.integers(1, MAX_NESTING), st.sampled_from(["[", '{"a":']))
def test_what_is_not_nested_too_deep_is_read_on_every_version_of_python(depth: int, opening: str) -> None:
    inner = depth - 1
    line = ('{"id":' + opening * inner + "0" + {"[": "]"}.get(opening, "}") * inner + "}").encode()
    assert not is_too_deep(line) and is_too_deep(line, depth - 1)
    jsonlines.parse(msgspec.json.Decoder(), line)


def test_brackets_in_texts_nest_nothing() -> None:
    line = json.dumps({"id": 'x"[{\\' * MAX_NESTING, "y": [[]] * MAX_NESTING}).encode()
    assert not is_too_deep(line) and not is_too_deep(line, 3) and is_too_deep(line, 2)
