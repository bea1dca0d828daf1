"""``status``: what the store holds, agent by agent, and what an import would bring."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from objstore.store import Store
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.views.listing import session_rows
from tests.porcelain.importing.driving import (
    TIDEPOOL,
    copy_home,
    objstore,
    opened,
    state_of,
    succeed,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copy_home(tmp_path / "home")


@pytest.fixture
def store(tmp_path: Path, home: Path) -> Path:
    succeed(tmp_path / "store", "import", home=home)
    return tmp_path / "store"


def test_for_a_script(store: Path, home: Path) -> None:
    document = succeed(store, "status", "--json", home=home).json
    assert {name: document["agents"]["claude"][name] for name in ("conversations", "records", "files")} == {
        "conversations": 8, "records": 279, "files": 19,
    }  # fmt: skip
    pi = document["agents"]["pi"]
    assert (pi["conversations"], pi["records"], pi["damaged"], pi["rewritten"], pi["gone"]) == (
        5,
        82,
        0,
        0,
        0,
    )
    assert document["agents"]["claude"]["damaged"] == 5
    with opened(store) as (_, view):
        assert document["objects"] == view.count()
    assert (document["contentKept"], document["waiting"], document["store"]) == (False, [], str(store))
    assert 0 < document["sizeOnDisk"] < 10_000_000


def test_for_a_person(store: Path, home: Path) -> None:
    out = succeed(store, "status", home=home).out
    lines = out.splitlines()
    assert lines[0] == f"store {store}"
    assert " on disk; message text is not kept" in lines[1]
    assert lines[3].split() == ["agent", "conversations", "records", "files", "gone", "damaged", "rewritten"]
    assert lines[4].split() == ["Claude", "Code", "8", "279", "19", "0", "5", "0"]
    assert lines[-1].split() == ["Pi", "5", "82", "5", "0", "0", "0"]
    assert len(lines) == 4 + 6
    succeed(store, "config", "content", "keep", "on")
    assert "message text is kept" in succeed(store, "status", home=home).out


def test_it_only_looks(store: Path, home: Path) -> None:
    (home / TIDEPOOL).unlink()
    before = state_of(store)
    for words in ((), ("--json",), ("--no-scan",)):
        succeed(store, "status", *words, home=home)
    assert state_of(store) == before


def test_what_waits_on_disk(store: Path, home: Path) -> None:
    path = home / TIDEPOOL
    path.with_name(path.name.replace("5c5fd944", "5c5fd945")).write_bytes(path.read_bytes())
    path.write_bytes(path.read_bytes() + b"{}\n")
    (waiting,) = succeed(store, "status", "--json", home=home).json["waiting"]
    assert (waiting["provider"], waiting["conversations"], waiting["changedFiles"]) == ("claude", 2, 2)
    assert waiting["root"] == str(home / ".claude" / "projects")
    last = succeed(store, "status", home=home).out.splitlines()[-1]
    assert last == f"new on disk: 2 conversations of Claude Code in {home}/.claude/projects: objstore import"
    assert succeed(store, "status", "--json", "--no-scan", home=home).json["waiting"] == []
    succeed(store, "import", home=home)
    assert succeed(store, "status", "--json", home=home).json["waiting"] == []


def test_an_empty_store(tmp_path: Path, home: Path) -> None:
    store = tmp_path / "empty"
    succeed(store, "init")
    out = succeed(store, "status", home=home).out
    assert "no conversation yet: objstore import" in out
    assert "new on disk: 8 conversations of Claude Code" in out and "5 conversations of Pi" in out
    assert succeed(store, "status", "--json").json["agents"] == {}


def test_no_store_and_bad_words(tmp_path: Path, store: Path) -> None:
    none = objstore(tmp_path / "none", "status")
    assert (none.code, none.out) == (3, "")
    assert none.err.splitlines()[0] == f"objstore: {tmp_path / 'none'}: no store here"
    assert objstore(store, "status", "more").code == 2
    assert objstore(store, "status", "--bad").code == 2


def test_counts_are_what_the_list_of_conversations_adds_up_to(store: Path, home: Path) -> None:
    path = home / TIDEPOOL
    gone = next(one for one in sorted((home / ".pi").rglob("*.jsonl")))
    gone.unlink()
    path.write_bytes(path.read_bytes().replace(b'"uuid":"', b'"uuid":"0', 3))
    succeed(store, "import", home=home)
    added: dict[str, Counter[str]] = defaultdict(Counter)
    with Store.open(store) as opened_store, open_lineage(opened_store) as indexed:
        for row in session_rows(indexed.projection(stored=True)):
            added[row.provider].update(
                conversations=1,
                records=row.records,
                files=row.sources,
                gone=row.absent,
                damaged=row.damage,
                rewritten=row.conflicts,
            )
    agents = succeed(store, "status", "--json", home=home).json["agents"]
    assert agents == added
    assert all(sum(one[what] for one in agents.values()) for what in ("gone", "damaged", "rewritten"))
