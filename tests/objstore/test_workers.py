"""Work in other processes: every result arrives once, and a process that dies costs one task."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from objstore.workers import Serve, run_tasks

HERE = str(Path(__file__).parent)


def serve_words(argument: bytes) -> Serve:
    def serve(task: bytes) -> Iterable[bytes]:
        for word in task.split():
            if word == b"die":
                os.kill(os.getpid(), 9)
            if word == b"raise":
                raise ValueError("not to be seen")
            yield argument + word

    return serve


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [HERE, *sys.path])


def results(tasks: list[bytes], processes: int = 2) -> dict[int, list[bytes | None]]:
    found: dict[int, list[bytes | None]] = {number: [] for number in range(len(tasks))}
    for number, result in run_tasks("test_workers:serve_words", b"<", tasks, processes):
        found[number].append(result)
    return found


def test_all_results_in_order_within_a_task() -> None:
    tasks = [b"a b c", b"", b"d " * 1000, b"e"]
    assert results(tasks) == {0: [b"<a", b"<b", b"<c"], 1: [], 2: [b"<d"] * 1000, 3: [b"<e"]}


def test_large_frames() -> None:
    word = b"x" * 3_000_000
    assert results([word, word]) == {0: [b"<" + word], 1: [b"<" + word]}


@pytest.mark.parametrize("end", [b"die", b"raise"])
def test_a_process_that_dies_costs_its_task_only(end: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    tasks = [b"a", b"b " + end + b" c", b"d", end, b"e", b"f"]
    found = results(tasks)
    assert found == {0: [b"<a"], 1: [b"<b", None], 2: [b"<d"], 3: [None], 4: [b"<e"], 5: [b"<f"]}
    assert capfd.readouterr().err == ""


def test_giving_up_ends_the_processes() -> None:
    work = run_tasks("test_workers:serve_words", b"", [b"a " * 100_000] * 4, 2)
    next(work)
    work.close()  # type: ignore[attr-defined]


def test_no_tasks() -> None:
    assert results([]) == {}
