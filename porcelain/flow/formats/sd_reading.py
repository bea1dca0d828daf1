"""``sd/1`` read: the landed files of anybody, held against every rule of the format."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator

import msgspec

from objstore.nesting import MAX_NESTING, has_deep_line, is_too_deep
from porcelain.flow.formats import gojson
from porcelain.flow.formats.sd import END_START, SCHEMA, SdEnd, SdError, SdFile, SdHeader, SdRecord, write_sd

_HEADER = msgspec.json.Decoder(SdHeader)
_RECORD = msgspec.json.Decoder(SdRecord)
_CLOSING = msgspec.json.Decoder(SdEnd)


def iter_sd(lines: Iterable[bytes], *, exact: bool = False) -> Iterator[SdHeader | SdRecord]:
    """Read a file as a stream of lines (each with its newline): the header, then the records.

    What was read is known to be whole only when the iteration ends: then the closing line has been checked. Raises
    ``SdError``. The last newline may be missing; ``exact`` refuses that, and a closing line that is not written as
    published: with it, every changed byte is found.
    """
    hasher = hashlib.sha256()
    rows = -1
    closed = False
    for number, line in enumerate(lines, 1):
        if closed:
            raise SdError("after-end", "a line stands after the closing line", line=number)
        if line.startswith(END_START):
            if rows < 0:
                raise SdError("no-header", "the first line is not a header", line=number)
            _check_end(line, hasher.hexdigest(), rows, number, exact)
            closed = True
            continue
        hasher.update(line)
        if rows < 0:
            yield _read_header(line, number)
        else:
            _check_depth("record", line, number)
            try:
                if not line.isascii():
                    line.decode("utf-8")  # what is kept as raw JSON would not be looked at
                record = _RECORD.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise SdError("record", f"the record does not read: {error}", line=number) from None
            yield record
        rows += 1
    if rows < 0:
        raise SdError("no-header", "the file has no header")
    if not closed:
        raise SdError("no-end", "the file has no closing line: it is cut short")


def plain_records(body: bytes) -> list[SdRecord] | None:
    """The records of ``body``, the lines between header and closing line, decoded together; None where that cannot
    tell lines apart, or where one does not read: then ``iter_sd`` says which."""
    lines = body.count(b"\n")
    # Between two values nothing but a newline: inside of one, neither a string nor a list can hold these three bytes.
    if lines and (body.count(b"}\n{") != lines - 1 or not body.startswith(b"{") or not body.endswith(b"}\n")):
        return None
    if has_deep_line(body):
        return None
    try:
        if not body.isascii():
            body.decode("utf-8")
        records = _RECORD.decode_lines(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return records if len(records) == lines else None


def check_sd(data: bytes) -> tuple[SdHeader, list[SdRecord], str] | None:
    """Header, records and the SHA-256 (hex) of a whole file in ``data`` that keeps all rules to the byte; None where it
    is not plain to see: ``iter_sd`` must say. About three times as fast as that."""
    start = data.find(b"\n") + 1
    end = data.rfind(b"\n" + END_START) + 1
    if not 0 < start <= end or data.find(b"\n" + END_START) + 1 != end:
        return None
    records = plain_records(data[start:end])
    if records is None:
        return None
    hasher = hashlib.sha256(memoryview(data)[:end])
    try:
        header = _read_header(data[:start], 1)
        _check_end(data[end:], hasher.hexdigest(), len(records), len(records) + 2, True)
    except SdError:
        return None
    hasher.update(memoryview(data)[end:])
    return header, records, hasher.hexdigest()


def read_sd(data: bytes, *, exact: bool = False) -> SdFile:
    """Read and check a whole file; raises ``SdError`` as ``iter_sd`` does."""
    frames = iter_sd(io.BytesIO(data), exact=exact)
    header = next(frames)
    assert isinstance(header, SdHeader)
    records = [frame for frame in frames if isinstance(frame, SdRecord)]
    return SdFile(header, records, hashlib.sha256(data).hexdigest())


def rewrites(file: SdFile, data: bytes) -> bool | None:
    """Whether ``write_sd`` gives ``data`` again: with ``html`` True or False, or None when neither does."""
    for html in (False, True):
        if write_sd(file.header, file.records, html=html) == data:
            return html
    return None


def _check_depth(rule: str, line: bytes, number: int) -> None:
    if is_too_deep(line):
        raise SdError(rule, f"more than {MAX_NESTING} lists and objects inside one another", line=number)


def _read_header(line: bytes, number: int) -> SdHeader:
    _check_depth("header", line, number)
    try:
        header = _HEADER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SdError("header", f"the header does not read: {error}", line=number) from None
    if header.h != 1:
        raise SdError("header-version", "h is not 1", line=number, expected="1", found=str(header.h))
    if header.schema != SCHEMA:
        raise SdError(
            "schema",
            f"schema {header.schema[:40]!r}, not {SCHEMA}",
            line=number,
            expected=SCHEMA,
            found=header.schema,
        )
    for name in ("kind", "session", "src", "dialect"):
        if not getattr(header, name):
            raise SdError(f"header-{name}", f"the header has no {name}", line=number)
    return header


def _check_end(line: bytes, digest: str, rows: int, number: int, exact: bool) -> None:
    _check_depth("end", line, number)
    try:
        end = _CLOSING.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SdError("end", f"the closing line does not read: {error}", line=number) from None
    if end.digest != digest:
        raise SdError(
            "digest",
            f"the digest does not match: computed {digest[:12]}, the file claims {end.digest[:12]}",
            line=number,
            expected=end.digest,
            found=digest,
        )
    if end.records != rows:
        raise SdError(
            "records",
            f"the closing line counts {end.records} records, the file holds {rows}",
            line=number,
            expected=str(end.records),
            found=str(rows),
        )
    if exact and line != gojson.encode(SdEnd(records=rows, digest=digest)) + b"\n":
        raise SdError("end-line", "the closing line is not written as published", line=number)
