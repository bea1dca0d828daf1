"""A store whose program has another parser or policy than the one that made its rounds: a new chain beside the old."""

from __future__ import annotations

import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from porcelain.flow import assembly
from porcelain.flow.assembly import PARSER, POLICY, Chain
from porcelain.flow.chain.naming import conversations
from porcelain.importing import work
from tests.porcelain.importing.driving import HOME, TIDEPOOL, objstore, opened, succeed, verify

NAME = TIDEPOOL.stem


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with the first half of one conversation."""
    home = tmp_path / "home"
    (home / TIDEPOOL).parent.mkdir(parents=True)
    grow(home, 15)
    return home


def grow(home: Path, lines: int) -> None:
    data = (HOME / TIDEPOOL).read_bytes()
    (home / TIDEPOOL).write_bytes(b"".join(data.splitlines(keepends=True)[:lines]))


def chains(store: Path) -> dict[str, str]:
    with opened(store) as (_, view):
        return {origin: key.hex() for origin, _, _, key in conversations(view, "flow")}


def kinds(store: Path, *words: str) -> Counter[str]:
    frames = map(json.loads, succeed(store, "flow", "show", "--json", NAME, *words).out.splitlines())
    return Counter(f"{one['frame']} {one.get('kind') or one.get('type')}" for one in frames)


def program(monkeypatch: pytest.MonkeyPatch, parser: str, policy: str = POLICY) -> None:
    """From here on the program is one that interprets by these."""
    monkeypatch.setattr(assembly, "PARSER", parser)
    monkeypatch.setattr(assembly, "POLICY", policy)
    monkeypatch.setattr(sys.modules["porcelain.flow.assembly.rounds"], "PARSER", parser)
    monkeypatch.setattr(work, "Chain", partial(Chain, policy=policy))


@pytest.mark.parametrize(
    ("parser", "policy", "named"),
    [("v2", POLICY, "v2+v1%2Bidle%3D10m0s"), (PARSER, "v1+idle=5m0s", "v1+v1%2Bidle%3D5m0s")],
)
def test_another_interpretation_begins_a_chain_and_keeps_the_old_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parser: str, policy: str, named: str
) -> None:
    store, fresh = tmp_path / "store", tmp_path / "fresh"
    succeed(store, "import", home=home)
    (own,) = before = chains(store)
    program(monkeypatch, parser, policy)
    grow(home, 1000)
    succeed(store, "import", home=home)
    after = chains(store)
    assert after[own] == before[own] and len(after) == 2
    (other,) = after.keys() - before.keys()
    assert other == f"{own}@{named}"
    verify(store)

    # It covers everything from the beginning, and is what views show; the old one is there by its name.
    (row,) = map(json.loads, succeed(store, "flow", "log", NAME, "--json").out.splitlines())
    assert (row["round"], row["fromSeq"], row["throughSeq"]) == (1, 1, 2)
    succeed(fresh, "import", home=home)
    assert len(chains(fresh)) == 1
    assert kinds(store) == kinds(fresh) != kinds(store, "--origin", own)
    (conversation,) = map(json.loads, succeed(store, "flow", "conversations", "--json").out.splitlines())
    assert conversation["origins"] == sorted([own, other])

    # It goes on like any other.
    with (home / TIDEPOOL).open("a") as file:
        file.write('{"type":"user","uuid":"n1","promptId":"q1","message":{"content":"thanks"}}\n')
    succeed(store, "import", home=home)
    assert chains(store)[own] == before[own] and chains(store)[other] != after[other]
    assert len(succeed(store, "flow", "log", NAME).out.splitlines()) == 3
    verify(store)


def test_an_assembly_makes_the_chains_that_a_new_interpretation_lacks(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    succeed(store, "import", home=home)
    (own,) = before = chains(store)
    assert succeed(store, "flow", "assemble").err == "0 new rounds in 0 conversations\n"
    program(monkeypatch, "v2")
    assert succeed(store, "flow", "assemble").err == "1 new round in 1 conversation\n"
    assert succeed(store, "flow", "assemble").err == "0 new rounds in 0 conversations\n"
    (other,) = chains(store).keys() - before.keys()

    # Both say the same of the same records: what today's program made is shown, and a folder holds one of them.
    assert "parser: v2\n" in succeed(store, "flow", "view", NAME).out
    assert "parser: v1\n" in succeed(store, "flow", "view", NAME, "--origin", own).out
    succeed(store, "flow", "export", NAME, tmp_path / "new")
    succeed(store, "flow", "export", NAME, "--origin", own, tmp_path / "old")
    for folder in ("new", "old"):
        succeed(tmp_path, "flow", "verify", "--dir", tmp_path / folder)
    assert objstore(store, "flow", "export", NAME, "--origin", own, tmp_path / "new").code == 4
    verify(store)
    monkeypatch.undo()
    assert "parser: v1\n" in succeed(store, "flow", "view", NAME).out
    assert other in chains(store)


def test_watching_publishes_the_chain_that_goes_on(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, folder = tmp_path / "store", tmp_path / "folder"
    succeed(store, "import", home=home)
    program(monkeypatch, "v2")
    grow(home, 1000)
    told = succeed(store, "flow", "watch", "--once", "--export", folder, "--json", home=home).out.splitlines()
    assert [json.loads(line)["round"] for line in told] == [1]
    (state,) = folder.rglob("conversation.state")
    assert "\nparser       v2\n" in state.read_text()
    succeed(store, "flow", "verify", "--dir", folder)
