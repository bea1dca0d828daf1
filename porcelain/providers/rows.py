"""From the lines of a source to the rows of its pages: secrets replaced, records encoded, places kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from msgspec import Struct

from objstore.canonical import MAX_SIZE
from objstore.digest import hasher
from objstore.kinds import encode
from porcelain.providers import jsonlines
from porcelain.providers.content import ContentSink, Redactor
from porcelain.providers.cursor import REMEMBERED, SourceFacts
from porcelain.providers.pages import PageBuilder, Row
from porcelain.providers.reader import Entry, Provider, ReaderState, Source
from porcelain.providers.records import ROW_TIME, Damage, Part, Record
from porcelain.providers.times import instant, later

#: Media type of bytes that no record could be made of.
OCTETS = "application/octet-stream"
#: Bytes of lines whose secrets are replaced in one call.
_BATCH_BYTES = 256 * 1024


class Placed(Struct):
    """An entry, its bytes with secrets replaced, and the byte range in the source's line that it came from."""

    entry: Entry
    data: bytes
    start: int
    length: int


class LineReader:
    """Reads the lines of one source through its provider; no line reaches the provider's sink with a secret in it."""

    def __init__(
        self, provider: Provider, source: Source, state: ReaderState, sink: ContentSink, redact: Redactor
    ) -> None:
        self._provider = provider
        self._source = source
        self._state = state
        self._sink = sink
        self._redact = redact

    def replace_secrets(
        self, lines: Iterator[jsonlines.Line]
    ) -> Iterator[tuple[jsonlines.Line, bytes, bool]]:
        """Each line with its bytes after secrets were replaced, the same object when there were none, and whether those
        are known to need no repair."""
        batch: list[jsonlines.Line] = []
        held = 0
        for line in lines:
            batch.append(line)
            held += len(line.data)
            if held >= _BATCH_BYTES:
                yield from self._replaced(batch)
                batch, held = [], 0
        yield from self._replaced(batch)

    def _replaced(self, batch: list[jsonlines.Line]) -> Iterator[tuple[jsonlines.Line, bytes, bool]]:
        joined = b"\n".join([line.data for line in batch])
        clean = self._redact(joined)
        fit = jsonlines.is_fit(clean)
        if clean is joined or clean == joined:
            return ((line, line.data, fit) for line in batch)
        return zip(batch, clean.split(b"\n"), [fit] * len(batch), strict=True)

    def read(self, raw: bytes, clean: bytes, *, fit: bool = False) -> list[Placed]:
        """The entries of the line ``raw``, which is ``clean`` without its secrets; ``fit`` as for ``read_line``."""
        entries = list(self._provider.read_line(clean, self._source, self._state, self._sink, fit=fit))
        if len(entries) == 1 and entries[0].record is not None and entries[0].length == len(clean):
            return [Placed(entries[0], clean, 0, len(raw))]
        if clean == raw:
            return [Placed(e, clean[e.start : e.start + e.length], e.start, e.length) for e in entries]
        return list(self._read_apart(raw))

    def _read_apart(self, raw: bytes) -> Iterator[Placed]:
        """Where replacing secrets moved what stands behind them: take the places from the line as it is, and read the
        bytes of each by themselves."""
        aside = ReaderState(values=dict(self._state.values))
        unkept = ContentSink(keep=False, algorithm=self._sink.algorithm)
        for place in self._provider.read_line(raw, self._source, aside, unkept):
            data = self._redact(raw[place.start : place.start + place.length])
            if place.record is None:
                yield Placed(place, data, place.start, place.length)
                continue
            for entry in self._provider.read_line(data, self._source, self._state, self._sink):
                if entry.record is not None:
                    yield Placed(entry, data, place.start, place.length)


class RowWriter:
    """Writes entries into the builder of a source's pages and into the facts about the source.

    ``title_entry`` is the ``Record.entry`` whose label names the conversation (several with blanks between them).
    ``old`` has the ids of the records that stood in the source before it was rewritten, in order. Records whose ids
    are ``known`` are not written again.
    """

    def __init__(
        self,
        builder: PageBuilder,
        facts: SourceFacts,
        sink: ContentSink,
        title_entry: str,
        old: Iterator[str] | None = None,
        known: frozenset[str] = frozenset(),
    ) -> None:
        self._builder = builder
        self._facts = facts
        self._sink = sink
        self._title_entries = title_entry.split()
        self._old = old
        self._known = known
        self._hash = hasher(sink.algorithm)

    def write(self, ord: int, offset: int, placed: Placed) -> None:
        """Add an entry of the line ``ord`` that begins at ``offset``."""
        entry = placed.entry
        if entry.record is None:
            self._builder.add_damage(
                Damage(
                    bytes=placed.length,
                    content=self._sink.blob(placed.data, OCTETS),
                    offset=offset + placed.start,
                    ord=ord,
                    reason=entry.damage or jsonlines.NOT_JSON,
                )
            )
            self._facts.damage_count += 1
            self._facts.damage_bytes += placed.length
            return
        digest = hashlib.sha256(placed.data).hexdigest()[:12]
        row = Row(ord, offset + placed.start, placed.length, digest, entry.values)
        self._write_record(entry.record, row, placed.data)

    def _write_record(self, record: Record, row: Row, data: bytes) -> None:
        encoded = encode(record)
        if len(encoded) > MAX_SIZE:
            record = self._shortened(record, data)
            encoded = encode(record)
        key = self._hash(encoded)
        if self._known and key.hex() in self._known:
            return
        stated = record.time if isinstance(record.time, str) else row.values.get(ROW_TIME)
        time = instant(stated) if stated is not None else None
        facts, builder = self._facts, self._builder
        if time is not None:
            if facts.first_time is None or later(facts.first_time, time):
                facts.first_time = time
            if facts.last_time is None or later(time, facts.last_time):
                facts.last_time = time
            if builder.newest is None or later(time, builder.newest):
                builder.newest = time
        facts.records += 1
        if facts.first_record is None:
            facts.first_record = key.hex()
        if self._old is not None and facts.differs is None:
            record_id = key.hex()
            if record_id != next(self._old, record_id):
                facts.differs = record_id
        if builder.add_record(row, record, key, encoded):
            _note_values(facts, row.values, time)
        if isinstance(record.label, str) and record.entry in self._title_entries:
            _note_title(facts, record.label, time)

    def _shortened(self, record: Record, data: bytes) -> Record:
        """A record of a line with more parts than an object may hold: the line is its one part."""
        text = data.decode("utf-8", "replace")
        part = Part(k="unknown", data=self._sink.text(text), bytes=len(data), why="too many parts")
        return Record(
            entry=record.entry,
            from_=record.from_,
            id=record.id,
            parent=record.parent,
            parts=[part],
            role=record.role,
            time=record.time,
        )


def _note_values(facts: SourceFacts, values: Mapping[str, str], time: str | None) -> None:
    for key, value in values.items():
        if key == ROW_TIME:
            continue
        found = facts.values.setdefault(key, {})
        if value not in found and len(found) < REMEMBERED:
            found[value] = time or ""


def _note_title(facts: SourceFacts, title: str, time: str | None) -> None:
    if facts.titles and facts.titles[-1][0] == title:
        return
    facts.titles.append((title, time or ""))
    del facts.titles[:-REMEMBERED]
