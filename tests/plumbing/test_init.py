"""``objstore init``: where the store is made, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from objstore.store import Store


def test_makes_the_store_that_is_named(objstore, tmp_path: Path) -> None:
    assert objstore("init") == (0, f"{tmp_path}/store\n", "")
    with Store.open(tmp_path / "store", read_only=True) as made:
        assert made.algorithm == "sha256"


def test_a_folder_gets_a_store_that_commands_inside_it_find(objstore, tmp_path: Path, monkeypatch) -> None:
    assert objstore("init", "project", store=None).out == f"{tmp_path}/project/.objstore\n"
    (tmp_path / "project" / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "project" / "deep")
    assert objstore("count-objects", store=None).out.startswith("0 objects, ")


def test_json_and_hash(objstore, tmp_path: Path) -> None:
    pytest.importorskip("blake3")
    made = json.loads(objstore("init", "--hash", "blake3", "--json").out)
    assert made == {"hash": "blake3", "path": f"{tmp_path}/store", "store": made["store"]}
    document = b'{"text":"one","type":"text"}'
    hashed = objstore("hash-object", "--stdin", stdin=document).out
    assert hashed == objstore("hash-object", "-w", "--stdin", stdin=document).out
    assert hashed != objstore("hash-object", "--stdin", stdin=document, store="elsewhere").out


def test_refusals(objstore, tmp_path: Path) -> None:
    assert objstore("init").code == 0
    assert objstore("init") == (4, "", f"objstore: {tmp_path}/store: is a store already\n")
    assert objstore("init", "here").code == 2
    assert objstore("init", "--hash", "md5", store="other").code == 2
    Path("file").touch()
    assert objstore("init", store="file/store") == (
        5,
        "",
        f"objstore: {tmp_path}/file/store: cannot be made: Not a directory\n",
    )


def test_a_copied_store_goes_on_under_an_id_of_its_own(objstore, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    Store.init(one).close()
    document = '{"type":"text","text":"x"}'

    def write(store: Path) -> tuple[int, str]:
        done = objstore("hash-object", "-w", "--stdin", stdin=document, store=str(store))
        return done.code, done.err

    assert write(one) == (0, "")
    shutil.copytree(one, two)
    code, said = write(two)
    assert code == 0 and "is a copy of another store" in said
    assert write(two) == (0, "")
    with Store.open(one) as first, Store.open(two) as second:
        assert first.store_id != second.store_id
