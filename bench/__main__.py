"""``python -m bench``: run the benchmarks part by part, print each table, and keep it in ``bench/RESULTS.md``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from bench import flow, formats, imports, lineage, objects, sessions, starts, sync, table
from bench.table import Row

_FOLDER = Path(__file__).resolve().parent
#: Rows, and remarks on how they came about.
_Measured = tuple[list[Row], list[str]]


def _objects(options: argparse.Namespace) -> _Measured:
    rows = objects.measure(options.work / "objects", options.objects, options.repetitions)
    return rows, [f"{options.repetitions} repetitions, {options.objects:,} objects"]


def _import(options: argparse.Namespace) -> _Measured:
    rows, notes = imports.measure(options.work, options.megabytes, options.repetitions)
    return rows, [f"{options.repetitions} repetitions", *notes]


def _start(options: argparse.Namespace) -> _Measured:
    return starts.measure(options.work / "start"), []


def _sessions(options: argparse.Namespace) -> _Measured:
    rows, notes = sessions.measure(options.work / "sessions", options.nodes, options.repetitions)
    return rows, [f"{options.repetitions} repetitions, a session of {options.nodes:,} nodes", *notes]


def _flow(options: argparse.Namespace) -> _Measured:
    sizes = flow.QUICK_SIZES if options.quick else flow.SIZES
    rows, notes = flow.measure(options.work / "flow", sizes, options.repetitions)
    return rows, [f"{options.repetitions} repetitions", *notes]


def _formats(options: argparse.Namespace) -> _Measured:
    return formats.measure(options.work / "formats", options.megabytes)


def _lineage(options: argparse.Namespace) -> _Measured:
    rows, notes = lineage.measure(options.work / "lineage", options.conversations)
    return rows, [f"{options.conversations:,} conversations", *notes]


def _sync(options: argparse.Namespace) -> _Measured:
    rows = sync.measure(options.work / "sync", options.objects, options.repetitions)
    return rows, [f"{options.repetitions} repetitions, {options.objects:,} objects"]


_PARTS: dict[str, tuple[str, Callable[[argparse.Namespace], _Measured]]] = {
    "objects": ("Objects, against Git", _objects),
    "import": ("Import of transcripts", _import),
    "formats": ("Import of six formats", _formats),
    "start": ("Cold processes", _start),
    "sessions": ("Session trees", _sessions),
    "flow": ("Session Flow", _flow),
    "lineage": ("Lineage", _lineage),
    "sync": ("Sync, against Git", _sync),
}


def main() -> None:
    """Parse the options and run what they ask for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Compare objstore with its peers.")
    parser.add_argument(
        "--objects", type=int, default=1_000_000, metavar="N", help="objects to write, read and send"
    )
    parser.add_argument(
        "--megabytes",
        type=int,
        default=300,
        metavar="N",
        help="transcripts to import; 1000 for the gigabyte that the goal is about",
    )
    parser.add_argument("--nodes", type=int, default=100_000, metavar="N", help="nodes of a session")
    parser.add_argument(
        "--conversations",
        type=int,
        default=50_000,
        metavar="N",
        help="conversations that lineage is measured over",
    )
    parser.add_argument("--repetitions", type=int, default=3, metavar="N", help="of each measurement")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="50,000 objects, 30 MB, 10,000 nodes, 2,000 conversations: some minutes; keeps no results",
    )
    parser.add_argument("--only", choices=_PARTS, action="append", help="just this part (may be repeated)")
    parser.add_argument(
        "--work", type=Path, default=_FOLDER / "work", help="folder for what is made on the way"
    )
    parser.add_argument(
        "--results", type=Path, default=_FOLDER / "RESULTS.md", help="file whose sections are replaced"
    )
    options = parser.parse_args()
    if options.quick:
        options.objects, options.megabytes, options.nodes = 50_000, 30, 10_000
        options.conversations = 2_000
    options.work.mkdir(parents=True, exist_ok=True)
    for name in options.only or _PARTS:
        title, measure = _PARTS[name]
        load = os.getloadavg()[0]
        rows, notes = measure(options)
        remarks = [*table.machine(), f"load when it began: {load:.1f}", *notes]
        print(f"## {title}\n\n" + "\n".join(remarks) + "\n\n" + table.text(rows) + "\n", flush=True)
        if not options.quick:
            table.keep(options.results, title, remarks, rows)


if __name__ == "__main__":
    main()
