"""Landing of conversations that an agent keeps as many small documents: in a tree of files, or as rows of a database.

A provider opens each source as ``Documents``: entries by native id, each with a stamp that changes whenever it does,
and each made of documents (a message and its parts). What several sources hold of one stream is united: an entry is
landed once, from all the documents that there are of it, those of a later source counting where both have one. A new
version of an entry is a new record with the same id; versions that were landed before are not landed again, so that an
entry which wandered from one source to another brings nothing new.

Only entries whose stamps changed are read. The cursor of a source holds, for each entry, its stamp and the beginnings
of the ids of the records that it became; a run that dies between two chunks is simply continued.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Protocol, cast

import msgspec
from msgspec import Struct, field

from objstore.digest import hash_bytes
from objstore.kinds import encode
from objstore.nesting import is_too_deep
from porcelain.providers.chunks import ChunkBuilder, LandedChunk, LandingOptions, Reason
from porcelain.providers.content import ContentSink
from porcelain.providers.cursor import Cursor, SourceFacts
from porcelain.providers.jsonlines import repair
from porcelain.providers.pages import PageBuilder
from porcelain.providers.reader import Conversation, Entry, Provider, ReaderState, Source
from porcelain.providers.records import Record
from porcelain.providers.rows import Placed, RowWriter

#: The entry that describes the conversation itself; it comes first, and is read whenever any other one is.
ABOUT = ""
#: Hex digits of a record's id that a cursor remembers.
_ID_BEGIN = 16
#: Bytes of documents whose secrets are replaced in one call.
_BATCH_BYTES = 256 * 1024
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Documents(Protocol):
    """What one source holds of a stream. Everything raises ``OSError`` where it cannot be read."""

    def stamps(self) -> Mapping[str, str]:
        """Native id of each entry -> text without blanks that changes whenever the entry does."""

    def made(self, key: str) -> int:
        """When an entry was made, for the order: milliseconds since 1970."""

    def changed(self) -> int:
        """When anything was last changed, as far as ``stamps`` told: nanoseconds since 1970."""

    def read(self, key: str) -> dict[str, bytes]:
        """The documents of an entry by native id, its own first: JSON without line breaks. One that is not JSON comes
        as it is."""


class DocumentProvider(Provider, Protocol):
    """What a provider offers beyond the functions of every provider."""

    def open_documents(self, source: Source) -> AbstractContextManager[Documents]:
        """A source, opened for reading; raises ``OSError``."""

    def read_documents(
        self, key: str, documents: Mapping[str, bytes], source: Source, state: ReaderState, sink: ContentSink
    ) -> list[tuple[str, Record]]:
        """The records of an entry, each with the native id of the document it is about, secrets already replaced.
        ``ABOUT`` sets the surroundings in ``state``. Raises ``msgspec.DecodeError`` when the entry's own document is
        no JSON object."""


def land_documents(
    conversation: Conversation,
    cursors: Mapping[str, Cursor],
    provider: Provider,
    sink: ContentSink,
    options: LandingOptions,
    next_seq: int,
) -> Iterator[LandedChunk]:
    """Land what is new, stream by stream; arguments and result as for ``landing.land_conversation``."""
    chunks = ChunkBuilder(conversation, cursors, provider, sink, options, next_seq)
    landing = _Landing(conversation, cursors, chunks, cast(DocumentProvider, provider), sink, options)
    streams: dict[str | None, list[Source]] = {}
    for source in conversation.sources:
        streams.setdefault(source.stream, []).append(source)
    for sources in streams.values():
        yield from landing.land(sources)
    if not chunks.current.is_empty():
        yield chunks.take()


class _Entry(Struct):
    """What is known of an entry of a source: its stamp, and the beginnings of the ids of its records."""

    stamp: str
    ids: tuple[str, ...]


class _Open(Struct):
    """A source being landed. ``known`` is what an earlier run landed from it, ``done`` what it holds as far as that has
    been landed; ``changed``: the entries to be read."""

    source: Source
    documents: Documents
    cursor: Cursor | None
    stamps: Mapping[str, str]
    known: dict[str, _Entry]
    done: dict[str, _Entry]
    facts: SourceFacts
    builder: PageBuilder
    writer: RowWriter
    reason: Reason | None
    changed: set[str] = field(default_factory=set)
    pending: int = 0
    offset: int = 0
    ord: int = 1


class _Read(Struct):
    """An entry as read from the sources ``holders``: its documents by native id, and their size with a line break
    behind each. ``clean`` is without secrets and fit for any JSON parser; empty where a document is no JSON object."""

    key: str
    holders: list[_Open]
    raw: dict[str, bytes]
    size: int
    clean: dict[str, bytes] = field(default_factory=dict)


class _Landing:
    """The walk over the streams of one conversation."""

    def __init__(
        self,
        conversation: Conversation,
        cursors: Mapping[str, Cursor],
        chunks: ChunkBuilder,
        provider: DocumentProvider,
        sink: ContentSink,
        options: LandingOptions,
    ) -> None:
        self._chunks = chunks
        self._conversation = conversation
        self._cursors = cursors
        self._provider = provider
        self._sink = sink
        self._options = options

    def land(self, sources: Sequence[Source]) -> Iterator[LandedChunk]:
        """Land one stream."""
        if all(self._is_known(source) for source in sources):
            return
        with ExitStack() as stack:
            opened: list[_Open] = []
            for source in sources:
                try:
                    documents = stack.enter_context(self._provider.open_documents(source))
                    opened.append(self._begin(source, documents))
                except OSError as error:
                    self._chunks.note_problem(source, error)
            try:
                yield from self._land(opened)
            except OSError as error:
                self._chunks.note_problem(opened[0].source, error)
                self._pause(opened)

    def _is_known(self, source: Source) -> bool:
        cursor = self._cursors.get(source.path)
        return (
            cursor is not None
            and cursor.mtime_ns != 0
            and bool(source.stamp)
            and cursor.stamp == source.stamp
            and self._chunks.reason(cursor) is None
        )

    def _begin(self, source: Source, documents: Documents) -> _Open:
        cursor = self._cursors.get(source.path)
        known: dict[str, _Entry] = {}
        facts = SourceFacts()
        reason: Reason | None = None
        if cursor is not None:
            known = {key: _remembered(text) for key, text in cursor.reader.items()}
            reason = self._chunks.reason(cursor)
            if reason is not None:
                self._chunks.current.reread[source.path] = reason
            if reason is None or reason == "content":
                facts = cursor.facts.copy()
        stamps = documents.stamps()
        builder = self._chunks.new_page(source)
        opened = _Open(
            source=source,
            documents=documents,
            cursor=cursor,
            stamps=stamps,
            known=known,
            done=dict(known) if reason is None else {},
            facts=facts,
            builder=builder,
            writer=RowWriter(builder, facts, self._sink, self._provider.TITLE_ENTRY),
            reason=reason,
        )
        if cursor is not None:
            opened.offset, opened.ord = cursor.offset, cursor.ord
        opened.changed = {
            key
            for key, stamp in stamps.items()
            if reason is not None or key not in known or known[key].stamp != stamp
        }
        return opened

    def _land(self, opened: list[_Open]) -> Iterator[LandedChunk]:
        keys = set[str]().union(*(one.changed for one in opened))
        state = ReaderState()
        if keys:
            keys.add(ABOUT)
        for found in self._replaced(self._read(keys, opened)):
            if self._chunks.is_full():
                self._pause(opened)
                yield self._chunks.take()
            self._land_entry(found, opened, state)
        for one in opened:
            self._chunks.close_page(one.builder)
            one.facts.pending_bytes = one.pending
            self._chunks.current.cursors.append(self._cursor(one, whole=True))

    def _pause(self, opened: list[_Open]) -> None:
        """Say how far the sources have come, not yet to their ends."""
        for one in opened:
            self._chunks.close_page(one.builder)
            self._chunks.current.cursors.append(self._cursor(one, whole=False))

    def _made(self, opened: list[_Open], key: str) -> int:
        if key == ABOUT:
            return 0
        return next((one.documents.made(key) for one in reversed(opened) if key in one.stamps), 0)

    def _read(self, keys: set[str], opened: list[_Open]) -> Iterator[_Read]:
        """The entries in their order, from all sources that hold them."""
        for key in sorted(keys, key=lambda key: (key != ABOUT, self._made(opened, key), key)):
            holders = [one for one in opened if key in one.stamps]
            raw: dict[str, bytes] = {}
            for one in holders:
                raw.update(one.documents.read(key))
            if holders:
                yield _Read(key, holders, raw, sum(len(data) + 1 for data in raw.values()))

    def _replaced(self, entries: Iterator[_Read]) -> Iterator[_Read]:
        """The entries with secrets replaced, many in one call."""
        batch: list[_Read] = []
        held = 0
        for one in entries:
            batch.append(one)
            held += one.size
            if held >= _BATCH_BYTES:
                yield from self._replace(batch)
                batch, held = [], 0
        yield from self._replace(batch)

    def _replace(self, batch: list[_Read]) -> list[_Read]:
        fit = [_fit(data) for one in batch for data in one.raw.values()]
        clean = iter(self._options.redact(b"\n".join(fit)).split(b"\n"))
        for one in batch:
            one.clean = {name: next(clean) for name in one.raw}
        return batch

    def _land_entry(self, found: _Read, opened: list[_Open], state: ReaderState) -> None:
        """Write what is new of an entry into the pages of the last source that holds it."""
        key, holders, raw, size, clean = found.key, found.holders, found.raw, found.size, found.clean
        self._chunks.current.source_bytes += size
        last = holders[-1]
        broken = sum(len(data) for name, data in raw.items() if not clean[name])
        if broken:
            for one in holders:
                one.pending += broken
        usable = {name: data for name, data in clean.items() if data}
        try:
            records = self._provider.read_documents(key, usable, last.source, state, self._sink)
        except msgspec.DecodeError:
            if not broken:
                for one in holders:
                    one.pending += size
            return
        landed = {i for one in opened if key in one.known for i in one.known[key].ids}
        places = _places(raw)
        ids: list[str] = []
        written = False
        for name, record in records:
            # The first record is about the whole entry, each other one about its document.
            start, length = places[name] if ids else (0, size - 1)
            data = clean[name] if ids else b"\n".join(clean.values())
            placed = Placed(Entry(record, start, length, state.values), data, start, length)
            begin = hash_bytes(encode(record), self._sink.algorithm).hex()[:_ID_BEGIN]
            ids.append(begin)
            is_new = begin not in landed
            written = written or is_new
            for one in holders:
                own = one.known.get(key) if one.reason in (None, "content") else None
                if one is last and is_new:
                    self._write(one, placed, size, opened)
                elif own is None or begin not in own.ids:
                    self._note(one, placed)
        for one in holders:
            one.facts.lines += key not in one.known or one.reason in ("rules", "parser")
            one.done[key] = _Entry("" if broken else one.stamps[key], tuple(ids))
        if written:
            last.offset += size
            last.ord += 1

    def _write(self, one: _Open, placed: Placed, size: int, opened: list[_Open]) -> None:
        for other in opened:
            if other is not one or not one.builder.has_room(size):
                self._chunks.close_page(other.builder)
        one.builder.add_line(placed.length + 1)
        one.writer.write(one.ord, one.offset, placed)

    def _note(self, one: _Open, placed: Placed) -> None:
        """Count an entry that the source holds, and that was landed from another one, among what it has said."""
        aside = self._chunks.new_page(one.source)
        RowWriter(aside, one.facts, self._sink, self._provider.TITLE_ENTRY).write(one.ord, one.offset, placed)

    def _cursor(self, one: _Open, *, whole: bool) -> Cursor:
        """The cursor; in the middle it never says that the source is as it was seen."""
        source, before = one.source, one.cursor
        reader = {**one.known, **one.done} if one.reason is not None and not whole else one.done
        return Cursor(
            provider=self._conversation.provider,
            conversation=self._conversation.native_id,
            path=source.path,
            src=source.src,
            kind=source.kind,
            stream=source.stream,
            batch=source.batch,
            size=one.offset,
            mtime_ns=one.documents.changed() if whole else 0,
            offset=one.offset,
            ord=one.ord,
            stamp=source.stamp if whole else "",
            reader={key: " ".join((entry.stamp, *entry.ids)) for key, entry in reader.items()},
            content=self._sink.keep and (whole or one.reason is None),
            rules=self._options.rules if whole or before is None else before.rules,
            parser=self._provider.PARSER if whole or before is None else before.parser,
            observation=before.observation if before is not None else 0,
            state="pending" if one.facts.pending_bytes else "active",
            facts=one.facts.copy(),
        )


def _remembered(text: str) -> _Entry:
    stamp, *ids = text.split(" ")
    return _Entry(stamp, tuple(ids))


def _places(raw: Mapping[str, bytes]) -> dict[str, tuple[int, int]]:
    """Where each document stands among all of its entry, with line breaks between them: start and length."""
    found: dict[str, tuple[int, int]] = {}
    start = 0
    for name, data in raw.items():
        found[name] = (start, len(data))
        start += len(data) + 1
    return found


def _fit(data: bytes) -> bytes:
    """``data`` fit for any JSON parser; nothing where it is no JSON object."""
    fit, _ = repair(data)
    if is_too_deep(fit):
        return b""
    try:
        _OBJECT.decode(fit)
    except msgspec.DecodeError:
        return b""
    return fit
