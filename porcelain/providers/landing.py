"""From an agent's files to pages of landed records: one walk over what is new, in bounded memory.

Landing knows no format; a provider module reads the lines. Its work is: to read only what is new, to see that a source
was cut or rewritten, to replace secrets before anything is hashed, to cut pages, and to hand on, chunk by chunk, what
one transaction stores: pages, records, content, and the cursors that say how far it came. A run that dies between two
chunks is simply continued.

Rules for an append log:

- Same inode, size and time as at the last visit: nothing is read.
- The bytes before the cursor are still there (keyed hash of up to 1 MiB): reading goes on at the cursor, whatever the
  inode. If not, or if the file is shorter: the source was rewritten. It is read again from the beginning as a new
  observation; what was landed before stays.
- Read under other secret rules or by another parser: read again from the beginning into new pages.
- Content was not kept then and is wanted now: what was landed is read once more for its content alone.
- The last line has no newline: it is landed when it parses whole as one object, and what follows it later on the same
  line is a line's rest of its own; when it does not parse it is pending.

A document (sidecar, manifest, script) is one record, and a changed one a new record; of one that holds many records
those are landed that were not there before. One that does not parse is pending.

A compressed log is landed as the bytes that it was made of. Where the agent rewrites the first bytes of a log in place
(``Source.slot``), these are left out of the comparison, and landed once more when they have changed. A source that is a
part of a file (``Source.stamp``) is opened by its provider.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from stat import S_ISREG
from typing import BinaryIO, Literal, cast

from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from porcelain.providers import jsonlines
from porcelain.providers.content import ContentSink, Redactor
from porcelain.providers.cursor import Cursor, SourceFacts, is_same_file, tail_digest
from porcelain.providers.pages import NO_DIGEST, LandedPage, PageBuilder, SdBytes
from porcelain.providers.reader import Conversation, PartProvider, Provider, ReaderState, Source
from porcelain.providers.records import Page
from porcelain.providers.rows import OCTETS, LineReader, RowWriter
from porcelain.providers.times import EPOCH, later
from porcelain.providers.unpacking import open_source

#: A chunk ends with the page in which its sources pass this many bytes.
CHUNK_BYTES = 8 * 1024 * 1024

#: Why a source was not simply read on from its cursor.
Reason = Literal["rewritten", "rules", "parser", "content"]


class Problem(Struct, frozen=True):
    """A source that could not be read, and the system's reason."""

    path: str
    reason: str


class LandedChunk(Struct):
    """What one transaction stores. ``content`` is empty unless content is kept, and in an order in which every object
    follows those it needs. ``cursors`` carry what lineage wants to know (``Cursor.facts``); ``reread`` says which paths
    were read from their beginning again, and why."""

    pages: list[LandedPage] = field(default_factory=list)
    content: list[tuple[str, bytes]] = field(default_factory=list)
    cursors: list[Cursor] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    reread: dict[str, Reason] = field(default_factory=dict)
    source_bytes: int = 0

    def is_empty(self) -> bool:
        return not (self.pages or self.content or self.cursors or self.problems)


class LandingOptions(Struct, frozen=True, kw_only=True):
    """How to land: the replacer of secrets and the name of its rules; the key (at most 64 bytes) of hashes over raw
    bytes; and the function that writes a page's ``.sd`` form. ``landed_records`` gives, for a path, the record ids that
    were landed from it before, in order; it is asked only about a file that was rewritten and a document of records."""

    redact: Redactor
    rules: str
    key: bytes
    sd_bytes: SdBytes
    landed_records: Callable[[str], Iterator[str]] = lambda _path: iter(())


def land_conversation(
    conversation: Conversation,
    cursors: Mapping[str, Cursor],
    provider: Provider,
    sink: ContentSink,
    options: LandingOptions,
    next_seq: int,
) -> Iterator[LandedChunk]:
    """Land what is new in the sources of ``conversation``, in their order.

    ``cursors`` has those of earlier runs by path. Pages are numbered from ``next_seq``. Nothing is yielded when nothing
    is new. A file that cannot be read is reported in ``problems`` and the others are landed.
    """
    landing = _Landing(conversation, cursors, provider, sink, options, next_seq)
    for source in conversation.sources:
        yield from landing.land(source, cursors.get(source.path))
    if not landing.chunk.is_empty():
        yield landing.take_chunk()


class _Progress(Struct):
    """A cursor in motion."""

    offset: int = 0
    ord: int = 1
    open_line: bool = False
    observation: int = 0
    conflict: bool = False
    state: ReaderState = field(default_factory=ReaderState)
    facts: SourceFacts = field(default_factory=SourceFacts)


class _Landing:
    """The walk over the sources of one conversation; ``chunk`` is the one being filled."""

    def __init__(
        self,
        conversation: Conversation,
        cursors: Mapping[str, Cursor],
        provider: Provider,
        sink: ContentSink,
        options: LandingOptions,
        next_seq: int,
    ) -> None:
        self.chunk = LandedChunk()
        self._conversation = conversation
        self._provider = provider
        self._sink = sink
        self._options = options
        self._next_seq = next_seq
        self._newest: str | None = None
        for source in conversation.sources:
            cursor = cursors.get(source.path)
            self._note_time(cursor.facts.last_time if cursor is not None else None)

    def take_chunk(self) -> LandedChunk:
        """The chunk as it is; the next one is begun."""
        chunk, self.chunk = self.chunk, LandedChunk()
        chunk.content, self._sink.found = self._sink.found, []
        return chunk

    def land(self, source: Source, cursor: Cursor | None) -> Iterator[LandedChunk]:
        try:
            if source.stamp:
                same = cursor is not None and cursor.stamp == source.stamp
            else:
                stat = os.stat(source.path)
                same = cursor is not None and is_same_file(cursor, stat)
                if not same and not S_ISREG(stat.st_mode):
                    self.chunk.problems.append(Problem(source.path, "not a file"))
                    return
            if cursor is not None and same and self._reason(cursor) is None:
                return
            with self._open(source) as (file, stat, size):
                if source.shape == "document":
                    self._land_document(source, cursor, file, stat)
                else:
                    yield from self._land_log(source, cursor, file, stat, size)
        except OSError as error:
            self.chunk.problems.append(Problem(source.path, error.strerror or type(error).__name__))

    def _open(self, source: Source) -> AbstractContextManager[tuple[BinaryIO, os.stat_result, int]]:
        return (
            cast(PartProvider, self._provider).open_part(source) if source.stamp else open_source(source.path)
        )

    def _reason(self, cursor: Cursor) -> Reason | None:
        """Why a source must be read again although it has not changed."""
        if cursor.rules != self._options.rules:
            return "rules"
        if cursor.parser != self._provider.PARSER:
            return "parser"
        return "content" if self._sink.keep and not cursor.content else None

    def _begin(self, source: Source, cursor: Cursor | None, file: BinaryIO, size: int) -> _Progress:
        """Where to start reading."""
        if cursor is None:
            return _Progress()
        kept = _Progress(observation=cursor.observation, conflict=cursor.state == "conflict")
        reason = self._reason(cursor)
        if size < cursor.offset or cursor.tail != tail_digest(
            file.fileno(), cursor.offset, self._options.key, source.slot
        ):
            self.chunk.reread[source.path] = "rewritten"
            kept.observation += 1
            kept.conflict = True
            return kept
        if reason is not None:
            self.chunk.reread[source.path] = reason
        if reason == "rules" or reason == "parser":
            return kept
        kept.facts = cursor.facts.copy()
        kept.offset, kept.ord, kept.open_line = cursor.offset, cursor.ord, cursor.open_line
        kept.state = ReaderState(values=cursor.reader)
        return kept

    # -- append logs -------------------------------------------------------------------------------------------------

    def _land_log(
        self, source: Source, cursor: Cursor | None, file: BinaryIO, stat: os.stat_result, size: int
    ) -> Iterator[LandedChunk]:
        if cursor is not None and cursor.slot and not source.slot:
            source = _with_slot(source, file, size)
        progress = self._begin(source, cursor, file, size)
        reason = self.chunk.reread.get(source.path)
        if reason == "content":
            yield from self._land_content(source, file, progress.offset)
        old = self._options.landed_records(source.path) if reason == "rewritten" else None
        builder = PageBuilder(self._template(source))
        facts = progress.facts
        facts.pending_bytes = 0
        writer = self._writer(builder, facts, old)
        reader = self._reader(source, progress.state)
        if cursor is not None and progress.offset and self._slot(source, file) != cursor.slot:
            self._land_slot(source, file, reader, builder, writer)
        lines = jsonlines.read_lines(file, progress.offset, progress.ord, size)
        for line, clean, fit in reader.replace_secrets(lines):
            length = len(line.data)
            blank = jsonlines.is_blank(line.data)
            if not line.ended and (blank or not jsonlines.is_whole_object(clean)):
                facts.pending_bytes = 0 if blank else length
                break
            if not builder.has_room(length + 1):
                self._close_page(builder)
            if self.chunk.source_bytes >= CHUNK_BYTES and builder.is_empty():
                self.chunk.cursors.append(self._cursor(source, progress, file, None))
                yield self.take_chunk()
            self.chunk.source_bytes += length + 1
            if not blank:
                facts.lines += not progress.open_line
                builder.add_line(length + 1)
                for placed in reader.read(line.data, clean, fit=fit):
                    writer.write(line.ord, line.offset, placed)
            progress.open_line = not line.ended
            progress.offset = line.offset + length + line.ended
            progress.ord = line.ord + line.ended
        self._close_page(builder)
        self.chunk.cursors.append(self._cursor(source, progress, file, stat))

    def _slot(self, source: Source, file: BinaryIO) -> str:
        """Keyed hash of the bytes that the agent rewrites in place; empty for none."""
        return tail_digest(file.fileno(), source.slot, self._options.key) if source.slot else ""

    def _land_slot(
        self, source: Source, file: BinaryIO, reader: LineReader, builder: PageBuilder, writer: RowWriter
    ) -> None:
        """Land the line in the slot once more, after it was rewritten in place."""
        for line, clean, fit in reader.replace_secrets(jsonlines.read_lines(file, 0, 1, source.slot)):
            builder.add_line(len(line.data) + 1)
            for placed in reader.read(line.data, clean, fit=fit):
                writer.write(line.ord, line.offset, placed)

    def _land_content(self, source: Source, file: BinaryIO, end: int) -> Iterator[LandedChunk]:
        """Read what was landed before, up to ``end``, for its content alone."""
        reader = self._reader(source, ReaderState())
        for line, clean, fit in reader.replace_secrets(jsonlines.read_lines(file, 0, 1, end)):
            if self.chunk.source_bytes >= CHUNK_BYTES:
                yield self.take_chunk()
            self.chunk.source_bytes += len(line.data) + 1
            if not jsonlines.is_blank(line.data):
                for placed in reader.read(line.data, clean, fit=fit):
                    if placed.entry.record is None:
                        self._sink.blob(placed.data, OCTETS)

    def _reader(self, source: Source, state: ReaderState) -> LineReader:
        return LineReader(self._provider, source, state, self._sink, self._options.redact)

    def _writer(
        self,
        builder: PageBuilder,
        facts: SourceFacts,
        old: Iterator[str] | None = None,
        known: frozenset[str] = frozenset(),
    ) -> RowWriter:
        return RowWriter(builder, facts, self._sink, self._provider.TITLE_ENTRY, old, known)

    # -- documents ---------------------------------------------------------------------------------------------------

    def _land_document(
        self, source: Source, cursor: Cursor | None, file: BinaryIO, stat: os.stat_result
    ) -> None:
        raw = file.read(stat.st_size)
        reason = self._reason(cursor) if cursor is not None else None
        progress = _Progress()
        if cursor is not None:
            progress = _Progress(observation=cursor.observation, facts=cursor.facts.copy())
            if reason is not None:
                self.chunk.reread[source.path] = reason
        progress.facts.pending_bytes = 0
        clean = self._options.redact(raw)
        entries = self._reader(source, progress.state).read(raw, clean)
        if not raw or not entries or any(placed.entry.record is None for placed in entries):
            progress.facts.pending_bytes = len(raw)
            if cursor is not None:
                progress.offset = cursor.offset
            self.chunk.cursors.append(self._cursor(source, progress, file, stat))
            return
        progress.offset = len(raw)
        tail = tail_digest(file.fileno(), len(raw), self._options.key)
        known = cursor is not None and (cursor.offset, cursor.tail) == (len(raw), tail)
        self.chunk.source_bytes += len(raw)
        if not known or reason in ("rules", "parser"):
            builder = PageBuilder(self._template(source))
            progress.facts.lines += 1
            landed = self._options.landed_records(source.path) if len(entries) > 1 and reason is None else ()
            writer = self._writer(builder, progress.facts, known=frozenset(landed))
            for placed in entries:
                if not builder.has_room(placed.length):
                    self._close_page(builder)
                builder.add_line(placed.length)
                writer.write(1, 0, placed)
            self._close_page(builder)
        self.chunk.cursors.append(self._cursor(source, progress, file, stat))

    # -- pages and cursors -------------------------------------------------------------------------------------------

    def _template(self, source: Source) -> Page:
        provider = self._provider
        return Page(
            adapter=f"{provider.NAME}-local/{provider.PARSER}",
            at=EPOCH,
            batch=source.batch or UNSET,
            conversation=self._conversation.native_id,
            dialect=provider.DIALECT,
            digest=NO_DIGEST,
            digests="",
            kind=source.kind,
            lengths=[],
            offset=0,
            ord=1,
            provider=provider.NAME,
            records="",
            rules=self._options.rules,
            seq=self._next_seq,
            src=source.src,
            stream=source.stream or UNSET,
        )

    def _close_page(self, builder: PageBuilder) -> None:
        if builder.is_empty():
            return
        newest = builder.newest
        at = newest or self._newest or EPOCH
        self._note_time(newest)
        self.chunk.pages.append(builder.close(self._next_seq, at, self._options.sd_bytes))
        self._next_seq += 1

    def _note_time(self, time: str | None) -> None:
        if time is not None and (self._newest is None or later(time, self._newest)):
            self._newest = time

    def _cursor(
        self, source: Source, progress: _Progress, file: BinaryIO, seen: os.stat_result | None
    ) -> Cursor:
        """The cursor; ``seen`` is the file as it was read to its end, None in the middle, where the file as it is must
        never be taken for unchanged."""
        stat = seen or os.fstat(file.fileno())
        pending = progress.facts.pending_bytes > 0
        return Cursor(
            provider=self._conversation.provider,
            conversation=self._conversation.native_id,
            path=source.path,
            src=source.src,
            kind=source.kind,
            stream=source.stream,
            batch=source.batch,
            device=stat.st_dev,
            inode=stat.st_ino,
            size=stat.st_size if seen else progress.offset,
            mtime_ns=stat.st_mtime_ns if seen else 0,
            offset=progress.offset,
            ord=progress.ord,
            open_line=progress.open_line,
            slot=self._slot(source, file),
            stamp=source.stamp if seen else "",
            tail=tail_digest(file.fileno(), progress.offset, self._options.key, source.slot),
            reader=dict(progress.state.values),
            content=self._sink.keep,
            rules=self._options.rules,
            parser=self._provider.PARSER,
            observation=progress.observation,
            state="conflict" if progress.conflict else "pending" if pending else "active",
            facts=progress.facts.copy(),
        )


def _with_slot(source: Source, file: BinaryIO, size: int) -> Source:
    """The source with the length of its first line as that of the slot: discovery opens no file that has not changed,
    and so does not say how long its slot is."""
    first = next(jsonlines.read_lines(file, 0, 1, size), None)
    return source if first is None else replace(source, slot=len(first.data) + 1)
