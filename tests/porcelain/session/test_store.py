"""Beginning sessions, asking in them, naming nodes; two processes at once; a process that dies."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from objstore.batch import Batch
from objstore.errors import Conflict, NotFound, RefMoved, UsageError
from objstore.memory import MemoryDatabase
from objstore.snapshot import Snapshot, Stored, resolve
from objstore.store import Store
from porcelain.session.integrity.checking import chain_check
from porcelain.session.tree import names
from porcelain.session.tree.change import Change, open_session
from porcelain.session.tree.identity import MAX_SEQ
from porcelain.session.tree.index import index_prefix, read_state
from porcelain.session.tree.places import current_seq
from porcelain.session.tree.store import (
    Turn,
    add_turn,
    add_turns,
    new_session,
    refresh_index,
    set_label,
)

Make = Callable[..., Turn]
ROOT = Path(__file__).resolve().parents[3]


def questions(store: Store, sid: str) -> dict[int, str]:
    with store.snapshot() as view:
        session = open_session(view, sid)
        return {seq: session.node(view, seq).question for seq in session.index.seqs()}


def verified(store: Store, sid: str) -> bool:
    with store.snapshot() as view:
        return [one.status for one in chain_check(view, sid, replay=True)] == ["verified"]


def test_a_new_session_is_a_root_an_event_and_a_place(store: Store) -> None:
    sid, state = new_session(store, random=lambda n: b"\xab\x12")
    assert sid == "20260304-050607-ab12"
    assert (state.node_count, state.event_count, state.next_seq) == (1, 1, 1)
    assert store.get(f"session/{sid}/head")["body"]["rules"] == {
        "canonical": "canon-json-1",
        "event": "prev-raw-1",
        "merkle": "merkle-v1",
    }
    assert list(store.refs("session/")) == [f"session/{sid}/heads/{state.head}"]
    with store.snapshot() as view:
        assert resolve(view, f"session/{sid}/root").hex() == state.root
        assert current_seq(view, open_session(view, sid)) == 0


def test_a_session_id_is_never_given_twice(store: Store) -> None:
    given = iter([b"\0\0", b"\0\0", b"\0\1"])
    first, _ = new_session(store, random=lambda n: next(given))
    second, _ = new_session(store, random=lambda n: next(given))
    assert (first[-4:], second[-4:]) == ("0000", "0001")
    with pytest.raises(Conflict):
        new_session(store, random=lambda n: b"\0\0")


def test_a_turn_lands_under_where_the_person_is_or_where_it_is_told_to(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    one = add_turn(store, sid, turn(store, "one"))
    two = add_turn(store, sid, turn(store, "two"))
    side = add_turn(store, sid, turn(store, "side", 1))
    assert [one.seq, two.seq, side.seq] == [1, 2, 3]
    with store.snapshot() as view:
        session = open_session(view, sid)
        assert [session.index.parent(seq) for seq in range(4)] == [None, 0, 1, 1]
        assert current_seq(view, session) == 3
        assert session.state.root == side.session_root
        assert session.answer(view, 2) == turn(store, "").answer
        assert session.answer(view, 0) is None
        event = session.event(view, 2)
    assert event.body.parent_bates == f"{sid}-000001"
    assert verified(store, sid)


def test_one_transaction_moves_everything(store: Store, turn: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sid, _ = new_session(store)
    batches: list[Batch] = []
    commit = Store.commit
    monkeypatch.setattr(Store, "commit", lambda self, batch: batches.append(batch) or commit(self, batch))
    ready = turn(store, "one")
    batches.clear()
    add_turn(store, sid, ready)
    (batch,) = batches
    assert len(batch) == 2
    assert {move.name.split("/")[2] for move in batch.moves} == {"heads", "current"}
    assert batch.derived


def test_what_may_not_be_asked_is_refused_and_nothing_is_written(store: Store, turn: Make) -> None:
    sid, state = new_session(store)
    good = turn(store, "good")
    for wrong in (
        {"question": "a\x00b"},
        {"question": " \n"},
        {"question": "x" * 65537},
        {"question": "\ud800"},
        {"audit_mode": ""},
        {"cache_key": "1"},
        {"answer": "x"},
        {"label": "7"},
        {"created_at": "yesterday"},
    ):
        with pytest.raises(UsageError):
            add_turn(store, sid, Turn(**({f: getattr(good, f) for f in good.__struct_fields__} | wrong)))
    with pytest.raises(NotFound):
        add_turn(store, sid, turn(store, "x", 5))
    with pytest.raises(NotFound):
        add_turn(store, sid, Turn(question="x", answer="0" * 64, audit_mode="STRICT", cache_key="1" * 64))
    with pytest.raises(NotFound):
        add_turn(store, "20260304-050607-ffff", good)
    with pytest.raises(UsageError):
        add_turn(store, "nonsense", good)
    assert store.refs("session/") == {f"session/{sid}/heads/{state.head}": state.head}


def test_secrets_are_replaced_before_anything_is_hashed(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    secret = "ghp_" + "a1B2" * 9
    add_turn(store, sid, turn(store, f"is {secret} still valid?", label=f"key {secret}"))
    set_label(store, sid, 1, f"the {secret}")
    with store.snapshot() as view:
        for _, found in view.objects():
            assert secret.encode() not in found.data


def test_numbers_end_where_six_digits_do(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    batch = store.batch()
    with store.snapshot() as view:
        made = Change(view, batch, sid)
        made.next_seq = MAX_SEQ + 1
        with pytest.raises(Conflict):
            made.add(
                answer="0" * 64,
                audit_mode="STRICT",
                cache_key="1" * 64,
                created_at="2026-03-04T05:06:07Z",
                label=None,
                parent=0,
                question="one too many",
            )


class _Counting:
    """A snapshot that counts what is read."""

    def __init__(self, view: Snapshot) -> None:
        self._view = view
        self.objects = 0
        self.rows = 0

    def get(self, key: bytes) -> Stored | None:
        self.objects += 1
        return self._view.get(key)

    def derived(self, key: bytes) -> bytes | None:
        self.rows += 1
        return self._view.derived(key)

    def __contains__(self, key: object) -> bool:
        return key in self._view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


def test_an_insert_touches_the_ancestors_and_nothing_else(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    add_turns(store, sid, [turn(store, f"q{i}", i // 2) for i in range(300)])
    batch = store.batch()
    with store.snapshot() as view:
        depth = len(open_session(view, sid).index.path(300))
        counting = _Counting(view)
        made = Change(counting, batch, sid)  # type: ignore[arg-type]
        made.add(
            answer="0" * 64,
            audit_mode="STRICT",
            cache_key="1" * 64,
            created_at="2026-03-04T05:06:07Z",
            label=None,
            parent=300,
            question="one more",
        )
        made.finish("ask")
    prefix = index_prefix(sid) + b"n"
    assert sum(key.startswith(prefix) for key in batch.derived) == depth + 1
    assert len(batch.derived) == depth + 1 + 3  # and the event, the root and the state
    assert counting.objects == 1  # the last event
    assert counting.rows <= 3 * depth + 4
    assert depth < 12


def test_the_index_is_made_again_when_it_is_lost_or_damaged(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    add_turns(store, sid, [turn(store, f"q{i}", i // 2, label=f"n{i}") for i in range(20)])
    database = store.database
    assert isinstance(database, MemoryDatabase)
    whole = dict(database.derived)
    prefix = index_prefix(sid)
    state = prefix + b"s"
    rows = [prefix + b"n" + seq.to_bytes(4, "big") for seq in open_path(store, sid, 20)]
    damaged: list[dict[bytes, bytes]] = [{}]
    for key in (state, *rows):
        damaged += [{k: v for k, v in whole.items() if k != key}]
        damaged += [whole | {key: flipped(whole[key], at)} for at in range(0, len(whole[key]), 3)]
    saved = database.objects, database.refs, database.local_refs
    expected = None
    for derived in damaged:
        database.objects, database.refs, database.local_refs = saved
        database.derived = derived
        added = add_turn(store, sid, turn(store, "after", 20))
        expected = expected or added
        assert added == expected
        with store.snapshot() as view:
            assert open_session(view, sid).index.subtree_hash(0).hex() == added.session_root
            assert read_state(view, sid) == open_session(view, sid).state


def open_path(store: Store, sid: str, seq: int) -> list[int]:
    with store.snapshot() as view:
        return open_session(view, sid).index.path(seq)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_damaged_row_below_a_label_is_found(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    add_turns(store, sid, [turn(store, f"q{i}", i // 2) for i in range(12)])
    database = store.database
    assert isinstance(database, MemoryDatabase)
    whole, saved = dict(database.derived), (database.objects, database.refs, database.local_refs)
    roots = set()
    for at in range(4, 68, 5):
        key = index_prefix(sid) + b"n" + (9).to_bytes(4, "big")
        database.objects, database.refs, database.local_refs = saved
        database.derived = whole | {key: flipped(whole[key], at)}
        roots.add(set_label(store, sid, 1, "one").session_root)
        assert verified(store, sid)
    assert len(roots) == 1


def test_an_index_is_the_same_made_anew(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    add_turns(
        store, sid, [turn(store, f"q{i}", i // 3, label=f"n{i}" if i % 4 == 0 else None) for i in range(20)]
    )
    set_label(store, sid, 2, "two")
    set_label(store, sid, 1, None)
    set_label(store, sid, 5, "five")
    database = store.database
    assert isinstance(database, MemoryDatabase)
    grown = dict(database.derived)
    database.derived = {}
    refresh_index(store, sid)
    assert database.derived == grown


def test_a_label_mints_the_node_and_all_below_it_again(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    add_turns(store, sid, [turn(store, f"q{parent}", parent) for parent in (0, 1, 0, 2)])
    with store.snapshot() as view:
        index = open_session(view, sid).index
        before = {seq: index.node_hash(seq) for seq in index.seqs()}
    done = set_label(store, sid, 1, "here")
    assert done.minted == 3
    with store.snapshot() as view:
        session = open_session(view, sid)
        after = {seq: session.index.node_hash(seq) for seq in session.index.seqs()}
        assert {seq for seq in after if after[seq] != before[seq]} == {1, 2, 4}
        assert all(key in view for key in before.values())
        assert session.node(view, 1).label == "here"
        assert current_seq(view, session) == 4
        assert view.ref(names.current_ref(sid)) == after[4]
        assert session.state.root == done.session_root
    assert verified(store, sid)
    assert set_label(store, sid, 1, "here").minted == 0
    assert set_label(store, sid, 1, None).minted == 3
    with store.snapshot() as view:
        index = open_session(view, sid).index
        assert {seq: index.node_hash(seq) for seq in index.seqs()} == before
    assert verified(store, sid)
    with pytest.raises(UsageError):
        set_label(store, sid, 0, "root")
    with pytest.raises(NotFound):
        set_label(store, sid, 9, "nobody")


def test_a_lost_race_is_run_again(store: Store, turn: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sid, _ = new_session(store)
    mine, theirs = turn(store, "mine", 0), turn(store, "theirs", 0)
    commit, raced = Store.commit, []

    def racing(self: Store, batch: Batch) -> int:
        if not raced:
            raced.append(True)
            add_turn(store, sid, theirs)
        return commit(self, batch)

    monkeypatch.setattr(Store, "commit", racing)
    assert add_turn(store, sid, mine).seq == 2
    assert questions(store, sid) == {0: "", 1: "theirs", 2: "mine"}
    assert verified(store, sid)


def test_a_head_that_moves_always_is_a_conflict_in_the_end(
    store: Store, turn: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    sid, _ = new_session(store)
    ready = turn(store, "never")

    def lose(self: Store, batch: Batch) -> int:
        raise RefMoved("session/x", None, None)

    monkeypatch.setattr(Store, "commit", lose)
    with pytest.raises(Conflict):
        add_turn(store, sid, ready)


def test_a_store_of_another_hash_has_no_sessions() -> None:
    pytest.importorskip("blake3")
    with pytest.raises(UsageError, match="sha256"):
        new_session(Store(MemoryDatabase("blake3")))


ASK = """
import sys
import porcelain
from objstore.store import Store
from porcelain.session.tree.store import Turn, add_turn
path, sid, answer, who = sys.argv[1:]
with Store.open(path) as store:
    for n in range(12):
        add_turn(store, sid, Turn(question=f"{who} {n}", answer=answer, cache_key="1" * 64, audit_mode="HYBRID"))
"""


def test_two_processes_that_ask_in_one_session_both_land(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store.init(path) as store:
        answer = store.put({"text": "yes", "type": "text"})
        sid, _ = new_session(store)
    running = [
        subprocess.Popen([sys.executable, "-c", ASK, str(path), sid, answer, who], cwd=ROOT)
        for who in ("ada", "bob")
    ]
    assert [one.wait(60) for one in running] == [0, 0]
    with Store.open(path) as store:
        asked = questions(store, sid)
        assert sorted(asked) == list(range(25))
        assert set(asked.values()) == {"", *(f"{who} {n}" for who in ("ada", "bob") for n in range(12))}
        assert verified(store, sid)
        assert store.verify().ok


DIE = """
import os, sys
import porcelain
from objstore import database
from objstore.store import Store
from porcelain.session.tree.store import Turn, add_turn
path, sid = sys.argv[1:]
store = Store.open(path)
answer = store.put({"text": "an answer nobody will see", "type": "text"})
Store.commit = lambda self, batch: os._exit(9)
add_turn(store, sid, Turn(question="lost", answer=answer, cache_key="1" * 64, audit_mode="HYBRID"))
"""


def test_killed_between_answer_and_node_leaves_an_unused_answer(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store.init(path) as store:
        sid, state = new_session(store)
        with store.snapshot() as view:
            count = view.count()
    assert subprocess.run([sys.executable, "-c", DIE, str(path), sid], cwd=ROOT, check=False).returncode == 9
    with Store.open(path) as store:
        with store.snapshot() as view:
            assert view.count() == count + 1
            assert open_session(view, sid).state == state
        assert verified(store, sid)
        assert store.verify().ok


def test_a_linear_chat_of_ten_thousand_turns_and_a_root_with_ten_thousand_children(
    disk: Store, turn: Make
) -> None:
    """Both are grown at once by rows, since growing them by single turns is 10,000 times 10,000 hashes."""
    for wide in (False, True):
        sid = grown(disk, turn, wide)
        added = add_turn(disk, sid, turn(disk, "one more", 0 if wide else 10_000))
        with disk.snapshot() as view:
            session = open_session(view, sid)
            assert session.index.subtree_hash(0).hex() == added.session_root
            assert len(session.index.path(added.seq)) == (2 if wide else 10_002)
            (check,) = chain_check(view, sid)
            assert (check.status, check.nodes) == ("verified", 10_002)
        if not wide:
            assert set_label(disk, sid, 1, "first").minted == 10_001


def grown(store: Store, turn: Make, wide: bool) -> str:
    """A session with 10,000 turns that were added in one batch, whose intermediate roots are those of one insert."""
    sid, _ = new_session(store, random=lambda n: bytes([wide, 1]))
    ready = turn(store, "q")
    batch = store.batch()
    with store.snapshot() as view:
        made = Change(view, batch, sid)
        hashes = [made.index.node_hash(0)]
        made.index = _Rootless(hashes)  # type: ignore[assignment]
        for seq in range(1, 10_001):
            made.add(
                answer=ready.answer,
                audit_mode="STRICT",
                cache_key=ready.cache_key,
                created_at="2026-03-04T05:06:07Z",
                label=None,
                parent=0 if wide else seq - 1,
                question=f"q{seq}",
            )
        made.index.total = _total(hashes, wide)  # type: ignore[attr-defined]
        made.label(0, None, "2026-03-04T05:06:07Z")
        made.batch.derived.clear()
        made.batch.move_ref(names.head_ref(sid, made.head), None, made.head, "test")
        made.batch.move_ref(names.head_ref(sid, made.last_id), made.last_id, None, "test")
    store.commit(batch)
    return sid


def _total(hashes: list[bytes], wide: bool) -> bytes:
    from porcelain.session.tree.replay import subtree_hashes

    children = {0: range(1, len(hashes))} if wide else {seq: [seq + 1] for seq in range(len(hashes) - 1)}
    return subtree_hashes(dict(enumerate(hashes)), children)[0]


class _Rootless:
    """An index that states one root for every tree, which the chain of events follows but no replay would."""

    def __init__(self, hashes: list[bytes]) -> None:
        self.hashes = hashes
        self.total: bytes | None = None

    def node_hash(self, seq: int) -> bytes:
        return self.hashes[seq]

    def insert(self, seq: int, parent: int, digest: bytes) -> None:
        self.hashes.append(digest)

    def subtree_hash(self, seq: int) -> bytes:
        return self.total or b"\7" * 32

    def __contains__(self, seq: int) -> bool:
        return seq < len(self.hashes)

    def set_root(self, root: str, number: int) -> None: ...
    def set_event(self, seq: int, event: str) -> None: ...
