"""What an import costs when one line was appended to one of many files: counted, at two sizes of the home folder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from msgspec import Struct

from bench.lineage_corpus import a_turn, write_conversations
from objstore.database import LmdbSnapshot
from objstore.store import Store
from porcelain.lineage.index.opening import bring_up
from porcelain.providers.cursor import TAIL
from tests.porcelain.importing.driving import succeed

FEW = 40


class Counted(Struct):
    """``opened`` are the transcripts that were opened, ``read`` the bytes that were read from them."""

    opened: list[str]
    read: int
    objects_read: int


_opened: list[str] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None and str(arguments[0]).endswith(".jsonl"):
        _opened.append(str(arguments[0]))


sys.addaudithook(_hook)


@contextmanager
def counting() -> Iterator[Counted]:
    """Count in this process; an import of a few bytes has no other."""
    global _opened
    found = Counted([], 0, 0)
    get, get_many, pread = LmdbSnapshot.get, LmdbSnapshot.get_many, os.pread

    def counted_get(self: LmdbSnapshot, key: bytes) -> Any:
        found.objects_read += 1
        return get(self, key)

    def counted_get_many(self: LmdbSnapshot, keys: Sequence[bytes]) -> Any:
        found.objects_read += len(keys)
        return get_many(self, keys)

    def counted_pread(descriptor: int, size: int, offset: int) -> bytes:
        data = pread(descriptor, size, offset)
        found.read += len(data)
        return data

    with (
        mock.patch.object(LmdbSnapshot, "get", counted_get),
        mock.patch.object(LmdbSnapshot, "get_many", counted_get_many),
        mock.patch.object(os, "pread", counted_pread),
    ):
        _opened = found.opened
        try:
            yield found
        finally:
            _opened = None


def cost(folder: Path, conversations: int) -> dict[str, Any]:
    home, store = folder / "home", folder / "store"
    write_conversations(home, conversations)
    succeed(store, "import", home=home)
    succeed(store, "lineage", "sessions", home=home)
    write_conversations(folder / "few", FEW)  # the first of all, whatever their number
    name = sorted(path.name for path in (folder / "few").rglob("*.jsonl"))[3]  # no later one is a fork of it
    (path,) = home.rglob(name)
    with Store.open(store, read_only=True) as opened:
        before = _count(opened)
    turn = a_turn(path.stem, "/home/dev/project-1").splitlines(keepends=True)[0]
    with path.open("ab") as file:
        file.write(turn)
    # Runs that began in one second are one fact, which the later one looks up.
    time.sleep(1.05 - time.time() % 1)
    with counting() as work:
        result = succeed(store, "import", "--json", home=home).json
    with Store.open(store, read_only=True) as opened:
        after = _count(opened)
        with counting() as indexing:
            index = bring_up(opened)
    assert index is not None
    assert result["records"] == 1
    assert result["sourceBytes"] == len(turn)
    return {
        "opened": [Path(name).name for name in work.opened] == [path.name] * len(work.opened),
        "times opened": len(work.opened),
        "read besides": work.read - len(turn) <= 2 * TAIL,
        "objects written": after - before,
        "objects read": work.objects_read,
        "objects read for the index": indexing.objects_read,
        "anew": index.anew,
        "groups": index.groups,
        "facts": index.facts,
        "rows": index.rows,
    }


def _count(store: Store) -> int:
    with store.snapshot() as view:
        return view.count()


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return [cost(tmp_path_factory.mktemp("home"), count) for count in (FEW, 400)]


def test_one_line_costs_the_same_whatever_else_there_is(costs: list[dict[str, Any]]) -> None:
    few, many = costs
    assert few == many


def test_one_line_costs_one_file_from_where_it_was(costs: list[dict[str, Any]]) -> None:
    for one in costs:
        assert one["opened"]
        assert one["times opened"] <= 4  # to find and to land it; each is heard twice
        assert one["read besides"]  # the tails before and after, by which a rewrite is noticed
        assert one["objects written"] <= 20
        assert one["objects read"] <= 80
        assert 0 < one["objects read for the index"] <= 40
        assert not one["anew"]
        assert one["groups"] == 1
        assert one["rows"] <= 10


def test_what_an_import_that_died_has_left_is_looked_for(tmp_path: Path) -> None:
    """A conversation that was landed and not assembled is found by the next import, whatever else it is told to do."""
    home, store = tmp_path / "home", tmp_path / "store"
    write_conversations(home, 5)
    succeed(store, "import", home=home)
    path = sorted((home / ".claude").rglob("*.jsonl"))[0]
    with path.open("ab") as file:
        file.write(a_turn(path.stem, "/home/dev/project-1"))
    succeed(store, "flow", "land", "--provider", "claude", home=home)
    rounds = succeed(store, "import", "--provider", "claude", "--json", home=home).json["rounds"]
    assert rounds == 1
    assert succeed(store, "import", "--provider", "claude", "--json", home=home).json["rounds"] == 0
