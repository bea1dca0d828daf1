"""Proofs: true ones are accepted without a store, anything else is not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs, to_builtins

from objstore.errors import CheckFailed, NotFound
from objstore.memory import MemoryDatabase
from objstore.store import Store
from porcelain.session.integrity.proof_checking import check_proof, proof_bytes
from porcelain.session.integrity.proofs import prove_insertion, prove_node
from porcelain.session.tree.change import open_session
from porcelain.session.tree.nodes import node_hash, root_node, subtree_hash
from porcelain.session.tree.store import (
    Turn,
    add_turn,
    add_turns,
    new_session,
    set_label,
)

Make = Callable[..., Turn]
PARENTS = (0, 1, 1, 2, 0, 5, 5, 5, 5, 5, 2)


def grown(store: Store, parents: list[int] | tuple[int, ...]) -> str:
    answer = store.put({"text": "yes", "type": "text"})
    sid, _ = new_session(store, random=lambda n: b"\1\2")
    add_turns(
        store,
        sid,
        [
            Turn(question=f"q{i}", answer=answer, audit_mode="HYBRID", cache_key="2" * 64, parent=above)
            for i, above in enumerate(parents)
        ],
    )
    return sid


@pytest.fixture
def asked(store: Store) -> str:
    return grown(store, PARENTS)


def prove(store: Store, sid: str, seq: int, root: str | None = None) -> dict[str, Any]:
    with store.snapshot() as view:
        document = prove_node(view, open_session(view, sid), seq, root=root)
    assert json.loads(proof_bytes(document)) == document
    return document


def prove_insert(store: Store, sid: str, seq: int) -> dict[str, Any]:
    with store.snapshot() as view:
        return prove_insertion(view, open_session(view, sid), seq)


def root_of(store: Store, sid: str) -> str:
    with store.snapshot() as view:
        return open_session(view, sid).state.root


def refused(document: dict[str, Any]) -> bool:
    try:
        check_proof(json.dumps(document).encode())
    except CheckFailed:
        return True
    return False


def test_every_node_is_proven_with_its_path(store: Store, asked: str) -> None:
    root = root_of(store, asked)
    for seq in range(len(PARENTS) + 1):
        proven = check_proof(proof_bytes(prove(store, asked, seq)), expect=root)
        path, at = [], seq
        while at:
            at = PARENTS[at - 1]
            path.append(f"{asked}-{at:06d}")
        assert (proven.kind, proven.bates, proven.root) == ("inclusion", f"{asked}-{seq:06d}", root)
        assert list(proven.path) == path


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=25))
def test_any_tree_is_proven(picks: list[int]) -> None:
    store = Store(MemoryDatabase(), now=lambda: "2026-03-04T05:06:07Z")
    parents = [pick % (at + 1) for at, pick in enumerate(picks)]
    sid = grown(store, parents)
    root = root_of(store, sid)
    before = None
    for seq in range(len(parents) + 1):
        assert check_proof(proof_bytes(prove(store, sid, seq)), expect=root).path == tuple(
            f"{sid}-{one:06d}" for one in above(parents, seq)
        )
        if seq:
            proven = check_proof(proof_bytes(prove_insert(store, sid, seq)))
            assert before in (None, proven.old_root)
            before = proven.root
    assert before == root


def above(parents: list[int], seq: int) -> list[int]:
    path = []
    while seq:
        seq = parents[seq - 1]
        path.append(seq)
    return path


def test_a_proof_names_the_root_it_was_made_for(store: Store, asked: str, turn: Make) -> None:
    old = root_of(store, asked)
    early = prove(store, asked, 4)
    set_label(store, asked, 2, "two")
    add_turn(store, asked, turn(store, "more", 4))
    now = root_of(store, asked)
    assert prove(store, asked, 4, old) == early
    assert (
        check_proof(proof_bytes(prove(store, asked, 4)), expect=now).node_hash
        != check_proof(proof_bytes(early), expect=old).node_hash
    )
    with pytest.raises(CheckFailed):
        check_proof(proof_bytes(early), expect=now)
    with pytest.raises(NotFound):
        prove(store, asked, len(PARENTS) + 1, old)
    for wrong in ("ab" * 32, "xyz"):
        with pytest.raises(NotFound):
            prove(store, asked, 4, wrong)
    with pytest.raises(NotFound):
        prove(store, asked, 99)


def test_an_insertion_is_proven_also_when_much_happened_since(store: Store, asked: str, turn: Make) -> None:
    set_label(store, asked, 1, "one")
    before = root_of(store, asked)
    added = add_turn(store, asked, turn(store, "more", 4))
    set_label(store, asked, 5, "five")
    proven = check_proof(proof_bytes(prove_insert(store, asked, added.seq)), expect=added.session_root)
    assert (proven.kind, proven.old_root, proven.root) == ("insertion", before, added.session_root)
    for seq in range(1, added.seq):
        check_proof(proof_bytes(prove_insert(store, asked, seq)))
    with pytest.raises(CheckFailed):
        prove_insert(store, asked, 0)
    with pytest.raises(NotFound):
        prove_insert(store, asked, 99)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [found for key, one in value.items() for found in leaves(one, (*path, key))]
    if isinstance(value, list):
        return [found for key, one in enumerate(value) for found in leaves(one, (*path, key))]
    return [path]


@pytest.mark.parametrize("make", [prove, prove_insert])
def test_no_value_of_a_proof_can_be_changed(
    store: Store, asked: str, make: Callable[[Store, str, int], dict[str, Any]]
) -> None:
    for seq in (1, 4, 6, 7, 8, 9, 10, 11):
        document = make(store, asked, seq)
        assert not refused(document)
        for path in leaves(document):
            changed = copy.deepcopy(document)
            at: Any = changed
            for key in path[:-1]:
                at = at[key]
            value = at[path[-1]]
            if isinstance(value, bool):
                at[path[-1]] = not value
            elif isinstance(value, str) and len(value) == 64:
                at[path[-1]] = value[:-1] + ("0" if value[-1] != "0" else "1")
            else:
                at[path[-1]] = (value or "") + "x"
            assert refused(changed), path


@pytest.mark.parametrize("make", [prove, prove_insert])
def test_proofs_of_another_shape_are_refused(
    store: Store, asked: str, make: Callable[[Store, str, int], dict[str, Any]]
) -> None:
    document = make(store, asked, 4)
    for change in (
        lambda d: d["ancestors"].pop(),
        lambda d: d["ancestors"].pop(0),
        lambda d: d["ancestors"].reverse(),
        lambda d: d["ancestors"].append(copy.deepcopy(d["ancestors"][-1])),
        lambda d: d["ancestors"].clear(),
        lambda d: d.update(note="x"),
        lambda d: d.update(proof="session-inclusion-2"),
        lambda d: d["rules"].update(merkle="merkle-v2"),
        lambda d: d["node"].pop("label"),
        lambda d: d["node"].update(note="x"),
        lambda d: d.pop("rules"),
    ):
        changed = copy.deepcopy(document)
        change(changed)
        assert refused(changed)
    for data in (b"", b"{}", b"[]", b"null", b"[" * 100_000, b'{"proof":1}', b"\xff"):
        with pytest.raises(CheckFailed):
            check_proof(data)


def test_lists_of_siblings_must_ascend(store: Store, asked: str) -> None:
    document = prove_insert(store, asked, 10)
    (wide,) = [one for one in document["ancestors"] if len(one["other_children"]) > 2]
    children = wide["other_children"]
    assert children == sorted(children)
    for wrong in (children[::-1], [*children, children[-1]], [children[0], *children]):
        wide["other_children"] = wrong
        assert refused(document)
    wide["other_children"] = children
    assert not refused(document)


def test_steps_have_a_bound(store: Store, asked: str) -> None:
    document = prove(store, asked, 4)
    document["ancestors"][0]["siblings"] = [{"hash": "ab" * 32, "is_left": False}] * 21
    with pytest.raises(CheckFailed, match="length"):
        check_proof(json.dumps(document).encode())


def test_a_path_that_ends_below_the_root_proves_nothing(store: Store, asked: str) -> None:
    document = prove(store, asked, 3)
    with store.snapshot() as view:
        index = open_session(view, asked).index
        assert index.path(3) == [3, 1, 0]
        document["ancestors"].pop()
        document["session_root"] = index.subtree_hash(1).hex()
    with pytest.raises(CheckFailed, match="below the root"):
        check_proof(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("node", "above", "right"),
    [
        ("20260304-050607-0102-000007", ["20260304-050607-0102-000005"], True),
        ("20260304-050607-0102-000005", ["20260304-050607-0102-000005"], False),
        ("20260304-050607-0102-000003", ["20260304-050607-0102-000005"], False),
        ("20260304-050607-ffff-000007", ["20260304-050607-0102-000005"], False),
        ("20260304-050607-0102-000007", ["20260304-050607-ffff-000005"], False),
    ],
)
def test_a_path_stays_in_one_session_and_its_numbers_fall(
    node: str, above: list[str], *, right: bool
) -> None:
    """Hashes alone do not say so: whoever makes the nodes can make all of them fit."""
    nodes = [root_node("20260304-050607-0102", "2026-03-04T05:06:07Z")]
    for bates in (*above, node):
        nodes.append(
            structs.replace(
                nodes[-1],
                audit_mode="STRICT",
                bates=bates,
                cache_key="1" * 64,
                parent_node_hash=node_hash(nodes[-1]).hex(),
                question="Who?",
            )
        )
    value = b""
    for one in reversed(nodes):
        value = subtree_hash(node_hash(one), [value] if value else [])
    document = {
        "ancestors": [{"node": to_builtins(one), "siblings": []} for one in nodes[-2::-1]],
        "children_root": None,
        "node": to_builtins(nodes[-1]),
        "proof": "session-inclusion-1",
        "rules": {"canonical": "canon-json-1", "merkle": "merkle-v1"},
        "session_root": value.hex(),
    }
    assert refused(document) is not right


def test_a_node_cannot_be_proven_under_another_parent(store: Store) -> None:
    """The root of a chain can be that of a fork; the bodies of the ancestors tell which it was."""
    sid = grown(store, (0, 0))
    with store.snapshot() as view:
        index = open_session(view, sid).index
        (_, low), (_, high) = index.children(0)
    document = prove(store, sid, high)
    assert not refused(document)
    under = prove(store, sid, low)
    document["ancestors"] = [
        {"node": one, "siblings": []} for one in (under["node"], document["ancestors"][0]["node"])
    ]
    with pytest.raises(CheckFailed):
        check_proof(json.dumps(document).encode())
