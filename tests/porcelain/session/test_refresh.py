"""Page refresh: a client that follows deltas has the server's tree, and fetched nothing that did not change."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from msgspec import structs

from objstore.errors import CheckFailed, NotFound, UsageError
from objstore.store import Store
from porcelain.session.exchange.refresh import (
    Delta,
    FetchedNode,
    Mirror,
    changes_since,
    decode_delta,
    decode_fetched,
    encode_delta,
    encode_fetched,
    fetch_node,
)
from porcelain.session.tree.change import open_session
from porcelain.session.tree.index import TreeIndex
from porcelain.session.tree.nodes import subtree_hash
from porcelain.session.tree.store import (
    Turn,
    add_turn,
    add_turns,
    new_session,
    set_label,
)

Make = Callable[..., Turn]


def follow(store: Store, sid: str, mirror: Mirror) -> tuple[Delta, list[str]]:
    """One refresh over the wire."""
    with store.snapshot() as view:
        session = open_session(view, sid)
        delta = decode_delta(encode_delta(changes_since(view, session, mirror.root)))
        fetched = mirror.apply(
            delta, lambda bates: decode_fetched(encode_fetched(fetch_node(view, session, bates)))
        )
    return delta, fetched


def same(store: Store, sid: str, mirror: Mirror) -> bool:
    with store.snapshot() as view:
        session = open_session(view, sid)
        index: TreeIndex = session.index
        seqs = index.seqs()
        return (
            mirror.root == session.state.root
            and sorted(mirror.nodes) == seqs
            and all(mirror.nodes[seq] == session.node(view, seq) for seq in seqs)
            and all(mirror.parents[seq] == index.parent(seq) for seq in seqs)
            and all(mirror.subtrees[seq] == index.subtree_hash(seq) for seq in seqs)
            and all(mirror.hashes[seq] == index.node_hash(seq) for seq in seqs)
            and all(
                mirror.children.get(seq, frozenset()) == {one for _, one in index.children(seq)}
                for seq in seqs
            )
            and all(
                subtree_hash(
                    mirror.hashes[seq], sorted(mirror.subtrees[one] for one in mirror.children.get(seq, ()))
                )
                == mirror.subtrees[seq]
                for seq in seqs
            )
        )


def test_a_client_that_follows_a_thousand_random_inserts_has_the_servers_tree(
    disk: Store, turn: Make
) -> None:
    rng = random.Random(11)
    sid, _ = new_session(disk)
    mirror = Mirror(sid)
    follow(disk, sid, mirror)
    count = 0
    while count < 1000:
        few = min(rng.choice((1, 1, 2, 7)), 1000 - count)
        parents = [rng.randrange(count + one + 1) for one in range(few)]
        added = add_turns(
            disk, sid, [turn(disk, f"q{count + one}", above) for one, above in enumerate(parents)]
        )
        count += few
        delta, fetched = follow(disk, sid, mirror)
        assert delta.state == "changed"
        assert fetched == [one.bates for one in added]
        assert mirror.root == added[-1].session_root
        with disk.snapshot() as view:
            index = open_session(view, sid).index
            paths = {seq for one in added for seq in index.path(one.seq)}
        assert {int(bates[-6:]) for bates, _ in delta.nodes} == paths
    assert len(mirror.nodes) == 1001
    assert same(disk, sid, mirror)


def test_labels_are_followed_and_only_what_they_minted_is_fetched(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    add_turns(store, sid, [turn(store, f"q{i}", parent) for i, parent in enumerate((0, 1, 1, 0, 2, 5))])
    mirror = Mirror(sid)
    assert follow(store, sid, mirror)[0].state == "replaced"
    set_label(store, sid, 2, "two")
    added = add_turn(store, sid, turn(store, "more", 4))
    _, fetched = follow(store, sid, mirror)
    assert [int(bates[-6:]) for bates in fetched] == [2, 5, 6, added.seq]
    assert same(store, sid, mirror)
    delta, fetched = follow(store, sid, mirror)
    assert (delta.state, delta.nodes, fetched) == ("current", [], [])


def test_a_client_that_missed_much_or_was_elsewhere_catches_up(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    mirror = Mirror(sid)
    follow(store, sid, mirror)
    for i in range(30):
        add_turn(store, sid, turn(store, f"q{i}", i // 2))
    assert follow(store, sid, mirror)[0].state == "changed"
    assert same(store, sid, mirror)
    mirror.root = "ab" * 32
    node = mirror.nodes[30]
    mirror.nodes[31], mirror.parents[31] = structs.replace(node, bates=f"{sid}-000031"), 3
    mirror.hashes[31], mirror.subtrees[31] = b"\1" * 32, b"\2" * 32
    mirror.children[3] = mirror.children.get(3, frozenset()) | {31}
    mirror.nodes[30] = structs.replace(node, question="another")
    mirror.hashes[30] = b"\3" * 32
    delta, fetched = follow(store, sid, mirror)
    assert (delta.state, len(delta.nodes)) == ("replaced", 31)
    assert fetched == [f"{sid}-000030"]
    assert same(store, sid, mirror)


def test_one_change_of_a_large_tree_is_a_small_delta(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    add_turns(store, sid, [turn(store, f"q{i}", i // 2) for i in range(4000)])
    with store.snapshot() as view:
        before = open_session(view, sid).state.root
    add_turn(store, sid, turn(store, "x", 3999))
    with store.snapshot() as view:
        assert len(encode_delta(changes_since(view, open_session(view, sid), before))) < 4096


def test_what_does_not_add_up_leaves_the_client_as_it_was(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    add_turns(store, sid, [turn(store, f"q{i}", i // 2) for i in range(6)])
    mirror = Mirror(sid)
    follow(store, sid, mirror)
    held = mirror.root, dict(mirror.nodes), dict(mirror.children)
    add_turns(store, sid, [turn(store, "x", 3), turn(store, "y", 5)])
    with store.snapshot() as view:
        session = open_session(view, sid)
        delta = changes_since(view, session, mirror.root)

        def fetch(bates: str) -> FetchedNode:
            return fetch_node(view, session, bates)

        def other_question(bates: str) -> FetchedNode:
            got = fetch(bates)
            return structs.replace(got, node=structs.replace(got.node, question="another"))

        def other_parent(bates: str) -> FetchedNode:
            return structs.replace(fetch(bates), parent_bates=f"{sid}-000001")

        wrong = [
            (structs.replace(delta, session_root="ab" * 32), fetch),
            (structs.replace(delta, state="current", nodes=[]), fetch),
            (structs.replace(delta, nodes=delta.nodes[:-1]), fetch),
            (structs.replace(delta, nodes=delta.nodes[1:]), fetch),
            (structs.replace(delta, nodes=delta.nodes[::-1]), fetch),
            (structs.replace(delta, nodes=[delta.nodes[0], *delta.nodes]), fetch),
            (structs.replace(delta, nodes=[(b, "ab" * 32) for b, _ in delta.nodes]), fetch),
            (
                structs.replace(delta, nodes=[("20260304-050607-9999" + b[20:], h) for b, h in delta.nodes]),
                fetch,
            ),
            (delta, other_question),
            (delta, other_parent),
            (delta, lambda bates: fetch(f"{sid}-000002")),
        ]
        for bad, how in wrong:
            with pytest.raises(CheckFailed):
                mirror.apply(bad, how)
            assert (mirror.root, mirror.nodes, mirror.children) == held
        mirror.apply(delta, fetch)
    assert same(store, sid, mirror)


def test_a_fork_is_not_taken_for_a_chain(store: Store, turn: Make) -> None:
    """A server that says another parent than the node's body names is refused, though the root may agree."""
    sid, _ = new_session(store)
    for i in range(8):
        add_turn(store, sid, turn(store, f"q{i}", 0))
    with store.snapshot() as view:
        session = open_session(view, sid)
        delta = changes_since(view, session, None)
        for above in range(7):

            def moved(bates: str, above: int = above) -> FetchedNode:
                got = fetch_node(view, session, bates)
                return structs.replace(got, parent_bates=f"{sid}-{above:06d}") if bates.endswith("8") else got

            if above != 0:
                with pytest.raises(CheckFailed):
                    Mirror(sid).apply(delta, moved)
            else:
                Mirror(sid).apply(delta, moved)


def test_a_fork_is_not_taken_for_the_chain_that_has_its_root(store: Store, turn: Make) -> None:
    """The child with the smaller leaf hash can be told as the parent of the other under the same root."""
    for number in range(50):
        sid, _ = new_session(store, random=lambda n, number=number: bytes([9, number]))
        add_turns(store, sid, [turn(store, f"q{number}", 0), turn(store, "r", 0)])
        with store.snapshot() as view:
            session = open_session(view, sid)
            leaves = [session.index.subtree_hash(seq) for seq in (1, 2)]
        if leaves[0] < leaves[1]:
            break
    assert leaves[0] < leaves[1]
    with store.snapshot() as view:
        chain = subtree_hash(open_session(view, sid).index.node_hash(1), [leaves[1]])
    told = Delta(
        nodes=[
            (f"{sid}-000000", session.state.root),
            (f"{sid}-000001", chain.hex()),
            (f"{sid}-000002", leaves[1].hex()),
        ],
        session_root=session.state.root,
        state="replaced",
    )
    with store.snapshot() as view:
        session = open_session(view, sid)

        def lying(bates: str) -> FetchedNode:
            got = fetch_node(view, session, bates)
            return structs.replace(got, parent_bates=f"{sid}-000001") if bates.endswith("2") else got

        with pytest.raises(CheckFailed, match="does not name the node it stands under"):
            Mirror(sid).apply(told, lying)


def test_what_was_never_asked_for_is_refused(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    with store.snapshot() as view:
        session = open_session(view, sid)
        for root in ("", "xyz", "AB" * 32, "ab" * 31):
            with pytest.raises(UsageError):
                changes_since(view, session, root)
        with pytest.raises(NotFound):
            fetch_node(view, session, f"{sid}-000009")
        with pytest.raises(UsageError):
            fetch_node(view, session, "20260304-050607-ffff-000000")
        with pytest.raises(CheckFailed):
            fetch_node(view, session, "7")
    for data in (b"", b"{}", b"[]", b'{"nodes":[],"session_root":"x","state":"current"}'):
        with pytest.raises(CheckFailed):
            decode_delta(data)
        with pytest.raises(CheckFailed):
            decode_fetched(data)
