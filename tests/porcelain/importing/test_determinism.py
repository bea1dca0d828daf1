"""The same files give the same objects, whichever store imports them, when, and with how many processes."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from porcelain.lineage.exports.sqlite_view import write_sqlite
from porcelain.lineage.facts.projection import comparable, project
from porcelain.lineage.facts.store import all_facts
from porcelain.lineage.tables.schema import TABLES
from tests.porcelain.importing.driving import (
    RECORDS,
    SMALL_PIECES,
    copy_home,
    held,
    opened,
    patched,
    projection,
    run,
    succeed,
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_home(tmp_path_factory.mktemp("determinism") / "home")


@pytest.fixture(scope="module")
def one(home: Path) -> Path:
    succeed(home.parent / "one", "import", home=home)
    return home.parent / "one"


def objects(store: Path) -> dict[bytes, str]:
    """Kind by key."""
    with opened(store) as (_, view):
        return {key: stored.kind for key, stored in view.objects()}


def run_facts(store: Path) -> set[bytes]:
    with opened(store) as (_, view):
        return {bytes.fromhex(name) for name, fact in all_facts(view) if fact.kind == "import_run"}


@pytest.mark.parametrize("processes", ["1", "2"])
def test_two_stores(one: Path, home: Path, processes: str) -> None:
    two = home.parent / f"two-{processes}"
    result = run(two, "import", "--processes", processes, home=home)
    assert result.code == 0, result.err
    here, there = objects(one), objects(two)
    runs = run_facts(one) | run_facts(two)
    differing = Counter((here | there)[key] for key in here.keys() ^ there.keys() if key not in runs)
    # The runs stand in the last round of facts: that round and the list of its frames name them.
    assert differing.keys() <= {"round", "list"}
    assert differing["round"] <= 2 and differing["list"] <= 2
    assert len(here.keys() & there.keys()) > 700
    assert held(one) == held(two)
    assert comparable(projection(one)) == comparable(projection(two))


def test_pieces_make_no_difference_to_facts(one: Path, home: Path) -> None:
    """However small the transactions; pages are cut elsewhere, so only records and facts are the same."""
    pieces = home.parent / "pieces"
    script = patched(home.parent / "pieces.py", *SMALL_PIECES)
    assert run(pieces, "import", home=home, script=script).code == 0
    assert held(pieces).landed == held(one).landed
    assert held(pieces).facts.keys() == held(one).facts.keys()
    assert comparable(projection(pieces)).tables == comparable(projection(one)).tables


def test_the_exported_views_are_the_same_bytes(one: Path, home: Path) -> None:
    two = home.parent / "two-exported"
    succeed(two, "import", home=home)
    files = []
    for store in (one, two):
        with opened(store) as (_, view):
            files.append(store.with_suffix(".comparable"))
            write_sqlite(files[-1], comparable(project(all_facts(view))))
    assert files[0].read_bytes() == files[1].read_bytes()
    for store in (one, two):
        for form in ("sqlite", "json"):
            succeed(store, "lineage", "export", store.with_suffix(f".{form}"))
    dumps = []
    volatile = {(table.name, column.name) for table in TABLES for column in table.columns if column.volatile}
    for store in (one, two):
        with closing(sqlite3.connect(store.with_suffix(".sqlite"))) as connection:
            rows = {}
            for table in TABLES:
                kept = [c.name for c in table.columns if (table.name, c.name) not in volatile]
                if table.name != "import_runs":
                    query = f"SELECT {', '.join(kept)} FROM {table.name} ORDER BY id"
                    rows[table.name] = connection.execute(query).fetchall()
            dumps.append(rows)
    assert dumps[0] == dumps[1]
    assert len(dumps[0]["events"]) == RECORDS


def test_a_view_of_one_store_is_always_the_same_bytes(one: Path) -> None:
    for form in ("sqlite", "json"):
        first, second = one.with_suffix(f".first.{form}"), one.with_suffix(f".second.{form}")
        succeed(one, "lineage", "export", first)
        succeed(one, "lineage", "export", second)
        assert first.read_bytes() == second.read_bytes()


def test_files_of_another_machine_give_the_same_records(one: Path, home: Path, tmp_path: Path) -> None:
    """Another folder and other times on disk: other sources and observations, the same records and rounds."""
    elsewhere = copy_home(tmp_path / "elsewhere" / "home")
    succeed(tmp_path / "store", "import", home=elsewhere)
    assert held(tmp_path / "store").landed == held(one).landed
    assert held(tmp_path / "store").folds == held(one).folds
    there = objects(tmp_path / "store")
    kinds = Counter(kind for key, kind in objects(one).items() if key not in there)
    assert kinds.keys() <= {"fact", "list", "round"}
