"""Runs of events: they hold only what a look at each event and node one by one would find in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from threading import Event as Flag

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from objstore import kinds
from objstore.memory import MemoryDatabase
from objstore.objects import check_stored
from objstore.snapshot import Snapshot, Stored
from objstore.store import Store
from porcelain.session.integrity import run_finding
from porcelain.session.integrity.checking import chain_check
from porcelain.session.integrity.run_finding import find_runs
from porcelain.session.integrity.runs import (
    chain_in_runs,
    likely_events,
    patterns_of,
    read_event_runs,
    read_runs,
)
from porcelain.session.tree import names, replay
from porcelain.session.tree.events import ZERO_ROOT, Event
from porcelain.session.tree.store import Turn, add_turns, new_session, set_label

Make = Callable[..., Turn]
QUESTIONS = ["plain", 'quoted "so" and \\ back', "two\nlines\tand \x01\x7f", "Привет ☃ 🎈", "x" * 5000]


def grown(store: Store, turn: Make, nodes: int) -> str:
    """A session of ``nodes`` turns, three children each, labels among them."""
    sid, _ = new_session(store, random=lambda n: b"\1\2")
    for i in range(nodes):
        question = QUESTIONS[i % len(QUESTIONS)]
        add_turns(store, sid, [turn(store, question, i // 3, label='a "b"' if i == 4 else None)])
    return sid


def head_of(view: Snapshot, sid: str) -> str:
    (head,) = names.heads(view, sid)
    return head


def test_a_session_of_turns_is_one_run_whatever_is_asked(store: Store, turn: Make) -> None:
    sid = grown(store, turn, 20)
    with store.snapshot() as view:
        runs = find_runs(view, sid)
        head = head_of(view, sid)
        assert list(runs) == [head]
        first, run = chain_in_runs(view, head, runs)
        assert run == runs[head] and isinstance(first, list) and len(first) == 1
        assert (run.seqs, run.last_seq) == (list(range(1, 21)), 21)


def test_a_label_parts_two_runs(store: Store, turn: Make) -> None:
    sid = grown(store, turn, 10)
    set_label(store, sid, 2, "two")
    add_turns(store, sid, [turn(store, f"later {i}", 2) for i in range(5)])
    with store.snapshot() as view:
        runs = find_runs(view, sid)
        assert sorted(len(run.keys) for run in runs.values()) == [5, 10]
        (found,) = chain_check(view, sid)
    assert (found.status, found.nodes, found.events) == ("verified", 16, 17)


class One:
    """A snapshot that holds these objects and no more."""

    def __init__(self, *objects: tuple[str, bytes]) -> None:
        self.objects = {sha256(data).digest(): Stored(kind, data) for kind, data in objects}

    def get_verified(
        self, keys: Sequence[bytes], kind: str, digests: Callable[[list[bytes]], list[bytes]]
    ) -> list[bytes] | None:
        datas = [found.data for key in keys if (found := self.objects.get(key)) is not None]
        return datas if digests(datas) == list(keys) else None


_EDITS = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 2), st.sampled_from(b'\n "\\09afgA{},:\xc3-')),
    max_size=3,
)


def edited(data: bytes, edits: list[tuple[int, int, int]]) -> bytes:
    """``data`` with bytes replaced, inserted (0 taken away) or taken away."""
    for at, taken, byte in edits:
        at %= len(data) + 1
        data = data[:at] + (b"" if taken == 2 else bytes([byte])) + data[at + min(taken, 1) :]
    return data


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(which=st.integers(1, 7), edits=_EDITS, zero=st.booleans())
def test_what_is_in_a_run_is_sound(
    store: Store, turn: Make, which: int, edits: list[tuple[int, int, int]], zero: bool
) -> None:
    """However an event is changed, also with a key that fits: in a run it is a sound event and canonical."""
    with store.snapshot() as view:
        sids = names.session_ids(view)
    sid = sids[0] if sids else grown(store, turn, 7)
    with store.snapshot() as view:
        (found,) = view.get_many([likely_events(view, sid)[which]])
        assert found is not None
        data = edited(found.data, edits)
        if zero:
            at = data.find(b'"prev_root":"') + 13
            data = data[:at] + ZERO_ROOT.encode() + data[at + 64 :]
        alone: Snapshot = One((found.kind, data))  # type: ignore[assignment]
        runs = read_event_runs(alone, patterns_of(sid), [sha256(data).digest()])
        if data == found.data:
            assert len(runs) == 1
        for run in runs:
            event: Event = check_stored("session-event", data)
            assert event.session_id == sid and event.body.event_type == "node_added"
            assert [run.previous] == event.previous and run.last_seq == event.seq
            assert run.texts.body[0] == kinds.encode(event.body)


def with_node(
    store: Store, turn: Make, which: int, change: Callable[[bytes], bytes]
) -> tuple[list[replay.Run], bytes]:
    """The runs that there are of an event whose node was changed, with hashes that fit, and the node."""
    with store.snapshot() as view:
        sids = names.session_ids(view)
    sid = sids[0] if sids else grown(store, turn, 7)
    with store.snapshot() as view:
        (event,) = view.get_many([likely_events(view, sid)[which]])
        assert event is not None
        node_hash = check_stored("session-event", event.data).body.node_hash
        (node,) = view.get_many([bytes.fromhex(node_hash)])
        assert node is not None
    data = change(node.data)
    before = check_stored("session-event", event.data)
    body = structs.replace(before.body, node_hash=sha256(data).hexdigest())
    renamed = kinds.encode(structs.replace(before, body=body))
    alone: Snapshot = One((event.kind, renamed), (node.kind, data))  # type: ignore[assignment]
    return read_runs(alone, patterns_of(sid), [sha256(renamed).digest()]), data


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(which=st.integers(1, 7), edits=_EDITS)
def test_a_node_in_a_run_is_sound(
    store: Store, turn: Make, which: int, edits: list[tuple[int, int, int]]
) -> None:
    runs, data = with_node(store, turn, which, lambda data: edited(data, edits))
    if not edits:
        assert len(runs) == 1
    for run in runs:
        found = check_stored("session-node", data)
        assert found.bates.endswith(f"-{which:06d}")
        assert [bytes.fromhex(found.parent_node_hash)] == run.above


_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(question=_TEXTS, label=_TEXTS | st.none())
def test_whatever_is_asked_is_in_a_run(store: Store, turn: Make, question: str, label: str | None) -> None:
    def ask(data: bytes) -> bytes:
        node = check_stored("session-node", data)
        return kinds.encode(structs.replace(node, question=question, label=label))

    assert len(with_node(store, turn, 3, ask)[0]) == 1


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_check_in_runs_finds_what_one_by_one_finds(store: Store, turn: Make, data: st.DataObject) -> None:
    database = store.database
    assert isinstance(database, MemoryDatabase)
    with store.snapshot() as view:
        sids = names.session_ids(view)
    if not sids:
        sid = grown(store, turn, 12)
        set_label(store, sid, 3, "three")
        add_turns(store, sid, [turn(store, "later", 3)])
    else:
        (sid,) = sids
    whole, derived = dict(database.objects), dict(database.derived)
    used = sorted(key for key, one in whole.items() if one.kind.startswith("session-"))
    key = data.draw(st.sampled_from(used))
    found = whole[key]
    changed = edited(found.data, data.draw(_EDITS))
    other = data.draw(st.sampled_from([None, *used]))
    if other is not None:
        changed = whole[other].data
    try:
        database.objects = whole | {key: Stored(found.kind, changed)}
        with store.snapshot() as view:
            in_runs = chain_check(view, sid)
        database.derived = {}
        with store.snapshot() as view:
            assert find_runs(view, sid) == {}
            assert chain_check(view, sid) == in_runs
    finally:
        database.objects, database.derived = whole, derived


def test_a_misleading_index_misleads_nobody(store: Store, turn: Make) -> None:
    sid = grown(store, turn, 12)
    database = store.database
    assert isinstance(database, MemoryDatabase)
    with store.snapshot() as view:
        expected = chain_check(view, sid)
    rows = [key for key in database.derived if key.startswith(f"session/{sid}/e".encode())]
    whole = dict(database.derived)
    for a, b in pairwise(rows):
        database.derived = whole | {a: whole[b], b: whole[a]}
        with store.snapshot() as view:
            assert chain_check(view, sid) == expected
    database.derived = whole | {key: b"\0" * 32 for key in rows[3:6]} | {rows[8]: b"short"}
    with store.snapshot() as view:
        assert chain_check(view, sid) == expected


def test_another_process_finds_the_same_runs(
    disk: Store, turn: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "GROUP", 4)
    monkeypatch.setattr(run_finding, "_PARALLEL_FROM", 1)
    monkeypatch.setattr(run_finding, "_TASK_GROUPS", 3)
    monkeypatch.setattr(run_finding, "_RESULT_GROUPS", 2)
    sid = grown(disk, turn, 30)
    path = str(tmp_path / "store")
    with disk.snapshot() as view:
        alone = find_runs(view, sid)
        assert len(alone) == 8
        groups = list(enumerate(replay.in_groups(likely_events(view, sid)[1:])))
        found: dict[int, list[replay.Run]] = {}
        run_finding._find_in_other(run_finding._Share(path, sid), groups, found, Flag())
        assert list(found) == list(range(8))[::-1]
        assert {run.keys[-1].hex(): run for runs in found.values() for run in runs} == alone
        assert find_runs(view, sid, path) == alone
        assert find_runs(view, sid, str(tmp_path / "nowhere")) == alone
        assert [one.status for one in chain_check(view, sid, path=path)] == ["verified"]
