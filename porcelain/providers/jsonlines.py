"""Append logs of JSON lines: cutting a file into lines, and one line into the records it really holds.

A line ends at 0x0A and nowhere else. It normally holds one JSON object. Agents that crash, or that write from two
processes, leave other things: two objects glued together, an object cut short with the next one behind it, runs of NUL
bytes. ``read_entries`` takes what can be taken and gives every other byte range a reason, so that nothing disappears.

The last line of a file may have no newline. It is a record when it parses whole as one object (an object's closing
brace ends it for certain, so nothing that comes later can belong to it), and pending, not consumed, when it does not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import BinaryIO, Protocol, TypeVar

import msgspec
from msgspec import Struct

from objstore.nesting import is_too_deep
from porcelain.providers.reader import Entry
from porcelain.providers.records import Record

#: Bytes read at a time.
BLOCK = 1024 * 1024
#: Lines that are looked at to tell what a file is, and bytes that are read at a time for that.
HEAD_LINES = 12
HEAD_BLOCK = 32 * 1024
BOM = b"\xef\xbb\xbf"

NOT_JSON = "not-json"
NOT_AN_OBJECT = "not-an-object"
CUT_RECORD = "cut-record"
NUL_RUN = "nul-run"
NOT_UTF8 = "not-utf8"
TOO_DEEP = "too-deep"

_BLANK = b" \t\r\n"
_NULS = re.compile(rb"\0+")
_START = re.compile(rb'\{[ \t\r]*"')
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}"]', re.DOTALL)
_SURROGATES = re.compile(
    rb"\\[^u]"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})",
    re.DOTALL,
)
_HALF_OF_A_PAIR = re.compile(rb"\\u[dD]")
_ANYTHING = msgspec.json.Decoder()
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
#: Looking for the next whole record in a damaged line reads at most this many times the line's own length.
_EFFORT = 64

Read_co = TypeVar("Read_co", covariant=True)
ReadObject = Callable[[bytes], tuple[Record, Mapping[str, str]]]
IsEntry = Callable[[Mapping[str, msgspec.Raw]], bool]


class Decoder(Protocol[Read_co]):
    """What makes something of the bytes of one JSON value."""

    def decode(self, data: bytes, /) -> Read_co:
        """Raises ``msgspec.DecodeError``."""


class NestedTooDeep(msgspec.DecodeError):
    """More lists and objects inside one another than is read on any version of Python."""


class Line(Struct, frozen=True):
    """One line: its number from 1, its byte offset in the file, its bytes without the newline, and whether the newline
    was there."""

    ord: int
    offset: int
    data: bytes
    ended: bool


class Fragment(Struct, frozen=True):
    """A byte range of a damaged line: a whole object where ``reason`` is None, else unusable bytes."""

    start: int
    length: int
    reason: str | None


def read_lines(file: BinaryIO, offset: int, ord: int, end: int, block_size: int = BLOCK) -> Iterator[Line]:
    """The lines of ``file`` in the byte range ``offset .. end``, numbered from ``ord``; blank ones too.

    Reads ``block_size`` bytes at a time and holds one block and one line. Only the last line can have ``ended`` False,
    and it is given only when it is not empty.
    """
    file.seek(offset)
    held: list[bytes] = []
    left = end - offset
    while left > 0 and (block := file.read(min(block_size, left))):
        left -= len(block)
        pieces = block.split(b"\n")
        last = pieces.pop()
        if pieces and held:
            held.append(pieces[0])
            pieces[0] = b"".join(held)
            held.clear()
        for data in pieces:
            yield Line(ord, offset, data, True)
            ord += 1
            offset += len(data) + 1
        if last:
            held.append(last)
    if held:
        yield Line(ord, offset, b"".join(held), False)


def first_objects(file: BinaryIO, decoder: Decoder[Read_co]) -> Iterator[tuple[Line, Read_co]]:
    """The first ``HEAD_LINES`` lines that are not blank, with what ``decoder`` makes of each: enough to tell whose file
    it is. Those that it cannot read are left out."""
    lines = read_lines(file, 0, 1, os.fstat(file.fileno()).st_size, HEAD_BLOCK)
    for line in islice((line for line in lines if not is_blank(line.data)), HEAD_LINES):
        try:
            head = parse(decoder, line.data)
        except msgspec.DecodeError:
            continue
        yield line, head


def is_blank(data: bytes) -> bool:
    """Whether ``data`` holds nothing but white space and byte order marks."""
    return data[:1] != b"{" and not data.replace(BOM, b"").strip(_BLANK)


def is_whole_object(data: bytes) -> bool:
    """Whether ``data`` parses, by itself, as exactly one JSON object."""
    return _fields(data) is not None


def repair_surrogates(data: bytes) -> bytes:
    r"""Replace every ``\uD8xx``/``\uDCxx`` escape without its partner by ``\ufffd``; pairs and lengths stay."""
    return _SURROGATES.sub(lambda m: b"\\ufffd" if m.group(1) else m.group(0), data)


def is_fit(data: bytes) -> bool:
    """Whether ``data``, one line or many, is fit for any JSON parser as it is, so that ``repair`` would change nothing.
    May be False for what it would not change."""
    if _HALF_OF_A_PAIR.search(data):
        return False
    try:
        return data.isascii() or bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def repair(data: bytes) -> tuple[bytes, tuple[int, int] | None]:
    """``data`` made fit for any JSON parser: lone surrogates and bytes that are not UTF-8 become U+FFFD.

    The second value is the range (start, length) from the first to the last byte that was not UTF-8, else None.
    """
    if b"\\ud" in data or b"\\uD" in data:
        data = repair_surrogates(data)
    if data.isascii():
        return data, None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "surrogateescape")
        tail = re.search("[\udc80-\udcff][^\udc80-\udcff]*\\Z", text)
        assert tail is not None
        stop = len(data) - len(text[tail.start() + 1 :].encode("utf-8", "surrogateescape"))
        return data.decode("utf-8", "replace").encode("utf-8"), (error.start, stop - error.start)
    return data, None


def parse(decoder: Decoder[Read_co], data: bytes) -> Read_co:
    """What ``decoder`` makes of ``data``, which is repaired first; raises ``msgspec.DecodeError``, of which
    ``NestedTooDeep`` is one."""
    clean, _ = repair(data)
    if is_too_deep(clean):
        raise NestedTooDeep
    return decoder.decode(clean)


def read_entries(
    line: bytes, read_object: ReadObject, is_entry: IsEntry, *, fit: bool = False
) -> list[Entry]:
    """The entries of one line. ``read_object`` makes a record of the bytes of one whole JSON object;
    ``is_entry`` says whether an object that was found inside a damaged line is a record of this agent and not a piece
    of one. ``fit``: the line is known to need no repair."""
    clean, foreign = (line, None) if fit else repair(line)
    if is_too_deep(clean):
        return [Entry(None, 0, len(line), damage=TOO_DEEP)]
    try:
        record, values = read_object(clean)
    except msgspec.DecodeError:
        return [
            entry
            for fragment in split_line(line, is_entry)
            for entry in _read_fragment(line, fragment, read_object)
        ]
    entry = Entry(record, 0, len(line), values)
    if foreign is None:
        return [entry]
    return [entry, Entry(None, *foreign, damage=NOT_UTF8)]


def _read_fragment(line: bytes, fragment: Fragment, read_object: ReadObject) -> list[Entry]:
    start, length, reason = fragment.start, fragment.length, fragment.reason
    if reason is None:
        clean, foreign = repair(line[start : start + length])
        try:
            record, values = read_object(clean)
        except msgspec.DecodeError:
            return [Entry(None, start, length, damage=NOT_JSON)]
        found = [Entry(record, start, length, values)]
        if foreign is not None:
            found.append(Entry(None, start + foreign[0], foreign[1], damage=NOT_UTF8))
        return found
    return [Entry(None, start, length, damage=reason)]


def split_line(line: bytes, is_entry: IsEntry) -> list[Fragment]:
    """Cut a line that is not one JSON object into whole objects and damage, in order; white space and byte order marks
    between them belong to neither.

    NUL never stands in JSON, so runs of it cut first. In each piece objects are taken from the front as long as they
    are whole. Behind something that is not, the first place is sought from which everything to the end of the piece
    parses as whole records: a record is salvaged only so, which never takes a part of a cut record, or ``}{`` inside a
    string, for a record.
    """
    found: list[Fragment] = []
    start = 0
    for nuls in _NULS.finditer(line):
        found += _split_piece(line, start, nuls.start(), is_entry)
        found.append(Fragment(nuls.start(), nuls.end() - nuls.start(), NUL_RUN))
        start = nuls.end()
    return found + _split_piece(line, start, len(line), is_entry)


def _split_piece(line: bytes, start: int, end: int, is_entry: IsEntry) -> list[Fragment]:
    found: list[Fragment] = []
    pos = _skip_blank(line, start, end)
    while pos < end:
        stop = _object_end(line, pos, end)
        if stop is None or not _is_record(line[pos:stop], is_entry):
            break
        found.append(Fragment(pos, stop - pos, None))
        pos = _skip_blank(line, stop, end)
    if pos == end:
        return found
    reason = _reason(line, pos, end)
    salvaged = _records_to_end(line, pos + 1, end, is_entry)
    stop = salvaged[0].start if salvaged else end
    length = len(line[pos:stop].rstrip(_BLANK))
    found.append(Fragment(pos, length, CUT_RECORD if salvaged and reason == NOT_JSON else reason))
    return found + salvaged


def _reason(line: bytes, pos: int, end: int) -> str:
    if line[pos : pos + 1] == b"{":
        return CUT_RECORD if _object_end(line, pos, end) is None else NOT_JSON
    try:
        parse(_ANYTHING, line[pos:end])
    except msgspec.DecodeError:
        return NOT_JSON
    return NOT_AN_OBJECT


def _records_to_end(line: bytes, start: int, end: int, is_entry: IsEntry) -> list[Fragment]:
    """The records from the first place at or behind ``start`` from which only whole records follow, or none."""
    effort = _EFFORT * (end - start)
    for candidate in _START.finditer(line, start, end):
        found: list[Fragment] = []
        pos = candidate.start()
        while pos < end:
            stop = _object_end(line, pos, end)
            effort -= (stop or end) - pos
            if stop is None or not _is_record(line[pos:stop], is_entry):
                break
            found.append(Fragment(pos, stop - pos, None))
            pos = _skip_blank(line, stop, end)
        else:
            return found
        if effort < 0:
            break
    return []


def _object_end(line: bytes, pos: int, end: int) -> int | None:
    """Where the object that begins at ``pos`` ends, by its braces alone; None when none begins there or it is cut."""
    if line[pos : pos + 1] != b"{":
        return None
    depth = 0
    for token in _TOKEN.finditer(line, pos, end):
        match token.group():
            case b"{":
                depth += 1
            case b"}":
                depth -= 1
                if depth == 0:
                    return token.end()
            case b'"':
                return None
    return None


def _skip_blank(line: bytes, pos: int, end: int) -> int:
    while pos < end:
        if line[pos] in _BLANK:
            pos += 1
        elif line.startswith(BOM, pos, end):
            pos += len(BOM)
        else:
            break
    return pos


def _is_record(data: bytes, is_entry: IsEntry) -> bool:
    fields = _fields(data)
    return fields is not None and is_entry(fields)


def _fields(data: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        return parse(_FIELDS, data)
    except msgspec.DecodeError:
        return None
