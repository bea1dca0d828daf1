"""Where the assembly of a conversation stands, kept in the derived part of a store between two runs.

Keyed by the chain's ref and good for one head of it: a standing of another round, another version or with a damaged
part is as good as none, and is made again from the landed rows. Keys: ``flow/``, 16 bytes of the SHA-256 of the ref's
name, then ``c`` for the core, or ``t``, the number of a table (1 byte) and of a bucket (4 bytes).
"""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Struct

from objstore.snapshot import Snapshot
from porcelain.flow.assembly.rounds import PARSER, POLICY
from porcelain.flow.assembly.standing import TABLES, Core, Standing
from porcelain.flow.assembly.tables import DamagedStanding, Table, decoded
from porcelain.flow.chain.sealing import sealed

#: Changes with the layout of what is saved, and with the meaning of any of it.
VERSION = 1
_PREFIX = b"flow/"


class _Saved(Struct, array_like=True):
    """What is saved under ``c``: ``tables`` are pairs of buckets and entries."""

    version: int
    round: str
    parser: str
    policy: str
    tables: list[tuple[int, int]]
    core: Core


class _Version(Struct, array_like=True):
    version: int
    round: str
    parser: str
    policy: str


_SAVED = msgspec.msgpack.Decoder(_Saved)
_VERSION = msgspec.msgpack.Decoder(_Version)


def standing_prefix(ref: str) -> bytes:
    """What the keys of a chain's standing begin with."""
    return _PREFIX + hashlib.sha256(ref.encode("utf-8", "surrogatepass")).digest()[:16]


def load_standing(view: Snapshot, ref: str, head: str) -> Standing | None:
    """The standing of the chain under ``ref`` whose head is the round object ``head`` (hex), or None. Its tables are
    read bucket by bucket, as long as ``view`` is open, and raise ``DamagedStanding`` for what does not read."""
    prefix = standing_prefix(ref)
    data = view.derived(prefix + b"c")
    if data is None:
        return None
    try:
        about = decoded(data, _VERSION)
        if (about.version, about.round, about.parser, about.policy) != (VERSION, head, PARSER, POLICY):
            return None
        saved = decoded(data, _SAVED)
    except DamagedStanding:
        return None
    if len(saved.tables) != len(TABLES):
        return None
    tables: dict[str, Table[object]] = {}
    for number, ((name, kind), (buckets, count)) in enumerate(zip(TABLES.items(), saved.tables, strict=True)):

        def load(bucket: int, number: int = number) -> bytes | None:
            return view.derived(_bucket_key(prefix, number, bucket))

        tables[name] = Table(kind, buckets=buckets, count=count, load=load)
    return Standing(saved.core, tables)


def saved_standing(
    view: Snapshot, ref: str, head: str, standing: Standing | None
) -> dict[bytes, bytes | None]:
    """What to write into the derived part of the store so that it holds ``standing`` for the head ``head``; with None,
    so that it holds none. ``view`` is of the store as it is."""
    prefix = standing_prefix(ref)
    values: dict[bytes, bytes | None] = {}
    if standing is None or standing.made:
        values = dict.fromkeys(key for key, _ in view.derived_items(prefix))
    if standing is None:
        return values
    for number, table in enumerate(standing.tables.values()):
        for bucket, data in table.saved():
            values[_bucket_key(prefix, number, bucket)] = data
    saved = _Saved(
        VERSION,
        head,
        PARSER,
        POLICY,
        [(table.buckets, table.count) for table in standing.tables.values()],
        standing.old_core,
    )
    values[prefix + b"c"] = sealed(msgspec.msgpack.encode(saved))
    return values


def _bucket_key(prefix: bytes, table: int, bucket: int) -> bytes:
    return prefix + b"t" + bytes((table,)) + bucket.to_bytes(4, "big")
