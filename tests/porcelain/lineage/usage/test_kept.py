"""What was counted is kept as long as nothing is landed, and says the same."""

from __future__ import annotations

import sqlite3
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from objstore.store import Store
from porcelain.lineage.index.opening import NAME
from porcelain.lineage.usage import kept
from tests.porcelain.importing.driving import copy_home, finish, start, succeed
from tests.porcelain.lineage.pi_home import PiHome


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A word for each time that everything was counted."""
    found: list[str] = []
    real = kept.counted

    def counted(conversations: Any) -> sqlite3.Connection:
        found.append("counted")
        return real(conversations)

    monkeypatch.setattr(kept, "counted", counted)
    return found


def test_what_is_kept_says_what_a_count_does(tmp_path: Path, counts: list[str]) -> None:
    home, store = copy_home(tmp_path / "home"), tmp_path / "store"
    succeed(store, "import", home=home)
    limits: list[list[str]] = [
        [],
        ["--provider", "claude"],
        ["--provider", "factory"],
        ["--since", "2026-03-01"],
        ["--until", "2026-05-31"],
        ["--since", "2026-03-01", "--until", "2026-05-31", "--provider", "codex"],
        ["--since", "2027-01-01"],
    ]
    asked = [["--by", by, *some] for by, some in product(("day", "model", "project", "session"), limits)]
    first = [succeed(store, "lineage", "usage", "--json", *words).out for words in asked]
    assert counts == ["counted"]
    for words, expected in zip(asked, first, strict=True):
        with sqlite3.connect(store / NAME) as connection:
            connection.execute("DELETE FROM state WHERE name LIKE 'kept/%'")
        connection.close()
        assert succeed(store, "lineage", "usage", "--json", *words).out == expected
    assert len(counts) == 1 + len(asked)


def test_it_goes_when_anything_is_landed_and_stays_when_somebody_judges(
    tmp_path: Path, counts: list[str]
) -> None:
    home, store = PiHome(tmp_path / "home"), tmp_path / "store"
    home.write("a", home.entries("a", 6))
    succeed(store, "import", home=home.home)
    before = succeed(store, "lineage", "usage", "--json").json
    succeed(store, "lineage", "mark", home.native("a"), "preserve")
    succeed(store, "lineage", "usage")
    assert counts == ["counted"]
    home.write("b", home.entries("b", 6))
    succeed(store, "import", home=home.home)
    assert succeed(store, "lineage", "usage", "--json").json["conversations"] == before["conversations"] + 1
    assert counts == ["counted"] * 2


def test_nothing_is_kept_of_what_has_changed_meanwhile(tmp_path: Path, counts: list[str]) -> None:
    home, store = PiHome(tmp_path / "home"), tmp_path / "store"
    home.write("a", home.entries("a", 6))
    succeed(store, "import", home=home.home)
    home.write("b", home.entries("b", 6))

    def landing(usage: sqlite3.Connection) -> Any:
        raise AssertionError("not asked before it is kept")

    with Store.open(store, read_only=True) as opened:
        real = kept.keep

        def late(store_: Store, stamp: bytes, write: Any) -> None:
            assert finish(start(store, "import", home=home.home)).code == 0
            real(store_, stamp, write)

        with pytest.MonkeyPatch.context() as patch, pytest.raises(AssertionError, match="not asked"):
            patch.setattr(kept, "keep", late)
            kept.fresh_totals(opened, landing, lambda: None)
    assert succeed(store, "lineage", "usage", "--json").json["conversations"] == 2
    assert counts == ["counted"] * 2
