"""What travels with a ref: all that it needs, down to what the receiver has, and content only on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import UNSET

import porcelain  # noqa: F401  (declares the kinds of objects)
from objstore import closure as closure_module
from objstore import kinds
from objstore.closure import select
from objstore.core import ListOf, Round
from objstore.errors import CheckFailed
from objstore.store import Store
from porcelain.providers.records import Part, Record
from tests.objstore.sync.building import add_round, ask, new_session, opened, put_list, put_node, put_tags


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "store") as made:
        yield made


def closure(store: Store, *names: str, have: tuple[str, ...] = (), content: bool = False) -> list[str]:
    with store.snapshot() as view:
        refs = [(name, view.ref(name)) for name in names]
        found = select(
            view,
            [(name, key) for name, key in refs if key is not None],
            [bytes.fromhex(one) for one in have],
            content=content,
        )
        return [key.hex() for key in found.order]


def test_everything_that_is_needed_and_nothing_else(store: Store) -> None:
    put_node(store, "alone")
    inner = put_list(store, put_node(store, "one"), put_node(store, "two"))
    store.update_ref("tag/x", put_list(store, inner), None)
    assert len(closure(store, "tag/x")) == 4


def test_only_what_is_new_of_a_chain(store: Store) -> None:
    ref = "flow/1111111111111111/test/x"
    rounds = [add_round(store, ref, f"text {number}") for number in range(50)]
    assert len(closure(store, ref)) == 150
    assert len(closure(store, ref, have=(rounds[-1],))) == 0
    assert len(closure(store, ref, have=(rounds[-3],))) == 6
    with store.snapshot() as view:
        key = view.ref(ref)
        assert key is not None
        assert select(view, [(ref, key)], [bytes.fromhex(rounds[-3])]).presumes == [bytes.fromhex(rounds[-3])]


def test_nodes_of_a_session_that_the_receiver_has_do_not_travel_again(store: Store) -> None:
    sid = new_session(store, created_at="2026-03-04T05:06:07Z")[0]
    for number in range(20):
        ask(store, sid, f"question {number}")
    (before,) = store.refs(f"session/{sid}/heads/").values()
    ask(store, sid, "one more")
    ((name, _),) = store.refs(f"session/{sid}/heads/").items()
    # The event, its node, and its answer, which an event only names.
    assert len(closure(store, name, have=(before,))) == 3


def test_a_missing_object_is_named_with_the_one_that_needs_it(store: Store) -> None:
    outer = put_list(store, "ab" * 32)
    store.update_ref("tag/x", outer, None)
    with pytest.raises(CheckFailed, match=f"{outer}: a list needs {'ab' * 32}"):
        closure(store, "tag/x")


def test_content_travels_on_request_only(store: Store) -> None:
    said = store.put({"text": "said", "type": "text"})
    batch = store.batch()
    record = Record(parts=[Part(k="text", content=said), Part(k="text", content="cd" * 32)])
    made = batch.put("record", kinds.encode(record))
    store.commit(batch)
    store.update_ref("tag/x", made, None)
    assert closure(store, "tag/x") == [made]
    assert sorted(closure(store, "tag/x", content=True)) == sorted([made, said])


def test_most_stops_between_refs(store: Store) -> None:
    put_tags(store, 600)
    with store.snapshot() as view:
        found = select(view, list(view.refs()), most=10)
    assert 10 <= len(found.order) < 600
    assert len(found.refs) == len(found.order)
    assert found.refs == sorted(found.refs)


def test_a_very_long_chain_needs_no_deep_stack(store: Store) -> None:
    batch = store.batch()
    previous = UNSET
    for number in range(5000):
        entry = Round(chain="x", frames=[], previous=previous, round=number + 1)
        previous = batch.put("round", kinds.encode(entry))
    batch.move_ref("tag/x", previous, None, "")
    store.commit(batch)
    found = closure(store, "tag/x")
    assert len(found) == 5000 and found[-1] == previous


def test_few_refs_that_lead_to_much_do_not_come_all_at_once(store: Store) -> None:
    _put_lists(store, 60, 700)
    with store.snapshot() as view:
        found = select(view, list(view.refs()), most=1000)
    assert 1000 <= len(found.order) <= 1000 + 8 * 701 and len(found.refs) <= 16


def test_to_learn_what_the_receiver_has_few_objects_are_looked_at(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put_lists(store, 60, 700)
    looks = 0
    with store.snapshot() as view:
        refs = list(view.refs())
        kind = type(view).kind

        def counted(self: object, key: bytes) -> str | None:
            nonlocal looks
            looks += 1
            return kind(self, key)  # type: ignore[arg-type]

        monkeypatch.setattr(type(view), "kind", counted)
        monkeypatch.setattr(closure_module, "_KNOWN_LOOKS", 1000)
        assert select(view, refs[:1], [key for _, key in refs]).order == []
    assert looks <= 1100


def _put_lists(store: Store, count: int, length: int) -> None:
    """So many tags, each on a list of so many objects of its own."""
    batch = store.batch()
    for number in range(count):
        ids = [
            batch.put("document-chunk", b'{"text":"%d %d","type":"document-chunk"}' % (number, at))
            for at in range(length)
        ]
        made = batch.put("list", kinds.encode(ListOf(items=ids)))
        batch.move_ref(f"tag/{number:03}", made, None, "")
    store.commit(batch)
