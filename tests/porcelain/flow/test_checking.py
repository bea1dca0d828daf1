"""What ``flow verify`` finds: each rule is broken in a store that is otherwise right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from objstore import kinds
from objstore.batch import Batch
from objstore.core import ListOf
from objstore.store import Store, load
from porcelain.flow.chain.naming import flow_ref, landed_ref
from porcelain.flow.checking.store_check import ConversationCheck, check_conversation
from tests.porcelain.importing.driving import TIDEPOOL, copy_home, opened, succeed

NAME = TIDEPOOL.stem


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """One conversation in two pages and two rounds."""
    home = copy_home(tmp_path / "home")
    path = home / TIDEPOOL
    data = path.read_bytes()
    path.write_bytes(b"".join(data.splitlines(keepends=True)[:15]))
    succeed(tmp_path / "store", "import", path)
    path.write_bytes(data)
    succeed(tmp_path / "store", "import", path)
    return tmp_path / "store"


def heads(store: Path) -> tuple[bytes, bytes]:
    """Where the chains of the conversation stand: landed, flow."""
    with opened(store) as (found, view):
        landed = view.ref(landed_ref(found.store_id, "claude", NAME))
        flow = view.ref(flow_ref(found.store_id, "claude", NAME))
    assert landed is not None and flow is not None
    return landed, flow


def check(store: Path) -> ConversationCheck:
    landed, flow = heads(store)
    with opened(store) as (_, view):
        return check_conversation(view, "claude", NAME, landed, flow)


def forge(store: Path, ref: Callable[[str, str, str], str], change: Callable[[Any, Batch, Any], Any]) -> None:
    """Replace the newest entry of a chain by what ``change`` makes of it."""
    with Store.open(store) as found:
        name = ref(found.store_id, "claude", NAME)
        batch = found.batch()
        with found.snapshot() as view:
            head = view.ref(name)
            assert head is not None
            entry = load(view, head)
            forged = batch.put(entry.type, kinds.encode(change(entry, batch, view)))
        batch.move_ref(name, forged, head.hex(), "forged")
        found.commit(batch)


def with_page(**fields: Any) -> Callable[[Any, Batch, Any], Any]:
    """The landing entry with its last page changed."""

    def change(entry: Any, batch: Batch, view: Any) -> Any:
        page = replace(load(view, bytes.fromhex(entry.pages[-1])), **fields)
        return replace(entry, pages=[*entry.pages[:-1], batch.put("page", kinds.encode(page))])

    return change


def with_frames(cut: int) -> Callable[[Any, Batch, Any], Any]:
    """The round without its last ``cut`` frames."""

    def change(entry: Any, batch: Batch, view: Any) -> Any:
        items = load(view, bytes.fromhex(entry.frames[0])).items[:-cut]
        return replace(entry, frames=[batch.put("list", kinds.encode(ListOf(items=items)))])

    return change


def fields(**values: Any) -> Callable[[Any, Batch, Any], Any]:
    return lambda entry, _batch, _view: replace(entry, **values)


def rules(store: Path) -> set[str]:
    return {problem.rule for problem in check(store).problems}


def test_a_right_store_has_no_problem(store: Path) -> None:
    found = check(store)
    assert (found.pages, found.records, found.rounds, found.problems) == (2, 42, 2, [])


@pytest.mark.parametrize(
    ("change", "rule", "place"),
    [
        (fields(round=7), "landing-order", "chain"),
        (fields(through_seq=9), "through-seq", "chain"),
        (with_page(seq=5), "page-order", "page 5"),
        (with_page(digest="0" * 64), "page-digest", "page 2"),
        (with_page(at="2020-01-01T00:00:00Z"), "page-digest", "page 2"),
        (with_page(digests="0" * 12), "page-rows", "page 2"),
        (with_page(lengths=[1]), "page-rows", "page 2"),
    ],
)
def test_landing(store: Path, change: Any, rule: str, place: str) -> None:
    forge(store, landed_ref, change)
    found = [problem for problem in check(store).problems if problem.rule == rule]
    assert [problem.place for problem in found] == [place]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (fields(commit="0" * 64), "digest"),
        (fields(llm_calls=99), "digest"),
        (fields(through_seq=1), "ref-past"),
        (fields(through_seq=3), "landed-file"),
        (fields(from_seq=1), "range"),
        (fields(round=3), "revision"),
        (fields(previous_digest="1" * 64), "previous"),
        (fields(previous_digest=UNSET), "no-previous"),
        (fields(conversation="another"), "frozen-conversation"),
        (fields(parser="2"), "frozen-parser"),
        (with_frames(1), "counts"),
    ],
)
def test_rounds(store: Path, change: Any, rule: str) -> None:
    forge(store, flow_ref, change)
    found = [problem for problem in check(store).problems if problem.rule == rule]
    assert found, check(store).problems
    assert {problem.place for problem in found} <= {"round 2", "round 3"}


def test_a_round_over_pages_that_never_landed(store: Path) -> None:
    with Store.open(store) as found:
        name = landed_ref(found.store_id, "claude", NAME)
        with found.snapshot() as view:
            head = view.ref(name)
            assert head is not None
            previous = load(view, head).previous
        found.update_ref(name, previous, head.hex())
    (problem,) = check(store).problems
    assert (problem.place, problem.rule) == ("round 2", "landed-file")
    assert "page 2 is missing" in problem.what


def test_pages_that_were_changed_after_their_round(store: Path) -> None:
    """A page that is right by itself, but not the one that the round was made from."""

    def change(entry: Any, batch: Batch, view: Any) -> Any:
        import hashlib

        from porcelain.flow.chain.landed import page_records
        from porcelain.flow.formats.sd import sd_bytes

        page = replace(load(view, bytes.fromhex(entry.pages[-1])), at="2020-01-01T00:00:00Z")
        digest = hashlib.sha256(sd_bytes(page, page_records(view, page))).hexdigest()
        page = replace(page, digest=digest)
        return replace(entry, pages=[*entry.pages[:-1], batch.put("page", kinds.encode(page))])

    forge(store, landed_ref, change)
    (problem,) = check(store).problems
    assert (problem.place, problem.rule) == ("round 2", "input-digest")
    assert len(problem.expected) == len(problem.found) == 64


def test_a_ref_that_names_something_else(store: Path) -> None:
    landed, flow = heads(store)
    with Store.open(store) as found:
        found.update_ref(flow_ref(found.store_id, "claude", NAME), landed.hex(), flow.hex())
    assert rules(store) == {"chain"}


def test_rounds_without_their_pages_are_checked_by_themselves(store: Path) -> None:
    _, flow = heads(store)
    with opened(store) as (_, view):
        found = check_conversation(view, "claude", NAME, None, flow)
    assert (found.rounds, found.problems) == (2, [])
