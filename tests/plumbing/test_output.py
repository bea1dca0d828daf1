"""What commands write and read: lines, JSON, tables, progress, batches."""

from __future__ import annotations

import io
import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbing.interface import output
from plumbing.interface.options import Context
from plumbing.interface.output import (
    Progress,
    Writer,
    display_width,
    encode,
    human_size,
    json_bytes,
    printable,
    read_batches,
    say,
    table,
    terminal_width,
)


class Terminal(io.BytesIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def context(stderr: io.BytesIO, **settings) -> Context:
    return Context(
        env={"COLUMNS": "60"}, cwd="/", stdin=io.BytesIO(), stdout=io.BytesIO(), stderr=stderr, **settings
    )


def test_writer_ends_lines_and_gathers() -> None:
    out = io.BytesIO()
    with Writer(out) as writer:
        writer.line("é")
        writer.line(b"raw")
        writer.json({"b": "ü", "a": [1, None]})
        writer.write(b"as is")
        assert out.getvalue() == b""
    assert out.getvalue() == 'é\nraw\n{"b":"ü","a":[1,null]}\nas is'.encode()
    out = io.BytesIO()
    with Writer(out, null=True) as writer:
        writer.line("a\nb")
        writer.line("x" * (1 << 18))
        assert len(out.getvalue()) == (1 << 18) + 5  # much is not held back
    assert out.getvalue().startswith(b"a\nb\0")


def test_writer_keeps_what_came_before_a_failure() -> None:
    out = io.BytesIO()
    with pytest.raises(KeyError), Writer(out) as writer:
        writer.line("kept")
        raise KeyError
    assert out.getvalue() == b"kept\n"


@given(st.binary())
def test_file_names_come_out_as_they_were(name: bytes) -> None:
    assert encode(os.fsdecode(name)) == name


@given(st.text(st.characters()))
def test_any_string_is_valid_json(text: str) -> None:
    data = json_bytes({"t": text})
    assert b"\n" not in data
    assert json.loads(data.decode("utf-8")) == {"t": text}


def test_lone_surrogates_are_spelled_out() -> None:
    assert encode("\ud800") == b"\\ud800"
    assert json.loads(json_bytes("\ud800").decode()) == "\ud800"


@given(st.lists(st.binary().map(lambda b: b.replace(b"\n", b"")), min_size=1), st.integers(1, 9))
def test_batches_hold_every_line_once(lines: list[bytes], size: int) -> None:
    class Slow(io.BytesIO):
        def read1(self, limit: int = -1) -> bytes:
            return super().read1(size)

    data = b"\n".join(lines)
    assert [line for batch in read_batches(Slow(data)) for line in batch] == data.split(b"\n")[
        : -1 if not lines[-1] else None
    ]
    ended = b"".join(line + b"\0" for line in lines if b"\0" not in line)
    assert [line for batch in read_batches(Slow(ended), null=True) for line in batch] == [
        line for line in lines if b"\0" not in line
    ]


def test_a_batch_arrives_before_the_stream_ends() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as stream, os.fdopen(writer, "wb") as pen:
        batches = read_batches(stream)
        pen.write(b"one\ntw")
        pen.flush()
        assert next(batches) == [b"one"]
        pen.write(b"o\nthree\n")
        pen.flush()
        assert next(batches) == [b"two", b"three"]


def test_printable_leaves_no_way_to_steer_a_terminal() -> None:
    assert printable("plain é 漢 👩\u200d💻") == "plain é 漢 👩\u200d💻"
    assert printable("a\x1b[2J\nb\u202e\x9b") == "a\\x1b[2J\\nb\\u202e\\x9b"


@given(st.text(st.characters()))
def test_printable_is_one_line_without_controls(text: str) -> None:
    shown = printable(text)
    assert shown.replace("\u200d", "").isprintable()
    assert printable(shown) == shown


def test_table_aligns_by_what_is_seen() -> None:
    rows = [["a", "12", "x"], ["漢字", "3", "yy\n"]]
    assert list(table(rows, ["name", "n", "rest"], right={1})) == [
        "name   n  rest",
        "a     12  x",
        "漢字   3  yy\\n",
    ]
    assert list(table([])) == []


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), min_size=1), st.integers(52, 100))
def test_table_fits_the_width(rows: list[tuple[str, str, str]], width: int) -> None:
    lines = list(table(rows, width=width))
    assert len(lines) == len(rows)
    assert all(display_width(line) <= width for line in lines)


@given(
    st.lists(st.tuples(st.text(), st.integers(0, 10**30), st.text("0-9a-f", max_size=16)), min_size=1),
    st.integers(1, 100),
)
def test_table_cuts_no_number_and_nothing_short(rows: list[tuple[str, int, str]], width: int) -> None:
    lines = list(table([(text, f"{number:,}", name) for text, number, name in rows], width=width, right={1}))
    for line, (_, number, name) in zip(lines, rows, strict=True):
        assert re.search(rf"(^|  ) *{number:,}( +{re.escape(name)})?$", line), line


@pytest.mark.parametrize("text", ["/home/mira/src/lantern-mail/" + "x" * 60, "/" + "漢" * 60])
def test_table_cuts_a_path_in_front(text: str) -> None:
    (line,) = table([[text, "1"]], width=40, right={1})
    shown, number = line.split("  ")
    assert shown[0] == "…" and text.endswith(shown[1:]) and number == "1" and 39 <= display_width(line) <= 40


def test_table_is_not_cut_without_a_width() -> None:
    assert list(table([["x" * 500, "y"]])) == ["x" * 500 + "  y"]
    assert list(table([["x" * 500, "y"]], width=20)) == ["x" * 16 + "…  y"]


def test_table_cuts_no_number_and_keeps_the_end_of_a_path() -> None:
    rows = [["claude-sonnet-4-20250514", "54,693,123", "/home/ines/garden/beds.jsonl"]]
    header = ["model", "cache read", "file"]
    assert list(table(rows, header, width=50, right={1})) == [
        "model               cache read  file",
        "claude-sonnet-4-2…  54,693,123  …garden/beds.jsonl",
    ]
    narrow = list(table(rows, header, width=10, right={1}))
    assert narrow[1] == "claude-sonnet-4…  54,693,123  …rden/beds.jsonl"


def test_ids_in_a_table_are_never_cut() -> None:
    rows = [["20260304-050607-0102", "x" * 50]]
    assert list(table(rows, width=40, whole=(0,))) == ["20260304-050607-0102  " + "x" * 17 + "…"]
    assert list(table(rows, width=20, whole=(0,))) == ["20260304-050607-0102  " + "x" * 15 + "…"]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (34_549_999, "34.5 MB"),
        (999_949_999, "999.9 MB"),
        (999_950_000, "1.0 GB"),
        (10**15, "1.0 PB"),
        (10**18, "1000.0 PB"),
    ],
)
def test_human_sizes(size: int, text: str) -> None:
    assert human_size(size) == text


def test_terminal_width() -> None:
    assert terminal_width(io.BytesIO(), {"COLUMNS": "50"}) is None
    assert terminal_width(Terminal(), {"COLUMNS": "50"}) == 50
    assert terminal_width(Terminal(), {"COLUMNS": "wide"}) == 80


def test_say_is_silent_when_quiet() -> None:
    err = io.BytesIO()
    say(context(err), "two\nlines")
    say(context(err, quiet=True), "nothing")
    assert err.getvalue() == b"two\\nlines\n"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that tests set by hand."""
    now = [100.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    return now


def test_progress_shows_late_fits_and_clears(clock: list[float]) -> None:
    err = Terminal()
    with Progress(context(err), "import", total=4000) as progress:
        progress.advance(10)
        assert err.getvalue() == b""  # work of less than a second says nothing
        clock[0] += 2
        progress.advance(1990, "long\nname" + "x" * 80)
        clock[0] += 0.01
        progress.advance(1)
        first = "long\\nnamexxxxxxxx…: [##########..........]  50% 2,000 of …"
        assert err.getvalue().decode() == "\r" + first
        clock[0] += 1
        progress.advance(1999, "import")
        last = "import: [####################] 100% 4,000 of 4,000, 1,328/s"
        assert err.getvalue().decode() == "\r" + first + "\r" + last
    assert err.getvalue().decode().endswith(last + "\r" + " " * 59 + "\r")


def test_progress_counts_bytes(clock: list[float]) -> None:
    err = Terminal()
    progress = Progress(context(err), "verify", size=True)
    clock[0] += 2
    progress.advance(3_000_000)
    assert err.getvalue() == b"\rverify: 3.0 MB, 1.5 MB/s"


@pytest.mark.parametrize(("stream", "quiet"), [(io.BytesIO(), False), (Terminal(), True)])
def test_progress_is_for_people_at_a_terminal(clock: list[float], stream: io.BytesIO, quiet: bool) -> None:
    with Progress(context(stream, quiet=quiet), "import") as progress:
        clock[0] += 5
        progress.advance()
    assert progress.done == 1
    assert stream.getvalue() == b""
