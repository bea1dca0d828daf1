"""Verification finds what was damaged, wherever it was damaged."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lmdb
import pytest

from objstore.batch import Batch, prepare
from objstore.canonical import MAX_SIZE
from objstore.core import ListOf, Text
from objstore.database import Database
from objstore.kinds import encode
from objstore.store import Store
from objstore.verify import Report


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Store.init(tmp_path / "s") as store:
        batch = store.batch()
        ids = [batch.put("text", encode(Text(text=f"text number {i} " * 5))) for i in range(50)]
        top = batch.put("list", encode(ListOf(items=ids)))
        batch.move_ref("tag/top", top, None, "")
        store.commit(batch)
    return tmp_path / "s"


def verified(path: Path, processes: int = 1) -> Report:
    with Store.open(path) as store:
        return store.verify(processes=processes)


def raw(path: Path) -> Any:
    return lmdb.open(str(path), max_dbs=16, map_size=1 << 30)


def test_a_sound_store(path: Path) -> None:
    report = verified(path)
    assert report.ok and report.objects == 51 and report.refs == 1
    assert verified(path, processes=2) == report


def test_any_flipped_bit_of_a_stored_value_is_found(path: Path) -> None:
    rnd = random.Random(4)
    for _ in range(60):
        with raw(path) as env:
            objects = env.open_db(b"objects")
            with env.begin(write=True) as txn:
                number = (rnd.randrange(51) + 1).to_bytes(8, "big")
                before = txn.get(number, db=objects)
                bit = rnd.randrange(len(before) * 8)
                damaged = bytearray(before)
                damaged[bit // 8] ^= 1 << bit % 8
                txn.put(number, bytes(damaged), db=objects)
        report = verified(path)
        assert not report.ok, f"bit {bit} of arrival {number.hex()}"
        with raw(path) as env:
            objects = env.open_db(b"objects")
            with env.begin(write=True) as txn:
                txn.put(number, before, db=objects)
    assert verified(path).ok


def test_a_missing_or_extra_index_entry_is_found(path: Path) -> None:
    with raw(path) as env:
        ids = env.open_db(b"ids", dupsort=True, dupfixed=True)
        with env.begin(write=True) as txn, txn.cursor(db=ids) as cursor:
            cursor.first()
            bucket, entry = cursor.item()
            cursor.delete()
    assert {p.rule for p in verified(path).problems} >= {"index-count", "index"}
    with raw(path) as env:
        ids = env.open_db(b"ids", dupsort=True, dupfixed=True)
        with env.begin(write=True) as txn:
            txn.put(bucket, entry, db=ids)
            txn.put(bucket, b"\0" * 9, db=ids)
    assert [p.rule for p in verified(path).problems] == ["index-count"]


def test_a_lost_object_and_what_needs_it(path: Path) -> None:
    with raw(path) as env:
        objects = env.open_db(b"objects")
        with env.begin(write=True) as txn:
            txn.delete((7).to_bytes(8, "big"), db=objects)
    report = verified(path)
    assert {"index-count", "reference"} <= {p.rule for p in report.problems}


def test_a_ref_to_nothing_and_a_reflog_that_ends_elsewhere(path: Path) -> None:
    with raw(path) as env:
        refs = env.open_db(b"refs")
        with env.begin(write=True) as txn:
            txn.put(b"tag/gone", b"\1" * 32, db=refs)
            first = next(iter(txn.cursor(db=env.open_db(b"objects", txn=txn))))[1][:32]
            txn.put(b"tag/top", first, db=refs)
            txn.put(b"tag/bad name", first, db=refs)
    assert sorted(p.rule for p in verified(path).problems) == ["ref-name", "ref-target", "reflog"]


@pytest.mark.parametrize(
    ("kind", "data", "rule"),
    [
        ("text", b'{"text":"x","type":"blob"}', "kind"),
        ("text", b'{"text":"x","type":"text","more":1}', "kind"),
        ("text", b'{"type":"text","text":"x"}', "kind"),
        ("text", b'{"text": "x","type":"text"}', "kind"),
        ("text", b'{"text":"\\u0041","type":"text"}', "kind"),
        ("nonsense", b'{"type":"nonsense"}', "kind"),
        ("list", encode(ListOf(items=["ee" * 32])), "reference"),
        ("text", encode(Text(text="x" * MAX_SIZE)), "size"),
    ],
)
def test_objects_that_should_never_have_been_stored(path: Path, kind: str, data: bytes, rule: str) -> None:
    with Store.open(path) as store:
        batch = store.batch()
        wrong = batch.put(kind, data)
        store.commit(batch)
    [problem] = verified(path).problems
    assert (problem.where, problem.rule) == (wrong, rule)


def test_a_key_that_is_not_the_hash(path: Path) -> None:
    with Database.open(str(path)) as database:
        batch = Batch()
        [one] = prepare([(b"\7" * 32, "text", encode(Text(text="forged")))])
        batch.add_prepared([one, (b"\6" * 32, "text", 1, b"not zstd")])
        database.commit(batch, who="t", now=lambda: "t")
    assert sorted(p.rule for p in verified(path).problems) == ["key", "unpack"]


def test_since_checks_only_what_is_new(path: Path) -> None:
    with Store.open(path) as store:
        store.put({"text": "new", "type": "text"})
        assert store.verify(processes=1, since=52).objects == 1


def test_a_worker_that_dies_is_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that cannot be read kills the process that touches it; here the file is cut under its feet."""
    size = (path / "data.mdb").stat().st_size
    with Store.open(path) as store, monkeypatch.context():
        with open(path / "data.mdb", "r+b") as file:
            file.truncate(size // 2)
        from objstore.verify import _in_processes, _slices

        problems = [p for _, found in _in_processes(store.database, _slices(1, 52, 2), 2) for p in found]  # type: ignore[arg-type]
        with open(path / "data.mdb", "r+b") as file:
            file.truncate(size)
    assert problems
