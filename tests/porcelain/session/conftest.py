"""Sessions to test with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import porcelain  # noqa: F401  (declares the kinds of objects)
from objstore.memory import MemoryDatabase
from objstore.store import Store
from porcelain.session.tree.store import Turn

TIME = "2026-03-04T05:06:07Z"


def _answer(store: Store) -> str:
    return store.put({"text": "Ada Byron, in a note on the Engine.", "type": "text"})


@pytest.fixture
def store() -> Store:
    """A store in memory whose clock stands still."""
    return Store(MemoryDatabase(), now=lambda: TIME)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Store]:
    """A store on disk."""
    with Store.init(tmp_path / "store", now=lambda: TIME) as made:
        yield made


@pytest.fixture
def turn() -> Callable[..., Turn]:
    """``turn(store, question, ...)``: a turn whose answer is stored."""

    def make(
        store: Store,
        question: str,
        parent: int | None = None,
        *,
        label: str | None = None,
        created_at: str | None = None,
    ) -> Turn:
        return Turn(
            answer=_answer(store),
            audit_mode="STRICT",
            cache_key="1" * 64,
            question=question,
            parent=parent,
            label=label,
            created_at=created_at,
        )

    return make
