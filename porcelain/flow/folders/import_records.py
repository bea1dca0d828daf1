"""Landed files of others as pages and records, and those as files again.

Text and data become content objects and are named by their ids, like those of our own landings; so do labels, since
nobody says who gave them. Only a file that we wrote ourselves has labels of persons alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from objstore import kinds
from objstore.canonical import MAX_SIZE
from objstore.errors import CheckFailed
from porcelain.flow.assembly.entries import from_sd
from porcelain.flow.folders.import_kinds import Form
from porcelain.flow.formats.sd import (
    SdDropped,
    SdFile,
    SdPart,
    SdRecord,
    SdUsage,
    header_of,
    sd_bytes,
    write_sd,
)
from porcelain.flow.formats.sd_reading import read_sd
from porcelain.flow.views.content import Get, content_bytes
from porcelain.providers.agents import PROVIDERS
from porcelain.providers.content import ContentSink
from porcelain.providers.pages import NO_DIGEST
from porcelain.providers.records import Changes, Dropped, Page, Part, Record, Usage
from porcelain.providers.redaction import RULES, redact

#: What our own adapters are called.
OURS = tuple(f"{name}-local/" for name in PROVIDERS)
_KINDS = frozenset({"text", "reasoning", "call", "result", "media", "data", "unknown"})
_ID = re.compile("[0-9a-f]{64}")
#: Longest reason of an unknown part that is taken for one.
_WHY_LENGTH = 200


def without_secrets(data: bytes) -> bytes | None:
    """The landed file ``data`` (whole and checked) with its secrets replaced and closed again; None where it has
    none."""
    clean = redact(data)
    if clean == data:
        return None
    lines = clean.splitlines(keepends=True)
    body = b"".join(lines[:-1])
    digest = hashlib.sha256(body).hexdigest()
    return body + b'{"t":"end","records":%d,"digest":"%s"}\n' % (len(lines) - 2, digest.encode())


def page_of(
    data: bytes, provider: str, sink: ContentSink, hash_id: Callable[[bytes], str]
) -> tuple[Page, list[Record], list[bytes], Form]:
    """The page and records of a landed file (whole and checked), the records' canonical bytes, and how the file is
    written again. ``hash_id`` gives the id of an object's bytes. Raises ``CheckFailed`` for what is too large."""
    clean = without_secrets(data)
    file = read_sd(clean or data)
    header = file.header
    ours = header.adapter.startswith(OURS)
    changed = {entry.row: entry.changed for entry in from_sd(file).entries if entry.changed}
    records = [_record(row, sink, ours) for row in file.records]
    for row, counts in changed.items():
        if records[row - 1].changes is UNSET:
            total = Changes(
                files=len(counts), added=sum(c.added for c in counts), removed=sum(c.removed for c in counts)
            )
            records[row - 1] = replace(records[row - 1], changes=total)
    encoded = [kinds.encode(record) for record in records]
    first = file.records[0] if file.records else None
    page = Page(
        adapter=header.adapter,
        at=header.at,
        batch=header.batch,
        conversation=header.session,
        dialect=header.dialect,
        digest=hashlib.sha256(data).hexdigest(),
        digests="".join(row.sha[:12].ljust(12, "0") for row in file.records),
        jumps=_jumps(file) or UNSET,
        kind=header.kind,
        lengths=[row.bytes for row in file.records],
        offset=first.off if first else 0,
        ord=first.ord if first else 1,
        provider=provider,
        records="".join(hash_id(one) for one in encoded),
        rules=RULES,
        seq=header.seq,
        src=header.src,
        stream=header.stream,
    )
    size = max(map(len, [kinds.encode(page), *encoded]))
    if size > MAX_SIZE:
        raise CheckFailed(
            f"seq {header.seq}: {size:,} bytes in one object: at most {MAX_SIZE:,} can be stored"
        )
    if clean is not None:
        return page, records, encoded, "withheld"
    found = {bytes.fromhex(hash_id(content)): (kind, content) for kind, content in sink.found}
    forms: tuple[Form, ...] = ("own", "text", "html")
    form: Form = next((one for one in forms if file_of(page, records, one, found.get) == data), "whole")
    return page, records, encoded, form


def file_of(page: Page, records: list[Record], form: Form, get: Get) -> bytes | None:
    """The bytes of a landed file of form ``own``, ``text`` or ``html``; None where content that it needs is not
    kept."""
    if form == "own":
        return sd_bytes(replace(page, digest=NO_DIGEST), records)
    rows = sd_rows(page, records, get)
    if any(_lacks(record, row) for record, row in zip(records, rows, strict=True)):
        return None
    return write_sd(header_of(page), rows, html=form == "html")


def sd_rows(page: Page, records: list[Record], get: Get) -> list[SdRecord]:
    """The records of a page as rows of a file, with the text and data that ``get`` finds; a part whose content is not
    there is ``hash_only``."""
    jumps = {row: (ord_, offset) for row, ord_, offset in page.jumps} if page.jumps else {}
    ord_, offset = page.ord, page.offset
    rows: list[SdRecord] = []
    for index, (record, length) in enumerate(zip(records, page.lengths, strict=True)):
        if index in jumps:
            ord_, offset = jumps[index]
        label = record.label
        if label is UNSET and isinstance(record.label_content, str):
            label = _text(get, record.label_content)
        usage = record.usage
        rows.append(
            SdRecord(
                ord_,
                offset,
                page.digests[12 * index : 12 * index + 12],
                length,
                record.id,
                record.parent,
                record.call,
                record.run,
                record.continues,
                record.tool,
                record.child,
                record.batch,
                label,
                record.started_by,
                record.from_ or UNSET,
                record.time,
                record.trigger,
                record.flags,
                usage
                if isinstance(usage, UnsetType)
                else SdUsage(usage.in_, usage.out, usage.cache_read, usage.cache_write, usage.reasoning),
                record.model,
                [_sd_part(part, get) for part in record.parts] if record.parts else UNSET,
                [SdDropped(one.what, one.bytes, one.why) for one in record.dropped]
                if record.dropped
                else UNSET,
            )
        )
        ord_ += 1
        offset += length + 1
    return rows


def _text(get: Get, content: str) -> str | UnsetType:
    found = content_bytes(get, content)
    return UNSET if found is None else found.decode("utf-8", "replace")


def _lacks(record: Record, row: SdRecord) -> bool:
    if isinstance(record.label_content, str) and row.label is UNSET:
        return True
    return any(
        (isinstance(part.content, str) and one.text is UNSET)
        or (isinstance(part.data, str) and one.data is UNSET)
        for part, one in zip(record.parts or (), row.parts or (), strict=True)
    )


def _jumps(file: SdFile) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    expected: tuple[int, int] | None = None
    for index, row in enumerate(file.records):
        if expected is not None and (row.ord, row.off) != expected:
            found.append((index, row.ord, row.off))
        expected = (row.ord + 1, row.off + row.bytes + 1)
    return found


def _record(row: SdRecord, sink: ContentSink, ours: bool) -> Record:
    label = row.label if ours else UNSET
    usage = row.usage
    return Record(
        batch=row.batch,
        call=row.call,
        changes=Changes(files=row.changes.files, added=row.changes.added, removed=row.changes.removed)
        if row.changes
        else UNSET,
        child=row.child,
        continues=row.continues,
        dropped=[Dropped(what=one.what, bytes=one.bytes, why=one.why) for one in row.dropped]
        if row.dropped
        else UNSET,
        flags=row.flags,
        from_=row.from_ or "",
        id=row.id,
        label=label,
        label_content=sink.text(row.label) if isinstance(row.label, str) and not ours else UNSET,
        model=row.model,
        parent=row.parent,
        parts=[_part(part, sink) for part in row.parts] if row.parts else UNSET,
        run=row.run,
        started_by=row.started_by,
        time=row.time,
        tool=row.tool,
        trigger=row.trigger,
        usage=UNSET
        if isinstance(usage, UnsetType)
        else Usage(
            in_=usage.in_,
            out=usage.out,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
            reasoning=usage.reasoning,
        ),
    )


def _part(part: SdPart, sink: ContentSink) -> Part:
    unknown = part.k not in _KINDS or part.k == "unknown"
    why = part.text if unknown and isinstance(part.text, str) and len(part.text) <= _WHY_LENGTH else UNSET
    content = _stated(part.content)
    data = _stated(part.data_content)
    if isinstance(part.text, str) and why is UNSET:
        content = sink.text(part.text)
    if isinstance(part.data, Raw):
        data = sink.text(bytes(part.data).decode("utf-8"))
    state = part.state if isinstance(part.state, str) else ""
    if state == "hash_only" and not (part.content is UNSET and part.data_content is UNSET):
        state = "available"
    return Part(
        bytes=part.bytes or 0,
        content=content,
        data=data,
        encoding=part.encoding,
        failed=part.failed,
        id=part.id,
        k="unknown" if unknown else part.k,  # type: ignore[arg-type]
        media=part.media,
        name=part.name,
        of=part.of,
        server=part.server,
        server_tool=part.server_tool,
        state=state,
        why=why,
    )


def _stated(content: str | UnsetType) -> str | UnsetType:
    return content if isinstance(content, str) and _ID.fullmatch(content) else UNSET


def _sd_part(part: Part, get: Get) -> SdPart:
    text: str | UnsetType = part.why if part.k == "unknown" else UNSET
    data: Raw | UnsetType = UNSET
    state: str | UnsetType = part.state or UNSET
    if isinstance(part.content, str):
        text = _text(get, part.content)
    if isinstance(part.data, str):
        kept = content_bytes(get, part.data)
        data = UNSET if kept is None else Raw(kept)
    if state == "available" and (
        (isinstance(part.content, str) and text is UNSET) or (isinstance(part.data, str) and data is UNSET)
    ):
        state = "hash_only"
    return SdPart(
        part.k,
        text,
        data,
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
    )
