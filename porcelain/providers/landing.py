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
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from errno import EINVAL
from stat import S_ISREG
from typing import BinaryIO, cast

from msgspec import Struct, field
from msgspec.structs import replace

from porcelain.providers import jsonlines
from porcelain.providers.chunks import ChunkBuilder, LandedChunk, LandingOptions
from porcelain.providers.content import ContentSink
from porcelain.providers.cursor import Cursor, SourceFacts, is_same_file, tail_digest
from porcelain.providers.pages import PageBuilder
from porcelain.providers.reader import Conversation, PartProvider, Provider, ReaderState, Source
from porcelain.providers.rows import OCTETS, LineReader, RowWriter
from porcelain.providers.unpacking import open_source


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
    chunks = ChunkBuilder(conversation, cursors, provider, sink, options, next_seq)
    landing = _Landing(conversation, chunks, provider, sink, options)
    for source in conversation.sources:
        yield from landing.land(source, cursors.get(source.path))
    if not chunks.current.is_empty():
        yield chunks.take()


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
    """The walk over the sources of one conversation."""

    def __init__(
        self,
        conversation: Conversation,
        chunks: ChunkBuilder,
        provider: Provider,
        sink: ContentSink,
        options: LandingOptions,
    ) -> None:
        self._chunks = chunks
        self._conversation = conversation
        self._provider = provider
        self._sink = sink
        self._options = options

    def land(self, source: Source, cursor: Cursor | None) -> Iterator[LandedChunk]:
        try:
            if source.stamp:
                same = cursor is not None and cursor.stamp == source.stamp
            else:
                stat = os.stat(source.path)
                same = cursor is not None and is_same_file(cursor, stat)
                if not same and not S_ISREG(stat.st_mode):
                    raise OSError(EINVAL, "not a file")
            if cursor is not None and same and self._chunks.reason(cursor) is None:
                return
            with self._open(source) as (file, stat, size):
                if source.shape == "document":
                    self._land_document(source, cursor, file, stat)
                else:
                    yield from self._land_log(source, cursor, file, stat, size)
        except OSError as error:
            self._chunks.note_problem(source, error)

    def _open(self, source: Source) -> AbstractContextManager[tuple[BinaryIO, os.stat_result, int]]:
        return (
            cast(PartProvider, self._provider).open_part(source) if source.stamp else open_source(source.path)
        )

    def _begin(self, source: Source, cursor: Cursor | None, file: BinaryIO, size: int) -> _Progress:
        """Where to start reading."""
        if cursor is None:
            return _Progress()
        kept = _Progress(observation=cursor.observation, conflict=cursor.state == "conflict")
        reason = self._chunks.reason(cursor)
        if size < cursor.offset or cursor.tail != tail_digest(
            file.fileno(), cursor.offset, self._options.key, source.slot
        ):
            self._chunks.current.reread[source.path] = "rewritten"
            kept.observation += 1
            kept.conflict = True
            return kept
        if reason is not None:
            self._chunks.current.reread[source.path] = reason
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
        reason = self._chunks.current.reread.get(source.path)
        if reason == "content":
            yield from self._land_content(source, file, progress.offset)
        old = self._options.landed_records(source.path) if reason == "rewritten" else None
        builder = self._chunks.new_page(source)
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
                self._chunks.close_page(builder)
            if self._chunks.is_full() and builder.is_empty():
                self._chunks.current.cursors.append(self._cursor(source, progress, file, None))
                yield self._chunks.take()
            self._chunks.current.source_bytes += length + 1
            if not blank:
                facts.lines += not progress.open_line
                builder.add_line(length + 1)
                for placed in reader.read(line.data, clean, fit=fit):
                    writer.write(line.ord, line.offset, placed)
            progress.open_line = not line.ended
            progress.offset = line.offset + length + line.ended
            progress.ord = line.ord + line.ended
        self._chunks.close_page(builder)
        self._chunks.current.cursors.append(self._cursor(source, progress, file, stat))

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
            if self._chunks.is_full():
                yield self._chunks.take()
            self._chunks.current.source_bytes += len(line.data) + 1
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
        reason = self._chunks.reason(cursor) if cursor is not None else None
        progress = _Progress()
        if cursor is not None:
            progress = _Progress(observation=cursor.observation, facts=cursor.facts.copy())
            if reason is not None:
                self._chunks.current.reread[source.path] = reason
        progress.facts.pending_bytes = 0
        clean = self._options.redact(raw)
        entries = self._reader(source, progress.state).read(raw, clean)
        if not raw or not entries or any(placed.entry.record is None for placed in entries):
            progress.facts.pending_bytes = len(raw)
            if cursor is not None:
                progress.offset = cursor.offset
            self._chunks.current.cursors.append(self._cursor(source, progress, file, stat))
            return
        progress.offset = len(raw)
        tail = tail_digest(file.fileno(), len(raw), self._options.key)
        known = cursor is not None and (cursor.offset, cursor.tail) == (len(raw), tail)
        self._chunks.current.source_bytes += len(raw)
        if not known or reason in ("rules", "parser"):
            builder = self._chunks.new_page(source)
            progress.facts.lines += 1
            landed = self._options.landed_records(source.path) if len(entries) > 1 and reason is None else ()
            writer = self._writer(builder, progress.facts, known=frozenset(landed))
            for placed in entries:
                if not builder.has_room(placed.length):
                    self._chunks.close_page(builder)
                builder.add_line(placed.length)
                writer.write(1, 0, placed)
            self._chunks.close_page(builder)
        self._chunks.current.cursors.append(self._cursor(source, progress, file, stat))

    # -- cursors ----------------------------------------------------------------------------------------------------

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
