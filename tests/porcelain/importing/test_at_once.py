"""Two imports into one store at the same time."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from tests.porcelain.importing.driving import (
    copy_home,
    eventually,
    finish,
    held,
    objstore,
    patched,
    start,
    succeed,
    verify,
)

#: The program, slow enough for another one to come in between.
SLOW = (
    "import time, porcelain.importing.run as importing",
    "take = importing._Import._take",
    "importing._Import._take = lambda self, piece: (time.sleep(0.04), take(self, piece))[1]",
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copy_home(tmp_path / "home")


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    return patched(tmp_path / "slow.py", *SLOW)


def is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize("made", [True, False])
def test_the_second_waits_and_finds_nothing_new(tmp_path: Path, home: Path, slow: Path, made: bool) -> None:
    store = tmp_path / "store"
    if made:
        succeed(store, "init")
    both = [start(store, "import", "--json", home=home, script=slow) for _ in range(2)]
    results = [finish(process) for process in both]
    assert [result.code for result in results] == [0, 0], [result.err for result in results]
    assert sorted(result.json["records"] > 0 for result in results) == [False, True]
    assert sum("waiting for another import" in result.err for result in results) == 1
    assert sum("made a store" in result.err for result in results) == (not made)
    verify(store)
    alone = tmp_path / "alone"
    succeed(alone, "import", home=home)
    assert held(store) == held(alone)


def test_the_second_gives_up(tmp_path: Path, home: Path, slow: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "init")
    first = start(store, "import", home=home, script=slow)
    eventually(lambda: is_locked(store / "import.lock"))
    second = objstore(store, "--lock-timeout", "0.1", "import", home=home)
    assert (second.code, second.out) == (4, "")
    assert second.err.splitlines() == [
        "waiting for another import into this store",
        "objstore: the store is locked by another writer: gave up after 0.1 s",
        "hint: wait for it to finish, or give --lock-timeout SECONDS",
    ]
    quiet = objstore(store, "--quiet", "--lock-timeout", "0", "import", home=home)
    assert (quiet.code, len(quiet.err.splitlines())) == (4, 2)
    assert finish(first).code == 0
    verify(store)


def test_another_writer_holds_the_store(tmp_path: Path, home: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "init")
    with (store / "write.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = objstore(store, "--lock-timeout", "0.1", "import", home=home)
    assert (result.code, result.out) == (4, "")
    assert result.err.splitlines()[-2:] == [
        "objstore: the store is locked by another writer: gave up after 0.1 s",
        "hint: wait for it to finish, or give --lock-timeout SECONDS",
    ]
    assert held(store).landed == {}
    succeed(store, "import", home=home)
    verify(store)


def test_a_person_moves_refs_while_an_import_runs(tmp_path: Path, home: Path, slow: Path) -> None:
    """Other refs than those of the import may move meanwhile."""
    store = tmp_path / "store"
    succeed(store, "init")
    text = objstore(store, "hash-object", "-w", "--stdin", stdin=b'{"text":"a","type":"text"}').out.strip()
    process = start(store, "import", home=home, script=slow)
    eventually(lambda: is_locked(store / "import.lock"))
    for number in range(3):
        succeed(store, "update-ref", f"tag/t{number}", text)
    assert finish(process).code == 0
    verify(store)
