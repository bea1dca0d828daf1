"""Imports of conversations of all six agents, long ones and short ones, each agent's by themselves and all at once.

The long ones have sizes like those of real conversations (``long_conversations``): they are what people have. The short
ones are samples repeated with fresh ids: about 20 records each, of a few hundred bytes, so that what is done once for a
file or a record is nearly all there is to do. The samples are those of the folder that ``OBJSTORE_SHARED`` names;
without it the fixtures.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from bench import long_conversations
from bench.corpus import SEED
from bench.measure import command, run
from bench.table import Row

_PROJECT = Path(__file__).resolve().parents[1]
#: Where each agent keeps conversations below a home folder, and the samples of it.
_PLACES = {
    "claude": (".claude/projects", "claude/local-2.1.332/projects"),
    "codex": (".codex/sessions", "codex/local-0.171.0/sessions"),
    "factory": (".factory/sessions", "factory/local-0.225.2/sessions"),
    "oh-my-pi": (".omp/agent/sessions", "oh-my-pi/local-14.9.9/agent/sessions"),
    "opencode": (".local/share/opencode", "opencode/local-1.18.33/opencode"),
    "pi": (".pi/agent/sessions", "pi/local-1.6.0/sessions"),
}
#: MB/s of an import of all formats.
_LEAST_SPEED = 40.0
#: Sixteen digits alone are a number, which an id in its place would damage.
_IDS = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    rb"|\b(?:msg|toolu|req|resp|call|fc|rs|ses|prt|evt|sum)_[A-Za-z0-9]{8,}"
    rb"|\b(?=[0-9]*[a-f])[0-9a-f]{16}\b"
    rb'|(?<=[dD]":")[0-9a-f]{8}(?=")'
)
_ALPHABET = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"
_HEX = b"0123456789abcdef"


def measure(work: Path, megabytes: int) -> tuple[list[Row], list[str]]:
    """Rows about ``megabytes`` of long conversations, an equal part of each agent, and of short ones; remarks."""
    part = megabytes * 1_000_000 // len(_PLACES)
    rows: list[Row] = []
    for kind, write in (("long", long_conversations.write), ("short", grow)):
        home, store = work / "home", work / "store"
        shutil.rmtree(home, ignore_errors=True)
        sizes = {agent: write(agent, home, part) for agent in _PLACES}
        whole = sum(sizes.values())
        speed, memory = _import(home, store, whole)
        rows.append(
            Row(
                work=f"import of all six, {kind}, {whole / 1e6:.0f} MB",
                ours=f"{speed:.1f} MB/s, {memory / 1e6:.0f} MB",
                peer="budget",
                theirs=f"{_LEAST_SPEED:g} MB/s",
                ratio=speed / _LEAST_SPEED,
                goal=1,
            )
        )
        for agent, size in sizes.items():
            speed, memory = _import(home, store, size, "--provider", agent)
            rows.append(
                Row(
                    work=f"import of {agent}, {kind}, {size / 1e6:.0f} MB",
                    ours=f"{speed:.1f} MB/s, {memory / 1e6:.0f} MB",
                )
            )
    shutil.rmtree(work)
    return rows, ["long: sizes as in real conversations; short: samples repeated, about 20 records each"]


def _import(home: Path, store: Path, size: int, *words: str) -> tuple[float, int]:
    """MB/s of a first import, and the memory that it took."""
    shutil.rmtree(store, ignore_errors=True)
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    done = run(
        [*command(), "--store", str(store), "import", *words], environment=environment, watch_memory=True
    )
    return size / done.seconds / 1e6, done.memory


def grow(agent: str, home: Path, size: int) -> int:
    """Add short conversations of one agent to ``home`` until they have about ``size`` bytes; how many they have."""
    samples = _samples(agent)
    place = home / _PLACES[agent][0]
    draw = random.Random(SEED)
    place.mkdir(parents=True)
    database = samples / "opencode.db"
    if database.is_file():
        return _grow_database(database, place / "opencode.db", size, draw)
    files = sorted(path for path in samples.rglob("*") if path.is_file())
    written = 0
    while written < size:
        fresh = _renewal(draw)
        for path in files:
            name = fresh(os.fsencode(path.relative_to(samples)))
            target = place / os.fsdecode(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            data = fresh(path.read_bytes())
            target.write_bytes(data)
            written += len(data)
    return written


def _samples(agent: str) -> Path:
    place, sample = _PLACES[agent]
    shared = os.environ.get("OBJSTORE_SHARED")
    if shared and (Path(shared) / "samples" / sample).is_dir():
        return Path(shared) / "samples" / sample
    return _PROJECT / "fixtures" / "home" / place


def _grow_database(source: Path, target: Path, size: int, draw: random.Random) -> int:
    """A database with the rows of another again and again, each time with fresh ids."""
    shutil.copyfile(source, target)
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        run = connection.execute
        for setting in ("journal_mode=OFF", "synchronous=OFF", "foreign_keys=OFF"):
            run(f"PRAGMA {setting}")
        tables = [
            (name, run(f'SELECT * FROM "{name}"').fetchall())
            for (name,) in run(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
            if name in ("session", "message", "part", "todo")
        ]
        while target.stat().st_size < size:
            fresh = _renewal(draw)
            run("BEGIN")
            for name, rows in tables:
                for row in rows:
                    cells = [fresh(c.encode()).decode() if isinstance(c, str) else c for c in row]
                    places = ", ".join("?" for _ in cells)
                    run(f'INSERT OR IGNORE INTO "{name}" VALUES ({places})', cells)
            run("COMMIT")
    return target.stat().st_size


def _renewal(draw: random.Random) -> Callable[[bytes], bytes]:
    """What replaces every id, each old one always by the same new one of its length."""
    known: dict[bytes, bytes] = {}

    def one(found: re.Match[bytes]) -> bytes:
        old = found.group()
        if old not in known:
            head, mark, tail = old.rpartition(b"_")
            if mark:
                known[old] = head + mark + bytes(draw.choices(_ALPHABET, k=len(tail)))
            else:
                known[old] = bytes(_digits(old, draw))
        return known[old]

    return lambda data: _IDS.sub(one, data)


def _digits(old: bytes, draw: random.Random) -> Iterator[int]:
    return (byte if byte == ord("-") else draw.choice(_HEX) for byte in old)
