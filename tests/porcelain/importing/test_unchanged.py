"""What an import costs for each file that has not changed: looks at the disk, calls of functions, memory; counted, for
all six agents."""

from __future__ import annotations

import os
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from msgspec import Struct

from bench import formats
from bench.lineage_corpus import a_turn, write_conversations
from porcelain.importing import cursors
from tests.porcelain.importing.driving import FILES, TIDEPOOL, copy_home, patched, run, succeed

#: Bytes of short conversations of an agent, few and many.
SIZES = (150_000, 750_000)
#: Calls of functions, Python's own included, for each file: a quarter more than there are, which is for other versions
#: of Python. While cursors were decoded whole and files looked at three times there were 98 to 206.
MOST_CALLS = {"claude": 83, "codex": 87, "factory": 46, "oh-my-pi": 51, "opencode": 44, "pi": 42}
#: Bytes at the peak for each file. There are 1,300 to 1,950; then there were 2,850 to 7,500.
MOST_BYTES = 2_400


@contextmanager
def looks(folder: Path) -> Iterator[Counter[str]]:
    """How often the state of each path in ``folder`` is asked for. What a listing of a folder gives is not heard."""
    found: Counter[str] = Counter()
    stat, lstat = os.stat, os.lstat

    def heard(ask: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def counted(path: Any, *words: Any, **options: Any) -> os.stat_result:
            if not isinstance(path, int) and os.fsdecode(path).startswith(str(folder)):
                found[os.fsdecode(path)] += 1
            return ask(path, *words, **options)

        return counted

    with mock.patch.object(os, "stat", heard(stat)), mock.patch.object(os, "lstat", heard(lstat)):
        yield found


@contextmanager
def decoded() -> Iterator[list[bytes]]:
    """The cursors that are decoded whole."""
    found: list[bytes] = []
    decode = cursors._DECODER.decode

    class Heard:
        @staticmethod
        def decode(value: bytes) -> Any:
            found.append(value)
            return decode(value)

    with mock.patch.object(cursors, "_DECODER", Heard):
        yield found


def files_in(found: Counter[str]) -> dict[str, int]:
    return {path: count for path, count in found.items() if os.path.isfile(path)}


def test_a_file_that_has_not_changed_is_looked_at_once(tmp_path: Path) -> None:
    home, store = copy_home(tmp_path / "home"), tmp_path / "store"
    succeed(store, "import", home=home)
    with looks(home) as found, decoded() as whole:
        places = succeed(store, "import", "--json", home=home).json["places"]
    assert sum(place["files"] for place in places) == FILES
    assert set(files_in(found).values()) == {1}
    assert len(files_in(found)) >= FILES - 14  # what stands in a database is not in a file of its own
    assert whole == []


def test_one_that_grew_costs_no_look_at_others(tmp_path: Path) -> None:
    home, store = copy_home(tmp_path / "home"), tmp_path / "store"
    succeed(store, "import", home=home)
    path = home / TIDEPOOL
    with path.open("ab") as file:
        file.write(path.read_bytes().splitlines(keepends=True)[1].replace(b'"uuid":"', b'"uuid":"f'))
    with looks(home) as found, decoded() as whole:
        assert succeed(store, "import", "--json", home=home).json["records"] == 1
    counts = files_in(found)
    assert 1 < counts.pop(str(path)) <= 6
    assert set(counts.values()) == {1}
    assert len(whole) == 1


def test_a_name_is_asked_for_on_disk_only_where_it_is_wanted(tmp_path: Path) -> None:
    """A new conversation looks for files of its own name, not for those of all others."""
    home, store = tmp_path / "home", tmp_path / "store"
    write_conversations(home, 20)
    succeed(store, "import", home=home)
    path = min((home / ".claude").rglob("*.jsonl"))
    new = path.with_name("00000000-0000-4000-8000-000000000001.jsonl")
    new.write_bytes(a_turn(new.stem, "/home/dev/project-1"))
    with looks(home) as found:
        assert succeed(store, "import", "--json", home=home).json["places"][0]["new"] == 1
    counts = files_in(found)
    assert counts.pop(str(new)) > 1
    assert set(counts.values()) == {1}
    assert len(counts) == 20


class Cost(Struct):
    files: int
    calls: int
    memory: int


def cost(folder: Path, agent: str, size: int) -> Cost:
    home, store = folder / f"home-{size}", folder / f"store-{size}"
    formats.grow(agent, home, size)
    for _ in range(2):  # the second loads what an import of nothing loads
        succeed(store, "import", home=home)
    calls = 0

    def heard(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(heard)
    try:
        places = succeed(store, "import", "--json", home=home).json["places"]
    finally:
        sys.setprofile(before)
    tracemalloc.start()
    try:
        succeed(store, "import", home=home)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return Cost(sum(place["files"] for place in places), calls, peak)


@pytest.mark.parametrize("agent", sorted(MOST_CALLS))
def test_each_unchanged_file_costs_little(
    tmp_path: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OBJSTORE_SHARED", raising=False)  # the same samples wherever this runs
    few, many = (cost(tmp_path, agent, size) for size in SIZES)
    more = many.files - few.files
    assert more >= 30
    assert (many.calls - few.calls) / more <= MOST_CALLS[agent]
    assert (many.memory - few.memory) / more <= MOST_BYTES


def test_nothing_new_loads_neither_assembly_nor_lineage(tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "store"
    write_conversations(home, 2)
    script = patched(
        tmp_path / "loaded.py",
        "import atexit",
        "names = ('porcelain.flow.assembly', 'porcelain.lineage.adapters.importing')",
        "atexit.register(lambda: print(*(name in sys.modules for name in names)))",
    )
    for loaded in (True, False):
        result = run(store, "import", home=home, script=script)
        assert result.code == 0, result.err
        assert result.out.splitlines()[-1] == f"{loaded} {loaded}"
