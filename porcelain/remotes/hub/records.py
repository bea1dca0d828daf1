"""What stands in the files of a hub, and reading it. Nothing in them is trusted beyond its form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from objstore import kinds
from objstore.closure import CONTENT_KINDS, CONTENT_REFS
from objstore.errors import CheckFailed, StorageError
from objstore.pack.reader import PackReader, Source
from objstore.sync.joining import Place, place_of
from porcelain.remotes.hub.files import SEGMENTS, digest_of

FORMAT = 2
#: Whether content is looked at: the joined roots that a writer says.
ROOTS = (False, True)
#: Bytes of an id that say that a ref went back to it, and how many of them are kept for one ref.
BEFORE_KEY = 16
MOST_BEFORE = 4096

#: Numbers of records of each writer, as ranges (first, behind the last) in order, with something between any two.
Ranges = dict[str, list[tuple[int, int]]]
#: Where a record stands in the order of all: what it saw in number, its writer, its number.
Start = tuple[int, str, int]


class Offered(Struct, frozen=True, array_like=True):
    """A ref that a pack offers; ``before`` are the first bytes of ids that it goes back to, run together; ``said``
    whether it leads to what was said by itself. Of a merge, ``former`` are ids that were offered in its place, run
    together, the latest first."""

    name: str
    key: bytes
    before: bytes
    said: bool
    former: bytes = b""


class Record(Struct, frozen=True, array_like=True):
    """One pack: its name and size, whether it was made with content, its objects, its refs, and for each writer how
    many records of that one stood here. ``narrow`` says that it builds only on what offers refs in the places of its
    own ones, and not on all that it saw."""

    pack: str
    size: int
    content: bool
    objects: int
    refs: list[Offered]
    seen: dict[str, int]
    narrow: bool = False


class Merge(Struct, frozen=True, array_like=True):
    """A record that stands for others: which, the place of the first of them in the order of all, and the names of the
    merges that it covers. Of its record, ``seen`` is how many records of each writer those others build on at most."""

    record: Record
    covers: Ranges
    start: Start
    replaces: list[str]


class Segment(Struct, frozen=True, array_like=True):
    """A run of a writer's records: the file that holds them ("": they are all covered by merges), and how many."""

    name: str
    count: Annotated[int, Meta(ge=1, lt=1 << 40)]


class Writer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of a writer. ``joined`` has the roots of the joined manifest of all refs (without and with content) and
    ``over`` what they were made from, so that who finds the same needs nothing else. ``turn`` is how often it was
    written, and ``merges`` are the writer's. Format 1 has names in the place of segments."""

    format: int
    hash: str
    joined: list[str]
    over: str
    segments: list[str | Segment]
    turn: int = 0
    merges: list[str] = []


class _Versioned(Struct):
    format: int


_ROOT = re.compile(r"[0-9a-f]{64}", re.ASCII)
_RECORDS = msgspec.msgpack.Decoder(list[Record])
_MERGE = msgspec.msgpack.Decoder(Merge)
_WRITER = msgspec.json.Decoder(Writer)
_VERSIONED = msgspec.json.Decoder(_Versioned)


def decode_writer(name: str, data: bytes) -> Writer:
    """The file of a writer; raises ``StorageError``."""
    try:
        version = _VERSIONED.decode(data).format
        if version > FORMAT:
            raise StorageError(f"{name}: format {version} of the hub: upgrade objstore")
        found = _WRITER.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise StorageError(f"{name}: not the file of a writer: {error}") from None
    if len(found.joined) != len(ROOTS) or not all(map(_ROOT.fullmatch, found.joined)):
        raise StorageError(f"{name}: not the file of a writer: its roots are wrong")
    if any((version == 1) is not isinstance(segment, str) for segment in found.segments):
        raise StorageError(
            f"{name}: not the file of a writer: its segments are not those of format {version}"
        )
    return found


def decode_records(name: str, data: bytes) -> list[Record]:
    """The records of the segment ``name``; raises ``CheckFailed``."""
    found: list[Record] = _decoded(name, data, _RECORDS)
    return found


def decode_merge(name: str, data: bytes) -> Merge:
    """The merge ``name``; raises ``CheckFailed``."""
    found: Merge = _decoded(name, data, _MERGE)
    for ranges in found.covers.values():
        at = -1
        for first, behind in ranges:
            if not at < first < behind:
                raise CheckFailed(f"{SEGMENTS}{name}: no merge: its ranges are wrong")
            at = behind
    return found


def _decoded(name: str, data: bytes, decoder: Any) -> Any:
    if sha256(data).hexdigest() != digest_of(name):
        raise CheckFailed(f"{SEGMENTS}{name}: damaged: it does not have the hash that names it")
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise CheckFailed(f"{SEGMENTS}{name}: no list of packs: {error}") from None


@lru_cache(maxsize=200_000)
def place(name: str, key: bytes) -> Place:
    """``place_of``, which every look at a hub asks of all that was ever pushed."""
    return place_of(name, key)


def cut(data: bytes, size: int = BEFORE_KEY) -> list[bytes]:
    """What was run together."""
    return [data[at : at + size] for at in range(0, len(data), size)]


def read_record(file: Source, size: int, seen: dict[str, int], *, narrow: bool) -> Record:
    """Check a pack, and say what others must know of it, but for its name. Raises ``PackRefused``."""
    reader = PackReader(file)
    reader.presumed()
    refs = reader.refs()
    previous: dict[bytes, list[bytes]] = {}
    of_kind: dict[bytes, str] = {}
    targets = {key for _, key in refs}
    for block in reader.entries():
        for name, key, data in block:
            if key in targets:
                of_kind[key] = name
            kind = kinds.lookup(name)
            if kind.previous is not None:
                previous[key] = [bytes.fromhex(text) for text in kind.previous(kinds.decode(name, data))]
    reader.finish()
    offered = [
        Offered(
            name,
            key,
            b"".join(one[:BEFORE_KEY] for one in gone_back(previous, key, MOST_BEFORE)),
            name.startswith(CONTENT_REFS) or of_kind.get(key) in CONTENT_KINDS,
        )
        for name, key in refs
    ]
    return Record("", size, reader.header.content, reader.header.entries, offered, seen, narrow)


def gone_back(previous: Mapping[bytes, Iterable[bytes]], key: bytes, most: int | None) -> list[bytes]:
    """What stands before ``key``, and what stands before that, the nearest first, until there are so many."""
    found: dict[bytes, None] = {}
    waiting = list(previous.get(key, ()))
    while waiting and (most is None or len(found) < most):
        upcoming: list[bytes] = []
        for one in waiting:
            if one not in found:
                found[one] = None
                upcoming += previous.get(one, ())
        waiting = upcoming
    return list(found)
