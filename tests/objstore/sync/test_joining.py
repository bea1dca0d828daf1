"""The rules by which refs join."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore.closure import select
from objstore.errors import Conflict
from objstore.pack.writer import pack_stream
from objstore.store import Store
from objstore.sync.exchange import push
from objstore.sync.joining import RefRefused, maximal, place_of, place_of_name, set_apart
from objstore.sync.manifest import Scope
from objstore.sync.receiving import receive
from objstore.sync.stores import StoreTransport
from objstore.sync.transport import PieceSource
from porcelain.session.tree.store import new_session
from tests.objstore.sync.building import TIME, add_round, ask, opened, put_node, sound, state, unite

KEY = bytes(range(32))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    with opened(tmp_path / "a") as a, opened(tmp_path / "b") as b:
        yield a, b


def pack_of(store: Store, refs: list[tuple[str, bytes]], have: list[bytes] | None = None) -> PieceSource:
    """A pack that offers what a caller says, whatever the refs of the store are."""
    with store.snapshot() as view:
        selection = select(view, refs, have or [])
        return PieceSource(list(pack_stream(view, selection, store.algorithm)))


# -- what a name says --------------------------------------------------------------------------------------------------


def test_a_name_says_its_rule() -> None:
    own = "0123456789abcdef"
    assert place_of(f"answer/k/{KEY.hex()}", KEY).is_member
    assert place_of(f"lineage/{own}", KEY).owner == own
    assert place_of(f"flow/{own}/pi/x", KEY) == place_of_name(f"flow/{own}/pi/x")
    assert place_of("tag/x", KEY).owner is None
    odd = f"landed/{own}/test/{'0' * 64}"  # an agent may give its conversations such ids
    assert place_of(odd, KEY).owner == own == place_of_name(odd).owner
    assert not place_of(f"flow/origin/test/{'0' * 64}", KEY).is_member
    assert place_of("flow/origin/pi/x", KEY).owner is None


@pytest.mark.parametrize("name", ["tag/x", "flow/0123456789abcdef/pi/x", "lineage/0123456789abcdef"])
def test_a_name_set_apart_is_in_the_same_place(name: str) -> None:
    place = place_of(name, KEY)
    apart = set_apart(place, KEY)
    assert apart != name
    assert place_of(apart, KEY) == place == place_of_name(apart)
    other = bytes(32)
    assert place_of(apart, other) != place  # its name says another id: a name of its own


@pytest.mark.parametrize(
    "name", [f"answer/k/{'0' * 64}", "session/s/current", "session/s/head", "tag/" + "x" * 390]
)
def test_a_ref_that_may_not_travel_is_refused(name: str) -> None:
    with pytest.raises(RefRefused):
        place_of(name, KEY)


# -- chains ------------------------------------------------------------------------------------------------------------


def test_a_chain_of_another_store_is_wound_forward_and_never_back(pair: tuple[Store, Store]) -> None:
    a, b = pair
    ref = f"flow/{a.store_id}/test/x"
    first = add_round(a, ref, "1")
    unite(b, a)
    second = add_round(a, ref, "2")
    unite(b, a)
    assert b.ref(ref) == second
    receive(b, pack_of(a, [(ref, bytes.fromhex(first))]), take_content=False)
    assert b.ref(ref) == second


def test_no_push_moves_a_stores_own_chain(pair: tuple[Store, Store]) -> None:
    a, b = pair
    ref = f"flow/{b.store_id}/test/x"
    add_round(b, ref, "its own")
    add_round(a, ref, "a lie")
    before = state(b)
    transport = StoreTransport(b, keeps_content=False)
    with a.snapshot() as view:
        pack = list(pack_stream(view, select(view, list(view.refs())), "sha256"))
    with pytest.raises(RefRefused, match="itself"):
        transport.push(pack)
    assert state(b) == before
    result = push(a, transport, Scope())
    assert (result.sent, result.behind) == (0, [ref])
    assert state(b) == before


def test_branches_under_one_id_that_meet_in_a_third_store_are_both_kept(
    tmp_path: Path, pair: tuple[Store, Store]
) -> None:
    a, _ = pair
    ref = f"flow/{a.store_id}/test/x"
    add_round(a, ref, "before")
    own = a.store_id
    a.close()
    shutil.copytree(tmp_path / "a", tmp_path / "twin")
    with Store.open(tmp_path / "a") as a, Store.open(tmp_path / "twin") as twin:
        one, two = add_round(a, ref, "one"), add_round(twin, ref, "two")
        results = []
        for order in ((a, twin), (twin, a)):
            with opened(tmp_path / f"third{len(results)}") as meeting:
                for store in order:
                    found = unite(meeting, store)
                assert found.diverged == [ref]
                results.append(meeting.refs())
                sound(meeting)
        assert results[0] == results[1]
        assert results[0] == {f"flow/{own}@{key[:16]}/test/x": key for key in (one, two)}


# -- sets --------------------------------------------------------------------------------------------------------------


def test_heads_of_a_session_are_an_antichain_and_divergence_is_said(pair: tuple[Store, Store]) -> None:
    a, b = pair
    sid = new_session(a, created_at=TIME)[0]
    unite(b, a)
    ask(a, sid, "on a")
    unite(b, a)
    assert len(b.refs(f"session/{sid}/heads/")) == 1
    ask(a, sid, "more on a")
    ask(b, sid, "on b")
    found = unite(b, a)
    assert len(b.refs(f"session/{sid}/heads/")) == 2
    assert found.diverged == [f"session/{sid}/heads"]
    unite(a, b)
    assert a.refs("session/") == b.refs("session/")


def test_answers_are_united(pair: tuple[Store, Store]) -> None:
    a, b = pair
    for store, text in ((a, "one"), (b, "two")):
        made = put_node(store, text)
        store.update_ref(f"answer/{'ab' * 32}/{made}", made, None)
    unite(a, b)
    assert len(a.refs("answer/")) == 2


# -- names set by hand -------------------------------------------------------------------------------------------------


def test_a_tag_that_clashes_is_kept_twice_whoever_asks(pair: tuple[Store, Store]) -> None:
    a, b = pair
    one, two = put_node(a, "one"), put_node(b, "two")
    a.update_ref("tag/x", one, None)
    b.update_ref("tag/x", two, None)
    found = unite(a, b)
    assert found.diverged == ["tag/x"]
    assert a.refs() == {f"tag/x@{one[:16]}": one, f"tag/x@{two[:16]}": two}
    unite(b, a)
    assert b.refs() == a.refs()
    assert unite(a, b).moved == []


def test_a_tag_on_a_chain_goes_forward(pair: tuple[Store, Store]) -> None:
    a, b = pair
    ref = f"flow/{a.store_id}/test/x"
    a.update_ref("tag/x", add_round(a, ref, "1"), None)
    unite(b, a)
    second = add_round(a, ref, "2")
    a.update_ref("tag/x", second, "*")
    unite(b, a)
    assert b.refs("tag/") == {"tag/x": second}


def test_maximal_reads_only_what_is_new_of_a_long_chain(pair: tuple[Store, Store]) -> None:
    a, _ = pair
    heads = [add_round(a, "flow/x/test/y", str(n)) for n in range(200)]
    reads = 0
    with a.snapshot() as view:

        class Counting:
            def get(self, key: bytes) -> object:
                nonlocal reads
                reads += 1
                return view.get(key)

            def kind(self, key: bytes) -> str | None:
                return view.kind(key)

        wanted = [bytes.fromhex(heads[-1]), bytes.fromhex(heads[-4])]
        assert maximal(Counting(), wanted) == {wanted[0]}  # type: ignore[arg-type]
    assert reads <= 8


# -- copied stores -----------------------------------------------------------------------------------------------------


def test_a_copied_folder_ends_as_two_writers_and_nothing_is_lost(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as a:
        own, ref = a.store_id, f"flow/{a.store_id}/test/x"
        add_round(a, ref, "before")
    shutil.copytree(tmp_path / "a", tmp_path / "twin")
    with Store.open(tmp_path / "a") as a, Store.open(tmp_path / "twin") as twin:
        one, two = add_round(a, ref, "one"), add_round(twin, ref, "two")
        with pytest.raises(Conflict, match="copy"):
            push(twin, StoreTransport(a, keeps_content=False), Scope())
        found = unite(twin, a)
        assert found.renamed == twin.store_id != own
        assert twin.refs() == {ref: one, f"flow/{twin.store_id}/test/x": two}
        three = add_round(twin, f"flow/{twin.store_id}/test/x", "three")
        unite(a, twin)
        assert a.store_id == own
        assert a.refs() == twin.refs() == {ref: one, f"flow/{twin.store_id}/test/x": three}
        assert state(a) == state(twin)
        sound(a)
        sound(twin)


def test_a_restored_backup_goes_on_under_a_new_id(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as a, opened(tmp_path / "hub") as hub:
        own, ref = a.store_id, f"flow/{a.store_id}/test/x"
        first = add_round(a, ref, "saved")
        a.close()
        shutil.copytree(tmp_path / "a", tmp_path / "backup")
        with Store.open(tmp_path / "a") as a:
            lost = add_round(a, ref, "after the backup")
            push(a, StoreTransport(hub, keeps_content=False), Scope())
    with Store.open(tmp_path / "hub") as hub, Store.open(tmp_path / "backup") as restored:
        with pytest.raises(Conflict, match="restored"):
            push(restored, StoreTransport(hub, keeps_content=False), Scope())
        found = unite(restored, hub)
        assert found.renamed == restored.store_id != own
        assert restored.refs() == {ref: lost, f"flow/{restored.store_id}/test/x": first}
        push(restored, StoreTransport(hub, keeps_content=False), Scope())
        assert hub.refs() == restored.refs()


def test_a_name_that_is_set_by_hand_beside_others_is_set_apart_too(pair: tuple[Store, Store]) -> None:
    a, b = pair
    for store, text in ((a, "one"), (b, "two")):
        store.update_ref("tag/x", put_node(store, text), None)
    unite(b, a)
    b.update_ref("tag/x", put_node(b, "three"), None)
    unite(a, b)
    unite(b, a)
    assert a.refs() == b.refs() and len(a.refs("tag/x@")) == 3
    assert unite(b, a).differed == 0
