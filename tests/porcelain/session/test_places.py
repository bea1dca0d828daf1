"""Names of nodes, moving about, lists and trees, and which sessions are kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from objstore.errors import NotFound, UsageError
from objstore.snapshot import resolve
from objstore.store import Store
from porcelain.session.tree import names
from porcelain.session.tree.change import open_session
from porcelain.session.tree.listing import (
    branch_points,
    list_sessions,
    show_node,
    subtree_document,
    tree_rows,
)
from porcelain.session.tree.names import is_removed
from porcelain.session.tree.places import AmbiguousLabel, current_seq, move_back, move_to, resolve_node
from porcelain.session.tree.retention import collect, hold_open
from porcelain.session.tree.store import (
    Turn,
    add_turn,
    add_turns,
    new_session,
    set_label,
)

Make = Callable[..., Turn]
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def asked(store: Store, turn: Make) -> str:
    sid, _ = new_session(store, random=lambda n: b"\1\2")
    add_turns(store, sid, [turn(store, f"q{i}", parent) for i, parent in enumerate((0, 1, 1, 3))])
    set_label(store, sid, 2, "here")
    return sid


def test_a_node_is_named_by_bates_id_number_or_label(store: Store, asked: str) -> None:
    with store.snapshot() as view:
        session = open_session(view, asked)
        for text in ("here", "2", "000002", f"{asked}-000002"):
            assert resolve_node(view, session, text) == 2
        for text in (
            "there",
            "5",
            "-1",
            "99999999999999999999",
            f"{asked}-000005",
            "20260304-050607-0000-000002",
            "",
        ):
            with pytest.raises(NotFound):
                resolve_node(view, session, text)


def test_digits_that_are_no_number_of_a_node_are_a_label(store: Store, asked: str) -> None:
    for label in ("1000000", "20261130"):
        set_label(store, asked, 3, label)
        with store.snapshot() as view:
            assert resolve_node(view, open_session(view, asked), label) == 3
        assert move_to(store, asked, label) == f"{asked}-000003"
    for number in ("0", "3", "000003", "999999", "0000000003", "0" * 1000 + "3"):
        with pytest.raises(UsageError):
            set_label(store, asked, 3, number)
    with store.snapshot() as view:
        assert resolve_node(view, open_session(view, asked), "0" * 5000 + "3") == 3


def test_a_label_that_several_nodes_bear_names_none(store: Store, asked: str) -> None:
    set_label(store, asked, 3, "here")
    with store.snapshot() as view:
        session = open_session(view, asked)
        with pytest.raises(AmbiguousLabel) as caught:
            resolve_node(view, session, "here")
    assert caught.value.seqs == [2, 3]
    set_label(store, asked, 2, "there")
    with store.snapshot() as view:
        session = open_session(view, asked)
        assert resolve_node(view, session, "here") == 3
        assert session.index.labels() == [2, 3]


def test_moving_about_writes_no_event(store: Store, asked: str, turn: Make) -> None:
    refs = store.refs()
    assert move_to(store, asked, "here") == f"{asked}-000002"
    assert move_back(store, asked) == f"{asked}-000001"
    assert move_back(store, asked) == f"{asked}-000000"
    with pytest.raises(UsageError):
        move_back(store, asked)
    assert store.refs() == refs
    move_to(store, asked, "here")
    assert add_turn(store, asked, turn(store, "below here")).seq == 5
    with store.snapshot() as view:
        assert open_session(view, asked).index.parent(5) == 2


def test_a_turn_can_leave_the_person_where_they_are(store: Store, asked: str, turn: Make) -> None:
    move_to(store, asked, "1")
    add_turn(store, asked, turn(store, "aside", 4), move_current=False)
    with store.snapshot() as view:
        assert current_seq(view, open_session(view, asked)) == 1


def test_the_tree_is_drawn_top_down_by_number(store: Store, asked: str, turn: Make) -> None:
    add_turn(store, asked, turn(store, "last", 2))
    with store.snapshot() as view:
        session = open_session(view, asked)
        rows = list(tree_rows(view, session))
        assert [(row.seq, row.depth, row.children, row.is_current) for row in rows] == [
            (0, 0, 1, False),
            (1, 1, 2, False),
            (2, 2, 1, False),
            (5, 3, 0, True),
            (3, 2, 1, False),
            (4, 3, 0, False),
        ]
        assert branch_points(session) == [1]


def test_a_node_is_shown_in_full(store: Store, asked: str) -> None:
    with store.snapshot() as view:
        session = open_session(view, asked)
        shown = show_node(view, session, 2)
        assert shown.node.label == "here"
        assert (shown.parent, shown.children) == (f"{asked}-000001", ())
        assert shown.answer == session.answer(view, 2)
        assert show_node(view, session, 1).children == (f"{asked}-000002", f"{asked}-000003")
        assert show_node(view, session, 0).parent is None
        with pytest.raises(NotFound):
            show_node(view, session, 9)
        document = subtree_document(session)
        assert document["subtree_hash"] == resolve(view, f"session/{asked}/root").hex()
        assert len(subtree_document(session, 1)["children"]) == 2  # type: ignore[arg-type]


def begin(store: Store, number: int, turn: Make) -> str:
    sid, _ = new_session(store, created_at=f"2026-01-0{number}T00:00:00Z")
    add_turn(store, sid, turn(store, "q", created_at=f"2026-02-0{10 - number}T00:00:00Z"))
    return sid


def test_sessions_are_listed_by_their_last_event(store: Store, turn: Make) -> None:
    sids = [begin(store, number, turn) for number in (1, 2, 3)]
    with store.snapshot() as view:
        found = list_sessions(view)
    assert [one.sid for one in found] == sids
    assert (found[0].turns, found[0].events) == (1, 2)
    assert found[0].current == f"{sids[0]}-000001"
    assert (found[0].created_at, found[0].updated_at) == ("2026-01-01T00:00:00Z", "2026-02-09T00:00:00Z")


def test_of_sessions_of_one_second_those_of_the_greatest_ids_are_kept(store: Store) -> None:
    sids = [new_session(store, random=lambda n, end=end: bytes([end, end]))[0] for end in (7, 250, 9)]
    assert collect(store, 1).removed == [sids[2], sids[0]]


def test_the_most_recent_sessions_are_kept(store: Store, turn: Make) -> None:
    sids = [begin(store, number, turn) for number in (1, 2, 3, 4)]
    with store.snapshot() as view:
        count = view.count()
    assert collect(store, 9).removed == []
    assert collect(store, 2).removed == sids[2:]
    with store.snapshot() as view:
        assert names.session_ids(view) == sorted(sids[:2])
        assert view.count() == count
        assert [is_removed(view, sid) for sid in sids] == [False, False, True, True]
        assert not list(view.derived_items(f"session/{sids[3]}".encode()))
        assert view.ref(names.current_ref(sids[3])) is None
    with pytest.raises(NotFound):
        add_turn(store, sids[3], turn(store, "gone"))
    with pytest.raises(UsageError):
        collect(store, 0)
    with pytest.raises(UsageError):
        collect(store, -1)
    assert sorted(collect(store, 0, confirmed=True).removed) == sorted(sids[:2])


HOLD = """
import sys
import porcelain
from objstore.store import Store
from porcelain.session.tree.retention import hold_open
with Store.open(sys.argv[1]) as store, hold_open(store, sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_session_that_a_process_holds_open_is_never_removed(tmp_path: Path, turn: Make) -> None:
    path = tmp_path / "store"
    with Store.init(path) as store:
        sids = [begin(store, number, turn) for number in (1, 2, 3)]
    command = [sys.executable, "-c", HOLD, str(path), sids[2]]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        with Store.open(path) as store:
            with hold_open(store, sids[2]), hold_open(store, sids[2]):
                pass
            done = collect(store, 1)
            assert (done.removed, done.open) == ([sids[1]], [sids[2]])
        holder.kill()
    with Store.open(path) as store:
        assert collect(store, 1).removed == [sids[2]]
        with hold_open(store, sids[0]):
            assert collect(store, 0, confirmed=True).open == [sids[0]]
        assert store.verify().ok


def test_an_answer_that_another_session_uses_still_serves(store: Store, turn: Make) -> None:
    sids = [begin(store, number, turn) for number in (1, 2)]
    collect(store, 1)
    with store.snapshot() as view:
        answer = open_session(view, sids[0]).answer(view, 1)
    assert answer is not None
    assert store.get(answer)["type"] == "text"
