"""How things are measured: interleaved repetitions and their medians, processes with their memory, bytes on disk."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

_SAMPLE_SECONDS = 0.01


class Finished(Struct, frozen=True):
    """A process that ended well: wall seconds, and the most anonymous memory (bytes, mapped files aside) that it and
    its children held together at any of the moments when it was looked at (0 where there is no /proc)."""

    seconds: float
    memory: int


def command() -> list[str]:
    """How to run objstore: the installed script beside this interpreter."""
    script = Path(sys.executable).with_name("objstore")
    return [str(script)] if script.exists() else [sys.executable, "-m", "porcelain.main"]


def run(
    arguments: Sequence[str],
    *,
    stdin: Path | None = None,
    environment: Mapping[str, str] | None = None,
    watch_memory: bool = False,
) -> Finished:
    """Run a program to its end with its output thrown away; raises ``RuntimeError`` with what it said if it fails."""
    with open(stdin or os.devnull, "rb") as source:
        started = time.perf_counter()
        process = subprocess.Popen(
            arguments, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
        )
        peak = 0
        while watch_memory and process.poll() is None:
            peak = max(peak, sum(map(_anonymous, _family(process.pid))))
            time.sleep(_SAMPLE_SECONDS)
        _, said = process.communicate()
        seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(
            f"{' '.join(arguments[:4])}: exit code {process.returncode}: {said.decode()[-300:]}"
        )
    return Finished(seconds, peak)


def timed(work: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def interleaved(runs: Mapping[str, Callable[[], float]], repetitions: int) -> dict[str, float]:
    """The median of ``repetitions`` measurements of each; every round measures all of them, one after the other, so
    that a slow moment of the machine meets all alike."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repetitions):
        for name, measure in runs.items():
            found[name].append(measure())
    return {name: statistics.median(values) for name, values in found.items()}


def disk_bytes(folder: Path) -> int:
    """Bytes allocated on disk for all files under ``folder``."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _family(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            for thread in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{thread}/children") as file:
                    found += map(int, file.read().split())
        except OSError:  # it ended meanwhile, or this system has no /proc
            continue
    return found


def _anonymous(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
