"""Whole stores: the order of imports, the number of stores, sources that vanish, subagents before their parent."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from objstore.fold import Envelope, Fold
from objstore.store import Store
from porcelain.lineage.derived.view import lineage_view, view_of
from porcelain.lineage.facts.making import Stored
from porcelain.lineage.facts.projection import Projection, comparable
from porcelain.lineage.facts.store import all_facts
from tests.porcelain.importing.driving import HOME, copy_home, succeed
from tests.porcelain.lineage.pi_home import PiHome


def facts(path: Path) -> list[Stored]:
    with Store.open(path, read_only=True) as store, store.snapshot() as view:
        return list(all_facts(view))


def view(path: Path) -> Projection:
    with Store.open(path, read_only=True) as store, store.snapshot() as snapshot:
        return comparable(lineage_view(snapshot))


def united(*chains: Iterable[Stored]) -> list[Stored]:
    fold = Fold()
    by_key: dict[bytes, Stored] = {}
    for chain in chains:
        for name, one in chain:
            key = bytes.fromhex(name)
            by_key[key] = (name, one)
            fold.absorb(Envelope(one.id, one.revision, one.tombstone is True), key)
    return [by_key[key] for _, key in fold.live()]


@pytest.fixture
def home(tmp_path: Path) -> PiHome:
    home = PiHome(tmp_path / "home")
    source = home.write("a", home.entries("a", 25, text="in /home/ines/garden"))
    target = home.move(source, "garden", "orchard", home.entries("e", 30, 25))
    home.write("b", home.entries("b", 25), folder="meadow", parentSession=str(target))
    home.write("c", [*home.entries("b", 20), *home.entries("c", 30, 20)], folder="field")
    home.manifest(home.moved(source, target, "garden", "orchard"))
    return home


def test_no_order_of_imports_changes_a_row(home: PiHome, tmp_path: Path) -> None:
    """Sidecars before or after sessions, all sessions at once or one by one, in either order."""
    paths = sorted(path for path in home.agent.rglob("*.jsonl") if "_" in path.name)
    stores = [tmp_path / f"store{number}" for number in range(3)]
    for store in stores:
        succeed(store, "init")
    root = home.agent / "sessions"
    succeed(stores[0], "lineage", "import-sidecars", home=home.home)
    succeed(stores[0], "import", root)
    hidden = tmp_path / "hidden"
    for store, order in ((stores[1], paths), (stores[2], paths[::-1])):
        shutil.move(root, hidden)
        for path in order:
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(hidden / path.relative_to(root), path)
            succeed(store, "import", root)
            if path == order[1]:
                succeed(store, "lineage", "import-sidecars", home=home.home)
        shutil.rmtree(root)
        shutil.move(hidden, root)
    first = view(stores[0])
    assert {row["metadata_json"]["relation"] for row in first.tables["edges"]} == {"continuation", "fork"}
    for store in stores[1:]:
        assert view(store).tables == first.tables


def test_two_stores_united_are_as_one(home: PiHome, tmp_path: Path) -> None:
    left, right, both = (tmp_path / name for name in ("left", "right", "both"))
    succeed(left, "import", home=home.home)
    succeed(left, "lineage", "label", home.native("a"), "tide tables")
    succeed(right, "import", home=HOME)
    succeed(right, "lineage", "import-sidecars", home=home.home)
    succeed(both, "import", home=home.home)
    succeed(both, "import", home=HOME)
    succeed(both, "lineage", "import-sidecars", home=home.home)
    succeed(both, "lineage", "label", home.native("a"), "tide tables")
    one = comparable(view_of(facts(both)))
    for order in ((left, right), (right, left)):
        joined = comparable(view_of(united(*map(facts, order))))
        for name, rows in one.tables.items():
            if name != "labels":  # the label was given at two moments
                assert joined.tables[name] == rows, name


def test_sources_that_are_deleted(tmp_path: Path) -> None:
    """R29: the counts stay, every file is gone, and nothing that is gone is recommended."""
    home = copy_home(tmp_path / "home")
    store = tmp_path / "store"
    succeed(store, "import", home=home)
    before = view(store)
    opencode = home / ".local/share/opencode"
    shutil.rmtree(opencode / "storage")
    (opencode / "opencode.db").unlink()
    for path in home.rglob("*.jsonl*"):
        path.unlink()
    succeed(store, "import", home=home)
    after = view(store)
    assert [row["event_count"] for row in after.tables["sessions"]] == [
        row["event_count"] for row in before.tables["sessions"]
    ]
    transcripts = [row for row in after.tables["session_observations"] if row["path"].endswith(".jsonl")]
    assert transcripts and {row["presence"] for row in transcripts} == {"absent"}
    assert {row["status"] for row in after.tables["thread_resume_targets"]} == {"no-target"}
    assert [row["id"] for row in after.tables["logical_threads"]] == [
        row["id"] for row in before.tables["logical_threads"]
    ]
    assert "no file is there any more" in succeed(store, "lineage", "resume").out


def test_subagents_before_their_parent(tmp_path: Path) -> None:
    """R25: ten subagents and no transcript: one session, none of them hidden; the transcript takes its place."""
    native = "5c5fd944-d386-42dd-9b31-250b1a31a74a"
    folder = tmp_path / "home" / ".claude" / "projects" / "-home-ines-garden"
    for number in range(10):
        row = {
            "type": "user",
            "uuid": f"u-{number}",
            "sessionId": native,
            "agentId": f"a{number}",
            "isSidechain": True,
            "cwd": "/home/ines/garden",
            "timestamp": f"2026-03-01T10:00:0{number}.000Z",
            "message": {"role": "user", "content": f"task {number}"},
        }
        path = folder / native / "subagents" / f"agent-a{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(row) + "\n")
    store = tmp_path / "store"
    succeed(store, "import", home=tmp_path / "home")
    alone = view(store)
    assert len(alone.tables["sessions"]) == 1 and len(alone.tables["session_observations"]) == 10
    (member,) = alone.tables["thread_members"]
    row = {k: v for k, v in row.items() if k not in ("agentId", "isSidechain")} | {"uuid": "main"}
    (folder / f"{native}.jsonl").write_text(json.dumps(row) + "\n")
    succeed(store, "import", home=tmp_path / "home")
    whole = view(store)
    assert len(whole.tables["session_observations"]) == 11
    (main,) = whole.tables["thread_members"]
    assert main["session_id"] == member["session_id"] and main["thread_id"] == member["thread_id"]
    assert main["observation_id"] != member["observation_id"]
