"""Hubs of plain files, kept in memory: the contract, joining, and what is damaged or lost."""

# ruff: noqa: F811  (fixtures that are imported)

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from objstore.closure import select
from objstore.errors import CheckFailed, Conflict, ObjstoreError, UsageError
from objstore.pack.format import PackRefused
from objstore.pack.writer import pack_stream
from objstore.store import Store
from objstore.sync.exchange import fetch, push
from objstore.sync.manifest import Scope
from porcelain.remotes.config import Pusher, pusher
from porcelain.remotes.hub import reading, transport
from porcelain.remotes.hub.transport import HubTransport
from porcelain.session.tree.store import new_session
from tests.objstore.sync.building import (
    EVERYTHING,
    STEPS,
    TIME,
    add_round,
    ask,
    follow,
    opened,
    put_node,
    sound,
    state,
)
from tests.objstore.sync.test_transports import (  # noqa: F401
    REF,
    here,
    test_a_dry_run_changes_nothing,
    test_a_push_in_several_packs,
    test_a_scope_is_kept_to,
    test_an_empty_store_has_nothing,
    test_only_what_is_new_travels,
    test_stores_of_different_hashes_say_so,
    test_what_is_refused_there_is_told_here_and_nothing_moved,
    there,
)
from tests.porcelain.remotes.hub_contract import HubWay, contend, exchange_there_and_back
from tests.porcelain.remotes.memory_files import MemoryFiles


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def way(files: MemoryFiles) -> HubWay:
    return HubWay(lambda: files)


@pytest.fixture
def writable(files: MemoryFiles) -> HubWay:
    return HubWay(lambda: files)


def _to(files: MemoryFiles, store: Store | None = None) -> HubTransport:
    return HubTransport(files, pusher(store) if store is not None else None)


def _sync(files: MemoryFiles, store: Store) -> None:
    fetch(store, _to(files), EVERYTHING, keeps_content=False)
    push(store, _to(files, store), EVERYTHING)


def test_there_and_back(files: MemoryFiles, here: Store, there: Store) -> None:
    exchange_there_and_back(lambda: files, here, there)


def test_nothing_to_do_reads_no_more_than_the_writers(files: MemoryFiles, there: Store, here: Store) -> None:
    for number in range(500):
        there.update_ref(f"tag/{number}", put_node(there, str(number)), None)
    _sync(files, there)
    transport = _to(files, here)
    root = fetch(here, transport, EVERYTHING, keeps_content=False).root
    transport = _to(files, here)
    assert fetch(here, transport, EVERYTHING, keeps_content=False, seen=root).differed == 0
    assert push(here, transport, EVERYTHING).sent == 0
    assert transport.traffic.requests < 10 and transport.traffic.received + transport.traffic.sent < 4096


def test_two_stores_take_turns(files: MemoryFiles, here: Store, there: Store) -> None:
    sid = new_session(here, created_at=TIME)[0]
    for turn in range(6):
        store = (here, there)[turn % 2]
        _sync(files, store)
        if turn:
            ask(store, sid, f"question {turn}")
        _sync(files, store)
    _sync(files, here)
    assert state(here) == state(there)
    sound(here)
    assert len(here.refs(f"session/{sid}/heads/")) == 1
    hub = _to(files)
    hub.hello(EVERYTHING)
    assert hub.traffic.requests <= 3


def test_a_fetch_brings_only_what_was_pushed_since(files: MemoryFiles, here: Store, there: Store) -> None:
    for turn in range(12):
        add_round(there, REF, f"turn {turn} a")
        push(there, _to(files, there), EVERYTHING)
        if turn == 8:
            fetch(here, _to(files), EVERYTHING, keeps_content=False)
    result = fetch(here, _to(files), EVERYTHING, keeps_content=False)
    assert result.objects == result.added == 9
    assert state(here) == state(there)


def test_small_packs_are_asked_for_together_and_come_in_order(
    files: MemoryFiles, here: Store, there: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for turn in range(9):
        add_round(there, REF, f"turn {turn} a")
        push(there, _to(files, there), EVERYTHING)
    together = threading.Barrier(reading.AHEAD)
    get = files.get

    def waiting(name: str, tag: str | None = None) -> bytes:
        if name.startswith("packs/") and together.n_waiting + 1 <= reading.AHEAD and not passed.is_set():
            together.wait(20)
            passed.set()
        return get(name, tag)

    passed = threading.Event()
    monkeypatch.setattr(files, "get", waiting)
    monkeypatch.setattr(transport, "SMALL", max(len(data) for data, _ in files.files.values()))
    fetch(here, _to(files), EVERYTHING, keeps_content=False)
    assert passed.is_set() and state(here) == state(there)
    monkeypatch.setattr(transport, "SMALL", 0)
    with opened(Path(here.database.path).parent / "again") as again:  # type: ignore[union-attr]
        fetch(again, _to(files), EVERYTHING, keeps_content=False)
        assert state(again) == state(there)


def test_a_session_that_went_on_in_two_places_has_two_heads(
    files: MemoryFiles, here: Store, there: Store
) -> None:
    sid = new_session(here, created_at=TIME)[0]
    _sync(files, here)
    _sync(files, there)
    ask(here, sid, "one")
    ask(there, sid, "two")
    _sync(files, here)
    result = push(there, _to(files, there), EVERYTHING)
    assert result.diverged == [f"session/{sid}/heads"]
    _sync(files, here)
    _sync(files, there)
    assert state(here) == state(there) and len(here.refs(f"session/{sid}/heads/")) == 2
    assert push(here, _to(files, here), EVERYTHING).sent == 0


def test_a_name_that_two_people_chose_is_kept_twice(files: MemoryFiles, here: Store, there: Store) -> None:
    here.update_ref("tag/x", put_node(here, "another"), None)
    _sync(files, here)
    push(there, _to(files, there), EVERYTHING)
    for store in (there, here, there):
        _sync(files, store)
    assert state(here) == state(there) and len(here.refs("tag/x@")) == 2
    assert push(here, _to(files, here), EVERYTHING).sent == 0


def test_a_copied_store_overwrites_nothing(files: MemoryFiles, there: Store, tmp_path: Path) -> None:
    """Two that go by one name: both of their records stand there in the end."""
    import shutil

    chain = f"flow/{there.store_id}/test/own"
    add_round(there, chain, "before")
    _sync(files, there)
    shutil.copytree(tmp_path / "there", tmp_path / "twin", ignore=shutil.ignore_patterns("lock.mdb"))
    with Store.open(tmp_path / "twin", now=lambda: TIME) as twin:
        both = {add_round(there, chain, "mine a"), add_round(twin, chain, "theirs a")}
        stale = _to(files, there)
        stale.hello(EVERYTHING)
        push(twin, _to(files, twin), EVERYTHING)
        with there.snapshot() as view:  # as if it had asked before its twin pushed
            stale.push(pack_stream(view, select(view, list(view.refs())), "sha256"))
        with pytest.raises(Conflict, match="copied"):
            push(there, _to(files, there), EVERYTHING)
        for store in (there, twin, there, twin):
            _sync(files, store)
        assert both <= set(there.refs("flow/").values())
        assert state(there) == state(twin)
        sound(there)


def test_a_lost_race_is_run_again(files: MemoryFiles, there: Store, here: Store) -> None:
    races = iter([True, True, False])
    files.lose = lambda: next(races, False)
    push(there, _to(files, there), EVERYTHING)
    fetch(here, _to(files), EVERYTHING, keeps_content=False)
    assert state(here) == state(there)


def test_what_is_damaged_there_is_refused(files: MemoryFiles, there: Store, tmp_path: Path) -> None:
    _sync(files, there)
    for name, (data, tag) in list(files.files.items()):
        for at in range(0, len(data), max(1, len(data) // 25)):
            files.files[name] = (data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], tag)
            with opened(tmp_path / f"{name[:3]}{at}") as into:
                before = state(into)
                try:
                    fetch(into, _to(files), EVERYTHING, keeps_content=False)
                except ObjstoreError:
                    assert state(into) == before
                else:  # a flipped bit in a cache of roots alone changes nothing
                    assert name.startswith("writers/") and state(into) in (before, state(there))
        files.files[name] = (data, tag)


def test_a_pack_that_is_longer_than_was_said_is_not_read_whole(
    files: MemoryFiles, there: Store, here: Store
) -> None:
    _sync(files, there)
    (name,) = (name for name in files.files if name.startswith("packs/"))
    data, tag = files.files[name]
    files.files[name] = (data + b"x" * 1_000_000, tag)
    with pytest.raises(CheckFailed, match="longer than"):
        fetch(here, _to(files), EVERYTHING, keeps_content=False)
    assert here.refs() == {}


def test_nothing_is_pushed_that_is_no_pack_or_by_nobody(files: MemoryFiles) -> None:
    transport = _to(files)
    transport.hello(EVERYTHING)
    with pytest.raises(UsageError):
        transport.push([b"x"])
    writer = HubTransport(files, Pusher("1" * 16, "sha256"))
    writer.hello(EVERYTHING)
    with pytest.raises((PackRefused, CheckFailed)):
        writer.push([b"x" * 100])
    assert files.files == {}


def test_content_goes_only_to_who_wants_it(files: MemoryFiles, there: Store, here: Store) -> None:
    there.update_ref("tag/said", there.put({"text": "said", "type": "text"}), None)
    push(there, _to(files, there), EVERYTHING)
    assert not any(b"said" in data for name, (data, _) in files.files.items() if name.startswith("segments"))
    push(there, _to(files, there), Scope(content=True))
    fetch(here, _to(files), EVERYTHING, keeps_content=False)
    assert here.ref("tag/said") is None
    fetch(here, _to(files), Scope(content=True), keeps_content=True)
    assert state(here) == state(there)


def test_the_first_store_to_push_says_which_hash_keys_a_hub(files: MemoryFiles, tmp_path: Path) -> None:
    pytest.importorskip("blake3")
    with (
        Store.init(tmp_path / "one", algorithm="blake3") as one,
        Store.init(tmp_path / "two", algorithm="blake3") as two,
        opened(tmp_path / "other") as other,
    ):
        add_round(one, REF, "a")
        assert push(one, _to(files, one), EVERYTHING).added == 3
        assert fetch(two, _to(files), EVERYTHING, keeps_content=False).added == 3
        assert state(one) == state(two)
        for exchange in (
            lambda: push(other, _to(files, other), EVERYTHING),
            lambda: fetch(other, _to(files), EVERYTHING, keeps_content=False),
        ):
            with pytest.raises(UsageError, match="keyed by blake3"):
                exchange()


def test_a_store_that_pushed_under_another_name_before_goes_on(
    files: MemoryFiles, here: Store, there: Store
) -> None:
    """Programs before this one wrote under a random name."""
    push(there, HubTransport(files, Pusher("0123456789abcdef", "sha256")), EVERYTHING)
    assert push(there, _to(files, there), EVERYTHING).sent == 0
    add_round(there, REF, "more")
    assert push(there, _to(files, there), EVERYTHING).objects == 3
    assert {name for name in files.files if name.startswith("writers/")} == {
        "writers/0123456789abcdef",
        f"writers/{there.store_id}",
    }
    fetch(here, _to(files), EVERYTHING, keeps_content=False)
    assert state(here) == state(there)


def test_contention(files: MemoryFiles, tmp_path: Path) -> None:
    contend(lambda: files, tmp_path, writers=6, pushes=4)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, min_size=3, max_size=3), st.permutations((0, 1, 2, 0, 1, 2)))
def test_whoever_comes_first_the_stores_end_alike(
    tmp_path_factory: pytest.TempPathFactory, recipes: list[list[tuple[str, int]]], order: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("stores")
    files = MemoryFiles()
    stores = [opened(folder / str(number)) for number in range(3)]
    try:
        sid = new_session(stores[0], created_at=TIME)[0]
        for store in (*stores, *stores[:2]):
            _sync(files, store)
        for number, store in enumerate(stores):
            follow(store, str(number), recipes[number], [sid])
        for number in (*order, 0, 1, 2):
            _sync(files, stores[number])
        for store in stores:
            _sync(files, store)
        assert state(stores[0]) == state(stores[1]) == state(stores[2])
        for store in stores:
            transport = _to(files, store)
            assert fetch(store, transport, EVERYTHING, keeps_content=False).differed == 0
            assert push(store, transport, EVERYTHING).sent == 0
    finally:
        for store in stores:
            store.close()
