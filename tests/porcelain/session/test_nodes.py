"""Node hashes, subtree hashes and roots, against the published five-node session and by property."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore import kinds
from objstore.canonical import encode
from objstore.errors import CheckFailed, UsageError
from objstore.merkle import SiblingOrder, hash_combine, leaf_hash
from objstore.objects import check_object
from porcelain.session.tree.events import event_hash
from porcelain.session.tree.index import TreeIndex
from porcelain.session.tree.nodes import Node, check_label, check_node, node_hash, root_node, subtree_hash
from porcelain.session.tree.replay import subtree_hashes

SID = "20260930-120000-ab12"
#: Parent, question, audit mode and label of nodes 1 to 4 of the published session.
TURNS = (
    (0, "Who created Batman?", "STRICT", None),
    (1, "When was he first published?", "HYBRID", None),
    (1, "Qui a créé Robin ?", "UNGROUNDED", "fork"),
    (1, "who is the 🦊?", "STRICT", None),
)


def published() -> list[Node]:
    nodes = [root_node(SID, "2026-09-30T12:00:00Z")]
    for seq, (parent, question, mode, label) in enumerate(TURNS, 1):
        nodes.append(
            Node(
                audit_mode=mode,
                bates=f"{SID}-{seq:06d}",
                cache_key=str(seq) * 64,
                created_at=f"2026-09-30T12:00:0{seq}Z",
                label=label,
                parent_node_hash=node_hash(nodes[parent]).hex(),
                question=question,
            )
        )
    return nodes


def block(shared: Path) -> str:
    return (shared / "vectors" / "merkle-v1.md").read_text().split("## session tree")[1]


def test_the_published_session_has_its_published_hashes(shared: Path) -> None:
    text = block(shared)
    nodes = published()
    hashes = [node_hash(node) for node in nodes]
    assert [found.hex() for found in hashes] == re.findall(r"^node_hash \d ([0-9a-f]{64})$", text, re.M)
    assert kinds.encode(nodes[3]).decode() in text
    roots = re.findall(r"^session_root after seq \d ([0-9a-f]{64})$", text, re.M)
    index = TreeIndex(None, SID)
    for seq, digest in enumerate(hashes):
        index.insert(seq, None if seq == 0 else TURNS[seq - 1][0], digest)
        assert index.subtree_hash(0).hex() == roots[seq]
    assert [index.subtree_hash(seq).hex() for seq in range(5)] == re.findall(
        r"^subtree \d ([0-9a-f]{64})$", text, re.M
    )
    children = {0: [1], 1: [2, 3, 4]}
    assert subtree_hashes(dict(enumerate(hashes)), children) == {
        seq: index.subtree_hash(seq) for seq in range(5)
    }


def test_the_published_events_have_their_published_hashes(shared: Path) -> None:
    text = block(shared)
    found = re.findall(r"^event \w+ (\{.*\})\n  event_hash raw-prev ([0-9a-f]{64})", text, re.M)
    assert len(found) == 2
    before = bytes(32)
    for body, digest in found:
        before = event_hash(before, body.encode())
        assert before.hex() == digest


def test_a_node_is_the_object_whose_id_is_its_hash() -> None:
    for node in published():
        value = {name: getattr(node, name) for name in node.__struct_fields__}
        assert check_object(value) == ("session-node", kinds.encode(node))
        assert encode(value) == kinds.encode(node)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bates", SID + "-00001"),
        ("bates", SID),
        ("bates", SID + "-000001\n"),
        ("created_at", "2026-09-30 12:00:01"),
        ("created_at", "2026-13-30T12:00:01Z"),
        ("created_at", "2026-09-30T12:00:01Z\n"),
        ("question", "a\x00b"),
        ("label", "a\x00b"),
        ("cache_key", ""),
        ("cache_key", "G" * 64),
        ("audit_mode", ""),
        ("parent_node_hash", None),
    ],
)
def test_what_no_turn_may_say_is_refused(field: str, value: object) -> None:
    node = published()[1]
    check_node(node)
    changed = {name: getattr(node, name) for name in node.__struct_fields__} | {field: value}
    with pytest.raises(CheckFailed):
        kinds.decode("session-node", encode(changed))


def test_a_root_says_nothing() -> None:
    node = published()[0]
    for field, value in (("question", "x"), ("cache_key", "1" * 64), ("audit_mode", "STRICT")):
        changed = {name: getattr(node, name) for name in node.__struct_fields__} | {field: value}
        with pytest.raises(CheckFailed):
            kinds.decode("session-node", encode(changed))


def test_siblings_that_are_equal_or_out_of_order_are_refused() -> None:
    a, b, c = sorted(leaf_hash(bytes([n])) for n in range(3))
    assert subtree_hash(a, [a, b, c]) != subtree_hash(a, [b, c])
    for wrong in ([a, a], [b, a], [a, b, c, c], [a, c, b]):
        with pytest.raises(SiblingOrder):
            subtree_hash(a, wrong)


def test_one_child_is_combined_as_it_is() -> None:
    node, child = leaf_hash(b"node"), leaf_hash(b"child")
    assert subtree_hash(node, []) == leaf_hash(node)
    assert subtree_hash(node, [child]) == hash_combine(leaf_hash(node), child)


@given(st.integers(0, 2**32), st.lists(st.integers(0, 10**6), min_size=1, max_size=40))
def test_any_order_of_inserting_gives_the_same_root(seed: int, picks: list[int]) -> None:
    parents = {seq: (None if seq == 0 else pick % seq) for seq, pick in enumerate([0, *picks])}
    hashes = {seq: leaf_hash(seq.to_bytes(4, "big")) for seq in parents}
    children: dict[int, list[int]] = {}
    for seq, parent in parents.items():
        if parent is not None:
            children.setdefault(parent, []).append(seq)
    expected = subtree_hashes(hashes, children)
    rng = random.Random(seed)
    index, ready = TreeIndex(None, SID), [0]
    while ready:
        seq = ready.pop(rng.randrange(len(ready)))
        index.insert(seq, parents[seq], hashes[seq])
        ready += children.get(seq, [])
    assert {seq: index.subtree_hash(seq) for seq in parents} == expected


def test_a_chain_and_a_fork_can_share_a_root_so_the_bodies_must_tell_them_apart() -> None:
    root, a, b = (leaf_hash(bytes([n])) for n in range(3))
    if leaf_hash(a) > leaf_hash(b):
        a, b = b, a
    chain = subtree_hashes({0: root, 1: a, 2: b}, {0: [1], 1: [2]})
    fork = subtree_hashes({0: root, 1: a, 2: b}, {0: [1, 2]})
    assert chain[0] == fork[0]


@pytest.mark.parametrize(
    "label", ["", " ", " x", "7", "000007", SID + "-000001", "a\nb", "a\x00b", "x" * 1025, "\ud800"]
)
def test_labels_that_cannot_be_typed_or_read_as_numbers_are_refused(label: str) -> None:
    with pytest.raises(UsageError):
        check_label(label)


@pytest.mark.parametrize("label", ["fork", "second try", "ünï", "1000000", "v1", "🦊"])
def test_other_labels_are_fine(label: str) -> None:
    assert check_label(label) == label
