"""Importing again: nothing is read that has not changed, nothing is written when nothing is new."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.porcelain.importing.driving import (
    TIDEPOOL,
    copy_home,
    held,
    objstore,
    patched,
    projection,
    run,
    start,
    state_of,
    succeed,
    verify,
)

#: Writes the files below the home folder that the program opened to a file beside the store.
WATCH = (
    "import os, json",
    "opened = []",
    "def watch(event, arguments):",
    "    if event == 'open' and str(arguments[0]).startswith(os.environ['HOME']):",
    "        opened.append(str(arguments[0]))",
    "sys.addaudithook(watch)",
    "import atexit",
    "atexit.register(lambda: print(json.dumps(opened), file=sys.stderr))",
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copy_home(tmp_path / "home")


@pytest.fixture
def store(tmp_path: Path, home: Path) -> Path:
    succeed(tmp_path / "store", "import", home=home)
    return tmp_path / "store"


def opened_files(store: Path, home: Path, *words: str) -> list[str]:
    result = run(store, *words, home=home, script=patched(store.parent / "watch.py", *WATCH))
    assert result.code == 0, result.err
    found: list[str] = json.loads(result.err.splitlines()[-1])
    return found


def test_the_watch_sees_what_a_first_import_opens(tmp_path: Path, home: Path) -> None:
    assert str(home / TIDEPOOL) in opened_files(tmp_path / "other", home, "import")


@pytest.mark.parametrize("words", [("import",), ("import", "--processes", "2"), ("status",)])
def test_no_file_is_opened_when_none_has_changed(store: Path, home: Path, words: tuple[str, ...]) -> None:
    before = state_of(store)
    assert opened_files(store, home, *words) == []
    assert state_of(store) == before


def test_nothing_is_written_when_nothing_is_new(store: Path, home: Path) -> None:
    runs = len(projection(store).tables["import_runs"])
    before = state_of(store)
    for _ in range(2):
        again = succeed(store, "import", "--json", home=home).json
        assert (again["objects"], again["records"], again["rounds"], again["sourceBytes"]) == (0, 0, 0, 0)
        assert [(p["new"], p["grown"]) for p in again["places"]] == [(0, 0)] * 6
    assert state_of(store) == before
    assert len(projection(store).tables["import_runs"]) == runs == 6
    assert "nothing new" in succeed(store, "import", home=home).out


def test_only_the_file_that_grew_is_opened(store: Path, home: Path) -> None:
    path = home / TIDEPOOL
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("ab") as file:
        file.write(lines[1].replace(b'"uuid":"', b'"uuid":"f'))
    # Once: ``open`` and the opener that it is given are both seen.
    assert opened_files(store, home, "import", "--json") == [str(path)] * 2


def test_a_rollout_that_comes_later_has_the_name_that_stood_in_the_index(tmp_path: Path, home: Path) -> None:
    rollouts = {path: path.read_text() for path in sorted((home / ".codex/sessions").rglob("*.jsonl"))}
    # One that no other belongs to: that would have been there before it.
    thread, away = next(
        (path.stem[-36:], path)
        for path in rollouts
        if sum(path.stem[-36:] in text for text in rollouts.values()) == 1
    )
    name = {"id": thread, "thread_name": "Night boats", "updated_at": "2026-06-01T10:00:00Z"}
    with (home / ".codex/session_index.jsonl").open("a") as index:
        index.write(json.dumps(name) + "\n")
    succeed(tmp_path / "whole", "import", home=home)
    data = away.read_bytes()
    away.unlink()
    succeed(tmp_path / "late", "import", home=home)
    assert held(tmp_path / "late") != held(tmp_path / "whole")
    away.write_bytes(data)
    succeed(tmp_path / "late", "import", home=home)
    assert held(tmp_path / "late").landed == held(tmp_path / "whole").landed
    assert held(tmp_path / "late").folds == held(tmp_path / "whole").folds


def test_a_touched_file_is_no_news(store: Path, home: Path) -> None:
    before, runs = held(store), len(projection(store).tables["import_runs"])
    os.utime(home / TIDEPOOL, (1, 1))
    result = succeed(store, "import", "--json", home=home).json
    assert (result["objects"], result["records"], result["sourceBytes"]) == (0, 0, 0)
    assert held(store) == before
    assert len(projection(store).tables["import_runs"]) == runs


def test_a_growing_conversation_costs_what_is_new(store: Path, home: Path) -> None:
    path = home / TIDEPOOL
    line = path.read_bytes().splitlines(keepends=True)[1].replace(b'"uuid":"', b'"uuid":"f')
    with path.open("ab") as file:
        file.write(line)
    result = succeed(store, "import", "--json", home=home).json
    assert (result["records"], result["sourceBytes"], result["rounds"]) == (1, len(line), 1)
    # One record, page, landing entry and round, their frames and lists, the observation, the run.
    assert result["objects"] < 40
    verify(store)


def test_a_new_secret_rule_set_reads_everything_again(store: Path, home: Path) -> None:
    before = held(store)
    script = patched(
        store.parent / "rules.py",
        "import porcelain.providers.redaction as redaction",
        "redaction.RULES = 'redact-next'",
    )
    result = run(store, "import", "--json", home=home, script=script)
    assert result.code == 0, result.err
    documents = {name for name in before.landed if name[0] == "opencode"}
    lines = [records for name, records in before.landed.items() if name not in documents]
    assert result.json["records"] == sum(map(len, lines))
    for name, records in held(store).landed.items():
        # Pages of the new rules stand beside the old ones. Of documents only what came out different lands again.
        assert records == before.landed[name] * (1 if name in documents else 2)
    verify(store)


def test_status_names_what_an_import_would_bring(store: Path, home: Path) -> None:
    assert succeed(store, "status", "--json", home=home).json["waiting"] == []
    (home / TIDEPOOL).write_bytes((home / TIDEPOOL).read_bytes() + b"{}\n")
    waiting = succeed(store, "status", "--json", home=home).json["waiting"]
    assert [(w["provider"], w["conversations"], w["changedFiles"]) for w in waiting] == [("claude", 1, 1)]
    assert "new on disk: 1 conversation of Claude Code" in succeed(store, "status", home=home).out
    assert "new on disk" not in succeed(store, "status", "--no-scan", home=home).out


def test_two_processes_may_read_while_one_imports(tmp_path: Path, home: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "init")
    script = patched(tmp_path / "slow.py", "import time", *SLOW)
    process = start(store, "import", home=home, script=script)
    codes = [objstore(store, *words, home=home).code for words in (("status",), ("verify",)) * 3]
    process.communicate(timeout=60)
    assert (process.returncode, set(codes)) == (0, {0})


SLOW = (
    "import porcelain.importing.run as importing",
    "take = importing._Import._take",
    "importing._Import._take = lambda self, piece: (time.sleep(0.05), take(self, piece))[1]",
)
