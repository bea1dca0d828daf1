"""One conversation that went on on two machines, or was imported on both at different moments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.porcelain.importing.driving import HOME, TIDEPOOL, succeed, verify

LINES = (HOME / TIDEPOOL).read_bytes().splitlines(keepends=True)
ID = TIDEPOOL.stem
#: How many model calls the first 20 lines and all of them hold.
SHARED, WHOLE = 5, 11


def machine(folder: Path, parts: Sequence[Sequence[bytes]]) -> Path:
    """A store that imported the conversation after each of ``parts`` was written."""
    path, store = folder / "home" / TIDEPOOL, folder / "store"
    path.parent.mkdir(parents=True)
    succeed(store, "init")
    for part in parts:
        with path.open("ab") as file:
            file.writelines(part)
        succeed(store, "import", home=folder / "home")
    return store


def elsewhere(lines: Sequence[bytes]) -> list[bytes]:
    """What was said on the other machine instead: other ids, another day."""
    changes = ((b'"uuid":"', b'"uuid":"f'), (b"msg_", b"msg_Z"), (b"req_", b"req_Z"), (b":14:", b":44:"))
    found = []
    for line in lines:
        for old, new in changes:
            line = line.replace(old, new)
        found.append(line)
    return found


def unite(one: Path, two: Path) -> None:
    succeed(one, "push", two)
    succeed(one, "pull", two)


def usage(store: Path) -> tuple[int, int]:
    """Calls that count, and calls that are stated."""
    found = succeed(store, "lineage", "usage", "--json").json["total"]
    return found["calls"], found["seen"]


def exported(store: Path) -> bytes:
    file = store.parent / "view.json"
    succeed(store, "lineage", "export", file)
    return file.read_bytes()


def test_it_went_on_on_both(tmp_path: Path) -> None:
    one = machine(tmp_path / "one", [LINES])
    two = machine(tmp_path / "two", [LINES[:20], elsewhere(LINES[20:30])])
    before, there = usage(one)[0], usage(two)[0]
    assert (before, there) == (WHOLE, usage(two)[1])
    unite(one, two)
    for store in (one, two):
        assert usage(store) == (WHOLE + there - SHARED, WHOLE + there)
        (thread,) = [
            json.loads(line) for line in succeed(store, "lineage", "threads", "--json").out.splitlines()
        ]
        assert [member["role"] for member in thread["members"]] == ["canonical_path", "fork"]
        assert thread["resume"]["status"] == "branch-choices"
        verify(store)
        shown = succeed(store, "flow", "show", ID).out
        (other,) = [line.split()[-1] for line in shown.splitlines() if "10 other records by" in line]
        assert f"{WHOLE} model calls" in shown
        assert f"{there} model calls" in succeed(store, "flow", "show", ID, "--origin", other).out
    assert exported(one) == exported(two)


@pytest.mark.parametrize("often", ["one", "two"])
def test_views_show_the_chain_with_most_records(tmp_path: Path, often: str) -> None:
    """However many pages there are: a store that imports often has many small ones."""
    shorter = machine(tmp_path / often, [LINES[n : n + 1] for n in range(20)])
    longer = machine(tmp_path / "longer", [LINES])
    alone = usage(longer)
    shown = succeed(longer, "flow", "show", ID).out
    unite(shorter, longer)
    for store in (shorter, longer):
        assert succeed(store, "flow", "show", ID).out == shown
        assert usage(store) == alone
        assert succeed(store, "flow", "export", ID, store.parent / "published").code == 0
    names = {path.name for path in (tmp_path / often / "published").rglob("*.sf")}
    assert names == {path.name for path in (tmp_path / "longer" / "published").rglob("*.sf")}
