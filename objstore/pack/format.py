"""The layout of a pack, and how large anything in it may be. Numbers are big-endian.

=============  ====================================================================================================
head           magic (8), format version (2), length of the header (4), header (canonical JSON)
blocks         tag (1), stored length (4), raw length (4), one zstd frame; in this order:
``P``          ids that the receiver must have (32 each), ascending
``R``          refs on offer: length of the name (2), name, id (32); ascending by name
``E``          entries: number of the kind (1), length (4), canonical bytes
``I``          the id index: for each ``E`` block its offset (8) and entries (4), and 4 bytes of the id of each entry
end            ``Z``, offset of the first ``I`` block (8), identity (32), SHA-256 over all that stands before it (32)
=============  ====================================================================================================

Entries stand by height (0 for one that needs nothing in the pack, else 1 more than the highest that it needs), then by
kind, then by id: the order follows from the set of objects alone, what is needed comes first, and nothing comes twice.
The identity is SHA-256 over the raw entries, so it does not depend on how they were compressed.
"""

from __future__ import annotations

import re
from struct import Struct as Layout
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from objstore.canonical import MAX_SIZE
from objstore.digest import ALGORITHMS
from objstore.errors import CheckFailed
from objstore.refs import MAX_NAME

MAGIC = b"OBJPACK\n"
VERSION = 1
#: After the magic: format version, length of the header.
HEAD = Layout(">HI")
#: Before each block: tag, stored length, raw length.
BLOCK = Layout(">cII")
#: Before each entry: number of its kind, length.
ENTRY = Layout(">BI")
#: In the index, before the ids of one block: its offset, its entries.
PLACE = Layout(">QI")
#: Before the name of a ref: its length.
NAME = Layout(">H")
#: Behind the tag of the end: offset of the index, identity, closing hash.
END = Layout(">Q32s32s")

PRESUMED, REFS, ENTRIES, INDEX, FINAL = b"P", b"R", b"E", b"I", b"Z"
#: Bytes of an id that stand in the index.
INDEX_KEY = 4
#: A block is full from here on (raw bytes); its last entry may reach beyond.
BLOCK_BYTES = 64 * 1024
MAX_RAW = BLOCK_BYTES + max(ENTRY.size + MAX_SIZE, NAME.size + MAX_NAME + 32)
#: What zstd makes of bytes that it cannot compress is little longer than they are.
MAX_STORED = MAX_RAW + (MAX_RAW >> 7) + 512
MAX_HEADER = 64 * 1024
MAX_KINDS = 255
_LONGEST_REASON = 500
#: The shortest object there can be has more bytes than this, so an entry cannot be empty.
LEAST_ENTRY = 2

_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})", re.ASCII)
_KIND = re.compile(r"[a-z][a-z0-9-]{0,63}", re.ASCII)

Count = Annotated[int, Meta(ge=0, le=2**32 - 1)]


class PackRefused(CheckFailed):
    """A pack that is not taken, and why. ``object`` is the id (hex) of what is at fault, where one is."""

    def __init__(self, reason: str, *, object: str | None = None, hint: str | None = None) -> None:
        if not reason.isprintable():  # what a stranger wrote may stand in it
            reason = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in reason)
        reason = reason[:_LONGEST_REASON]
        super().__init__(
            f"pack refused: {object}: {reason}" if object else f"pack refused: {reason}", hint=hint
        )
        self.object = object


class Header(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a pack says about itself first: counts, the hash that keys its objects, the least version of the program
    that knows all its kinds, and ``kinds``, each with the version that knows it, in order of name; an entry's kind is
    its place there. ``content`` says that it may hold what was said in conversations."""

    content: bool
    entries: Count
    hash: str
    kinds: list[tuple[str, str]]
    least: str
    presumes: Count
    refs: Count


class Limits(Struct, frozen=True, kw_only=True):
    """The most that a receiver takes: objects, refs and presumed ids in number, and raw bytes of entries in all."""

    entries: int = 100_000_000
    refs: int = 10_000_000
    presumes: int = 10_000_000
    bytes: int = 1 << 42


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Header)


def version_key(text: str) -> tuple[int, ...]:
    """A version of the program in the order of versions; raises ``PackRefused`` for text that is none."""
    found = _VERSION.fullmatch(text)
    if found is None:
        raise PackRefused(f"{text[:40]!r} is no version")
    return tuple(map(int, found.groups()))


def encode_head(header: Header) -> bytes:
    """The first bytes of a pack."""
    data = _ENCODER.encode(header)
    return MAGIC + HEAD.pack(VERSION, len(data)) + data


def decode_header(data: bytes, limits: Limits) -> Header:
    """The header that ``data`` holds; raises ``PackRefused`` for one that says what cannot be or is over a limit."""
    try:
        header = _DECODER.decode(data)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise PackRefused(f"its header is wrong: {error}") from None
    if _ENCODER.encode(header) != data:
        raise PackRefused("its header is not canonical")
    if header.hash not in ALGORITHMS:
        raise PackRefused(f"its objects are keyed by {header.hash[:40]!r}, a hash that is not known")
    names = [name for name, _ in header.kinds]
    if len(names) > MAX_KINDS or names != sorted(set(names)) or not all(map(_KIND.fullmatch, names)):
        raise PackRefused("its list of kinds is wrong")
    versions = [version_key(since) for _, since in header.kinds]
    if version_key(header.least) != max(versions, default=version_key("0.0.0")):
        raise PackRefused("its least version is not that of its kinds")
    for what in ("entries", "refs", "presumes"):
        count, most = getattr(header, what), getattr(limits, what)
        if count > most:
            raise PackRefused(f"{count} {what}: more than the {most} that are taken")
    return header
