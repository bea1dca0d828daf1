"""How a chain of rounds is kept in the store: every frame an object, and a round object that lists them.

A frame's object is the frame of ``sf/1`` with ``type`` in place of ``t`` and its keys sorted; a round's object holds
the header, the commit digest and, through ``list`` objects, the ids of the frames in the order of the file. From them
the exact bytes of the file can be written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import asdict, replace

from objstore import fastcanonical
from objstore.core import ObjectId
from objstore.errors import CheckFailed, NotFound
from objstore.kinds import MAX_SAFE_INTEGER, Kind, decode, register
from objstore.snapshot import Snapshot
from porcelain.flow.formats.sf import FrameCounts, Ref, Round, SfHeader, SfNode, SfRelation, SfUnresolved

Count = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
Id = Annotated[str, Meta(min_length=1)]


class FlowRef(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A place in the landed data, see ``sf.Ref``."""

    block: Count | UnsetType = UNSET
    row: Count = 0
    seq: Count = 0


class FlowNode(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A node frame. ``attrs`` is a canonical JSON object."""

    attrs: Raw | UnsetType = UNSET
    id: Id
    kind: str
    parent: str | UnsetType = UNSET
    ref: FlowRef | UnsetType = UNSET
    refs: list[FlowRef] | UnsetType = UNSET
    revision: Count
    stream: str | UnsetType = UNSET
    tombstone: bool | UnsetType = UNSET
    type: Literal["flow-node"] = "flow-node"


class FlowRelation(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A relation frame. ``relation`` is what the file calls ``type``."""

    evidence: list[FlowRef] | UnsetType = UNSET
    from_: str = msgspec.field(name="from")
    id: Id
    quality: str
    relation: str
    revision: Count
    to: str
    tombstone: bool | UnsetType = UNSET
    type: Literal["flow-relation"] = "flow-relation"
    via: str | UnsetType = UNSET


class FlowUnresolved(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """An unresolved frame."""

    id: Id
    kind: str
    reason: str | UnsetType = UNSET
    ref: str | UnsetType = UNSET
    revision: Count
    state: str
    tombstone: bool | UnsetType = UNSET
    type: Literal["flow-unresolved"] = "flow-unresolved"


class FlowCounts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Frames of each type in the round, tombstones included."""

    nodes: Count
    relations: Count
    unresolved: Count


class FlowRound(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A round. ``commit`` is the digest of its commit line, ``frames`` are ids of ``list`` objects, ``previous`` is the
    object id of the round before and ``previous_digest`` that round's commit digest; the rest is the header."""

    bash_runs: Count | UnsetType = UNSET
    changes: Count | UnsetType = UNSET
    commit: str
    conversation: str
    counts: FlowCounts
    frames: list[ObjectId]
    from_seq: Count
    from_time: str | UnsetType = UNSET
    input_digest: str
    lines_added: Count | UnsetType = UNSET
    lines_removed: Count | UnsetType = UNSET
    llm_calls: Count | UnsetType = UNSET
    parser: str
    policy: str
    previous: ObjectId | UnsetType = UNSET
    previous_digest: str | UnsetType = UNSET
    round: Count
    schema: str
    segments: Count | UnsetType = UNSET
    session: str
    session_from_time: str | UnsetType = UNSET
    session_through_time: str | UnsetType = UNSET
    steps: Count | UnsetType = UNSET
    streams: Count | UnsetType = UNSET
    subagents: Count | UnsetType = UNSET
    talks: Count | UnsetType = UNSET
    through_seq: Count
    through_time: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    type: Literal["flow-round"] = "flow-round"
    unresolved: Count | UnsetType = UNSET


FlowFrame = FlowNode | FlowRelation | FlowUnresolved
#: Header keys that the round object has under the same name.
_HEADER_KEYS = tuple(name for name in SfHeader.__struct_fields__ if name != "previous")


def _flow_ref(ref: Ref) -> FlowRef:
    return FlowRef(ref.block, ref.row, ref.seq)


def _flow_refs(refs: list[Ref] | UnsetType) -> list[FlowRef] | UnsetType:
    return UNSET if isinstance(refs, UnsetType) else [FlowRef(ref.block, ref.row, ref.seq) for ref in refs]


def _sf_refs(refs: list[FlowRef] | UnsetType) -> list[Ref] | UnsetType:
    return UNSET if isinstance(refs, UnsetType) else [Ref(ref.seq, ref.row, ref.block) for ref in refs]


def from_frame(frame: SfNode | SfRelation | SfUnresolved) -> FlowFrame:
    """The object of a frame. ``attrs`` is taken as it is: see ``canonical_attrs`` for rounds that others
    wrote."""
    if type(frame) is SfNode:
        return FlowNode(
            attrs=frame.attrs,
            id=frame.id,
            kind=frame.kind,
            parent=frame.parent,
            ref=_flow_ref(frame.ref) if isinstance(frame.ref, Ref) else UNSET,
            refs=_flow_refs(frame.refs),
            revision=frame.revision,
            stream=frame.stream,
            tombstone=frame.tombstone,
        )
    if type(frame) is SfRelation:
        return FlowRelation(
            evidence=_flow_refs(frame.evidence),
            from_=frame.from_,
            id=frame.id,
            quality=frame.quality,
            relation=frame.type,
            revision=frame.revision,
            to=frame.to,
            tombstone=frame.tombstone,
            via=frame.via,
        )
    assert isinstance(frame, SfUnresolved)
    return FlowUnresolved(
        id=frame.id,
        kind=frame.kind,
        reason=frame.reason,
        ref=frame.ref,
        revision=frame.revision,
        state=frame.state,
        tombstone=frame.tombstone,
    )


def to_frame(frame: FlowFrame) -> SfNode | SfRelation | SfUnresolved:
    """The frame that an object holds."""
    if type(frame) is FlowNode:
        ref = frame.ref
        return SfNode(
            frame.id,
            frame.revision,
            frame.tombstone,
            frame.kind,
            frame.parent,
            frame.stream,
            Ref(ref.seq, ref.row, ref.block) if isinstance(ref, FlowRef) else UNSET,
            _sf_refs(frame.refs),
            frame.attrs,
        )
    if type(frame) is FlowRelation:
        return SfRelation(
            frame.id,
            frame.revision,
            frame.tombstone,
            frame.relation,
            frame.from_,
            frame.to,
            frame.quality,
            frame.via,
            _sf_refs(frame.evidence),
        )
    assert isinstance(frame, FlowUnresolved)
    return SfUnresolved(
        frame.id, frame.revision, frame.tombstone, frame.kind, frame.ref, frame.reason, frame.state
    )


#: How the object of a node ends, and the line of one.
_NODE_END, _LINE_END = b'"type":"flow-node"}', b'"t":"node"}'
_NODES = msgspec.json.Decoder(list[SfNode])


def to_frames(
    view: Snapshot, keys: Sequence[bytes]
) -> tuple[list[SfNode], list[SfRelation], list[SfUnresolved]]:
    """The frames under ``keys``, each group in the order given. Nodes, which are nearly all, are decoded together.

    Raises ``NotFound``, or ``CheckFailed`` for what is no frame.
    """
    found = view.get_many(keys)
    datas = [one.data for one in found if one is not None and one.kind == "flow-node"]
    nodes = _to_nodes(datas)
    relations: list[SfRelation] = []
    unresolved: list[SfUnresolved] = []
    if len(datas) < len(keys):
        for key, one in zip(keys, found, strict=True):
            if one is None:
                raise NotFound(f"{key.hex()}: a round names this frame, and it is not here")
            if one.kind == "flow-relation":
                relations.append(to_frame(decode(one.kind, one.data)))  # type: ignore[arg-type]
            elif one.kind == "flow-unresolved":
                unresolved.append(to_frame(decode(one.kind, one.data)))  # type: ignore[arg-type]
            elif one.kind != "flow-node":
                raise CheckFailed(f"{key.hex()}: is a {one.kind}, not a frame")
    return nodes, relations, unresolved


def _to_nodes(datas: list[bytes]) -> list[SfNode]:
    """The nodes of these objects. Of an object only the last key differs from that of its line, so that one pass over
    all of them makes lines; attributes that look like that end are read one by one."""
    joined = b",".join(datas)
    if joined.count(_NODE_END) != len(datas):
        return [to_frame(decode("flow-node", data)) for data in datas]  # type: ignore[misc]
    try:
        return _NODES.decode(b"[" + joined.replace(_NODE_END, _LINE_END) + b"]")
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise CheckFailed(f"flow-node: {error}") from None


def from_round(round_: Round, frames: list[str], previous: str | None) -> FlowRound:
    """The object of a round: ``frames`` are the ids of ``list`` objects that hold its frames' ids in file order
    (nodes, relations, unresolved), ``previous`` the object id of the round before."""
    header = round_.header
    return FlowRound(
        commit=round_.digest,
        counts=FlowCounts(
            nodes=len(round_.nodes), relations=len(round_.relations), unresolved=len(round_.unresolved)
        ),
        frames=frames,
        previous=previous or UNSET,
        previous_digest=header.previous,
        **{name: getattr(header, name) for name in _HEADER_KEYS},
    )


def to_header(entry: FlowRound) -> SfHeader:
    """The header of the round that an object holds."""
    return SfHeader(previous=entry.previous_digest, **{name: getattr(entry, name) for name in _HEADER_KEYS})


def commit_counts(entry: FlowRound) -> FrameCounts:
    """The counts as the commit line has them."""
    return FrameCounts(**asdict(entry.counts))


def canonical_attrs(node: SfNode) -> SfNode:
    """The node with its attributes in canonical form, for rounds that others wrote; raises ``CheckFailed`` for what has
    none, such as floats. (Written again, the round may then differ from the file it came from.)"""
    if isinstance(node.attrs, UnsetType):
        return node
    data = bytes(node.attrs)
    written = fastcanonical.canonicalize(data)
    return node if written == data else replace(node, attrs=Raw(written))


def _check_node(node: FlowNode) -> None:
    if isinstance(node.attrs, Raw):
        data = bytes(node.attrs)
        if not data.startswith(b"{"):
            raise CheckFailed(f"{node.id}: attrs is not an object")
        fastcanonical.decode(data)


def _check_nodes(nodes: list[FlowNode]) -> None:
    attrs = [bytes(node.attrs) for node in nodes if isinstance(node.attrs, Raw)]
    if not all([data.startswith(b"{") for data in attrs]) or not fastcanonical.are_canonical(attrs):
        raise CheckFailed("attrs of a node is not a canonical object")


def _round_previous(entry: FlowRound) -> list[str]:
    return [entry.previous] if isinstance(entry.previous, str) else []


def _round_frames(entry: FlowRound) -> list[str]:
    return entry.frames


def _round_needs(entry: FlowRound) -> list[str]:
    return _round_previous(entry) + entry.frames


NODE = register(
    Kind(name="flow-node", struct=FlowNode, check=_check_node, check_all=_check_nodes, checks_raw=True)
)
RELATION = register(Kind(name="flow-relation", struct=FlowRelation))
UNRESOLVED = register(Kind(name="flow-unresolved", struct=FlowUnresolved))
ROUND = register(
    Kind(
        name="flow-round",
        struct=FlowRound,
        needs=_round_needs,
        previous=_round_previous,
        frames=_round_frames,
    )
)
