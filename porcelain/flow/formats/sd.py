"""``sd/1``: the bytes of one file of landed records, written and read.

A file is JSON lines: a header, one record a row, a closing line with the SHA-256 of every byte before it. The file's
own digest, which a round's input digest covers, is over the whole file. There are two generations of escaping: the
older escapes ``< > &`` everywhere, the current writes them as they are and keeps the bytes of ``data`` as the source
had them. Structs are declared in the order of the keys on disk; an optional key that is UNSET is not written.
"""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from objstore.kinds import MAX_SAFE_INTEGER
from porcelain.flow.formats import gojson
from porcelain.flow.formats.errors import FormatError
from porcelain.providers.records import Page, Part, Record, row_times

SCHEMA = "sd/1"
Count = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
END_START = b'{"t":"end"'


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


class SdEnd(Struct, frozen=True, tag_field="t", tag="end"):
    records: Count
    digest: str


class SdFile(Struct, frozen=True):
    """A file as read. ``digest`` is the SHA-256 (hex) of the whole file."""

    header: SdHeader
    records: list[SdRecord]
    digest: str


class SdError(FormatError):
    """A file of landed records breaks a rule of ``sd/1``."""


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
    closing = SdEnd(records=len(records), digest=hashlib.sha256(body).hexdigest())
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
