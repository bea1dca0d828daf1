"""What assembly reads: one entry a landed row, taken from our own pages or from foreign ``.sd`` files.

An entry holds the names and marks of a record and where it stands, never content. Absent names are empty strings and
absent times 0, so that the stages of assembly can test and compare them plainly.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct, UnsetType

from porcelain.flow.formats.sd import SdFile, SdPart, SdRecord
from porcelain.flow.formats.times import instant
from porcelain.providers.records import Page, Part, Record, row_times

#: Flags that decide something in assembly, as bits.
SYNTHETIC = 1
CONTEXT_RESET = 2
RESET_SUMMARY = 4
FINISHED = 8
EXTERNAL_INPUT = 16
INJECTED = 32
CHILD_RESULT = 64
ERROR = 128
LAUNCH_ACK = 256
TURN_DURATION = 512
COMMAND = 1024
NOTICE = 2048
AUXILIARY = 4096
#: A later row with the same id and stream takes this one's place: the source is not a log, and grows its records.
REVISED = 8192
#: Dialects of such sources.
REVISING = frozenset({"opencode/1"})
_BITS = {
    "synthetic": SYNTHETIC,
    "context_reset": CONTEXT_RESET,
    "reset_summary": RESET_SUMMARY,
    "finished": FINISHED,
    "external_input": EXTERNAL_INPUT,
    "injected": INJECTED,
    "child_result": CHILD_RESULT,
    "error": ERROR,
    "launch_ack": LAUNCH_ACK,
    "turn_duration": TURN_DURATION,
    "command": COMMAND,
    "notice": NOTICE,
    "auxiliary": AUXILIARY,
}


class Use(Struct, frozen=True, gc=False):
    """A tool use that a record requests, in its part ``block``."""

    block: int
    id: str
    name: str
    server: str
    server_tool: str


class Result(Struct, frozen=True, gc=False):
    """A tool result that a record carries, in its part ``block``, for the use ``of``."""

    block: int
    of: str


class Changed(Struct, frozen=True, gc=False):
    """Lines that a workspace change added and removed; ``key`` is the same for every report of one change."""

    key: str
    added: int
    removed: int


class Entry(Struct, gc=False):
    """One landed row. ``kind`` is that of its file; ``time`` is in nanoseconds since 1970; ``flags`` holds bits;
    ``texts`` and ``thoughts`` are the part numbers of text and reasoning, kept for responses of a model only."""

    seq: int
    row: int
    kind: str
    stream: str
    batch: str
    origin: str
    id: str
    parent: str
    call: str
    run: str
    continues: str
    tool: str
    child: str
    label: str
    started_by: str
    trigger: str
    flags: int
    time: int
    uses: tuple[Use, ...]
    results: tuple[Result, ...]
    texts: tuple[int, ...]
    thoughts: tuple[int, ...]
    changed: tuple[Changed, ...]

    @property
    def anchor(self) -> str:
        """The tool use that the record names: its own, else that of its first result; empty for none."""
        return self.tool or (self.results[0].of if self.results else "")


class Landed(Struct, frozen=True):
    """One landed file of a session: its number, the SHA-256 (hex) of its whole ``.sd`` form, its rows."""

    seq: int
    digest: str
    entries: list[Entry]


class _FileChange(Struct):
    additions: int = 0
    deletions: int = 0


class _ChangeDocument(Struct):
    schema: str = ""
    id: str = ""
    tool: str = ""
    changes: list[_FileChange] = msgspec.field(default_factory=list)


_CHANGES_SCHEMA = "changes/1"
_CHANGES_BYTES = b'"changes/1"'
_CHANGES = msgspec.json.Decoder(_ChangeDocument)


def from_page(page: Page, records: Sequence[Record]) -> Landed:
    """The rows of a page that we landed; ``records`` are those it lists, in row order."""
    stream, batch = page.stream or "", page.batch or ""
    entries = [
        _entry(record, record.time or time, page.seq, row, page.kind, stream, batch)
        for row, (record, time) in enumerate(zip(records, row_times(page), strict=True), 1)
    ]
    landed = Landed(page.seq, page.digest, entries)
    return revised(landed) if page.dialect in REVISING else landed


def revised(landed: Landed) -> Landed:
    """A file of a source that grows its records, its rows marked so."""
    for entry in landed.entries:
        entry.flags |= REVISED
    return landed


def from_sd(file: SdFile) -> Landed:
    """The rows of an ``.sd`` file that was read."""
    header = file.header
    stream, batch = header.stream or "", header.batch or ""
    entries = [
        _entry(record, record.time, header.seq, row, header.kind, stream, batch)
        for row, record in enumerate(file.records, 1)
    ]
    return Landed(header.seq, file.digest, entries)


def _entry(
    record: Record | SdRecord,
    time: str | UnsetType,
    seq: int,
    row: int,
    kind: str,
    stream: str,
    batch: str,
) -> Entry:
    uses: tuple[Use, ...] = ()
    results: tuple[Result, ...] = ()
    texts: tuple[int, ...] = ()
    thoughts: tuple[int, ...] = ()
    changed: tuple[Changed, ...] = ()
    call = record.call or ""
    parts: Sequence[Part | SdPart] = record.parts or ()
    for block, part in enumerate(parts):
        what = part.k
        if what == "call":
            uses += (Use(block, part.id or "", part.name or "", part.server or "", part.server_tool or ""),)
        elif what == "result":
            results += (Result(block, part.of or ""),)
        elif call and what == "text":
            texts += (block,)
        elif call and what == "reasoning":
            thoughts += (block,)
        elif what == "data" and isinstance(part.data, Raw):
            changed += _document(part.data)
    flags = 0
    for flag in record.flags or ():
        flags |= _BITS.get(flag, 0)
    tool = record.tool or ""
    name = record.id or ""
    if record.changes:
        key = tool or (results[0].of if results else "") or name or f"at_{seq}_{row}"
        changed += (Changed(key, record.changes.added, record.changes.removed),)
    return Entry(
        seq,
        row,
        kind,
        stream,
        record.batch or batch,
        record.from_ or "",
        name,
        record.parent or "",
        call,
        record.run or "",
        record.continues or "",
        tool,
        record.child or "",
        record.label or "",
        record.started_by or "",
        record.trigger or "",
        flags,
        (instant(time) or 0) if time else 0,
        uses,
        results,
        texts,
        thoughts,
        changed,
    )


def _document(data: Raw) -> tuple[Changed, ...]:
    """The counts of a ``changes/1`` document; nothing for any other data."""
    text = bytes(data)
    if _CHANGES_BYTES not in text:
        return ()
    try:
        document = _CHANGES.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return ()
    if document.schema != _CHANGES_SCHEMA:
        return ()
    files = document.changes
    return (
        Changed(
            document.tool or document.id,
            sum(f.additions for f in files),
            sum(f.deletions for f in files),
        ),
    )
