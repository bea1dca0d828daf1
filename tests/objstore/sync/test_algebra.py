"""Uniting stores is a join: neither the order nor doing it twice matters; refs, objects, folds and indexes agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from objstore.fold import fold_chains
from objstore.snapshot import Snapshot
from objstore.store import Store
from porcelain.lineage.derived.view import lineage_view
from porcelain.lineage.exports.json_view import write_json
from porcelain.lineage.exports.sqlite_view import write_sqlite
from porcelain.lineage.facts.projection import project
from porcelain.lineage.facts.store import all_facts, rebuild_index
from porcelain.session.exchange.sqlite_view import export_session
from porcelain.session.tree.change import open_session
from porcelain.session.tree.names import heads, session_ids
from porcelain.session.tree.store import new_session
from tests.objstore.sync.building import STEPS, TIME, follow, opened, sound, state, unite

Steps = list[tuple[str, int]]


@contextmanager
def stores(*recipes: Steps) -> Iterator[tuple[list[Store], Path]]:
    """A store for each recipe, which all know one session, and a folder for more."""
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        first = stack.enter_context(opened(folder / "first"))
        sid = new_session(first, created_at=TIME, random=bytes)[0]
        made = []
        for number, steps in enumerate(recipes):
            store = stack.enter_context(opened(folder / f"store{number}"))
            unite(store, first)
            follow(store, f"store{number}", steps, [sid])
            made.append(store)
        yield made, folder


def united(folder: Path, name: str, *parts: Store) -> tuple[object, ...]:
    """The state of a new store that ``parts`` were united in, in this order, and what its views show."""
    with opened(folder / name) as store:
        for part in parts:
            unite(store, part)
        sound(store)
        found = state(store)
        with store.snapshot() as view:
            rows = project(all_facts(view))
            fold = fold_chains(view, [key for ref, key in view.refs("flow/")])
            batch = store.batch()
            rebuild_index(batch, view)
            rebuilt = {key: value for key, value in batch.derived.items() if value is not None}
            exported = exports(view, folder / f"{name} exported")
        assert rebuilt == found[2]
        return *found, rows, {key: fold.get(key) for key in fold.ids()}, exported


def exports(view: Snapshot, folder: Path) -> dict[str, bytes]:
    """The bytes of every file that the views of a store are exported as."""
    folder.mkdir()
    write_json(folder / "lineage.json", lineage_view(view))
    write_sqlite(folder / "lineage.sqlite", lineage_view(view))
    for sid in session_ids(view):
        if len(heads(view, sid)) == 1:
            export_session(view, open_session(view, sid), folder / f"{sid}.db")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@settings(max_examples=12)
@given(STEPS, STEPS)
def test_two_stores_that_fetch_from_each_other_are_the_same(one: Steps, two: Steps) -> None:
    with stores(one, two) as ((a, b), _):
        before = state(a)
        unite(a, b)
        unite(b, a)
        assert state(a) == state(b)
        assert before[1] <= state(a)[1]
        again = state(a)
        result = unite(a, b)
        assert (result.added, result.moved) == (0, [])
        assert state(a) == again
        sound(a)
        sound(b)


@settings(max_examples=8)
@given(STEPS, STEPS, STEPS)
def test_the_order_in_which_three_stores_meet_does_not_matter(one: Steps, two: Steps, three: Steps) -> None:
    with stores(one, two, three) as (parts, folder):
        results = [united(folder, f"u{number}", *order) for number, order in enumerate(permutations(parts))]
        assert all(result == results[0] for result in results)
        # Two that were united first, and then the third.
        unite(parts[0], parts[1])
        assert united(folder, "left", parts[0], parts[2]) == results[0]


@settings(max_examples=6)
@given(STEPS, st.integers(0, 2))
def test_the_same_store_twice_is_the_store(steps: Steps, times: int) -> None:
    with stores(steps) as ((store,), folder):
        once = united(folder, "once", store)
        assert united(folder, "again", *([store] * (times + 2))) == once
        assert once[0] == store.refs()
