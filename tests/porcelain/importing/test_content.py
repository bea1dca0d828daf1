"""Keeping content: the same records either way, content objects only when it is on, and what turning it on brings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore.core import ListOf
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.importing.keeping import content_ref
from tests.porcelain.importing.driving import (
    FILES,
    TIDEPOOL,
    copy_home,
    held,
    landed_pages,
    opened,
    projection,
    state_of,
    succeed,
    verify,
)

CONTENT = {"text", "blob", "chunks"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = copy_home(tmp_path / "home")
    lines = (home / TIDEPOOL).read_bytes().splitlines(keepends=True)
    long = lines[1].replace(b'"content":"', b'"content":"' + b"tide " * 80_000)  # of several pieces
    (home / TIDEPOOL).write_bytes(b"".join([*lines, long.replace(b'"uuid":"', b'"uuid":"f')]))
    return home


def kinds(store: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    with opened(store) as (_, view):
        for _, stored in view.objects():
            found[stored.kind] = found.get(stored.kind, 0) + 1
    return found


def content(store: Path) -> set[bytes]:
    """Keys of the content objects."""
    with opened(store) as (_, view):
        return {key for key, stored in view.objects() if stored.kind in CONTENT}


def named(view: Snapshot) -> Iterator[str]:
    """All content ids that records and damage name."""
    for _, _, page, records in landed_pages(view):
        yield from (one.content for one in page.damage or () if isinstance(one.content, str))
        for record in records:
            if isinstance(record.label_content, str):
                yield record.label_content
            for part in record.parts or ():
                yield from (one for one in (part.content, part.data) if isinstance(one, str))


def listed(store: Path) -> set[bytes]:
    """Keys of the content that the store's own chain says it keeps."""
    found = set()
    with opened(store) as (opened_store, view):
        ref = content_ref(opened_store)
        head = view.ref(ref)
        for frame in (frame for round_ in _rounds(view, head) for frame in round_) if head else ():
            for list_id in load(view, bytes.fromhex(frame), "content-kept").content:
                found |= {bytes.fromhex(i) for i in load(view, bytes.fromhex(list_id), "list").items}
    return found


def _rounds(view: Snapshot, head: bytes) -> Iterator[list[str]]:
    from objstore.chain import entries

    for _, entry in entries(view, head):
        lists: list[ListOf] = [load(view, bytes.fromhex(i), "list") for i in entry.frames]
        yield [frame for one in lists for frame in one.items]


def keep(store: Path, word: str) -> None:
    succeed(store, "config", "content", "keep", word)


def test_off_is_the_default_and_keeps_no_content(tmp_path: Path, home: Path) -> None:
    store = tmp_path / "store"
    said = succeed(store, "import", home=home).out
    assert "without message text" in said
    assert not CONTENT & kinds(store).keys()
    assert listed(store) == set()
    with opened(store) as (_, view):
        assert len(set(named(view))) > 200


def test_on_keeps_every_content_that_a_record_names(tmp_path: Path, home: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "init")
    keep(store, "on")
    assert "with content" in succeed(store, "import", home=home).out
    with opened(store) as (_, view):
        missing = [name for name in named(view) if bytes.fromhex(name) not in view]
    assert missing == []
    assert content(store) <= listed(store)
    assert kinds(store)["chunks"] >= 1
    verify(store)


def test_turning_it_on_later_reads_everything_once_more(tmp_path: Path, home: Path) -> None:
    store, always = tmp_path / "store", tmp_path / "always"
    first = succeed(store, "import", "--json", home=home).json
    before = held(store)
    keep(store, "on")
    waiting = succeed(store, "status", "--json", home=home).json["waiting"]
    assert sum(place["changedFiles"] for place in waiting) == FILES
    result = succeed(store, "import", "--json", home=home).json
    assert (result["records"], result["rounds"], result["contentKept"]) == (0, 0, True)
    assert result["sourceBytes"] >= first["sourceBytes"] - 100
    assert held(store) == before
    succeed(always, "init")
    keep(always, "on")
    succeed(always, "import", home=home)
    assert content(store) == content(always)
    assert content(store) <= listed(store)
    verify(store)
    state = state_of(store)
    assert succeed(store, "import", "--json", home=home).json["sourceBytes"] == 0
    assert state_of(store) == state


def test_turning_it_off_keeps_what_is_there_and_no_more(tmp_path: Path, home: Path) -> None:
    store, path = tmp_path / "store", home / TIDEPOOL
    succeed(store, "init")
    keep(store, "on")
    succeed(store, "import", home=home)
    before = content(store)
    keep(store, "off")
    line = path.read_bytes().splitlines(keepends=True)[1].replace(b'"uuid":"', b'"uuid":"e')
    with path.open("ab") as file:
        file.write(line.replace(b'"content":"', b'"content":"entirely new '))
    assert succeed(store, "import", "--json", home=home).json["records"] == 1
    assert content(store) == before
    keep(store, "on")
    assert succeed(store, "import", "--json", home=home).json["records"] == 0
    assert len(content(store)) == len(before) + 1
    verify(store)


def test_an_import_that_only_brings_content_is_an_import_run(tmp_path: Path, home: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "import", home=home)
    assert len(projection(store).tables["import_runs"]) == 6
    keep(store, "on")
    succeed(store, "import", home=home)
    runs = projection(store).tables["import_runs"]
    assert {run["status"] for run in runs} == {"done"}


def test_the_secret_of_a_store_is_its_own(tmp_path: Path, home: Path) -> None:
    """Hashes over raw bytes are keyed, and the key is in no object."""
    keys = []
    for name in ("one", "two"):
        succeed(tmp_path / name, "import", home=home)
        with opened(tmp_path / name) as (_, view):
            key = view.local(b"hash-key")
            assert key is not None and len(key) == 32
            assert all(key not in stored.data for _, stored in view.objects())
            keys.append(key)
    assert keys[0] != keys[1]
