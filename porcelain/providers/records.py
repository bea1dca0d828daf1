"""What readers produce: landed records, the pages that list them, and the entries of a landing chain.

A record holds what one source entry says, without its position and without what varies between copies of the same
entry, so that a copied line is the same object wherever it is read. Everything about *where* an entry stood (line,
offset, length, digest) and what the line says about its surroundings stands in the page. The vocabulary is that of the
public schema ``sd/1``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from objstore import kinds
from objstore.core import ObjectId

Count = Annotated[int, Meta(ge=0, le=kinds.MAX_SAFE_INTEGER)]

#: A page holds at most this many records ...
PAGE_RECORDS = 1024
#: ... or this many bytes of source, whichever comes first; one longer entry has a page of its own.
PAGE_BYTES = 2 * 1024 * 1024


class Dropped(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something of the source entry that no reader can use, with its size in bytes and the reason."""

    bytes: Count
    what: str
    why: str | UnsetType = UNSET


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One piece of a record: text, reasoning, call, result, media, data or unknown.

    ``content`` is the id of the object that holds the text (whether or not it is stored), ``data`` the id of the object
    that holds the structured form as JSON source text; ``bytes`` is the size of the content before any change.
    ``state`` is ``available``, ``unavailable``, ``redacted``, ``truncated`` or ``omitted``.
    """

    bytes: Count = 0
    content: ObjectId | UnsetType = UNSET
    data: ObjectId | UnsetType = UNSET
    encoding: str | UnsetType = UNSET
    failed: bool | UnsetType = UNSET
    id: str | UnsetType = UNSET
    k: Literal["text", "reasoning", "call", "result", "media", "data", "unknown"]
    media: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    of: str | UnsetType = UNSET
    server: str | UnsetType = UNSET
    server_tool: str | UnsetType = UNSET
    state: str = "available"
    why: str | UnsetType = UNSET


class Usage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Tokens of one model call as the provider states them; absent means zero or not stated."""

    cache_read: Count = 0
    cache_write: Count = 0
    in_: Count = msgspec.field(default=0, name="in")
    out: Count = 0
    reasoning: Count = 0


class Changes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Counts taken at landing from a structured edit result: files touched, lines added and removed."""

    added: Count = 0
    files: Count = 0
    removed: Count = 0


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One source entry, as landed. ``entry`` is the provider's own word for it (``assistant``,
    ``system/compact_boundary``); ``role`` the message role where there is one. Times are text exactly as the
    source wrote them, or RFC 3339 where the source counts milliseconds.
    """

    batch: str | UnsetType = UNSET
    call: str | UnsetType = UNSET
    changes: Changes | UnsetType = UNSET
    child: str | UnsetType = UNSET
    continues: str | UnsetType = UNSET
    dropped: list[Dropped] | UnsetType = UNSET
    entry: str | UnsetType = UNSET
    flags: list[str] | UnsetType = UNSET
    from_: str = msgspec.field(default="runtime", name="from")
    id: str | UnsetType = UNSET
    label: str | UnsetType = UNSET
    label_content: ObjectId | UnsetType = UNSET
    model: str | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    parts: list[Part] | UnsetType = UNSET
    role: str | UnsetType = UNSET
    run: str | UnsetType = UNSET
    started_by: str | UnsetType = UNSET
    time: str | UnsetType = UNSET
    tool: str | UnsetType = UNSET
    trigger: str | UnsetType = UNSET
    type: Literal["record"] = "record"
    usage: Usage | UnsetType = UNSET


class Span(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From row ``row`` (0-based) of the page on, these surroundings hold, as the lines state them. Keys are the
    reader's (``session cwd branch version forked_from ...``); a key that is absent is not stated."""

    row: Count
    values: dict[str, str]


class Damage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes of the source that no record could be made of: offset and length in the source, and the reason
    (``not-json``, ``nul-run``, ``cut-record``, ``not-utf8``). ``content`` names the bytes as an object."""

    bytes: Count
    content: ObjectId | UnsetType = UNSET
    offset: Count
    ord: Count
    reason: str


class Page(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run of records as they stood in one source: one page is one ``.sd`` file is one ``seq`` of its conversation.

    Row *i* (0-based) has record id ``records[64*i:64*i+64]`` (hex, run together to keep pages small), source length
    ``lengths[i]`` bytes and source digest ``digests[12*i:12*i+12]`` (hex, first 12 of the SHA-256 of the replaced line
    bytes). ``ord`` and ``offset`` are those of the first row; each next row is one line and ``length + 1`` bytes on
    unless ``jumps`` lists ``[row, ord, offset]`` for it. ``digest`` is the SHA-256 of the page's whole ``.sd`` form.
    """

    adapter: str
    at: str
    batch: str | UnsetType = UNSET
    conversation: str
    damage: list[Damage] | UnsetType = UNSET
    dialect: str
    digest: ObjectId
    digests: str
    jumps: list[tuple[Count, Count, Count]] | UnsetType = UNSET
    kind: str
    lengths: list[Count]
    offset: Count
    ord: Count
    provider: str
    records: str
    rules: str
    seq: Count
    spans: list[Span] | UnsetType = UNSET
    src: str
    stream: str | UnsetType = UNSET
    type: Literal["page"] = "page"


class Landing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of a conversation's landing chain: the new pages, and the entry before it."""

    conversation: str
    pages: list[ObjectId]
    previous: ObjectId | UnsetType = UNSET
    provider: str
    round: Count
    through_seq: Count
    type: Literal["landing"] = "landing"


def page_record_ids(page: Page) -> list[str]:
    """The record ids (hex) of a page, in row order."""
    text = page.records
    return [text[i : i + 64] for i in range(0, len(text), 64)]


#: Among the surroundings of a row: the time that its line states outside of what a copy of the line repeats.
ROW_TIME = "time"


def row_times(page: Page) -> list[str | UnsetType]:
    """The times of the rows of a page whose records may state none, in row order."""
    times: list[str | UnsetType] = [UNSET] * len(page.lengths)
    spans = page.spans or []
    for index, span in enumerate(spans):
        time = span.values.get(ROW_TIME)
        if time is not None:
            end = spans[index + 1].row if index + 1 < len(spans) else len(times)
            times[span.row : end] = [time] * (end - span.row)
    return times


def _record_names(record: Record) -> list[str]:
    found: list[str] = []
    if isinstance(record.label_content, str):
        found.append(record.label_content)
    for part in record.parts or ():
        found += [i for i in (part.content, part.data) if isinstance(i, str)]
    return found


def _damage_names(page: Page) -> list[str]:
    return [d.content for d in page.damage or () if isinstance(d.content, str)]


def _landing_previous(entry: Landing) -> list[str]:
    return [entry.previous] if isinstance(entry.previous, str) else []


def _landing_needs(entry: Landing) -> list[str]:
    return _landing_previous(entry) + list(entry.pages)


def _no_frames(_entry: Any) -> list[str]:
    return []


RECORD = kinds.register(kinds.Kind(name="record", struct=Record, names=_record_names))
PAGE = kinds.register(kinds.Kind(name="page", struct=Page, needs=page_record_ids, names=_damage_names))
LANDING = kinds.register(
    kinds.Kind(
        name="landing", struct=Landing, needs=_landing_needs, previous=_landing_previous, frames=_no_frames
    )
)
