"""``sf/1``: the parts of one round, and its bytes written; ``sf_reading`` reads them.

A round is a file of JSON lines: a header, nodes, relations, unresolved entries (each group in order of id), a commit
line. The digest of the commit is the SHA-256 of every byte before it, and is what the next round names as
``previous``. Structs are declared in the order of the keys on disk; an optional key that is UNSET is not written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from operator import attrgetter
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from objstore.kinds import MAX_SAFE_INTEGER
from porcelain.flow.formats import gojson
from porcelain.flow.formats.errors import FormatError

SCHEMA = "sf/1"
Count = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]


class Ref(Struct, frozen=True, gc=False):
    """A place in the landed data: file ``seq``, ``row`` from 1, ``block`` (part) from 0 where one part is meant."""

    seq: Count = 0
    row: Count = 0
    block: Count | UnsetType = UNSET


class SfHeader(Struct, frozen=True, tag_field="t", tag="header"):
    """What a round covers. Everything from ``from_time`` on came later to the format: absent means unknown, not 0."""

    schema: str = ""
    conversation: str = ""
    session: str = ""
    round: Count = 0
    previous: str | UnsetType = UNSET
    from_seq: Count = 0
    through_seq: Count = 0
    input_digest: str = ""
    parser: str = ""
    policy: str = ""
    from_time: str | UnsetType = UNSET
    through_time: str | UnsetType = UNSET
    session_from_time: str | UnsetType = UNSET
    session_through_time: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    talks: Count | UnsetType = UNSET
    steps: Count | UnsetType = UNSET
    streams: Count | UnsetType = UNSET
    segments: Count | UnsetType = UNSET
    unresolved: Count | UnsetType = UNSET
    changes: Count | UnsetType = UNSET
    lines_added: Count | UnsetType = UNSET
    lines_removed: Count | UnsetType = UNSET
    llm_calls: Count | UnsetType = UNSET
    subagents: Count | UnsetType = UNSET
    bash_runs: Count | UnsetType = UNSET


class SfNode(Struct, frozen=True, gc=False, tag_field="t", tag="node"):
    """A node of the containment tree. ``attrs`` is a JSON object with sorted keys."""

    id: str = ""
    revision: Count = 0
    tombstone: bool | UnsetType = UNSET
    kind: str = ""
    parent: str | UnsetType = UNSET
    stream: str | UnsetType = UNSET
    ref: Ref | UnsetType = UNSET
    refs: list[Ref] | UnsetType = UNSET
    attrs: Raw | UnsetType = UNSET


class SfRelation(Struct, frozen=True, gc=False, tag_field="t", tag="relation"):
    """A typed edge that is not containment, with the quality of the claim and the records it rests on."""

    id: str = ""
    revision: Count = 0
    tombstone: bool | UnsetType = UNSET
    type: str = ""
    from_: str = msgspec.field(default="", name="from")
    to: str = ""
    quality: str = ""
    via: str | UnsetType = UNSET
    evidence: list[Ref] | UnsetType = UNSET


class SfUnresolved(Struct, frozen=True, gc=False, tag_field="t", tag="unresolved"):
    """An end that is missing: ``state`` is open, resolved or terminal; ``ref`` is the name that led nowhere."""

    id: str = ""
    revision: Count = 0
    tombstone: bool | UnsetType = UNSET
    kind: str = ""
    ref: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    state: str = ""


class FrameCounts(Struct, frozen=True):
    """Frames of each type in one file, tombstones included."""

    nodes: Count = 0
    relations: Count = 0
    unresolved: Count = 0


class SfCommit(Struct, frozen=True, tag_field="t", tag="commit"):
    """The last line: digest of all bytes before it, and the counts."""

    digest: str = ""
    counts: FrameCounts = FrameCounts()


class Round(Struct, frozen=True):
    """One round as read, or as it will be written. ``digest`` is that of the commit line (hex)."""

    header: SfHeader
    nodes: list[SfNode]
    relations: list[SfRelation]
    unresolved: list[SfUnresolved]
    digest: str


class RoundError(FormatError):
    """A round breaks a rule of ``sf/1``."""


_BY_ID = attrgetter("id")
_F = TypeVar("_F", SfNode, SfRelation, SfUnresolved)


def input_digest(previous: str, file_digests: Iterable[str]) -> str:
    """The digest that binds a round to the landed files it read.

    ``previous`` is the input digest of the round before (hex, empty for round 1), ``file_digests`` the SHA-256 (hex) of
    each newly landed ``.sd`` file as a whole, in any order.
    """
    text = previous + "".join("\0" + digest for digest in sorted(file_digests))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _sorted(frames: Iterable[_F]) -> list[_F]:
    return sorted(frames, key=_BY_ID)


def commit_line(digest: str, counts: FrameCounts) -> bytes:
    """The last line of a round, with its newline."""
    return gojson.encode(SfCommit(digest, counts)) + b"\n"


def write_round(
    header: SfHeader,
    nodes: Iterable[SfNode],
    relations: Iterable[SfRelation],
    unresolved: Iterable[SfUnresolved],
) -> tuple[bytes, str]:
    """The bytes of a round and its commit digest (hex); each group is put in order of id (by code point, which is also
    the order of the UTF-8 bytes)."""
    groups = _sorted(nodes), _sorted(relations), _sorted(unresolved)
    body = gojson.escape_html(gojson.encode_lines([header, *groups[0], *groups[1], *groups[2]]))
    digest = hashlib.sha256(body).hexdigest()
    return body + commit_line(digest, FrameCounts(*(len(group) for group in groups))), digest
