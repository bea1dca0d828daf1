"""The table of results, and the file that keeps it."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

_PACKAGES = ("lmdb", "msgspec", "zstandard")
_TOP = """# Results

Written by `make bench`, part by part; see `bench/`. Every figure is the median of interleaved repetitions, and each
ratio compares figures of one run on one machine: over 1 means that objstore does better. Where the peer is a budget,
the ratio says how far the figure stays within it.
"""
_HEAD = ("work", "objstore", "peer", "", "ratio", "to reach")


class Row(Struct, frozen=True, kw_only=True):
    """One comparison. ``ratio`` is how many times better objstore is (over 1 is better) and ``goal`` the number it is
    to reach, both None where there is nothing to compare."""

    work: str
    ours: str
    peer: str = ""
    theirs: str = ""
    ratio: float | None = None
    goal: float | None = None

    def cells(self) -> tuple[str, ...]:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}x"
        goal = (
            "" if self.goal is None else f"{self.goal:g}x {'yes' if (self.ratio or 0) >= self.goal else 'NO'}"
        )
        return self.work, self.ours, self.peer, self.theirs, ratio, goal


def rate(
    work: str, count: int, seconds: float, peer: str, peer_seconds: float, goal: float | None = None
) -> Row:
    """A row of objects per second."""
    return Row(
        work=work,
        ours=f"{count / seconds / 1000:.1f} k/s",
        peer=peer,
        theirs=f"{count / peer_seconds / 1000:.1f} k/s",
        ratio=peer_seconds / seconds,
        goal=goal,
    )


def time_budget(work: str, seconds: float, most: float) -> Row:
    """A row of seconds against the most that it may take."""
    return Row(
        work=work,
        ours=f"{seconds * 1000:.2f} ms",
        peer="budget",
        theirs=f"{most * 1000:g} ms",
        ratio=most / seconds,
        goal=1,
    )


def text(rows: Sequence[Row]) -> str:
    """The table, aligned."""
    lines = [_HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    right = {1, 3, 4}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def machine() -> list[str]:
    """What the numbers were measured on."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    return [
        f"{datetime.date.today().isoformat()}: {_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}, {', '.join(versions)}; git {git}",
    ]


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def keep(path: Path, title: str, remarks: Sequence[str], rows: Sequence[Row]) -> None:
    """Put a part's table into the file of results, in place of the one that was there."""
    head, *sections = (path.read_text() if path.exists() else _TOP).split("\n## ")
    kept = dict(section.split("\n", 1) for section in sections)
    kept[title] = "\n".join(["", *(f"- {remark}" for remark in remarks), "", "```", text(rows), "```", ""])
    path.write_text("\n## ".join([head, *(f"{name}\n{body}" for name, body in kept.items())]))
