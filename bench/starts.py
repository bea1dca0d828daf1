"""How long a command takes that has nearly nothing to do."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from bench.corpus import objects
from bench.measure import command, interleaved, run
from bench.table import Row
from objstore.store import Store

_OBJECTS = 1000
_REPETITIONS = 21


def measure(folder: Path) -> list[Row]:
    """Rows about cold processes, against a Python that does nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    with Store.init(folder) as store, store.writer() as writer:
        ids = [writer.put(kind, data) for kind, data in objects(_OBJECTS)]
    ours = [*command(), "--store", str(folder)]
    seconds = interleaved(
        {
            "cat": lambda: run([*ours, "cat", ids[0]]).seconds,
            "python": lambda: run([sys.executable, "-c", "pass"]).seconds,
            "status": lambda: run([*ours, "status"]).seconds,
        },
        _REPETITIONS,
    )
    return [
        Row(
            work=f"cold start, {what}",
            ours=f"{seconds[name] * 1000:.1f} ms",
            peer="python -c pass",
            theirs=f"{seconds['python'] * 1000:.1f} ms",
            ratio=seconds["python"] / seconds[name],
            goal=goal,
        )
        for what, name, goal in (("cat ID", "cat", 0.5), ("status", "status", 0.17))
    ]
