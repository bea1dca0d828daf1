"""Checks of sessions: what was tampered with is found, with index, place and reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec import structs

from objstore import kinds
from objstore.errors import CheckFailed
from objstore.memory import MemoryDatabase, MemorySnapshot
from objstore.snapshot import Stored
from objstore.store import Store
from porcelain.session.integrity.checking import Check, chain_check, check_all
from porcelain.session.integrity.run_finding import find_runs
from porcelain.session.tree import names
from porcelain.session.tree.events import Body, Event, check_link, event_hash, follow
from porcelain.session.tree.index import index_prefix
from porcelain.session.tree.replay import main_chain
from porcelain.session.tree.store import (
    Turn,
    add_turns,
    new_session,
    set_label,
)

Make = Callable[..., Turn]


@pytest.fixture
def asked(store: Store, turn: Make) -> str:
    """A session of five turns, two labels and a fork."""
    sid, _ = new_session(store, random=lambda n: b"\1\2")
    add_turns(store, sid, [turn(store, f"q{i}", parent) for i, parent in enumerate((0, 1, 1, 2))])
    set_label(store, sid, 2, "two")
    add_turns(store, sid, [turn(store, "last", 4)])
    set_label(store, sid, 1, "one")
    return sid


def database(store: Store) -> MemoryDatabase:
    assert isinstance(store.database, MemoryDatabase)
    return store.database


def check(store: Store, sid: str, *, replay: bool = False) -> Check:
    with store.snapshot() as view:
        (found,) = chain_check(view, sid, replay=replay)
    return found


def chain(store: Store, sid: str) -> list[tuple[str, Event]]:
    with store.snapshot() as view:
        return main_chain(view, bytes.fromhex(names.heads(view, sid)[0]))


def rewrite(
    store: Store, sid: str, change: Callable[[int, dict[str, Any]], None], *, rehash: bool = True
) -> None:
    """Write all events of a session again with changed bodies, hashes made to fit, as an owner could."""
    last: Event | None = None
    last_id: str | None = None
    batch = store.batch()
    for number, (_, event) in enumerate(chain(store, sid)):
        fields = {name: getattr(event.body, name) for name in event.body.__struct_fields__}
        change(number, fields)
        body = Body(**fields)
        before = bytes.fromhex(last.event_hash) if last is not None else bytes(32)
        digest = event_hash(before, kinds.encode(body)).hex()
        previous = [last_id] if last_id is not None else []
        last = structs.replace(
            event, body=body, previous=previous, event_hash=digest if rehash else event.event_hash
        )
        last_id = batch.put("session-event", kinds.encode(last))
    assert last_id is not None
    with store.snapshot() as view:
        (head,) = names.heads(view, sid)
    batch.move_ref(names.head_ref(sid, head), None, head, "")
    batch.move_ref(names.head_ref(sid, last_id), last_id, None, "")
    store.commit(batch)


def test_what_is_in_order_is_verified(store: Store, asked: str) -> None:
    for replay in (False, True):
        found = check(store, asked, replay=replay)
        assert (found.status, found.events, found.nodes) == ("verified", 8, 6)
        assert found.root == chain(store, asked)[-1][1].body.session_root
    with store.snapshot() as view:
        assert [one.status for one in check_all(view)] == ["verified"]


def test_a_session_without_events_is_unchained(store: Store) -> None:
    assert check(store, "20260304-050607-0000").status == "unchained"


def test_every_flipped_byte_of_every_object_is_found(store: Store, asked: str) -> None:
    data = database(store)
    whole = dict(data.objects)
    checked = 0
    for key, found in whole.items():
        if found.kind not in ("session-node", "session-event"):
            continue
        used = found.kind == "session-event" or key.hex() in {
            e.body.node_hash for _, e in chain(store, asked)
        }
        for at in range(0, len(found.data), 7):
            flipped = found.data[:at] + bytes([found.data[at] ^ 1]) + found.data[at + 1 :]
            data.objects = whole | {key: Stored(found.kind, flipped)}
            result = check(store, asked)
            if used and not _made_by_label(whole, asked, key):
                assert result.status == "corrupted", (found.kind, at)
                assert result.reason and result.place
                checked += 1
        data.objects = whole
    assert checked > 300


def _made_by_label(whole: dict[bytes, Stored], sid: str, key: bytes) -> bool:
    """Whether a node was minted by a label: a check makes it again rather than read it."""
    return any(
        b'"event_type":"node_labelled"' in found.data
        and b'"node_hash":"%s"' % key.hex().encode() in found.data
        for found in whole.values()
        if found.kind == "session-event"
    )


def test_a_missing_event_or_node_is_found(store: Store, asked: str) -> None:
    data = database(store)
    whole = dict(data.objects)
    events = chain(store, asked)
    for number, (key, event) in enumerate(events[:-1]):
        data.objects = {k: v for k, v in whole.items() if k.hex() != key}
        found = check(store, asked)
        assert (found.status, found.reason, found.index, found.place) == (
            "corrupted",
            "unparseable",
            number,
            key,
        )
        if event.body.event_type != "node_labelled":
            data.objects = {k: v for k, v in whole.items() if k.hex() != event.body.node_hash}
            found = check(store, asked)
            assert (found.status, found.reason, found.index) == ("corrupted", "unparseable", number)


def test_a_changed_body_breaks_the_hash_of_its_event(store: Store, asked: str) -> None:
    def later(number: int, body: dict[str, Any]) -> None:
        if number == 3:
            body["created_at"] = "2027-01-01T00:00:00Z"

    rewrite(store, asked, later, rehash=False)
    found = check(store, asked)
    assert (found.status, found.reason, found.index) == ("corrupted", "hash_mismatch", 3)


def test_a_root_that_does_not_follow_is_found_at_its_event(store: Store, asked: str) -> None:
    def other_prev(number: int, body: dict[str, Any]) -> None:
        if number == 2:
            body["prev_root"] = "ab" * 32

    rewrite(store, asked, other_prev)
    found = check(store, asked)
    assert (found.status, found.reason, found.index) == ("corrupted", "prev_mismatch", 2)


def test_a_wrong_last_root_is_found_always_and_a_wrong_earlier_one_by_replay(
    store: Store, asked: str
) -> None:
    def wrong(at: int) -> Callable[[int, dict[str, Any]], None]:
        def change(number: int, body: dict[str, Any]) -> None:
            if number == at:
                body["session_root"] = "ab" * 32
            if number == at + 1:
                body["prev_root"] = "ab" * 32

        return change

    rewrite(store, asked, wrong(4))
    assert check(store, asked).status == "verified"
    found = check(store, asked, replay=True)
    assert (found.status, found.reason, found.index) == ("corrupted", "root_mismatch", 4)


def test_a_wrong_last_root_is_found(store: Store, asked: str) -> None:
    def change(number: int, body: dict[str, Any]) -> None:
        if number == 7:
            body["session_root"] = "ab" * 32

    rewrite(store, asked, change)
    found = check(store, asked)
    assert (found.status, found.reason, found.index) == ("corrupted", "root_mismatch", 7)


def test_unknown_rules_are_said_to_be_unknown(store: Store, asked: str) -> None:
    def change(number: int, body: dict[str, Any]) -> None:
        if number == 0:
            body["rules"] = structs.replace(body["rules"], event="prev-hex-1")

    rewrite(store, asked, change)
    found = check(store, asked)
    assert (found.status, found.reason, found.index) == ("corrupted", "unknown_rules", 0)


def test_a_chain_told_as_a_fork_is_caught(store: Store, turn: Make) -> None:
    """The two shapes can have one root; the parent in the body of the node is what tells them apart."""
    sid, _ = new_session(store, random=lambda n: b"\3\4")
    add_turns(store, sid, [turn(store, "a", 0), turn(store, "b", 1)])

    def fork(number: int, body: dict[str, Any]) -> None:
        if number == 2:
            body["parent_bates"] = f"{sid}-000000"

    rewrite(store, sid, fork)
    found = check(store, sid)
    assert (found.status, found.reason, found.index) == ("corrupted", "prev_mismatch", 2)
    assert found.place == f"{sid}-000002"


def test_a_label_that_replaces_another_node_is_found(store: Store, asked: str) -> None:
    def change(number: int, body: dict[str, Any]) -> None:
        if number == 5:
            body["old_node_hash"] = "ab" * 32

    rewrite(store, asked, change)
    found = check(store, asked)
    assert (found.status, found.reason, found.index) == ("corrupted", "prev_mismatch", 5)


def test_an_event_about_another_node_than_it_brings_is_found(store: Store, asked: str) -> None:
    def change(number: int, fields: dict[str, Any]) -> None:
        if number == 6:
            assert fields["event_type"] == "node_added"
            fields["bates"] = f"{asked}-000009"

    rewrite(store, asked, change)
    found = check(store, asked)
    assert (found.status, found.reason, found.index) == ("corrupted", "hash_mismatch", 6)


def test_a_label_that_states_another_hash_than_it_makes_is_found(store: Store, asked: str) -> None:
    def change(number: int, fields: dict[str, Any]) -> None:
        if number == 7:
            assert fields["event_type"] == "node_labelled"
            fields["node_hash"] = chain(store, asked)[1][1].body.node_hash

    rewrite(store, asked, change)
    found = check(store, asked)
    assert (found.status, found.reason, found.index) == ("corrupted", "hash_mismatch", 7)


def test_a_head_that_belongs_to_another_session_is_found(store: Store, asked: str) -> None:
    other, _ = new_session(store, random=lambda n: b"\7\7")
    with store.snapshot() as view:
        (own,) = names.heads(view, asked)
        (theirs,) = names.heads(view, other)
    batch = store.batch()
    batch.move_ref(names.head_ref(other, theirs), None, theirs, "")
    batch.move_ref(names.head_ref(other, own), own, None, "")
    store.commit(batch)
    found = check(store, other)
    assert (found.status, found.reason, found.index) == ("corrupted", "prev_mismatch", 0)
    assert check(store, asked).status == "verified"


def test_an_event_under_another_id_than_its_own_is_found(store: Store, asked: str) -> None:
    data = database(store)
    with store.snapshot() as view:
        (head,) = names.heads(view, asked)
    wrong = "ab" * 32
    data.objects[bytes.fromhex(wrong)] = data.objects[bytes.fromhex(head)]
    batch = store.batch()
    batch.move_ref(names.head_ref(asked, head), None, head, "")
    batch.move_ref(names.head_ref(asked, wrong), wrong, None, "")
    store.commit(batch)
    found = check(store, asked)
    assert (found.status, found.reason, found.place) == ("corrupted", "hash_mismatch", wrong)


@pytest.mark.parametrize("fault", ["", "event_hash", "prev_root"])
def test_a_run_of_turns_goes_on_from_the_event_before_it(store: Store, turn: Make, fault: str) -> None:
    """Turns are checked many at once; all that the first of them says of the event before it must hold too."""
    sid, _ = new_session(store, random=lambda n: b"\1\2")
    add_turns(store, sid, [turn(store, f"q{i}", i) for i in range(5)])
    batch = store.batch()
    last: Event | None = None
    last_id: str | None = None
    for number, (_, event) in enumerate(chain(store, sid)):
        body = event.body
        if number == 1 and fault == "prev_root":
            body = structs.replace(body, prev_root="12" * 32)
        made = follow(last, last_id, body)
        if number == 1 and fault == "event_hash":
            made = structs.replace(made, event_hash="34" * 32)
        last, last_id = made, batch.put("session-event", kinds.encode(made))
        batch.set_derived(index_prefix(sid) + b"e" + number.to_bytes(4, "big"), bytes.fromhex(last_id))
    assert last_id is not None
    with store.snapshot() as view:
        (head,) = names.heads(view, sid)
    if head != last_id:
        batch.move_ref(names.head_ref(sid, head), None, head, "")
        batch.move_ref(names.head_ref(sid, last_id), last_id, None, "")
    store.commit(batch)
    with store.snapshot() as view:
        (run,) = find_runs(view, sid).values()
        assert len(run.keys) == 5
    found = check(store, sid)
    if not fault:
        assert found.status == "verified"
    else:
        reason = {"event_hash": "hash_mismatch", "prev_root": "prev_mismatch"}[fault]
        assert (found.status, found.reason, found.index) == ("corrupted", reason, 1)


def test_bodies_have_exactly_their_keys(store: Store, asked: str) -> None:
    wanted = {
        "session_init": "bates created_at event_type node_hash prev_root rules session_root",
        "node_added": "answer bates created_at event_type node_hash parent_bates prev_root session_root",
        "node_labelled": "bates created_at event_type label node_hash old_label old_node_hash prev_root session_root",
    }
    for key, event in chain(store, asked):
        body = store.get(key)["body"]
        assert sorted(body) == wanted[event.body.event_type].split()
        for missing in body.keys() - {"grafted_from"}:
            rest = {name: value for name, value in body.items() if name != missing}
            with pytest.raises(CheckFailed):
                store.put(store.get(key) | {"body": rest})
        with pytest.raises(CheckFailed):
            store.put(store.get(key) | {"body": body | {"note": "x"}})


def test_hashes_in_events_are_hexadecimal(store: Store, asked: str) -> None:
    for key, _ in chain(store, asked):
        whole = store.get(key)
        for at in [("event_hash",), *(("body", name) for name in whole["body"])]:
            value = whole[at[0]] if len(at) == 1 else whole["body"][at[1]]
            if not isinstance(value, str) or len(value) != 64:
                continue
            for wrong in (value[:-1] + "g", value[:9] + " " + value[10:], value[:-1], value + "0", "A" * 64):
                changed = {"body": whole["body"] | {at[-1]: wrong}} if len(at) == 2 else {at[0]: wrong}
                with pytest.raises(CheckFailed):
                    store.put(whole | changed)
        if whole["previous"]:
            for previous in (["x" * 64], ["ab"], [*whole["previous"], *whole["previous"]], []):
                with pytest.raises(CheckFailed):
                    store.put(whole | {"previous": previous})


def test_a_head_that_was_moved_by_hand_is_found(store: Store, asked: str, turn: Make) -> None:
    (key, _), (_, last) = chain(store, asked)[-2:]
    (name,) = store.refs("session/")
    store.update_ref(name, key, store.ref(name))
    with store.snapshot() as view:
        first, second = chain_check(view, asked)
    assert (first.status, first.place, first.reason) == ("corrupted", name, "hash_mismatch")
    assert (second.status, second.events) == ("verified", last.seq - 1)
    with pytest.raises(CheckFailed):
        add_turns(store, asked, [turn(store, "nowhere", 0)])


def test_an_event_is_held_to_the_ones_before_it(store: Store, asked: str) -> None:
    events = [event for _, event in chain(store, asked)]
    check_link(events[0], [])
    check_link(events[2], [events[1]])
    for event, before in (
        (events[2], []),
        (events[2], [events[0]]),
        (structs.replace(events[2], event_hash="ab" * 32), [events[1]]),
        (structs.replace(events[2], session_id="20260304-050607-0000"), [events[1]]),
        (events[2], [events[1], events[5]]),
    ):
        with pytest.raises(CheckFailed):
            check_link(event, before)
    again = follow(events[1], events[2].previous[0], events[2].body)
    assert again == events[2]


def test_all_of_it_is_in_order_for_the_store_too(disk: Store, turn: Make) -> None:
    sid, _ = new_session(disk)
    add_turns(disk, sid, [turn(disk, f"q{i}", i // 2) for i in range(9)])
    set_label(disk, sid, 1, "one")
    report = disk.verify()
    assert report.ok, report.problems
    assert (report.refs, report.chains) == (1, 1)


class Counting(MemorySnapshot):
    """A snapshot that counts the objects that are asked for."""

    reads = 0

    def get(self, key: bytes) -> Stored | None:
        self.reads += 1
        return super().get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[Stored | None]:
        self.reads += len(keys)
        return super().get_many(keys)


def test_a_check_reads_each_node_and_its_event_once(store: Store, turn: Make) -> None:
    sid, _ = new_session(store)
    add_turns(store, sid, [turn(store, f"q{i}", i // 8) for i in range(1500)])
    view = Counting(database(store))
    (found,) = chain_check(view, sid)
    assert (found.status, found.nodes) == ("verified", 1501)
    assert view.reads == 2 * found.nodes
