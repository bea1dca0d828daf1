"""Importing Claude Code transcripts against agentsview, which is installed into an environment of its own."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench import peers
from bench.corpus import SEED
from bench.measure import Finished, command, disk_bytes, run
from bench.table import Row
from fixtures.renew import Renewal

_PROJECT = Path(__file__).resolve().parents[1]


def make_corpus(folder: Path, megabytes: int) -> str:
    """About ``megabytes`` of transcripts under ``folder``/.claude; where they come from, in words.

    The shared generator, over real conversations, is used where it is (``OBJSTORE_SHARED``, else beside the project);
    otherwise the fixtures are repeated, each time with fresh ids.
    """
    shutil.rmtree(folder, ignore_errors=True)
    home = folder / ".claude"
    shared = Path(os.environ.get("OBJSTORE_SHARED") or _PROJECT.parent / "shared")
    tool = shared / "tools" / "mkcorpus.py"
    if tool.is_file():
        subprocess.run(
            [sys.executable, str(tool), str(home), str(megabytes)], check=True, stdout=subprocess.DEVNULL
        )
        return "real conversations with fresh ids"
    _repeat_fixtures(home, megabytes * 1_000_000)
    return "the fixtures with fresh ids"


def _repeat_fixtures(home: Path, size: int) -> None:
    draw = random.Random(SEED)
    fixtures = sorted((_PROJECT / "fixtures" / "home" / ".claude" / "projects").glob("*/*.jsonl"))
    written = number = 0
    while written < size:
        source, renewal = fixtures[number % len(fixtures)], Renewal(draw)
        data = renewal(source.read_bytes())
        session = renewal(source.stem.encode()).decode()
        target = home / "projects" / f"-home-dev-project-{number % 40}" / f"{session}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        written += len(data)
        number += 1


def measure(work: Path, megabytes: int, repetitions: int) -> tuple[list[Row], list[str]]:
    """The rows about importing, and remarks."""
    home = work / "home"
    origin = make_corpus(home, megabytes)
    files = list((home / ".claude").rglob("*.jsonl"))
    size = sum(path.stat().st_size for path in files)
    notes = [f"transcripts: {size / 1e6:.0f} MB in {len(files)} files, {origin}"]
    environment = {
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
    }
    store, archive = work / "imported", work / "archive"
    ours = [*command(), "--store", str(store), "import", "--provider", "claude"]
    runs: dict[str, tuple[Callable[[], Finished], Callable[[], Finished]]] = {
        "ours": _first_and_again(store, ours, environment)
    }
    folder = peers.environment(work, peers.AGENTSVIEW)
    program = folder / "agentsview" if folder is not None else None
    if program is None:
        notes.append(f"{peers.AGENTSVIEW} could not be installed: nothing to compare the import with")
    else:
        theirs = environment | {
            "AGENTSVIEW_DATA_DIR": str(archive),
            "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
            "AGENTSVIEW_NO_DAEMON": "1",
            "AGENTSVIEW_TELEMETRY_ENABLED": "0",
            "DO_NOT_TRACK": "1",
        }
        runs["peer"] = _first_and_again(archive, [str(program), "sync"], theirs)
    found: dict[str, list[Finished]] = {}
    for _ in range(repetitions):
        for name, (first, again) in runs.items():
            found.setdefault(name, []).append(first())
            found.setdefault(name + " again", []).append(again())
    seconds = {name: median(one.seconds for one in many) for name, many in found.items()}
    memory = {name: max(one.memory for one in many) for name, many in found.items()}
    peer = "agentsview" if program is not None else ""

    def compared(work: str, ours: str, theirs: Callable[[], tuple[str, float]], goal: float | None) -> Row:
        if not peer:
            return Row(work=work, ours=ours)
        text, ratio = theirs()
        return Row(work=work, ours=ours, peer=peer, theirs=text, ratio=ratio, goal=goal)

    def speed(name: str) -> str:
        return f"{size / seconds[name] / 1e6:.1f} MB/s"

    return [
        compared("import", speed("ours"), lambda: (speed("peer"), seconds["peer"] / seconds["ours"]), 3),
        compared(
            "import, peak anonymous memory",
            _megabytes(memory["ours"]),
            lambda: (_megabytes(memory["peer"]), memory["peer"] / memory["ours"]),
            None,
        ),
        compared(
            "import, bytes on disk",
            _megabytes(disk_bytes(store)),
            lambda: (_megabytes(disk_bytes(archive)), disk_bytes(archive) / disk_bytes(store)),
            None,
        ),
        compared(
            "import again, nothing new",
            f"{seconds['ours again'] * 1000:.0f} ms",
            lambda: (f"{seconds['peer again'] * 1000:.0f} ms", seconds["peer again"] / seconds["ours again"]),
            1,
        ),
    ], notes


def _first_and_again(
    target: Path, arguments: list[str], environment: dict[str, str]
) -> tuple[Callable[[], Finished], Callable[[], Finished]]:
    def first() -> Finished:
        shutil.rmtree(target, ignore_errors=True)
        return again()

    def again() -> Finished:
        return run(arguments, environment=environment, watch_memory=True)

    return first, again


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
