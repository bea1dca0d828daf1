"""Merging in hubs: nothing is lost, whoever merges, pushes and reads at once, and whenever one of them is killed."""

# ruff: noqa: F811  (fixtures that are imported)

from __future__ import annotations

import base64
import itertools
import json
import random
import threading
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from objstore.closure import select
from objstore.errors import CheckFailed, ObjstoreError, StorageError, UsageError
from objstore.pack.writer import pack_stream
from objstore.store import Store
from objstore.sync.exchange import fetch, push
from objstore.sync.joining import place_of_name
from objstore.sync.manifest import Scope
from porcelain.remotes.config import Pusher, pusher
from porcelain.remotes.hub import merging, sweeping, writing
from porcelain.remotes.hub.files import PACKS, SEGMENTS, WRITERS, Files, born
from porcelain.remotes.hub.reading import Reading
from porcelain.remotes.hub.records import Record
from porcelain.remotes.hub.standing import Element, Hub
from porcelain.remotes.hub.transport import HubTransport
from porcelain.session.tree.store import new_session
from tests.objstore.sync.building import (
    EVERYTHING,
    STEPS,
    TIME,
    add_fact,
    add_round,
    ask,
    follow,
    opened,
    put_list,
    put_node,
    sound,
    state,
)
from tests.objstore.sync.test_transports import here, there  # noqa: F401
from tests.porcelain.remotes.hub_contract import contend
from tests.porcelain.remotes.memory_files import Branch, BranchView, MemoryFiles

NEVER = 1 << 30
FORMAT_1 = Path(__file__).parent / "hub_format_1.json"


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merges come soon."""
    monkeypatch.setattr(writing, "FEW", 4)


def _to(files: Files, store: Store | None = None) -> HubTransport:
    return HubTransport(files, pusher(store) if store is not None else None)


def _hub(files: Files) -> Hub:
    reading = Reading(files, HubTransport(files, None).traffic)
    reading.look()
    return reading.hub()


def _push(files: Files, store: Store, text: str) -> None:
    """Push a little."""
    add_round(store, f"flow/{store.store_id}/test/x", f"{text} a")
    push(store, _to(files, store), EVERYTHING)


def _count(files: MemoryFiles, prefix: str) -> int:
    return len(files.list(prefix))


def _seen(files: Files, folder: Path) -> Any:
    """What a new store gets from the hub."""
    with opened(folder) as store:
        fetch(store, _to(files), EVERYTHING, keeps_content=False)
        sound(store)
        return state(store)


def test_after_many_pushes_there_are_few_packs(files: MemoryFiles, here: Store, there: Store) -> None:
    for number in range(100):
        _push(files, (here, there)[number % 2], str(number))
    fetch(here, _to(files), EVERYTHING, keeps_content=False)
    fetch(there, _to(files), EVERYTHING, keeps_content=False)
    assert len(_hub(files).elements) < merging.FEW + 8
    with opened(Path(here.database.path).parent / "clone") as clone:  # type: ignore[union-attr]
        transport = _to(files)
        result = fetch(clone, transport, EVERYTHING, keeps_content=False)
        assert transport.traffic.requests < 45
        assert state(clone) == state(here) == state(there)
        assert result.objects == result.added  # nothing comes twice
        sound(clone)
    pushing = _to(files, here)
    add_round(here, f"flow/{here.store_id}/test/x", "last a")
    assert push(here, pushing, EVERYTHING).objects == 3
    assert pushing.traffic.received < 40_000


def test_packs_grow_by_the_powers_of_two(files: MemoryFiles, there: Store) -> None:
    chance = random.Random(1)
    for number in range(60):
        text = chance.randbytes(2 ** chance.randrange(4, 14)).hex()
        _push(files, there, f"{number} {text}")
        _to(files, there).merge()
        sizes = [element.record.size for element in _hub(files).elements]
        assert all(size >= sum(sizes[at + 1 :]) for at, size in enumerate(sizes))


def test_large_packs_and_such_with_content_are_left_alone(
    files: MemoryFiles, there: Store, here: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "LARGE", 20_000)
    monkeypatch.setattr(merging, "MOST", 40_000)
    for number in range(4):
        _push(files, there, f"small {number}")
    _push(files, there, random.Random(1).randbytes(60_000).hex())
    for number in range(4):
        _push(files, there, f"smaller {number}")
    there.update_ref("tag/said", there.put({"text": "said", "type": "text"}), None)
    push(there, _to(files, there), Scope(content=True))
    for number in range(4):
        _push(files, there, f"smallest {number}")
    assert _to(files, there).merge() == (12, 3)
    assert [element.record.content for element in _hub(files).elements] == [False, False, False, True, False]
    fetch(here, _to(files), EVERYTHING, keeps_content=False)
    assert here.ref("tag/said") is None
    fetch(here, _to(files), Scope(content=True), keeps_content=True)
    assert state(here) == state(there)


def test_no_merge_is_larger_than_the_most(
    files: MemoryFiles, there: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "LARGE", 20_000)
    monkeypatch.setattr(merging, "MOST", 40_000)
    chance = random.Random(2)
    for number in range(40):
        _push(files, there, f"{number} {chance.randbytes(2000).hex()}")
    _to(files, there).merge()
    sizes = [element.record.size for element in _hub(files).elements]
    assert max(sizes) <= 40_000 and len(sizes) < 20


@pytest.mark.parametrize(
    ("packs", "first"),
    [
        ([(0, 1000), (1, 10), (2, 10), (3, 10)], 1),
        ([(0, 1000), (1, 20), (2, 10), (3, 10)], None),
        ([(0, 1000), (1, 10), (2, 1000), (3, 600), (4, 600)], 0),
        # Of two that begin with the same record none is merged without the other: it might build on that.
        ([(0, 1000), (0, 10), (2, 10), (3, 10)], None),
        ([(0, 1000), (0, 10), (2, 10), (3, 10), (4, 10)], 2),
        ([(0, 10), (0, 10), (2, 10), (3, 10)], 0),
        ([(0, merging.LARGE), (1, 10), (2, 10), (3, 10), (4, merging.LARGE), (5, 10)], 1),
    ],
)
def test_what_is_merged(packs: list[tuple[int, int]], first: int | None) -> None:
    elements = [
        Element(Record(str(at), size, False, 1, [], {}), {}, (start, "a", 0), {})
        for at, (start, size) in enumerate(packs)
    ]
    hub = Hub({}, {}, {}, {})
    hub.__dict__["elements"] = elements
    found = merging.chosen(hub)
    assert (elements.index(found[0]) if found else None) == first
    assert merging.loose(hub) == sum(size < merging.LARGE for _, size in packs)


def test_a_reader_with_some_of_it_gets_the_rest(files: MemoryFiles, here: Store, there: Store) -> None:
    sid = new_session(there, created_at=TIME)[0]
    for number in range(20):
        ask(there, sid, f"question {number}")
        add_fact(there, f"/home/{number}")
        _push(files, there, str(number))
        if number in (3, 11, 12, 18):
            fetch(here, _to(files), EVERYTHING, keeps_content=False)
            assert state(here) == state(there)
    _to(files, there).merge()
    fetch(here, _to(files), EVERYTHING, keeps_content=False)
    assert state(here) == state(there)
    assert fetch(here, _to(files), EVERYTHING, keeps_content=False).differed == 0


def test_what_went_on_elsewhere_meanwhile_builds_on_what_both_have(
    files: MemoryFiles, here: Store, there: Store
) -> None:
    """The chain is not sent again from its beginning, though what both have of it is in a merge."""
    sid = new_session(there, created_at=TIME)[0]
    for number in range(10):
        ask(there, sid, f"question {number}")
        push(there, _to(files, there), EVERYTHING)
    fetch(here, _to(files), EVERYTHING, keeps_content=False)
    for number in range(3):
        ask(there, sid, f"more {number}")
        push(there, _to(files, there), EVERYTHING)
    _to(files, there).merge()
    ask(here, sid, "another way")
    assert push(here, _to(files, here), EVERYTHING).objects <= 6


def test_a_name_that_is_offered_again_is_not_pushed_again(
    files: MemoryFiles, here: Store, there: Store
) -> None:
    for store in (here, there):
        store.update_ref("tag/z", put_node(store, store.store_id), None)
        push(store, _to(files, store), EVERYTHING)
        fetch(store, _to(files), EVERYTHING, keeps_content=False)
    _to(files, there).merge()
    first = next(iter(there.refs("tag/z@").values()))
    there.update_ref("tag/z", first, None)
    before = _hub(files).counts
    push(there, _to(files, there), EVERYTHING)
    assert _hub(files).counts == before


def test_who_merges_nothing_says_so(files: MemoryFiles, there: Store) -> None:
    assert _to(files, there).merge() == (0, 0)
    _push(files, there, "1")
    assert _to(files, there).merge() == (0, 0)
    with pytest.raises(UsageError):
        _to(files).merge()


def test_a_merge_that_fails_does_not_fail_the_push(files: MemoryFiles, there: Store, few: None) -> None:
    for number in range(3):
        _push(files, there, str(number))
    name = next(iter(files.list(PACKS)))
    data, tag = files.files[name]
    files.files[name] = (data[:-1] + bytes([data[-1] ^ 1]), tag)
    _push(files, there, "3")
    assert not _hub(files).merges
    with pytest.raises(CheckFailed):
        _to(files, there).merge()
    files.files[name] = (data, tag)
    assert _to(files, there).merge() == (4, 1)


def test_a_fetch_of_some_refs_takes_the_packs_that_these_build_on(
    files: MemoryFiles, here: Store, there: Store, tmp_path: Path
) -> None:
    for number in range(6):
        add_round(here, f"flow/{here.store_id}/test/x", f"{number} a")
        push(here, _to(files, here), EVERYTHING)
        add_fact(there, f"/home/{number}")
        push(there, _to(files, there), EVERYTHING)
    with opened(tmp_path / "some") as some:
        scope = Scope(patterns=(f"flow/{here.store_id}/*",))
        result = fetch(some, _to(files), scope, keeps_content=False)
        assert some.refs() == here.refs("flow/") and result.objects == 18
        add_round(here, f"flow/{here.store_id}/test/x", "more a")
        push(here, _to(files, here), EVERYTHING)
        assert fetch(some, _to(files), scope, keeps_content=False).objects == 3
        _to(files, here).merge()
        assert fetch(some, _to(files), scope, keeps_content=False).objects == 0
        fetch(some, _to(files), EVERYTHING, keeps_content=False)
        fetch(here, _to(files), EVERYTHING, keeps_content=False)
        assert state(some) == state(here)


@pytest.mark.parametrize("merging_first", [False, True])
def test_a_pack_builds_on_those_before_it_in_the_same_push(
    files: MemoryFiles, here: Store, tmp_path: Path, merging_first: bool
) -> None:
    shared = put_node(here, "in all")
    for name in "abcdefghijkl":
        here.update_ref(f"tag/{name}", put_list(here, shared, put_node(here, name)), None)
    push(here, _to(files, here), EVERYTHING, most=1)
    assert len(_hub(files).elements) == 2
    add_fact(here, "/home/x")
    push(here, _to(files, here), EVERYTHING)
    if merging_first:
        _to(files, here).merge()
    with opened(tmp_path / "some") as some:
        fetch(some, _to(files), Scope(patterns=("tag/l",)), keeps_content=False)
        assert some.refs() == here.refs("tag/l")
        sound(some)


# -- hubs of the format before -----------------------------------------------------------------------------------------


def _format_1(files: MemoryFiles) -> dict[str, str]:
    """A hub as the program of format 1 left it, and the refs of a store that fetched from it."""
    found = json.loads(FORMAT_1.read_text())
    for name, data in found["files"].items():
        files.files[name] = (base64.b64decode(data), f"old {name}")
        files.written[name] = 0.0
    refs: dict[str, str] = found["refs"]
    return refs


def test_a_hub_of_format_1_is_read_and_gone_on_with(files: MemoryFiles, here: Store, tmp_path: Path) -> None:
    refs = _format_1(files)
    before = dict(files.files)
    fetch(here, _to(files), EVERYTHING, keeps_content=False)
    assert here.refs() == refs
    sound(here)
    assert fetch(here, _to(files), EVERYTHING, keeps_content=False).differed == 0
    whole = state(here)
    _push(files, here, "more")
    old = next(name[len(WRITERS) :] for name in before if name.startswith(WRITERS))
    add_round(here, f"flow/{here.store_id}/test/y", "by one of the old writers a")
    push(here, HubTransport(files, Pusher(old, "sha256")), EVERYTHING)
    assert _seen(files, tmp_path / "a") == state(here) != whole
    count = len(_hub(files).elements)
    assert _to(files, here).merge() == (count, 1)
    assert len(_hub(files).elements) == 1
    assert _seen(files, tmp_path / "b") == state(here)
    _push(files, here, "yet more")
    files.now = 10 * sweeping.GRACE
    for number in range(2 * merging.FEW):
        _push(files, here, str(number))
        files.now += sweeping.GRACE
    assert _seen(files, tmp_path / "c") == state(here)
    # Without the end of a name nobody can say that it is dead.
    assert {name for name in before if not name.startswith(WRITERS)} <= set(files.files)
    assert all(born(name) is None for name in before)


def test_what_builds_on_all_that_was_seen_comes_behind_all_of_it(
    files: MemoryFiles, here: Store, tmp_path: Path
) -> None:
    """Records of format 1 do not say on what they build more narrowly."""
    refs = _format_1(files)
    for pattern in ("session/*", "flow/*", "tag/*"):
        with opened(tmp_path / pattern[:3]) as store:
            fetch(store, _to(files), Scope(patterns=(pattern,)), keeps_content=False)
            assert store.refs() == {name: key for name, key in refs.items() if name.startswith(pattern[:-1])}
            sound(store)


# -- at once -----------------------------------------------------------------------------------------------------------


def test_contention_in_a_bucket(files: MemoryFiles, tmp_path: Path, few: None) -> None:
    contend(lambda: files, tmp_path, writers=6, pushes=8)
    assert _hub(files).merges


def test_contention_on_a_branch(tmp_path: Path, few: None) -> None:
    branch = Branch()
    contend(lambda: BranchView(branch), tmp_path, writers=6, pushes=8)
    hub = _hub(BranchView(branch))
    assert hub.merges
    assert {name for name in branch.tip if not name.startswith(WRITERS)} == hub.needed(hub.writers)


class _Stopped(Exception):
    """As if by ``kill -9``."""


def _stop_at(files: MemoryFiles, step: int) -> list[str]:
    """Let the ``step``-th write, and those after it, not happen; what is noted are all that were to be made."""
    done: list[str] = []

    def before(what: str, name: str) -> None:
        done.append(f"{what} {name.partition('/')[0]}")
        if len(done) > step:
            raise _Stopped

    files.before = before
    return done


def _steps_of_a_push_that_merges_and_sweeps(files: MemoryFiles, store: Store) -> Callable[[], None]:
    """Everything that a push does, with what earlier ones left to delete."""
    for number in range(3):
        _push(files, store, str(number))
    _to(files, store).merge()
    files.now += 2 * sweeping.GRACE
    for number in range(3):
        _push(files, store, f"then {number}")

    def last() -> None:
        _push(files, store, "last")

    return last


def test_a_push_that_is_killed_between_any_two_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: None
) -> None:
    step, met = 0, set()
    while True:
        files = MemoryFiles()
        with opened(tmp_path / f"{step}") as store:
            last = _steps_of_a_push_that_merges_and_sweeps(files, store)
            before = state(store)
            done = _stop_at(files, step)
            killed = False
            try:
                last()
            except _Stopped:
                killed = True
            files.before = lambda what, name: None
            met.update(done)
            assert _seen(files, tmp_path / f"{step} seen") in (before, state(store))
            # Somebody else goes on, long after.
            files.now += 2 * sweeping.GRACE
            with opened(tmp_path / f"{step} other") as other:
                for number in range(5):
                    _push(files, other, f"other {number}")
                push(store, _to(files, store), EVERYTHING)
                _push(files, store, "at last")
                fetch(store, _to(files), EVERYTHING, keeps_content=False)
                assert _seen(files, tmp_path / f"{step} end") == state(store)
        if not killed:
            break
        step += 1
    assert step >= 8
    assert met >= {
        "create packs",
        "create segments",
        "create gone",
        "replace writers",
        "discard packs",
        "discard gone",
    }


def _once(at: int, then: Callable[[], None]) -> Callable[..., None]:
    """Call ``then`` at the call of this number, and never again."""
    count = itertools.count()

    def met(*_: object) -> None:
        if next(count) == at:
            then()

    return met


@pytest.mark.parametrize("step", range(7))
def test_a_writer_that_was_stopped_for_long_goes_on(
    files: MemoryFiles, here: Store, there: Store, tmp_path: Path, step: int
) -> None:
    """What it has made, and has not made known yet, is still there then, however long that was."""

    def meanwhile() -> None:
        for number in range(3):
            files.now += 2 * sweeping.GRACE
            _push(files, here, f"meanwhile {number}")
            _to(files, here).merge()

    for number in range(3):
        _push(files, here, f"{number}")
    _push(files, there, "first")
    add_round(there, f"flow/{there.store_id}/test/x", "last a")
    files.before = _once(step, meanwhile)
    push(there, _to(files, there), EVERYTHING)
    with suppress(CheckFailed):  # where it was stopped while it merged, what it wanted to is gone
        _to(files, there).merge()
    for store in (here, there):
        fetch(store, _to(files), EVERYTHING, keeps_content=False)
    assert f"flow/{here.store_id}/test/x" in there.refs()
    assert state(here) == state(there) == _seen(files, tmp_path / "seen")


def test_two_that_merge_the_same_at_once(
    files: MemoryFiles, here: Store, there: Store, tmp_path: Path
) -> None:
    for number in range(8):
        _push(files, (here, there)[number % 2], str(number))
    late = _to(files, there)
    late.hello(EVERYTHING)
    assert late._writing is not None
    _push(files, here, "not seen by the other")
    assert _to(files, here).merge() == (9, 1)
    late._writing.merge()  # of what it saw
    hub = _hub(files)
    assert [len(element.covers) for element in hub.elements] == [2] and len(hub.merges) == 2
    whole = state(here)
    fetch(here, _to(files), EVERYTHING, keeps_content=False)
    assert _seen(files, tmp_path / "a") == state(here) != whole
    _push(files, there, "more")
    assert sum(len(writer.merges) for writer in _hub(files).writers.values()) == 1


def test_of_two_merges_of_just_the_same_one_stands(
    files: MemoryFiles, here: Store, there: Store, tmp_path: Path
) -> None:
    for number in range(8):
        _push(files, (here, there)[number % 2], str(number))
    whole = _seen(files, tmp_path / "before")
    sides = [_to(files, here), _to(files, there)]
    for side in sides:
        side.hello(EVERYTHING)
    for side in sides:
        assert side._writing is not None
        assert side._writing.merge() == (8, 1)
    hub = _hub(files)
    assert len(hub.merges) == 2 and len(hub.elements) == 1
    assert _seen(files, tmp_path / "after") == whole


def _forget(files: MemoryFiles) -> None:
    """Delete all that nobody needs who looks now."""
    hub = _hub(files)
    needed = hub.needed(hub.writers)
    for name in list(files.files):
        if name.startswith((PACKS, SEGMENTS)) and name not in needed:
            del files.files[name]


def test_a_reader_in_the_middle_of_it(files: MemoryFiles, here: Store, there: Store, tmp_path: Path) -> None:
    """While a store fetches, all that it has listed is merged and deleted."""
    get = files.get
    met: list[int] = []
    for at in range(14):
        for number in range(14):
            _push(files, there, f"{at} {number}")

        def meanwhile(at: int = at) -> None:
            met.append(at)
            _push(files, here, f"while {at}")
            _to(files, here).merge()
            _forget(files)

        then = _once(at, meanwhile)

        def getting(name: str, tag: str | None = None, then: Callable[[], None] = then) -> bytes:
            if name.startswith(PACKS) and threading.current_thread().name.startswith("hub"):
                then()
            return get(name, tag)

        with opened(tmp_path / f"reader {at}") as reader:
            files.get = getting  # type: ignore[method-assign]
            fetch(reader, _to(files), EVERYTHING, keeps_content=False)
            files.get = get  # type: ignore[method-assign]
            sound(reader)
            assert there.refs().items() <= reader.refs().items()
    assert met == list(range(14))


def test_one_who_looked_long_ago_looks_again(files: MemoryFiles, here: Store, there: Store) -> None:
    for number in range(6):
        _push(files, there, f"{number}")
    pushing, reading = _to(files, here), _to(files)
    assert reading.hello(EVERYTHING).root == pushing.hello(EVERYTHING).root
    _to(files, there).merge()
    _forget(files)
    assert len(reading.nodes(EVERYTHING, [""])[0].refs or ()) == 3
    add_round(here, f"flow/{here.store_id}/test/x", "mine a")
    with here.snapshot() as view:
        pushing.push(pack_stream(view, select(view, list(view.refs())), "sha256"))
    fetch(there, _to(files), EVERYTHING, keeps_content=False)
    assert here.refs().items() <= there.refs().items()


def test_what_is_missing_for_good_is_said(files: MemoryFiles, there: Store, here: Store) -> None:
    for number in range(6):
        _push(files, there, f"{number}")
    _to(files, there).merge()
    for prefix in (PACKS, SEGMENTS):
        hub = _hub(files)
        (name,) = (one for one in hub.needed(hub.writers) if one.startswith(prefix))
        held = files.files.pop(name)
        with pytest.raises(CheckFailed, match="is not there"):
            fetch(here, _to(files), EVERYTHING, keeps_content=False)
        files.files[name] = held
    fetch(here, _to(files), EVERYTHING, keeps_content=False)
    assert state(here) == state(there)


def test_what_is_damaged_in_a_merged_hub_is_refused(files: MemoryFiles, there: Store, tmp_path: Path) -> None:
    for number in range(6):
        _push(files, there, f"{number}")
    _to(files, there).merge()
    _push(files, there, "last")
    hub = _hub(files)
    for name in [*hub.needed(hub.writers), *files.list(WRITERS)]:
        data, tag = files.files[name]
        for at in range(0, len(data), max(1, len(data) // 15)):
            files.files[name] = (data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], tag)
            with opened(tmp_path / f"{name[:3]}{len(data)}{at}") as into:
                before = state(into)
                try:
                    fetch(into, _to(files), EVERYTHING, keeps_content=False)
                except ObjstoreError:
                    sound(into)
                else:
                    assert name.startswith(WRITERS) and state(into) in (before, state(there))
        files.files[name] = (data, tag)


# -- deleting ----------------------------------------------------------------------------------------------------------


def test_nothing_is_deleted_before_its_time(
    files: MemoryFiles, there: Store, tmp_path: Path, few: None
) -> None:
    everything: set[str] = set()
    for number in range(12):
        files.now += sweeping.GRACE / 20
        _push(files, there, f"{number}")
        everything |= files.files.keys()
    assert everything == files.files.keys()
    while_old = _hub(files)
    for number in range(12):
        files.now += sweeping.GRACE / 2
        _push(files, there, f"later {number}")
    gone = everything - files.files.keys()
    assert gone and not gone & _hub(files).needed(_hub(files).writers)
    hub = _hub(files)
    assert len(files.list(PACKS)) <= len(hub.elements) + 24  # those whose time has not come
    assert _seen(files, tmp_path / "a") == state(there)
    assert while_old.counts != hub.counts


def test_a_hub_that_nobody_may_delete_from_works(files: MemoryFiles, there: Store, few: None) -> None:
    def refused(what: str, name: str) -> None:
        if what == "discard":
            raise StorageError("you may not delete here")

    files.before = refused
    for number in range(12):
        files.now += sweeping.GRACE
        _push(files, there, f"{number}")
    assert _hub(files).merges


def test_a_list_of_the_dead_that_names_the_living_deletes_none(
    files: MemoryFiles, there: Store, tmp_path: Path
) -> None:
    for number in range(6):
        _push(files, there, f"{number}")
    names = [*files.files, "writers/x", "../x", "segments/x"]
    files.files["gone/" + "0" * 64] = (json.dumps(names).encode(), "t")
    files.files["gone/" + "1" * 64] = (b"nonsense", "t")
    files.written |= dict.fromkeys([name for name in files.files if name.startswith("gone/")], 0.0)
    files.now = 2 * sweeping.GRACE
    _to(files, there).merge()
    assert not {"gone/" + "0" * 64, "gone/" + "1" * 64} & files.files.keys()
    assert _seen(files, tmp_path / "a") == state(there)


# -- whatever happens --------------------------------------------------------------------------------------------------

_DOING = st.lists(
    st.tuples(
        st.sampled_from(
            ("push", "push", "push", "stale push", "merge", "stale merge", "fetch", "some", "look", "wait")
        ),
        st.integers(0, 2),
    ),
    min_size=4,
    max_size=24,
)


class _Side:
    """A store, and what it saw of the hub some time ago; and one that only ever fetches some refs."""

    def __init__(self, store: Store, some: Store, opens: Callable[[], Files]) -> None:
        self.store = store
        self.some = some
        self.opens = opens
        self.stale = _to(opens(), store)
        self.stale.hello(EVERYTHING)

    def do(self, what: str) -> None:
        if what == "fetch":
            fetch(self.store, _to(self.opens()), EVERYTHING, keeps_content=False)
        elif what == "some":
            for pattern in ("session/*", "flow/*", "lineage/*", "tag/*"):
                self.fetch_some(Scope(patterns=(pattern,)))
        elif what == "look":
            self.stale = _to(self.opens(), self.store)
            self.stale.hello(EVERYTHING)
        elif what == "push":
            push(self.store, _to(self.opens(), self.store), EVERYTHING)
        elif what == "stale push":
            with self.store.snapshot() as view:
                selection = select(view, list(view.refs()))
                if selection.refs:
                    self.stale.push(pack_stream(view, selection, "sha256"))
        elif what == "merge":
            _to(self.opens(), self.store).merge()
        elif what == "stale merge":
            assert self.stale._writing is not None
            self.stale._writing.merge()

    def fetch_some(self, scope: Scope) -> None:
        fetch(self.some, _to(self.opens()), scope, keeps_content=False)
        matches = scope.matcher()
        found = {name: key for name, key in self.some.refs().items() if matches(name)}
        assert found == {name: key.hex() for name, key in _hub(self.opens()).manifest(scope).refs()}


def _meant(store: Store) -> Any:
    """The refs of a store, by place, and the objects. A tag that was set by hand to what it stands for already, set
    apart, stands there twice."""
    refs = {(place_of_name(name).group, key) for name, key in store.refs().items()}
    return refs, state(store)[1]


def _at_random(
    folder: Path, opens: Callable[[], Files], later: Callable[[], None], recipes: Any, doing: Any
) -> None:
    with ExitStack() as stack:
        stores = [stack.enter_context(opened(folder / str(number))) for number in range(3)]
        sid = new_session(stores[0], created_at=TIME)[0]
        some = stack.enter_context(opened(folder / "some"))
        sides = [_Side(store, some, opens) for store in stores]
        sides[0].do("push")
        sides[1].do("fetch")
        sides[2].do("fetch")
        for at, (what, number) in enumerate(doing):
            if what == "wait":
                later()
                continue
            if what.endswith("push"):
                follow(stores[number], f"{number} {at}", recipes[number], [sid])
            # Who goes by what it saw long ago may find that gone.
            with suppress(CheckFailed) if what.startswith("stale") else nullcontext():
                sides[number].do(what)
        first = _seen(opens(), folder / "before")
        sides[0].do("merge")
        assert _seen(opens(), folder / "after") == first
        for what in ("push", "fetch"):
            for side in sides:
                side.do(what)
        sides[0].do("some")
        sound(some)
        with opened(folder / "end") as end:
            fetch(end, _to(opens()), EVERYTHING, keeps_content=False)
            assert _meant(stores[0]) == _meant(stores[1]) == _meant(stores[2]) == _meant(end)
            sound(end)
        for side in sides:
            before = _hub(opens()).counts
            side.do("push")
            assert _hub(opens()).counts == before  # nothing is pushed again and again


def _in_a_bucket(folder: Path, recipes: Any, doing: Any) -> None:
    files = MemoryFiles()

    def later() -> None:
        files.now += 2 * sweeping.GRACE

    _at_random(folder, lambda: files, later, recipes, doing)


def _on_a_branch(folder: Path, recipes: Any, doing: Any) -> None:
    branch = Branch()
    _at_random(folder, lambda: BranchView(branch), lambda: None, recipes, doing)


_WAYS = pytest.mark.parametrize("way", [_in_a_bucket, _on_a_branch])
_RECIPES = st.lists(STEPS, min_size=3, max_size=3)


@_WAYS
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(_RECIPES, _DOING)
def test_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, way: Callable[..., None], recipes: Any, doing: Any
) -> None:
    """Whatever several do at once, some going by what they saw long ago: all that was pushed comes to a new reader."""
    way(tmp_path_factory.mktemp("stores"), recipes, doing)


@pytest.mark.soak
@_WAYS
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(_RECIPES, _DOING)
def test_nothing_is_lost_for_long(
    tmp_path_factory: pytest.TempPathFactory, way: Callable[..., None], recipes: Any, doing: Any
) -> None:
    way(tmp_path_factory.mktemp("stores"), recipes, doing)
