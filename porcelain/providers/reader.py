"""The interface between one agent's format and everything else: what a provider module offers and what it returns.

A provider module (``claude.py``, ``pi.py`` ...) is the only place that knows its agent's format. It offers the
functions of ``Provider``; ``landing.py`` drives them and knows no format at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

import msgspec
from msgspec import Struct

from porcelain.providers.content import ContentSink
from porcelain.providers.records import Record

SourceKind = Literal["transcript", "agent_meta", "journal", "workflow_manifest", "workflow_script"]
#: ``log``: lines are only ever appended. ``document``: the whole file is read at once, as one entry or as many, and a
#: new version brings new entries.
SourceShape = Literal["log", "document"]


class Source(Struct, frozen=True, kw_only=True):
    """One file of a conversation. ``src`` is its name relative to the conversation (``<id>.jsonl``,
    ``subagents/agent-a1.jsonl``), forward slashes; ``stream`` and ``batch`` say whose records it holds. ``slot`` is how
    many bytes at the beginning of a log, its whole first line, the agent rewrites in place. ``stamp``, of a source that
    is not one file, is text that changes whenever the source does, and ``size`` about how many bytes it has."""

    path: str
    src: str
    kind: SourceKind = "transcript"
    shape: SourceShape = "log"
    stream: str | None = "main"
    batch: str | None = None
    slot: int = 0
    stamp: str = ""
    size: int = 0


class Conversation(Struct, frozen=True, kw_only=True):
    """One conversation as found on disk: the provider's native id where the file name states it (a reader may learn
    the real one from a header), the root it was found under, and its files in landing order."""

    provider: str
    native_id: str
    root: str
    sources: tuple[Source, ...]


class LeftOut(Struct, frozen=True, kw_only=True):
    """A file under a root that holds no conversation, and why (``empty``, ``no-conversation``, ``warmup``,
    ``other-agent``, ``unreadable``); size and time are those from before it was looked at."""

    path: str
    reason: str
    size: int = 0
    mtime_ns: int = 0


class Container(Struct, frozen=True, kw_only=True):
    """A file that holds many conversations, and what stood for its state when they were looked for in it: when it is
    the same at the next import, nothing is opened."""

    path: str
    stamp: str


class Seen:
    """What earlier imports saw, which lets discovery read nothing of what is known. This one has seen nothing."""

    def __call__(self, path: str) -> str | None:
        """The native id of the conversation that the file belongs to, if it has not changed since or has only grown; ""
        for an unchanged file that was left out; None when it must be looked at."""
        return None

    def has_bytes(self, path: str) -> bool:
        """Whether there is a byte in the file; a file that cannot be looked at is left to whoever reads it."""
        try:
            return os.stat(path).st_size > 0
        except OSError:
            return True

    def stream(self, path: str) -> str | None:
        """The stream as which the file was imported, changed since or not; None for what was not, or is gone."""
        return None


#: The ``Seen`` of a first import.
nothing_seen = Seen()


class Entry(Struct):
    """What one source line (or document) became. ``start``/``length`` are the byte range inside the line when one line
    held several records, else 0 and the line's length. ``values`` are the surroundings the line states (see
    ``records.Span``); ``damage`` is set instead of ``record`` for bytes that no record could be made of."""

    record: Record | None
    start: int
    length: int
    values: Mapping[str, str] = msgspec.field(default_factory=dict)
    damage: str | None = None


class ReaderState(Struct):
    """What a reader carries from line to line of one source, and from import to import (it is kept in the cursor):
    plain strings only, so that it can be written as JSON. ``shown`` is for a reader that never changes ``values`` but
    puts others in their place: what it made of them (of the first dict, the second)."""

    values: dict[str, str] = msgspec.field(default_factory=dict)
    shown: tuple[dict[str, str], dict[str, str]] | None = None


class Discovery(Protocol):
    """What the module beside a provider's offers that finds its conversations and reads no line for a record."""

    PARSER: str

    def discover(self, root: Path, seen: Seen = nothing_seen) -> Iterator[Conversation | LeftOut]:
        """All conversations under a root, in a fixed order, and the files there that hold none."""

    def recognise(self, path: Path) -> Conversation | None:
        """The conversation that one file is, with the files that belong to it; None when it is not this agent's."""


class Provider(Discovery, Protocol):
    """What a provider module offers (module-level names; a module satisfies this protocol)."""

    NAME: str
    DIALECT: str
    #: The ``Record.entry`` whose label is the conversation's name, given by a person; several with blanks between them.
    TITLE_ENTRY: str

    def read_line(
        self, line: bytes, source: Source, state: ReaderState, sink: ContentSink, *, fit: bool = False
    ) -> Iterable[Entry]:
        """Entries of one line (bytes without the newline) or of one whole document, secrets already replaced. ``fit``:
        the line is known to be UTF-8 without lone surrogates."""


class PartProvider(Provider, Protocol):
    """What a provider offers beyond that whose sources may be parts of a file."""

    def open_part(self, source: Source) -> AbstractContextManager[tuple[BinaryIO, os.stat_result, int]]:
        """The bytes of a source with a ``stamp`` as a file, the stat of the file it is a part of, and how many bytes
        there are. Raises ``OSError``."""
