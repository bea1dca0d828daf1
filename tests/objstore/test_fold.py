"""Chains and folds: the joined fold does not depend on any order, and broken chains are named."""

from __future__ import annotations

import random
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from objstore import kinds
from objstore.chain import entries, entries_since
from objstore.core import ListOf
from objstore.errors import CheckFailed, NotFound
from objstore.fold import Envelope, Fold, fold_chains
from objstore.memory import MemoryDatabase
from objstore.store import Store


class TestFrame(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    __test__ = False
    id: str
    revision: int
    tombstone: bool | UnsetType = UNSET
    type: Literal["test-frame"] = "test-frame"
    value: str = ""


class TestRound(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    __test__ = False
    frames: list[str]
    previous: list[str]
    type: Literal["test-round"] = "test-round"


if "test-frame" not in kinds.known_names():
    kinds.register(kinds.Kind(name="test-frame", struct=TestFrame))
    kinds.register(
        kinds.Kind(
            name="test-round",
            struct=TestRound,
            needs=lambda r: r.previous + r.frames,
            previous=lambda r: r.previous,
            frames=lambda r: r.frames,
        )
    )

frames = st.builds(
    TestFrame,
    id=st.sampled_from(["a", "b", "c", "d"]),
    revision=st.integers(1, 4),
    tombstone=st.sampled_from([UNSET, True]),
    value=st.sampled_from(["x", "y", "z"]),
)
chains = st.lists(st.lists(st.lists(frames, max_size=4), min_size=1, max_size=4), min_size=1, max_size=4)


def memory_store() -> Store:
    return Store(MemoryDatabase(), now=lambda: "t")


def add_chain(store: Store, rounds: list[list[TestFrame]], *, as_list: bool = False) -> str:
    batch = store.batch()
    previous: list[str] = []
    for one in rounds:
        ids = [batch.put("test-frame", kinds.encode(f)) for f in one]
        if as_list:
            ids = [batch.put("list", kinds.encode(ListOf(items=ids)))]
        previous = [batch.put("test-round", kinds.encode(TestRound(frames=ids, previous=previous)))]
    store.commit(batch)
    return previous[0]


def independent_fold(every: list[TestFrame]) -> dict[str, str]:
    """The rule, said once more in the plainest way: highest revision, then greatest object id."""
    from objstore.digest import hash_bytes

    best: dict[str, tuple[int, str, bool]] = {}
    for frame in every:
        mine = (frame.revision, hash_bytes(kinds.encode(frame)).hex(), frame.tombstone is True)
        if frame.id not in best or mine[:2] > best[frame.id][:2]:
            best[frame.id] = mine
    return {frame_id: key for frame_id, (_, key, removed) in best.items() if not removed}


@given(chains, st.randoms(use_true_random=False))
def test_any_order_of_chains_and_rounds_gives_the_same_state(many: list[Any], rnd: random.Random) -> None:
    store = memory_store()
    heads = [add_chain(store, rounds, as_list=i % 2 == 1) for i, rounds in enumerate(many)]
    expected = independent_fold([f for rounds in many for one in rounds for f in one])
    folded = store.fold(*heads)
    assert {frame_id: key.hex() for frame_id, key in folded.live()} == expected

    shuffled = heads[:]
    rnd.shuffle(shuffled)
    assert store.fold(*shuffled, shuffled[0]) == folded

    everything = [f for rounds in many for one in rounds for f in one]
    rnd.shuffle(everything)
    from objstore.digest import hash_bytes

    loose = Fold()
    for frame in everything:
        loose.absorb(
            Envelope(frame.id, frame.revision, frame.tombstone is True), hash_bytes(kinds.encode(frame))
        )
    assert loose == folded

    parts = [store.fold(h) for h in heads]
    rnd.shuffle(parts)
    joined = Fold()
    for part in parts + parts:
        joined.join(part)
    assert joined == folded
    assert len(joined) == len(expected)


@given(st.lists(st.lists(frames, max_size=4), min_size=1, max_size=5), st.integers(0, 5))
def test_fold_as_of_a_round_is_the_fold_of_the_shorter_chain(rounds: list[list[TestFrame]], at: int) -> None:
    store = memory_store()
    head = add_chain(store, rounds)
    shorter = Fold() if at == 0 else store.fold(add_chain(store, rounds[:at]))
    assert store.fold(head, at=at) == shorter


@given(st.lists(st.lists(frames, max_size=3), min_size=2, max_size=6), st.integers(1, 5))
def test_incremental_fold_equals_the_whole(rounds: list[list[TestFrame]], cut: int) -> None:
    from objstore.fold import absorb_entry

    store = memory_store()
    cut = min(cut, len(rounds) - 1)
    first = add_chain(store, rounds[:cut])
    head = add_chain(store, rounds)
    folded = store.fold(first)
    with store.snapshot() as view:
        news = entries_since(view, bytes.fromhex(head), bytes.fromhex(first))
        assert len(news) == len(rounds) - cut
        for _, entry in news:
            absorb_entry(view, folded, "test-round", entry)
    assert folded == store.fold(head)


def test_losers_of_equal_revision_stay_visible() -> None:
    store = memory_store()
    one = add_chain(store, [[TestFrame(id="a", revision=1, value="x")]])
    two = add_chain(store, [[TestFrame(id="a", revision=1, value="y")]])
    [(frame_id, claim)] = store.fold(one, two).conflicts()
    assert frame_id == "a" and len(claim.keys) == 2 and claim.winner == max(claim.keys)
    assert list(store.fold(one).conflicts()) == []


def test_entries_come_oldest_first_also_where_chains_meet() -> None:
    store = memory_store()
    batch = store.batch()

    def add(*previous: str) -> str:
        return batch.put("test-round", kinds.encode(TestRound(frames=[], previous=list(previous))))

    root = add()
    left, right = add(root), batch.put("list", kinds.encode(ListOf(items=[])))
    other = batch.put("test-round", kinds.encode(TestRound(frames=[right], previous=[root])))
    top = add(left, other)
    store.commit(batch)
    order = store.chain(top)
    assert sorted(order) == sorted([root, left, other, top]) and len(order) == 4
    assert order[0] == root and order[-1] == top


def test_long_chains_need_no_recursion() -> None:
    store = memory_store()
    head = add_chain(store, [[] for _ in range(5000)])
    assert len(store.chain(head)) == 5000


def test_broken_chains_are_named() -> None:
    store = memory_store()
    batch = store.batch()
    no_parent = batch.put("test-round", kinds.encode(TestRound(frames=[], previous=["ab" * 32])))
    no_frame = batch.put("test-round", kinds.encode(TestRound(frames=["cd" * 32], previous=[])))
    leaf = batch.put("list", kinds.encode(ListOf(items=[])))
    odd = batch.put("test-round", kinds.encode(TestRound(frames=[no_frame], previous=[])))
    store.commit(batch)
    with pytest.raises(NotFound, match="ab" * 32):
        store.chain(no_parent)
    with pytest.raises(NotFound, match="cd" * 32):
        store.fold(no_frame)
    with pytest.raises(CheckFailed, match="not the entry of a chain"):
        store.chain(leaf)
    with pytest.raises(CheckFailed, match="not a frame"):
        store.fold(odd)
    with store.snapshot() as view:
        with pytest.raises(CheckFailed):
            entries_since(view, bytes.fromhex(no_frame), bytes.fromhex(odd))
        assert [k.hex() for k, _ in entries(view, bytes.fromhex(no_frame))] == [no_frame]
        assert len(fold_chains(view, [])) == 0
