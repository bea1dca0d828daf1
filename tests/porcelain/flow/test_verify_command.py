"""``flow verify`` as a command: what it prints and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from objstore import kinds
from objstore.store import Store, load
from porcelain.flow.chain.naming import landed_ref
from tests.porcelain.importing.driving import CONVERSATIONS, HOME, RECORDS, TIDEPOOL, objstore, succeed

NAME = TIDEPOOL.stem


@pytest.fixture
def store(tmp_path: Path) -> Path:
    succeed(tmp_path / "store", "import", home=HOME)
    return tmp_path / "store"


def damage(store: Path) -> None:
    """Give the page of one conversation another digest."""
    with Store.open(store) as found:
        name = landed_ref(found.store_id, "claude", NAME)
        batch = found.batch()
        with found.snapshot() as view:
            head = view.ref(name)
            assert head is not None
            entry = load(view, head, "landing")
            page = replace(load(view, bytes.fromhex(entry.pages[0]), "page"), digest="0" * 64)
        pages = [batch.put("page", kinds.encode(page))]
        batch.move_ref(name, batch.put("landing", kinds.encode(replace(entry, pages=pages))), head.hex(), "")
        found.commit(batch)


def test_all_is_well(store: Path) -> None:
    result = succeed(store, "flow", "verify")
    assert result.out == ""
    assert result.err.startswith(f"checked {CONVERSATIONS} conversations, 52 pages, {RECORDS} records, ")
    assert result.err.endswith(" rounds: all digests match\n")
    assert succeed(store, "--quiet", "flow", "verify").err == ""


def test_a_problem_is_one_line_and_exit_1(store: Path) -> None:
    damage(store)
    result = objstore(store, "flow", "verify")
    assert result.code == 1
    (line, *more) = result.out.splitlines()
    assert line.startswith(f"claude/{NAME}: page 1: page-digest: ") and "0" * 64 in line and not more
    assert "1 problem" in result.err and "1 problems" not in result.err
    assert objstore(store, "flow", "verify", NAME[:8]).code == 1
    assert objstore(store, "flow", "verify", "9103794e").code == 0
    assert objstore(store, "verify").code == 0  # its objects are right


def test_json_is_one_line_a_conversation(store: Path) -> None:
    damage(store)
    result = objstore(store, "flow", "verify", "--json")
    assert result.code == 1
    documents = [json.loads(line) for line in result.out.splitlines()]
    assert len(documents) == CONVERSATIONS
    (bad,) = [document for document in documents if document["problems"]]
    assert (bad["provider"], bad["conversation"], bad["pages"], bad["records"]) == ("claude", NAME, 1, 42)
    (problem,) = bad["problems"]
    assert (problem["place"], problem["rule"], problem["expected"]) == ("page 1", "page-digest", "0" * 64)


def test_some_conversations(store: Path) -> None:
    result = succeed(store, "flow", "verify", NAME[:8], "pi/3da39d98")
    assert result.err.startswith("checked 2 conversations, 2 pages, 70 records, ")
    assert succeed(store, "flow", "verify", NAME).err.startswith(
        "checked 1 conversation, 1 page, 42 records, 1 round: "
    )


@pytest.mark.parametrize(("name", "code"), [("nowhere", 3), ("5", 2), ("pi/9103794e", 3)])
def test_a_conversation_that_is_not_there(store: Path, name: str, code: int) -> None:
    result = objstore(store, "flow", "verify", name)
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith(f"objstore: {name}: ")


def test_a_store_without_conversations(tmp_path: Path) -> None:
    succeed(tmp_path / "store", "init")
    result = objstore(tmp_path / "store", "flow", "verify")
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines() == [
        "objstore: the store holds no conversation yet",
        "hint: objstore import",
    ]
    assert objstore(tmp_path / "none", "flow", "verify").code == 3
