"""Landing, assembling and following: rounds appear as conversations grow, whoever was interrupted before."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from objstore.errors import Conflict
from objstore.store import Store
from porcelain.flow.chain.naming import flow_ref
from porcelain.flow.checking.folder_check import check_folder
from porcelain.flow.checking.folder_scan import scan
from porcelain.flow.commands import watch
from porcelain.flow.watching import changes as watch_changes
from porcelain.flow.watching.looking import Pass
from tests.porcelain.flow.folders import tree
from tests.porcelain.importing.driving import (
    CONVERSATIONS,
    HOME,
    TIDEPOOL,
    copy_home,
    eventually,
    finish,
    objstore,
    start,
    succeed,
    verify,
)

NAME = TIDEPOOL.stem


def heads(store: Path) -> dict[str, str]:
    with Store.open(store, read_only=True) as found:
        return found.refs("flow/")


def forget_rounds(store: Path) -> None:
    """As after a landing that was interrupted before anything was assembled."""
    with Store.open(store) as found:
        batch = found.batch()
        for name, head in found.refs("flow/").items():
            batch.move_ref(name, None, head, "test")
        found.commit(batch)


def test_assembly_of_what_has_landed(tmp_path: Path) -> None:
    store = tmp_path / "store"
    said = succeed(store, "flow", "land", home=HOME).out.splitlines()
    assert said[-1] == "next: objstore status, objstore lineage sessions, objstore flow assemble"
    assert heads(store) == {}
    assert (
        succeed(store, "flow", "assemble").err
        == f"{CONVERSATIONS} new rounds in {CONVERSATIONS} conversations\n"
    )
    wanted = heads(store)
    assert succeed(store, "flow", "assemble").err == "0 new rounds in 0 conversations\n"
    forget_rounds(store)
    assert heads(store) == {}
    result = succeed(store, "flow", "assemble", NAME[:8], "--json").json
    assert (result["conversations"], result["rounds"], result["problems"]) == (1, 1, [])
    assert list(heads(store)) == [name for name in wanted if name.endswith(NAME)]
    succeed(store, "flow", "assemble")
    assert heads(store) == wanted
    verify(store)


def test_one_look(tmp_path: Path) -> None:
    home, store = copy_home(tmp_path / "home"), tmp_path / "store"
    path = home / TIDEPOOL
    data = path.read_bytes()
    path.write_bytes(b"".join(data.splitlines(keepends=True)[:15]))
    succeed(store, "init")
    rows = [
        json.loads(line)
        for line in succeed(store, "flow", "watch", "--once", "--json", home=home).out.splitlines()
    ]
    assert len(rows) == len(heads(store)) and {row["round"] for row in rows} == {1}
    assert succeed(store, "flow", "watch", "--once", home=home).out == ""
    path.write_bytes(data)
    line = succeed(store, "flow", "watch", "--once", "--export", tmp_path / "out", home=home).out
    assert line.startswith(f"claude/{NAME}: round 2, seq 2 to 2, ")
    checks = list(check_folder(scan(tmp_path / "out")))
    assert [one for check in checks for one in check.problems] == [] and sum(c.rounds for c in checks) == 2
    before = tree(tmp_path / "out")
    succeed(store, "flow", "watch", "--once", "--export", tmp_path / "out", home=home)
    assert tree(tmp_path / "out") == before
    verify(store)


def test_one_look_at_some(tmp_path: Path) -> None:
    succeed(tmp_path / "store", "init")
    out = succeed(tmp_path / "store", "flow", "watch", "--once", "--provider", "pi", home=HOME).out
    assert out and all(line.startswith("pi/") for line in out.splitlines())
    out = succeed(tmp_path / "store", "flow", "watch", "--once", HOME / TIDEPOOL).out
    assert [line.split(":")[0] for line in out.splitlines()] == [f"claude/{NAME}"]
    assert objstore(tmp_path / "store", "flow", "watch", "--once").code == 2


def test_it_follows_until_it_is_interrupted(tmp_path: Path) -> None:
    home, store = copy_home(tmp_path / "home"), tmp_path / "store"
    path = home / TIDEPOOL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:15]))
    succeed(store, "init")
    said = tmp_path / "said"
    with said.open("wb") as out:
        process = start(store, "flow", "watch", "--interval", "0.1", home=home, stdout=out)
    eventually(lambda: f"claude/{NAME}: round 1, seq 1 to 1, " in said.read_text())
    with path.open("ab") as file:
        file.write(b"".join(lines[15:]))
    eventually(lambda: f"claude/{NAME}: round 2, seq 2 to 2, " in said.read_text())
    process.send_signal(signal.SIGINT)
    result = finish(process)
    assert result.code == 0, result.err
    assert result.err.splitlines()[-1] == "stopped"
    with Store.open(store, read_only=True) as found:
        assert len(found.chain(flow_ref(found.store_id, "claude", NAME))) == 2
    verify(store)


def test_a_folder_that_fell_behind_is_completed(tmp_path: Path) -> None:
    home, store, out = copy_home(tmp_path / "home"), tmp_path / "store", tmp_path / "out"
    path = home / TIDEPOOL
    data = path.read_bytes()
    path.write_bytes(b"".join(data.splitlines(keepends=True)[:15]))
    succeed(store, "import", home=home)
    succeed(store, "flow", "export", NAME, out)
    path.write_bytes(data)
    succeed(store, "import", home=home)  # as by a watch that died before it wrote the round
    assert succeed(store, "flow", "watch", "--once", "--export", out, home=home).out == ""
    (check,) = [one for one in check_folder(scan(out)) if one.rounds]
    assert (check.conversation, check.rounds, check.problems) == (NAME, 2, [])
    before = tree(out)
    succeed(store, "flow", "watch", "--once", "--export", out, home=home)
    assert tree(out) == before


def test_a_round_that_cannot_be_written_is_told_and_holds_up_no_other(tmp_path: Path) -> None:
    home, store, out = copy_home(tmp_path / "home"), tmp_path / "store", tmp_path / "out"
    path = home / TIDEPOOL
    data = path.read_bytes()
    path.write_bytes(b"".join(data.splitlines(keepends=True)[:15]))
    succeed(store, "import", home=home)
    succeed(store, "flow", "export", NAME, out)
    path.write_bytes(data)
    (spoilt,) = out.rglob("*-000001.sd")
    right = spoilt.read_bytes()
    spoilt.chmod(0o644)
    spoilt.write_bytes(right + b"\n")
    other = home / TIDEPOOL.parent / "77777777-1111-4222-8333-444444444444.jsonl"
    other.write_bytes(data.replace(NAME.encode(), other.stem.encode()))
    result = objstore(store, "flow", "watch", "--once", "--export", out, home=home)
    assert result.code == 4
    assert [line.split(":")[0] for line in result.out.splitlines()] == [
        f"claude/{NAME}",
        f"claude/{other.stem}",
    ]
    (said,) = result.err.splitlines()
    assert said.startswith(f"objstore: claude/{NAME}: ") and "another telling" in said
    assert [one.name for one in (out / "_conversations" / other.stem / "rounds").iterdir()]
    spoilt.write_bytes(right)
    assert succeed(store, "flow", "watch", "--once", "--export", out, home=home).out == ""
    assert [one for check in check_folder(scan(out)) for one in check.problems] == []
    assert len(list((out / "_conversations" / NAME / "rounds").iterdir())) == 2


# -- waiting ---------------------------------------------------------------------------------------------------------


def test_without_file_events_it_looks_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    monkeypatch.setattr(watch_changes.time, "sleep", slept.append)
    assert not watch_changes.has_events()
    waiting = watch_changes.changes(list, 1.5)
    for _ in range(3):
        next(waiting)
    assert slept == [1.5, 1.5, 1.5]


def test_file_events_where_there_are_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[tuple[Path, ...]] = []
    slept: list[float] = []

    def watch(*folders: Path, **_: object) -> Iterator[set[object]]:
        watched.append(folders)
        yield {"an event"}
        yield set()

    monkeypatch.setitem(sys.modules, "watchfiles", SimpleNamespace(watch=watch))
    monkeypatch.setattr(watch_changes.time, "sleep", slept.append)
    one, two = tmp_path / "one", tmp_path / "two"
    folders: Callable[[], list[Path]] = lambda: [one, two]  # noqa: E731
    waiting = watch_changes.changes(folders, 2.0)
    assert watch_changes.has_events()
    next(waiting)
    assert slept == [2.0] and watched == []  # no agent is here yet
    one.mkdir()
    next(waiting)
    assert watched == [(one,)]
    two.mkdir()
    next(waiting)  # the folder that came is seen after an event, and watched from then on
    assert watched[-1] == (one, two)


def test_a_store_that_is_busy_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter(
        [Pass([], []), Conflict("the store is locked"), Pass([], [("file", "why")]), KeyboardInterrupt()]
    )

    def look(*_: object, **__: object) -> Pass:
        found = next(looks)
        if isinstance(found, BaseException):
            raise found
        return found

    succeed(tmp_path / "store", "init")
    monkeypatch.setattr(watch, "look", look)
    monkeypatch.setattr(watch, "changes", lambda *_: iter([None] * 3))
    result = objstore(tmp_path / "store", "flow", "watch", home=HOME)
    assert (result.code, result.out) == (0, "")
    said = ["the store is locked: trying again later", "objstore: file: why", "stopped"]
    assert result.err.splitlines()[1:] == said


def test_ctrl_c_during_one_look_is_an_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    succeed(tmp_path / "store", "init")
    monkeypatch.setattr(watch, "look", interrupted)
    assert objstore(tmp_path / "store", "flow", "watch", "--once", home=HOME).code == 130
    assert objstore(tmp_path / "store", "flow", "watch", home=HOME).code == 0
