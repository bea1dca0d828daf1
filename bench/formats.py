"""Homes of each of the six agents, grown from samples by repeating them with fresh ids.

The samples are those of the folder that ``OBJSTORE_SHARED`` names, which has all agents; without it the fixtures, which
have two.
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

from bench.corpus import SEED

_PROJECT = Path(__file__).resolve().parents[1]
#: Where each agent keeps conversations below a home folder, the samples of it, and the fixtures of it.
_PLACES = {
    "claude": (".claude/projects", "claude/local-2.1.332/projects", ".claude/projects"),
    "codex": (".codex/sessions", "codex/local-0.171.0/sessions", None),
    "factory": (".factory/sessions", "factory/local-0.225.2/sessions", None),
    "oh-my-pi": (".omp/agent/sessions", "oh-my-pi/local-14.9.9/agent/sessions", None),
    "opencode": (".local/share/opencode", "opencode/local-1.18.33/opencode", None),
    "pi": (".pi/agent/sessions", "pi/local-1.6.0/sessions", ".pi/agent/sessions"),
}
_IDS = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    rb"|\b(?:msg|toolu|req|resp|call|fc|rs|ses|prt|evt|sum)_[A-Za-z0-9]{8,}"
    rb"|\b[0-9a-f]{16}\b"
    rb'|(?<=[dD]":")[0-9a-f]{8}(?=")'
)
_ALPHABET = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"
_HEX = b"0123456789abcdef"


def agents() -> list[str]:
    """The agents that there are samples of."""
    return [name for name in _PLACES if _samples(name) is not None]


def grow(agent: str, home: Path, size: int) -> int:
    """Fill ``home`` with conversations of one agent until they have about ``size`` bytes; how many they have."""
    shutil.rmtree(home, ignore_errors=True)
    samples = _samples(agent)
    assert samples is not None
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


def _samples(agent: str) -> Path | None:
    _, sample, fixture = _PLACES[agent]
    shared = os.environ.get("OBJSTORE_SHARED")
    if shared and (Path(shared) / "samples" / sample).is_dir():
        return Path(shared) / "samples" / sample
    return _PROJECT / "fixtures" / "home" / fixture if fixture is not None else None


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
