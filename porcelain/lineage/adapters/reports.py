"""What landing tells lineage about a conversation and its files.

All texts have been through the secret rules. Counts, sizes and times describe a file from its beginning, however much
of it was read this time; the lists (``cwds``, ``titles``, ``versions``, ``links``) may hold only what is new. Times are
in any form that ``times.normal_time`` reads, or None.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

SourceState = Literal["active", "gone", "conflict"]
#: What a provider states about where a transcript comes from, by the readers' names: the thread that its history
#: begins in, that it is a fork of something it does not name, the session or file it was forked from, the files it was
#: moved from (one a line), the session that started it as a subagent, other sessions that its lines say they belong to.
LINKS = ("base", "fork", "forked_from", "moved_from", "parent", "session")
#: Where a conversation's native id was found, best first.
IdOrigin = Literal["record", "content", "file-name", "first-record"]


class Stated(Struct, frozen=True, kw_only=True):
    """Something that the records state, and when they did: a working directory, or a title that a person gave (empty
    where the person took it away)."""

    value: str
    time: str | None = None


class SourceReport(Struct, frozen=True, kw_only=True):
    """One file of a conversation.

    ``path`` is the file, ``src`` its name in the conversation, ``kind``, ``stream`` and ``batch`` as in
    ``providers.reader.Source``. ``lines``, ``records``, ``damage_count`` and ``damage_bytes`` count what was landed,
    ``pending_bytes`` a last line that is not complete. ``first_record`` is the object id of the first record. ``state``
    is ``gone`` for a file that is no longer there, and ``conflict`` in the run that found it rewritten; from then on
    ``differs`` is the object id of the first record that is not what stood there before. ``content_sha256`` is taken
    over the bytes with secrets replaced, where known. ``links`` has what the provider states under the names of
    ``LINKS``.
    """

    path: str
    src: str
    kind: str = "transcript"
    stream: str | None = "main"
    batch: str | None = None
    size: int | None = None
    mtime: str | None = None
    birthtime: str | None = None
    lines: int = 0
    records: int = 0
    first_record: str | None = None
    differs: str | None = None
    first_time: str | None = None
    last_time: str | None = None
    cwds: tuple[Stated, ...] = ()
    titles: tuple[Stated, ...] = ()
    versions: tuple[str, ...] = ()
    links: dict[str, tuple[str, ...]] = field(default_factory=dict)
    damage_count: int = 0
    damage_bytes: int = 0
    pending_bytes: int = 0
    content_sha256: str | None = None
    state: SourceState = "active"


class ConversationReport(Struct, frozen=True, kw_only=True):
    """One conversation: its agent, native id, the folder (``root``) it was found under, and its files."""

    provider: str
    native_id: str
    root: str
    sources: tuple[SourceReport, ...]
    native_id_from: IdOrigin = "record"


class RunReport(Struct, frozen=True, kw_only=True):
    """One reading of one source. ``stats`` are counts by name; ``status`` is ``done``, ``failed`` or ``stopped``."""

    source: str
    started_at: str
    tool: str
    status: str
    finished_at: str | None = None
    stats: dict[str, int] | None = None
    notes: str | None = None
