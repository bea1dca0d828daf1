"""A fold from where it was saved is the fold of the rounds, whatever happened to what was saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore.memory import MemoryDatabase, MemorySnapshot
from objstore.store import Store
from porcelain.flow.assembly import Written, rounds
from porcelain.flow.assembly.entries import Landed
from porcelain.flow.chain import fold_store
from porcelain.flow.chain.fold_store import Lines, saved_fold, stored_fold
from porcelain.flow.chain.folding import Fold, copied, fold_rounds
from porcelain.flow.chain.frames import Frames
from porcelain.flow.chain.store import put_round
from tests.porcelain.flow.sample import SESSION, asked, landed, said, sessions, text, use


class Kept:
    """A chain of rounds in a store; each ``add`` is a run that makes some of them."""

    def __init__(self) -> None:
        self.store = Store(MemoryDatabase())
        self.head: str | None = None

    def add(self, made: Sequence[Written], *, save: bool = True) -> None:
        batch = self.store.batch()
        lines, head = Lines(), self.head
        for written in made:
            head = put_round(written, head, batch.put)
            lines.take(written)
        assert head is not None
        if save:
            with self.store.snapshot() as view:
                before = bytes.fromhex(self.head) if self.head else None
                for key, value in saved_fold(view, before, head, lines).items():
                    batch.set_derived(key, value)
        self.store.commit(batch)
        self.head = head

    def fold(self) -> Fold:
        with self.store.snapshot() as view:
            return stored_fold(view, bytes.fromhex(self.head) if self.head else None)

    def saved(self) -> dict[bytes, bytes]:
        with self.store.snapshot() as view:
            return dict(view.derived_items(b"flow-fold/"))


def said_by(fold: Fold) -> Any:
    """All of a fold, whatever holds its frames."""
    return (
        fold.round,
        fold.digest,
        fold.header,
        dict(fold.nodes.items()),
        dict(fold.relations.items()),
        dict(fold.unresolved.items()),
    )


@pytest.fixture(params=[1, 2, 64])
def most_rounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(fold_store, "MOST_ROUNDS", request.param)
    return int(request.param)


@pytest.mark.usefixtures("most_rounds")
@given(files=sessions(), budget=st.sampled_from([1, 3000]), data=st.data())
def test_a_saved_fold_is_that_of_the_rounds(files: list[Landed], budget: int, data: st.DataObject) -> None:
    made = list(rounds(files, Fold(), conversation=SESSION, session=SESSION, budget=budget))
    kept, done = Kept(), 0
    while done < len(made):
        some = data.draw(st.integers(1, len(made) - done))
        kept.add(made[done : done + some])
        done += some
        expected = fold_rounds(written.round for written in made[:done])
        assert said_by(kept.fold()) == said_by(expected)
        assert len(kept.saved()) == 1
        for name, node in expected.nodes.items():
            assert kept.fold().nodes[name] == node


def turns(count: int) -> list[Landed]:
    return [
        landed(
            number,
            [
                asked(f"u{number}", f"run-{number}", number * 9),
                said(
                    f"a{number}",
                    f"call-{number}",
                    f"u{number}",
                    number * 9 + 1,
                    text(),
                    use(f"tool-{number}"),
                ),
            ],
        )
        for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("length", [50, 500])
def test_a_fold_costs_what_came_after_it_was_saved(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    files = turns(length)
    fold = Fold()
    kept = Kept()
    kept.add(list(rounds(files[:-1], fold, conversation=SESSION, session=SESSION)))
    last = list(rounds(files, fold, conversation=SESSION, session=SESSION))
    kept.add(last)
    read: list[bytes] = []
    get_many, get = MemorySnapshot.get_many, MemorySnapshot.get
    monkeypatch.setattr(
        MemorySnapshot, "get_many", lambda self, keys: (read.extend(keys), get_many(self, keys))[1]
    )
    monkeypatch.setattr(MemorySnapshot, "get", lambda self, key: (read.append(key), get(self, key))[1])
    found = kept.fold()
    frames = [last[0].round.nodes, last[0].round.relations, last[0].round.unresolved]
    assert len(set(read)) == sum(map(len, frames)) + 3  # its frames and their list, its round, the one before
    assert said_by(found) == said_by(fold)


def test_what_was_saved_is_not_needed() -> None:
    made = list(rounds(turns(30), Fold(), conversation=SESSION, session=SESSION, budget=9000))
    expected = said_by(fold_rounds(written.round for written in made))
    kept = Kept()
    kept.add(made[:2])
    kept.add(made[2:], save=False)
    ((key, value),) = kept.saved().items()
    for bad in (
        None,
        b"",
        value[:4],
        value[:40],
        value[:-1],
        b"\0" * 4 + value[4:],
        value[:9] + b"x" + value[10:],
    ):
        batch = kept.store.batch()
        batch.set_derived(key, bad)
        kept.store.commit(batch)
        assert said_by(kept.fold()) == expected


def test_a_copy_of_a_fold_is_its_own() -> None:
    made = list(rounds(turns(3), Fold(), conversation=SESSION, session=SESSION))
    kept = Kept()
    kept.add(made)
    fold = kept.fold()
    assert isinstance(fold.nodes, Frames)
    other = copied(fold)
    name = next(iter(other.nodes))
    del other.nodes[name]
    assert name in fold.nodes and name not in other.nodes
    assert len(fold.nodes) == len(other.nodes) + 1


def test_a_fold_of_too_many_steps_is_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list(rounds(turns(30), Fold(), conversation=SESSION, session=SESSION, budget=9000))
    steps = made[1].round.header.steps
    assert isinstance(steps, int)
    monkeypatch.setattr(fold_store, "MOST_STEPS", steps)
    kept = Kept()
    kept.add(made[:2])
    assert all(kept.saved().values())
    monkeypatch.setattr(fold_store, "MOST_ROUNDS", 1)
    kept.add(made[2:])
    assert list(kept.saved().values()) == [b""]
    assert said_by(kept.fold()) == said_by(fold_rounds(written.round for written in made))
