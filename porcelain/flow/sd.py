"""``sd/1``: the bytes of one file of landed records, written and read.

A file is JSON lines: a header, one record a row, a closing line with the SHA-256 of every byte before it. The file's
own digest, which a round's input digest covers, is over the whole file. There are two generations of escaping: the
older escapes ``< > &`` everywhere, the current writes them as they are and keeps the bytes of ``data`` as the source
had them. Structs are declared in the order of the keys on disk; an optional key that is UNSET is not written.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from objstore.errors import CheckFailed
from objstore.kinds import MAX_SAFE_INTEGER
from porcelain.flow import gojson
from porcelain.providers.records import Page, Part, Record, row_times

SCHEMA = "sd/1"
Count = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
_END = b'{"t":"end"'


class SdHeader(Struct, frozen=True):
    """Where the records of a file come from."""

    h: int
    schema: str
    seq: Count
    at: str
    kind: str
    adapter: str
    dialect: str
    src: str
    session: str
    stream: str | UnsetType = UNSET
    batch: str | UnsetType = UNSET


class SdPart(Struct, frozen=True, gc=False):
    """One piece of a record. ``data`` is JSON as the source had it. ``content`` and ``data_content`` are ours: ids of
    the objects that hold ``text`` and ``data``, in files that carry neither."""

    k: str
    text: str | UnsetType = UNSET
    data: Raw | UnsetType = UNSET
    id: str | UnsetType = UNSET
    of: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    server: str | UnsetType = UNSET
    server_tool: str | UnsetType = UNSET
    failed: bool | UnsetType = UNSET
    media: str | UnsetType = UNSET
    encoding: str | UnsetType = UNSET
    state: str | UnsetType = UNSET
    bytes: Count | UnsetType = UNSET
    content: str | UnsetType = UNSET
    data_content: str | UnsetType = UNSET


class SdUsage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens of one model call; 0 is not written. ``reasoning`` is ours."""

    in_: Count = msgspec.field(default=0, name="in")
    out: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    reasoning: Count = 0


class SdDropped(Struct, frozen=True, gc=False):
    """Something of the source that was not landed."""

    what: str
    bytes: Count
    why: str | UnsetType = UNSET


class SdChanges(Struct, frozen=True, gc=False):
    """Files touched, lines added and removed, where the structured result itself is not in the file. Ours."""

    files: Count
    added: Count
    removed: Count


class SdRecord(Struct, frozen=True, gc=False):
    """One landed record; its row is its line after the header, from 1."""

    ord: Count
    off: Count
    sha: str
    bytes: Count
    id: str | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    call: str | UnsetType = UNSET
    run: str | UnsetType = UNSET
    continues: str | UnsetType = UNSET
    tool: str | UnsetType = UNSET
    child: str | UnsetType = UNSET
    batch: str | UnsetType = UNSET
    label: str | UnsetType = UNSET
    started_by: str | UnsetType = UNSET
    from_: str | UnsetType = msgspec.field(default=UNSET, name="from")
    time: str | UnsetType = UNSET
    trigger: str | UnsetType = UNSET
    flags: list[str] | UnsetType = UNSET
    usage: SdUsage | UnsetType = UNSET
    model: str | UnsetType = UNSET
    parts: list[SdPart] | UnsetType = UNSET
    dropped: list[SdDropped] | UnsetType = UNSET
    changes: SdChanges | UnsetType = UNSET


class _End(Struct, frozen=True, tag_field="t", tag="end"):
    records: Count
    digest: str


class SdFile(Struct, frozen=True):
    """A file as read. ``digest`` is the SHA-256 (hex) of the whole file."""

    header: SdHeader
    records: list[SdRecord]
    digest: str


class SdError(CheckFailed):
    """A file of landed records breaks a rule of the format. ``rule`` is its short name, ``line`` counts from 1."""

    def __init__(
        self,
        rule: str,
        message: str,
        *,
        line: int | None = None,
        expected: str | None = None,
        found: str | None = None,
    ) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.rule = rule
        self.line = line
        self.expected = expected
        self.found = found


_HEADER = msgspec.json.Decoder(SdHeader)
_RECORD = msgspec.json.Decoder(SdRecord)
_CLOSING = msgspec.json.Decoder(_End)


def write_sd(header: SdHeader, records: list[SdRecord], *, html: bool = False) -> bytes:
    """The bytes of a file; ``html`` escapes as the older generation of writers did."""
    frames: list[SdHeader | SdRecord] = [header, *records]
    lines = gojson.encode_lines(frames)
    if html:
        body = gojson.escape_html(lines)
    elif gojson.has_separators(lines):
        body = b"".join(_line(frame) for frame in frames)
    else:
        body = lines
    closing = _End(records=len(records), digest=hashlib.sha256(body).hexdigest())
    return body + gojson.encode(closing) + b"\n"


def _line(frame: SdHeader | SdRecord) -> bytes:
    """One line in which separators are escaped, but for those inside ``data``, which stays as the source had it."""
    if type(frame) is not SdRecord or not frame.parts:
        return gojson.escape_separators(gojson.encode(frame)) + b"\n"
    # A NUL cannot stand in JSON, so numbered marks between NULs can hold the places of the data.
    kept: list[bytes] = []
    parts: list[SdPart] = []
    for part in frame.parts:
        if isinstance(part.data, Raw):
            part = msgspec.structs.replace(part, data=Raw(b"\0%d\0" % len(kept)))
            kept.append(bytes(frame.parts[len(parts)].data))  # type: ignore[arg-type]
        parts.append(part)
    line = gojson.escape_separators(gojson.encode(msgspec.structs.replace(frame, parts=parts)))
    pieces = line.split(b"\0")
    pieces[1::2] = kept
    return b"".join(pieces) + b"\n"


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
        if line.startswith(_END):
            if rows < 0:
                raise SdError("no-header", "the first line is not a header", line=number)
            _check_end(line, hasher.hexdigest(), rows, number, exact)
            closed = True
            continue
        hasher.update(line)
        if rows < 0:
            yield _read_header(line, number)
        else:
            try:
                if not line.isascii():
                    line.decode("utf-8")  # what is kept as raw JSON would not be looked at
                record = _RECORD.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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
    try:
        if not body.isascii():
            body.decode("utf-8")
        records = _RECORD.decode_lines(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return records if len(records) == lines else None


def check_sd(data: bytes) -> tuple[SdHeader, list[SdRecord], str] | None:
    """Header, records and the SHA-256 (hex) of a whole file in ``data`` that keeps all rules to the byte; None where it
    is not plain to see: ``iter_sd`` must say. About three times as fast as that."""
    start = data.find(b"\n") + 1
    end = data.rfind(b"\n" + _END) + 1
    if not 0 < start <= end or data.find(b"\n" + _END) + 1 != end:
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


def _read_header(line: bytes, number: int) -> SdHeader:
    try:
        header = _HEADER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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
    try:
        end = _CLOSING.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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
    if exact and line != gojson.encode(_End(records=rows, digest=digest)) + b"\n":
        raise SdError("end-line", "the closing line is not written as published", line=number)


def sd_bytes(page: Page, records: list[Record]) -> bytes:
    """The ``.sd`` form of a page that we landed ourselves; ``records`` are those the page lists, in row order.

    It is the same whatever content a store keeps: parts that have content carry the state ``hash_only``, its size and
    its id, and never text. ``page.digest`` is not looked at: it is the SHA-256 of what this returns.
    """
    return write_sd(header_of(page), rows_of(page, records))


def header_of(page: Page) -> SdHeader:
    """The header of a page's file."""
    return SdHeader(
        1,
        SCHEMA,
        page.seq,
        page.at,
        page.kind,
        page.adapter,
        page.dialect,
        page.src,
        page.conversation,
        page.stream,
        page.batch,
    )


def rows_of(page: Page, records: list[Record]) -> list[SdRecord]:
    """The rows of a page that we landed ourselves, without text."""
    jumps = {row: (ord_, offset) for row, ord_, offset in page.jumps} if page.jumps else {}
    ord_, offset, digests = page.ord, page.offset, page.digests
    rows: list[SdRecord] = []
    times = row_times(page)
    for row, (record, length) in enumerate(zip(records, page.lengths, strict=True)):
        if jumps and row in jumps:
            ord_, offset = jumps[row]
        parts = record.parts
        usage = record.usage
        rows.append(
            SdRecord(
                ord_,
                offset,
                digests[12 * row : 12 * row + 12],
                length,
                record.id,
                record.parent,
                record.call,
                record.run,
                record.continues,
                record.tool,
                record.child,
                record.batch,
                record.label,
                record.started_by,
                record.from_,
                record.time or times[row],
                record.trigger,
                record.flags or UNSET,
                usage
                if isinstance(usage, UnsetType)
                else SdUsage(usage.in_, usage.out, usage.cache_read, usage.cache_write, usage.reasoning),
                record.model,
                [_part(part) for part in parts] if parts else UNSET,
                [SdDropped(d.what, d.bytes, d.why) for d in record.dropped] if record.dropped else UNSET,
                SdChanges(record.changes.files, record.changes.added, record.changes.removed)
                if record.changes
                else UNSET,
            )
        )
        ord_ += 1
        offset += length + 1
    return rows


def _part(part: Part) -> SdPart:
    state = part.state
    if state == "available" and not (part.content is UNSET and part.data is UNSET):
        state = "hash_only"
    return SdPart(
        part.k,
        # The format gives the reason why a part is unknown in its text.
        part.why if part.k == "unknown" else UNSET,
        UNSET,
        part.id,
        part.of,
        part.name,
        part.server,
        part.server_tool,
        part.failed,
        part.media,
        part.encoding,
        state,
        part.bytes or UNSET,
        part.content,
        part.data,
    )
