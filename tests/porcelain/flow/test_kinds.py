from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from objstore import canonical, kinds
from objstore.errors import CheckFailed, NotFound
from objstore.memory import MemoryDatabase
from objstore.store import Store
from porcelain.flow.assembly import rounds
from porcelain.flow.assembly.entries import Landed
from porcelain.flow.chain.folding import Fold
from porcelain.flow.chain.kinds import (
    FlowNode,
    FlowRelation,
    FlowRound,
    FlowUnresolved,
    canonical_attrs,
    commit_counts,
    from_frame,
    from_round,
    to_frames,
    to_header,
)
from porcelain.flow.formats.sf import Round, SfHeader, SfNode, write_round
from porcelain.flow.formats.sf_reading import read_round
from tests.porcelain.flow.sample import SESSION, conversation, sessions

LISTS = ["aa" * 32, "bb" * 32]


def kept(frame: Struct, name: str) -> Any:
    """Through the store's bytes and back; they must be canonical."""
    data = kinds.encode(frame)
    canonical.decode(data)
    return kinds.decode(name, data)


def back(round_: Round) -> Round:
    store = Store(MemoryDatabase())
    batch = store.batch()
    keys = []
    for frame in [*round_.nodes, *round_.relations, *round_.unresolved]:
        stored = from_frame(frame)
        name = stored.type
        keys.append(bytes.fromhex(batch.put(name, kinds.encode(kept(stored, name)))))
    store.commit(batch)
    previous = "cc" * 32 if round_.header.round > 1 else None
    entry = kept(from_round(round_, LISTS, previous), "flow-round")
    assert commit_counts(entry).nodes == len(round_.nodes)
    with store.snapshot() as view:
        return Round(to_header(entry), *to_frames(view, keys), entry.commit)


@given(sessions())
def test_the_bytes_of_a_round_come_out_of_its_objects(files: list[Landed]) -> None:
    for written in rounds(files, Fold(), conversation=SESSION, session=SESSION, budget=1):
        round_ = back(written.round)
        data, digest = write_round(round_.header, round_.nodes, round_.relations, round_.unresolved)
        assert (data, digest) == (written.data, round_.digest)
        # The same from what a reader makes of the file.
        read = back(read_round(written.data))
        assert write_round(read.header, read.nodes, read.relations, read.unresolved)[0] == written.data


def test_an_object_in_full() -> None:
    (written,) = rounds(conversation()[:1], Fold(), conversation=SESSION, session=SESSION)
    node = next(n for n in written.round.nodes if n.id == "tool/tool-1")
    assert kinds.encode(from_frame(node)) == (
        b'{"attrs":{"name":"Bash","result":"available","result_join":"exact_unique","timing":"unavailable"},'
        b'"id":"tool/tool-1","kind":"tool","parent":"call/call-1","ref":{"block":1,"row":4,"seq":1},'
        b'"refs":[{"block":1,"row":4,"seq":1},{"block":0,"row":5,"seq":1}],"revision":1,"stream":"main",'
        b'"type":"flow-node"}'
    )


def test_what_a_round_names() -> None:
    (written,) = rounds(conversation(), Fold(), conversation=SESSION, session=SESSION)
    first = from_round(written.round, LISTS, None)
    kind = kinds.lookup("flow-round")
    assert kind.previous is not None and kind.frames is not None
    assert list(kind.previous(first)) == []
    assert list(kind.frames(first)) == LISTS
    later = replace(first, previous="dd" * 32)
    assert list(kind.previous(later)) == ["dd" * 32]
    assert set(kind.needs(later)) == {*LISTS, "dd" * 32}


def test_keys_are_declared_in_canonical_order() -> None:
    for struct in (FlowNode, FlowRelation, FlowUnresolved, FlowRound):
        assert list(struct.__struct_encode_fields__) == sorted(struct.__struct_encode_fields__)


@pytest.mark.parametrize(
    "attrs", [b"[1]", b'{"b":1,"a":2}', b'{"a":1.5}', b'{"a":1e3}', b'{"a": 1}', b'{"a":1,"a":1}']
)
def test_attributes_that_are_not_canonical_are_refused(attrs: bytes) -> None:
    data = b'{"attrs":' + attrs + b',"id":"x","kind":"","revision":1,"type":"flow-node"}'
    with pytest.raises(CheckFailed):
        kinds.decode("flow-node", data)


def test_attributes_of_others_are_put_in_order() -> None:
    node = SfNode("x", 1, attrs=Raw(b'{"b":1,"a": "\\/"}'))
    assert bytes(canonical_attrs(node).attrs) == b'{"a":"/","b":1}'
    assert canonical_attrs(SfNode("x", 1)) == SfNode("x", 1)
    with pytest.raises(CheckFailed):
        canonical_attrs(SfNode("x", 1, attrs=Raw(b'{"a":1.5}')))


def test_attributes_that_look_like_the_end_of_an_object() -> None:
    """Nodes are read together by their last key; one that has the same inside is read by itself."""
    frames = [
        SfNode("a", 1, kind="tool", attrs=Raw(b'{"a":{"type":"flow-node"},"b":1}')),
        SfNode("b", 1, kind='say "type":"flow-node"}'),
    ]
    header = SfHeader("sf/1", "c", "s", 1, UNSET, 1, 1, "d", "v1", "v1")
    assert back(Round(header, frames, [], [], "e")).nodes == frames


def test_what_is_no_frame_is_refused() -> None:
    store = Store(MemoryDatabase())
    other = bytes.fromhex(store.put({"text": "x", "type": "text"}))
    with store.snapshot() as view:
        with pytest.raises(CheckFailed, match="not a frame"):
            to_frames(view, [other])
        with pytest.raises(NotFound):
            to_frames(view, [bytes(32)])
