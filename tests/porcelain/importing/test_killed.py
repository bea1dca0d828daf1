"""An import that is killed at any moment leaves a store that holds, and the next import completes it."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from tests.porcelain.importing.driving import SMALL_PIECES, copy_home, objstore, patched, run, succeed
from tests.porcelain.importing.killing import Undisturbed, completes, holds, round_of_kills, undisturbed


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("reference")
    return undisturbed(folder, copy_home(folder / "home"))


def test_small_pieces_make_many_commits(reference: Undisturbed) -> None:
    store = reference.script.parent / "undisturbed"
    chain = objstore(store, "for-each-ref", "--format=name", "lineage/").out.split()[0]
    assert len(objstore(store, "reflog", chain).out.splitlines()) > 8


@pytest.mark.parametrize("processes", [1, 2])
def test_killed_at_random(tmp_path: Path, reference: Undisturbed, processes: int) -> None:
    chance = random.Random(processes)
    for _ in range(2):
        round_of_kills(tmp_path, reference, chance, processes)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(("commit", "where"), [(1, "before"), (2, "before"), (2, "after"), (6, "after")])
def test_killed_at_a_commit(
    tmp_path: Path, reference: Undisturbed, commit: int, where: str, processes: int
) -> None:
    store = tmp_path / "store"
    succeed(store, "init")
    script = patched(
        tmp_path / "killed.py",
        *SMALL_PIECES,
        "import os, signal, objstore.store",
        "commit = objstore.store.Store.commit",
        f"left = [{commit + 1}]",  # the first one makes the key of hashes over raw bytes
        "def killed(self, batch):",
        "    left[0] -= 1",
        f"    if {where == 'after'}: done = commit(self, batch)",
        "    if not left[0]: os.kill(os.getpid(), signal.SIGKILL)",
        f"    return done if {where == 'after'} else commit(self, batch)",
        "objstore.store.Store.commit = killed",
    )
    words = ("import", "--processes", str(processes))
    result = run(store, *words, home=reference.home, script=script)
    assert (result.code, "Traceback" in result.err) == (-signal.SIGKILL, False), result.err
    holds(store)
    completes(store, reference, processes)


@pytest.mark.parametrize("bundle", [8192, 2 * 1024 * 1024])
@pytest.mark.parametrize("group", [0, 2 * 1024 * 1024])
def test_a_worker_that_is_killed_costs_its_conversation_only(
    tmp_path: Path, reference: Undisturbed, group: int, bundle: int
) -> None:
    store = tmp_path / "store"
    script = patched(
        tmp_path / "worker.py",
        *SMALL_PIECES,
        "import os, signal, porcelain.importing.run as run, porcelain.importing.work as work",
        f"run._GROUP_BYTES, work._BUNDLE_BYTES = {group}, {bundle}",
        "pieces = work.Worker._pieces",
        "def killed(self, task):",
        "    for piece, objects in pieces(self, task):",
        "        yield piece, objects",
        "        if '5c5fd944' in task.conversation.native_id and piece.landed:",
        "            os.kill(os.getpid(), signal.SIGKILL)",
        "work.Worker._pieces = killed",
    )
    result = run(store, "import", "--processes", "2", home=reference.home, script=script)
    assert result.code == 5
    (line,) = [line for line in result.err.splitlines() if line.startswith("objstore: ")]
    assert "5c5fd944" in line and "the process that read it died" in line
    holds(store)
    succeed(store, "flow", "verify", "9103794e")
    completes(store, reference)
