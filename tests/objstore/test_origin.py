"""A store notices that its folder was copied, and goes on under a new id."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from objstore.origin import settle
from objstore.store import Store
from tests.objstore.sync.building import add_fact, add_round, opened, put_node, sound


def settled(path: Path, machine: str = "here") -> tuple[str | None, str, dict[str, str]]:
    """What settling says, the id of the store then, and its refs."""
    with Store.open(path) as store:
        return settle(store, machine), store.store_id, store.refs()


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, str]:
    """A store that knows where it lives, with chains of its own, and its id."""
    with opened(tmp_path / "a") as store:
        assert settle(store, "here") is None
        add_fact(store, "/home/one")
        add_round(store, f"flow/{store.store_id}/test/x", "one")
        store.update_ref("tag/x", put_node(store, "tagged"), None)
        return tmp_path / "a", store.store_id


def test_a_store_that_stays_keeps_its_id(made: tuple[Path, str]) -> None:
    path, own = made
    for _ in range(3):
        assert settled(path)[:2] == (None, own)


def test_a_folder_that_was_moved_keeps_its_id(made: tuple[Path, str], tmp_path: Path) -> None:
    path, own = made
    os.rename(path, tmp_path / "b")
    assert settled(tmp_path / "b")[:2] == (None, own)
    assert settled(tmp_path / "b")[:2] == (None, own)


@pytest.mark.parametrize("how", ["copied", "restored", "other machine"])
def test_a_copy_goes_on_under_a_new_id_with_every_ref_of_its_own(
    made: tuple[Path, str], tmp_path: Path, how: str
) -> None:
    path, own = made
    with Store.open(path) as store:
        before = store.refs()
    if how == "other machine":
        new, current, refs = settled(path, "there")
    else:
        shutil.copytree(path, tmp_path / "b")
        if how == "restored":
            shutil.rmtree(path)
            (tmp_path / "filler").mkdir()  # another file may take the old number
            os.rename(tmp_path / "b", path)
        new, current, refs = settled(path if how == "restored" else tmp_path / "b")
        path = path if how == "restored" else tmp_path / "b"
    assert new == current != own
    assert refs == before | {name.replace(own, str(new)): key for name, key in before.items() if own in name}
    assert settled(path, "there" if how == "other machine" else "here")[:2] == (None, new)
    with Store.open(path) as store:
        assert store.store_id == new
        add_fact(store, "/home/two")
        assert store.ref(f"lineage/{own}") == before[f"lineage/{own}"]
        assert store.ref(f"lineage/{new}") != before[f"lineage/{own}"]
        sound(store)


def test_what_is_noted_is_of_this_machine_only(made: tuple[Path, str]) -> None:
    with Store.open(made[0]) as store, store.snapshot() as view:
        assert view.local(b"origin") is not None
