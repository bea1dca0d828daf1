"""What landing hands on, chunk by chunk, and the chunk that is being filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from msgspec import UNSET, Struct, field

from porcelain.providers.content import ContentSink, Redactor
from porcelain.providers.cursor import Cursor
from porcelain.providers.pages import NO_DIGEST, LandedPage, PageBuilder, SdBytes
from porcelain.providers.reader import Conversation, Provider, Source
from porcelain.providers.records import Page
from porcelain.providers.times import EPOCH, later

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


class ChunkBuilder:
    """The chunks of one conversation, one after the other; ``current`` is the one being filled.

    ``cursors`` has those of earlier runs by path, whose times count too. Pages are numbered from ``next_seq``.
    """

    def __init__(
        self,
        conversation: Conversation,
        cursors: Mapping[str, Cursor],
        provider: Provider,
        sink: ContentSink,
        options: LandingOptions,
        next_seq: int,
    ) -> None:
        self.current = LandedChunk()
        self._conversation = conversation
        self._provider = provider
        self._sink = sink
        self._options = options
        self._next_seq = next_seq
        self._newest: str | None = None
        for source in conversation.sources:
            cursor = cursors.get(source.path)
            self._note_time(cursor.facts.last_time if cursor is not None else None)

    def is_full(self) -> bool:
        """Whether the chunk should end with the page that is being written."""
        return self.current.source_bytes >= CHUNK_BYTES

    def take(self) -> LandedChunk:
        """The chunk as it is; the next one is begun."""
        chunk, self.current = self.current, LandedChunk()
        chunk.content, self._sink.found = self._sink.found, []
        return chunk

    def note_problem(self, source: Source, error: OSError) -> None:
        """Say that ``source`` could not be read."""
        self.current.problems.append(Problem(source.path, error.strerror or type(error).__name__))

    def reason(self, cursor: Cursor) -> Reason | None:
        """Why a source must be read again although it has not changed."""
        if cursor.rules != self._options.rules:
            return "rules"
        if cursor.parser != self._provider.PARSER:
            return "parser"
        return "content" if self._sink.keep and not cursor.content else None

    def new_page(self, source: Source) -> PageBuilder:
        """A page of ``source``, empty."""
        provider = self._provider
        template = Page(
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
        return PageBuilder(template)

    def close_page(self, builder: PageBuilder) -> None:
        """Put a page into the chunk, unless it is empty; ``builder`` begins the next one."""
        if builder.is_empty():
            return
        newest = builder.newest
        at = newest or self._newest or EPOCH
        self._note_time(newest)
        self.current.pages.append(builder.close(self._next_seq, at, self._options.sd_bytes))
        self._next_seq += 1

    def _note_time(self, time: str | None) -> None:
        if time is not None and (self._newest is None or later(time, self._newest)):
            self._newest = time
