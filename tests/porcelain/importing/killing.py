"""Imports that are killed: at a random moment, or at a commit, and what must hold afterwards."""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path
from typing import NamedTuple

from tests.porcelain.importing.driving import (
    SMALL_PIECES,
    Held,
    finish,
    held,
    objstore,
    patched,
    run,
    start,
    succeed,
    verify,
)


class Undisturbed(NamedTuple):
    """An import that nothing happened to: its home folder, the program with small pieces, what the store then holds,
    and how many seconds it took."""

    home: Path
    script: Path
    held: Held
    seconds: float


def undisturbed(folder: Path, home: Path) -> Undisturbed:
    """Import ``home`` into a store in ``folder``."""
    script = patched(folder / "small.py", *SMALL_PIECES)
    store = folder / "undisturbed"
    succeed(store, "init")
    began = time.monotonic()
    result = run(store, "import", home=home, script=script)
    assert result.code == 0, result.err
    verify(store)
    return Undisturbed(home, script, held(store), time.monotonic() - began)


def round_of_kills(folder: Path, reference: Undisturbed, chance: random.Random, processes: int) -> None:
    """Kill imports into one store at random moments, up to three, then let one finish. A store whose very first import
    came through before it was hit is no trial: another is made, and the blow falls sooner."""
    store, longest = folder / "killed", reference.seconds
    hit = 0
    while not hit:
        succeed(store, "init")
        while hit < 3 and killed(store, reference, chance.uniform(0, longest), processes):
            hit += 1
            holds(store)
        longest /= 2
        completes(store, reference, processes)
        shutil.rmtree(store)


def killed(store: Path, reference: Undisturbed, delay: float, processes: int) -> bool:
    """Whether an import that is killed after ``delay`` seconds was still running then."""
    words = ("import", "--processes", str(processes))
    process = start(store, *words, home=reference.home, script=reference.script, start_new_session=True)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    result = finish(process)
    assert "Traceback" not in result.err, result.err
    assert result.code in (0, -signal.SIGKILL)
    return result.code != 0


def holds(store: Path) -> None:
    """Whatever was committed is whole."""
    succeed(store, "verify")
    checked = objstore(store, "flow", "verify")
    assert checked.code == 0 or "holds no conversation" in checked.err, checked.out + checked.err


def completes(store: Path, reference: Undisturbed, processes: int = 1) -> None:
    """The next import brings the store to where an undisturbed one would be."""
    words = ("import", "--processes", str(processes))
    result = run(store, *words, home=reference.home, script=reference.script)
    assert (result.code, "Traceback" in result.err) == (0, False), result.err
    verify(store)
    here = held(store)
    assert here.landed == reference.held.landed
    assert here.folds == reference.held.folds
    assert here.facts == reference.held.facts
