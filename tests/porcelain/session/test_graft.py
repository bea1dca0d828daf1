"""Sessions that went on in two places, and how they become one again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from objstore.errors import Conflict
from objstore.memory import MemoryDatabase
from objstore.store import Store
from porcelain.session.integrity.checking import chain_check
from porcelain.session.tree import names
from porcelain.session.tree.change import open_session
from porcelain.session.tree.graft import graft_heads, join_heads
from porcelain.session.tree.listing import list_sessions
from porcelain.session.tree.places import current_seq
from porcelain.session.tree.retention import collect
from porcelain.session.tree.store import (
    Turn,
    add_turn,
    add_turns,
    new_session,
    set_label,
)

Make = Callable[..., Turn]


def machine(number: int) -> Store:
    return Store(MemoryDatabase(store=f"{number:016d}"), now=lambda: f"2026-03-0{number}T05:06:07Z")


def sync(target: Store, source: Store) -> None:
    """What a sync does: objects, then the union of heads without those that others go back to."""
    batch = target.batch()
    with source.snapshot() as theirs, target.snapshot() as mine:
        for key, found in theirs.objects():
            if key not in mine:
                batch.put(found.kind, found.data)
    target.commit(batch)
    batch = target.batch()
    with source.snapshot() as theirs, target.snapshot() as mine:
        for sid in names.session_ids(theirs):
            here = names.heads(mine, sid)
            joined = join_heads(mine, [*here, *names.heads(theirs, sid)])
            for head in set(here) - set(joined):
                batch.move_ref(names.head_ref(sid, head), None, head, "sync")
            for head in set(joined) - set(here):
                batch.move_ref(names.head_ref(sid, head), head, None, "sync")
    target.commit(batch)


def pair(turn: Make, parents: Iterable[int] = (0, 1)) -> tuple[Store, Store, str]:
    """Two stores that have the same session."""
    a, b = machine(1), machine(2)
    sid, _ = new_session(a)
    add_turns(a, sid, [turn(a, f"shared {n}", above) for n, above in enumerate(parents)])
    sync(b, a)
    return a, b, sid


def tree(store: Store, sid: str) -> dict[int, tuple[int | None, str, str | None]]:
    with store.snapshot() as view:
        session = open_session(view, sid)
        return {
            seq: (
                session.index.parent(seq),
                session.node(view, seq).question,
                session.node(view, seq).label,
            )
            for seq in session.index.seqs()
        }


def heads(store: Store, sid: str) -> list[str]:
    with store.snapshot() as view:
        return names.heads(view, sid)


def in_order(store: Store, sid: str) -> bool:
    with store.snapshot() as view:
        return all(one.status == "verified" for one in chain_check(view, sid, replay=True))


def test_a_session_that_went_on_in_two_places_has_two_heads(turn: Make) -> None:
    a, b, sid = pair(turn)
    add_turn(a, sid, turn(a, "from a"))
    add_turn(b, sid, turn(b, "from b", 1))
    sync(a, b)
    assert len(heads(a, sid)) == 2
    with a.snapshot() as view:
        with pytest.raises(names.Diverged):
            open_session(view, sid)
        (summary,) = list_sessions(view)
        assert (len(summary.heads), summary.root) == (2, None)
        assert len(chain_check(view, sid)) == 2
    with pytest.raises(Conflict):
        add_turn(a, sid, turn(a, "where?"))
    assert in_order(a, sid)


def test_one_that_is_only_ahead_has_one_head(turn: Make) -> None:
    a, b, sid = pair(turn)
    add_turn(a, sid, turn(a, "from a"))
    sync(b, a)
    assert heads(a, sid) == heads(b, sid)
    assert tree(a, sid) == tree(b, sid)
    done = graft_heads(b, sid)
    assert (done.united, done.nodes) == ([], [])
    add_turn(b, sid, turn(b, "goes on", 3))
    assert in_order(b, sid)


def test_grafting_both_ways_ends_in_the_same_tree(turn: Make) -> None:
    a, b, sid = pair(turn)
    add_turns(a, sid, [turn(a, "a1", 2), turn(a, "a2", 3)])
    add_turns(b, sid, [turn(b, "b1", 1), turn(b, "b2", 3, label="mark"), turn(b, "b3", 4)])
    sync(a, b)
    sync(b, a)
    done = graft_heads(a, sid)
    assert [one.seq for one in done.nodes] == [6, 7]
    graft_heads(b, sid)
    assert a.refs("session/") == b.refs("session/")
    sync(a, b)
    sync(b, a)
    assert len(heads(a, sid)) == 1
    assert tree(a, sid) == tree(b, sid)
    assert tree(a, sid) == {
        0: (None, "", None),
        1: (0, "shared 0", None),
        2: (1, "shared 1", None),
        3: (1, "b1", None),
        4: (3, "b2", "mark"),
        5: (4, "b3", None),
        6: (2, "a1", None),
        7: (6, "a2", None),
    }
    assert in_order(a, sid) and in_order(b, sid)
    (head,) = heads(a, sid)
    first = a.get(a.get(head)["previous"][0])
    assert sorted(first["previous"]) == sorted(done.united)
    assert first["body"]["grafted_from"] != first["body"]["node_hash"]
    with a.snapshot() as view:
        assert current_seq(view, open_session(view, sid)) == 7


def test_a_label_on_one_and_a_turn_on_the_other_graft_without_duplicates(turn: Make) -> None:
    a, b, sid = pair(turn)
    set_label(a, sid, 1, "named")
    add_turn(b, sid, turn(b, "b1", 2))
    for _ in range(2):
        sync(a, b)
        sync(b, a)
        graft_heads(a, sid)
        graft_heads(b, sid)
    assert tree(a, sid) == tree(b, sid)
    assert [one[1:] for one in tree(a, sid).values()] == [
        ("", None),
        ("shared 0", "named"),
        ("shared 1", None),
        ("b1", None),
    ]
    assert heads(a, sid) == heads(b, sid)
    assert in_order(a, sid)


def test_a_later_label_of_a_grafted_turn_follows_it(turn: Make) -> None:
    a, b, sid = pair(turn)
    add_turns(a, sid, [turn(a, "a1", 2), turn(a, "a2", 3), turn(a, "a3", 3)])
    add_turn(b, sid, turn(b, "b1", 1))
    sync(a, b)
    graft_heads(a, sid)
    set_label(b, sid, 3, "later")
    add_turn(b, sid, turn(b, "b2", 3))
    sync(a, b)
    done = graft_heads(a, sid)
    assert [one.bates[-1] for one in done.nodes] == ["7"]
    assert {one[1:] for one in tree(a, sid).values()} >= {("b1", "later"), ("b2", None), ("a2", None)}
    assert len(tree(a, sid)) == 8
    assert in_order(a, sid)
    sync(b, a)
    assert heads(b, sid) == heads(a, sid)
    with b.snapshot() as view:
        session = open_session(view, sid)
        assert session.node(view, current_seq(view, session)).question == "b2"


def test_two_labels_of_one_turn_keep_the_bases_and_unite_all_the_same(turn: Make) -> None:
    a, b, sid = pair(turn)
    set_label(a, sid, 1, "mine")
    set_label(b, sid, 1, "yours")
    sync(a, b)
    sync(b, a)
    graft_heads(a, sid)
    graft_heads(b, sid)
    assert heads(a, sid) == heads(b, sid) and len(heads(a, sid)) == 1
    assert tree(a, sid) == tree(b, sid)
    assert tree(a, sid)[1][2] in ("mine", "yours")
    assert in_order(a, sid)
    (head,) = heads(a, sid)
    assert len(a.get(head)["previous"]) == 2


def test_a_label_that_both_gave_stays_as_the_longer_chain_has_it(turn: Make) -> None:
    a, b, sid = pair(turn)
    set_label(a, sid, 1, "mine")
    set_label(a, sid, 2, "more")
    set_label(b, sid, 1, "yours")
    sync(a, b)
    assert graft_heads(a, sid).labels == []
    assert [one[2] for one in tree(a, sid).values()] == [None, "mine", "more"]


def test_numbers_of_the_other_head_are_not_given_to_other_turns(turn: Make) -> None:
    a, b, sid = pair(turn)
    for name in ("one", "two", "three"):
        set_label(a, sid, 1, name)
    add_turns(b, sid, [turn(b, f"b{n}", 2) for n in range(2)])
    sync(a, b)
    done = graft_heads(a, sid)
    assert [one.seq for one in done.nodes] == [5, 6]
    assert [one[1] for one in tree(a, sid).values()] == ["", "shared 0", "shared 1", "b0", "b1"]


def test_a_label_taken_away_on_one_side_stays_away(turn: Make) -> None:
    a, b, sid = pair(turn)
    set_label(a, sid, 1, "old")
    sync(b, a)
    set_label(a, sid, 1, None)
    add_turns(b, sid, [turn(b, "b1", 1), turn(b, "b2", 1)])
    sync(a, b)
    graft_heads(a, sid)
    assert tree(a, sid)[1][2] is None
    assert len(tree(a, sid)) == 5


def test_three_heads_become_one(turn: Make) -> None:
    a, b, sid = pair(turn)
    c = machine(3)
    sync(c, a)
    for store, name in ((a, "a"), (b, "b"), (c, "c")):
        add_turn(store, sid, turn(store, f"from {name}", 2))
    sync(a, b)
    sync(a, c)
    assert len(graft_heads(a, sid).united) == 3
    assert {one[1] for one in tree(a, sid).values()} == {
        "",
        "shared 0",
        "shared 1",
        "from a",
        "from b",
        "from c",
    }
    assert in_order(a, sid)
    sync(b, a)
    assert heads(b, sid) == heads(a, sid)


def test_numbers_are_not_given_twice(turn: Make) -> None:
    a, b, sid = pair(turn)
    add_turn(a, sid, turn(a, "a1", 2))
    add_turns(b, sid, [turn(b, f"b{n}", 2) for n in range(3)])
    sync(a, b)
    done = graft_heads(a, sid)
    assert [one.seq for one in done.nodes] == [6]
    assert add_turn(a, sid, turn(a, "next", 6)).seq == 7


ACTIONS = st.lists(st.tuples(st.sampled_from("abs"), st.integers(0, 50), st.booleans()), max_size=14)


@settings(max_examples=60)
@given(ACTIONS)
def test_whatever_two_machines_do_they_converge(actions: list[tuple[str, int, bool]]) -> None:
    a, b = machine(1), machine(2)
    stores = {"a": a, "b": b}
    sid, _ = new_session(a)
    sync(b, a)
    asked = 0
    for who, pick, labelling in actions:
        if who == "s":
            one, other = (a, b) if labelling else (b, a)
            sync(one, other)
            graft_heads(one, sid)
            continue
        store = stores[who]
        seqs = sorted(tree(store, sid))
        if labelling and len(seqs) > 1:
            set_label(store, sid, seqs[1 + pick % (len(seqs) - 1)], f"label {pick}")
        else:
            answer = store.put({"text": "yes", "type": "text"})
            question = f"{who} {asked}"
            add_turn(
                store,
                sid,
                Turn(
                    question=question,
                    answer=answer,
                    audit_mode="STRICT",
                    cache_key="1" * 64,
                    parent=seqs[pick % len(seqs)],
                ),
            )
            asked += 1
    for _ in range(2):
        sync(a, b)
        sync(b, a)
        graft_heads(a, sid)
        graft_heads(b, sid)
    assert heads(a, sid) == heads(b, sid)
    assert len(heads(a, sid)) == 1
    questions = [one[1] for one in tree(a, sid).values()]
    assert len(questions) == len(set(questions)) == asked + 1
    assert tree(a, sid) == tree(b, sid)
    assert in_order(a, sid)


def test_heads_are_joined_without_those_that_others_go_back_to(turn: Make) -> None:
    a, b, sid = pair(turn)
    old = heads(a, sid)
    add_turn(a, sid, turn(a, "a1"))
    add_turn(b, sid, turn(b, "b1", 1))
    sync(a, b)
    two = heads(a, sid)
    with a.snapshot() as view:
        assert join_heads(view, [*old, *two]) == two
        assert join_heads(view, []) == []
    graft_heads(a, sid)
    with a.snapshot() as view:
        assert join_heads(view, [*old, *two, *names.heads(view, sid)]) == names.heads(view, sid)


def test_both_heads_of_a_diverged_session_are_collected(turn: Make) -> None:
    a, b, sid = pair(turn)
    add_turn(a, sid, turn(a, "a1"))
    add_turn(b, sid, turn(b, "b1", 1))
    sync(a, b)
    assert collect(a, 0, confirmed=True).removed == [sid]
    assert a.refs("session/") == {}
