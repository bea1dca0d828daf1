"""The standard streams of a command: lines, JSON, tables and progress out, batches of lines in.

Standard output carries data only; what is said to a person goes to standard error. Strings that came from outside are
made printable before they reach a terminal, so that a file name cannot move its cursor.
"""

from __future__ import annotations

import os
import time

from objstore.errors import CheckFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO

    from plumbing.interface.options import Context

_FLUSH_AT = 1 << 18
_READ_SIZE = 1 << 18
#: Longest line of standard input, in bytes: far above the largest object.
MAX_LINE = 16 << 20
#: Seconds before progress shows, and between two updates of it.
_QUIET_START = 1.0
_REDRAW = 0.1
_ZERO_WIDTH_JOINER = "\u200d"
#: Nothing that is as narrow as this is cut: a time to the minute, the short form of an id.
_NARROWEST_COLUMN = 16


class Writer:
    """Lines to standard output, gathered so that a million short ones cost few writes. ``null`` ends them with NUL.

    Use it in a ``with`` statement, or ``flush`` it: what is gathered is not written by itself at the end.
    """

    def __init__(self, stream: BinaryIO, *, null: bool = False) -> None:
        self._stream = stream
        self._end = b"\0" if null else b"\n"
        self._gathered: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write ``data`` as it is."""
        self._gathered.append(data)
        self._size += len(data)
        if self._size >= _FLUSH_AT:
            self.flush()

    def line(self, text: str | bytes) -> None:
        """Write ``text`` and the end of a line."""
        self.write((encode(text) if isinstance(text, str) else text) + self._end)

    def json(self, value: Any) -> None:
        """Write ``value`` as one line of JSON."""
        self.write(json_bytes(value) + b"\n")

    def flush(self) -> None:
        """Hand everything gathered so far to the reader."""
        if self._gathered:
            self._stream.write(b"".join(self._gathered))
            self._gathered.clear()
            self._size = 0
        self._stream.flush()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()


def encode(text: str) -> bytes:
    """UTF-8 of ``text``; the bytes of a file name that is not UTF-8 come out as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def json_bytes(value: Any) -> bytes:
    """``value`` as compact JSON in UTF-8, keys as ordered by the caller."""
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def read_batches(stream: BinaryIO, *, null: bool = False) -> Iterator[list[bytes]]:
    """The lines of ``stream`` without their ends, in the batches in which they arrive.

    A batch is what one read returned, so that a command that answers and flushes after each batch serves both a
    program that waits for every answer and one that sends a million lines at once. A last line need not end. Raises
    ``CheckFailed`` for a line longer than any document may be.
    """
    separator = b"\0" if null else b"\n"
    pending: list[bytes] = []
    while chunk := stream.read1(_READ_SIZE):  # type: ignore[attr-defined]
        if separator not in chunk:
            pending.append(chunk)
            if sum(map(len, pending)) > MAX_LINE:
                raise CheckFailed(f"standard input: a line is longer than {MAX_LINE} bytes")
            continue
        lines = b"".join((*pending, chunk)).split(separator)
        last = lines.pop()
        pending = [last] if last else []
        yield lines
    if pending:
        yield [b"".join(pending)]


def say(context: Context, text: str) -> None:
    """Tell a person one line on standard error, unless ``--quiet``."""
    if not context.quiet:
        context.stderr.write(encode(printable(text)) + b"\n")
        context.stderr.flush()


def printable(text: str) -> str:
    """``text`` with every character that is not for printing (controls, line ends, text direction) spelled out."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == _ZERO_WIDTH_JOINER else c.encode("unicode_escape").decode() for c in text
    )


def terminal_width(stream: BinaryIO, env: Mapping[str, str]) -> int | None:
    """Columns of the terminal that ``stream`` is, or None when it is none."""
    if not stream.isatty():
        return None
    columns = env.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80


def display_width(text: str) -> int:
    """Columns that ``text`` takes on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(c) or c == _ZERO_WIDTH_JOINER else 1 + (east_asian_width(c) in "WF") for c in text
    )


def table(
    rows: Sequence[Sequence[str]],
    header: Sequence[str] = (),
    *,
    width: int | None = None,
    right: Collection[int] = (),
    whole: Collection[int] = (),
) -> Iterator[str]:
    """The lines of an aligned table. ``right`` holds the columns that are set flush right.

    With ``width`` the widest columns are cut until a line fits; of a path the end is kept. Never cut are those of
    ``right``, since a number that is cut is another number, and of ``whole``: ids that are to be typed again. Without
    ``width`` nothing is cut.
    """
    cells = [[printable(cell) for cell in row] for row in ((header, *rows) if header else rows)]
    if not cells:
        return
    widths = [max(display_width(row[column]) for row in cells) for column in range(len(cells[0]))]
    if width is not None:
        _narrow(widths, width, {*right, *whole})
    for row in cells:
        fields = []
        for column, cell in enumerate(row):
            text = cut(cell, widths[column])
            padding = " " * (widths[column] - display_width(text))
            fields.append(padding + text if column in right else text + padding)
        yield "  ".join(fields).rstrip()


def _narrow(widths: list[int], width: int, kept: Collection[int]) -> None:
    """Take from the widest column that is not ``kept`` until all fit, or none can give more."""
    free = [column for column in range(len(widths)) if column not in kept]
    over = sum(widths) + 2 * (len(widths) - 1) - width
    while over > 0 and free:
        widest = max(free, key=widths.__getitem__)
        if widths[widest] <= _NARROWEST_COLUMN:
            return
        widths[widest] -= 1
        over -= 1


def cut(text: str, width: int) -> str:
    """``text``, or as much of its beginning, of a path of its end, as fits ``width`` columns with the mark of a cut."""
    if display_width(text) <= width:
        return text
    if text.startswith("/"):
        start = max(len(text) - width, 0)
        while start < len(text) and display_width(text[start:]) >= width:
            start += 1
        return "…" + text[start:]
    end = min(len(text), width)
    while end and display_width(text[:end]) >= width:
        end -= 1
    return text[:end] + "…"


def counted(count: int, noun: str) -> str:
    """``1 file``, ``2,000 files``: the number and the noun, with an s where it is not one."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def human_size(size: int) -> str:
    """Bytes as a person reads them, in powers of ten: ``512 B``, ``1.2 kB``, ``34.5 MB``."""
    if size < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} PB"


class Progress:
    """A line on standard error that says how far long work has come.

    Only on a terminal, not under ``--quiet``, and not before a second has passed. It uses no colour, so there is none
    to turn off by ``NO_COLOR``. ``size`` says that the numbers are bytes. As a context manager it clears its line.
    """

    def __init__(self, context: Context, label: str, *, total: int | None = None, size: bool = False) -> None:
        self.done = 0
        self.total = total
        self._label = label
        self._size = size
        self._stream = context.stderr
        self._width = None if context.quiet else terminal_width(context.stderr, context.env)
        self._start = time.monotonic()
        self._next = self._start + _QUIET_START
        self._shown = 0

    def advance(self, amount: int = 1, label: str | None = None) -> None:
        """Count ``amount`` more as done; ``label`` replaces what is said to be going on."""
        self.done += amount
        if label is not None:
            self._label = label
        if self._width is not None and (now := time.monotonic()) >= self._next:
            self._next = now + _REDRAW
            self._draw(now)

    def _draw(self, now: float) -> None:
        width = (self._width or 80) - 1
        form = human_size if self._size else "{:,}".format
        text = form(self.done)
        if self.total:
            share = min(self.done / self.total, 1.0)
            bar = ("#" * int(20 * share)).ljust(20, ".")
            text = f"[{bar}] {share:4.0%} {text} of {form(self.total)}"
        rate = form(int(self.done / max(now - self._start, 1e-6)))
        text = cut(f"{cut(printable(self._label), width // 3)}: {text}, {rate}/s", width)
        columns = display_width(text)
        self._write(text + " " * (self._shown - columns))
        self._shown = columns

    def _write(self, text: str) -> None:
        self._stream.write(encode("\r" + text))
        self._stream.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._write(" " * self._shown + "\r")
            self._shown = 0
