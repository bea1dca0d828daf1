"""``python -m bench``: run the benchmarks, print the table, and keep it in ``bench/RESULTS.md``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import flow, imports, objects, sessions, starts, table

_FOLDER = Path(__file__).resolve().parent
_PARTS = ("objects", "import", "start", "sessions", "flow")


def main() -> None:
    """Parse the options and run what they ask for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Compare objstore with its peers.")
    parser.add_argument(
        "--objects", type=int, default=1_000_000, metavar="N", help="objects to write and read"
    )
    parser.add_argument("--megabytes", type=int, default=300, metavar="N", help="transcripts to import")
    parser.add_argument("--nodes", type=int, default=100_000, metavar="N", help="nodes of a session")
    parser.add_argument("--repetitions", type=int, default=3, metavar="N", help="of each measurement")
    parser.add_argument(
        "--quick", action="store_true", help="50,000 objects, 30 MB, 10,000 nodes: a minute or two"
    )
    parser.add_argument("--only", choices=_PARTS, action="append", help="just this part (may be repeated)")
    parser.add_argument(
        "--work", type=Path, default=_FOLDER / "work", help="folder for what is made on the way"
    )
    parser.add_argument(
        "--results", type=Path, default=None, help="file to write (default: bench/RESULTS.md)"
    )
    options = parser.parse_args()
    if options.quick:
        options.objects, options.megabytes, options.nodes = 50_000, 30, 10_000
    parts = options.only or _PARTS
    rows: list[table.Row] = []
    notes: list[str] = []
    scale: list[str] = [f"{options.repetitions} repetitions"]
    options.work.mkdir(parents=True, exist_ok=True)
    if "objects" in parts:
        rows += objects.measure(options.work / "objects", options.objects, options.repetitions)
        scale.append(f"{options.objects:,} objects")
    if "import" in parts:
        found, more = imports.measure(options.work, options.megabytes, options.repetitions)
        rows += found
        notes += more
        scale.append(f"{options.megabytes} MB of transcripts")
    if "start" in parts:
        rows += starts.measure(options.work / "start")
    if "sessions" in parts:
        found, more = sessions.measure(options.work / "sessions", options.nodes, options.repetitions)
        rows += found
        notes += more
        scale.append(f"{options.nodes:,} nodes of a session")
    if "flow" in parts:
        sizes = flow.QUICK_SIZES if options.quick else flow.SIZES
        found, more = flow.measure(options.work / "flow", sizes, options.repetitions)
        rows += found
        notes += more
        scale.append(f"conversations of up to {max(sizes):,} nodes")
    print("\n".join(table.machine()))
    print(", ".join(scale))
    print(table.text(rows))
    if options.results is None and (options.quick or options.only):
        return  # a part, or a quick look, is no result of the day
    table.write(options.results or _FOLDER / "RESULTS.md", rows, ", ".join(scale), notes)


if __name__ == "__main__":
    main()
