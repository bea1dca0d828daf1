"""``import --check``: what was imported is compared with the files from their beginnings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.porcelain.importing.driving import TIDEPOOL, copy_home, objstore, succeed

SHARED = os.environ.get("OBJSTORE_SHARED")
#: Samples of each agent as its own program leaves them.
SAMPLES = (
    "claude/local-2.1.332",
    "claude/local-1.0.83",
    "codex/local-0.171.0",
    "codex/local-0.20.0",
    "codex/local-ts-0.1.2505172129",
    "factory/local-0.225.2",
    "oh-my-pi/local-14.9.9",
    "opencode/local-1.18.33",
    "opencode/local-1.1.65",
    "pi/local-1.6.0",
    "pi/local-0.30.2",
)


def checked(store: Path, home: Path, *words: str) -> dict[str, int]:
    document: dict[str, Any] = succeed(store, "import", "--check", "--json", *words, home=home).json
    names = ("checked", "conflicts", "records")
    return {name: sum(place[name] for place in document["places"]) for name in names}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copy_home(tmp_path / "home")


def test_what_is_as_it_was_imported(home: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "import", home=home)
    found = checked(store, home)
    with_bytes = [path for path in home.rglob("*.jsonl*") if path.stat().st_size]
    # Three of them are noise without a conversation, one is Codex's list of names.
    assert found["checked"] == len(with_bytes) - 4
    assert (found["conflicts"], found["records"]) == (0, 0)
    assert (
        "compared from the beginning: all as they were imported"
        in succeed(store, "import", "--check", home=home).out
    )


@pytest.mark.skipif(SHARED is None, reason="OBJSTORE_SHARED is not set")
@pytest.mark.parametrize("sample", SAMPLES)
def test_the_samples_of_all_agents(sample: str, tmp_path: Path) -> None:
    store, place = tmp_path / "store", Path(str(SHARED)) / "samples" / sample
    assert objstore(store, "init").code == 0
    assert objstore(store, "import", str(place), home=tmp_path).code in (0, 5)
    found = checked(store, tmp_path, str(place))
    assert (found["conflicts"], found["records"]) == (0, 0)


@pytest.mark.parametrize("more", [b"", b'{"type":"mode","mode":"plan","sessionId":"x"}\n'])
def test_a_byte_that_was_changed_far_from_the_end(home: Path, tmp_path: Path, more: bytes) -> None:
    """Beyond the bytes before the cursor, at the same size and time: only the check sees it, once."""
    path, store = home / TIDEPOOL, tmp_path / "store"
    padding = {"type": "mode", "mode": "x" * 700_000, "sessionId": path.stem}
    with path.open("a") as file:
        for _ in range(3):
            file.write(json.dumps(padding) + "\n")
    succeed(store, "import", home=home)
    stat = path.stat()
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if b'"timestamp":"2' in line)
    lines[number] = lines[number].replace(b'"timestamp":"20', b'"timestamp":"21', 1)
    with path.open("r+b") as file:
        file.write(b"".join(lines))
    with path.open("ab") as file:
        file.write(more)
    if not more:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    plain = succeed(store, "import", "--json", home=home).json
    assert sum(place["conflicts"] for place in plain["places"]) == 0
    found = checked(store, home)
    assert found["conflicts"] == 1
    assert checked(store, home)["conflicts"] == 0
    query = "SELECT count(*) AS n FROM evidence WHERE summary LIKE 'rewritten%'"
    assert succeed(store, "lineage", "sql", "--json", query).json == {"n": 1}
