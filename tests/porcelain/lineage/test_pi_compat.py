"""The files for the existing renderer of Pi's session graph: its keys, its words, a session for each file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from porcelain.lineage.pi_compat import CURATED_STORE, GRAPH_EXPORT, STORE_EXPORT
from tests.porcelain.importing.driving import objstore, succeed
from tests.porcelain.lineage import usage_homes as homes

STORE_KEYS = """
schemaVersion generatedAt inputs sources importRuns sessions sessionObservations events edges labels aliases
classifications evidence backupObservations repositories artifacts checkpointArtifacts observationMarks
batchOperations logicalThreads threadMembers threadEdges threadResumeTargets bucketStatuses repoIdentities
repoObservations repoEvents eventIndex
"""
GRAPH_KEYS = """
generatedAt source graphFilters sessions edges labels classifications observationMarks preservedBranches
logicalThreads threadMembers threadEdges threadResumeTargets repoIdentities repoObservations repoEvents
compactionEvents workBursts activeTimeMetrics temporalActivitySpans activityMetrics
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A conversation that was moved, one that branched off it and is to be preserved, and one of a single line."""
    folder = tmp_path_factory.mktemp("compat")
    home = folder / "home"
    calls = [homes.pi_call(n) for n in range(25)]
    origin = homes.write(homes.pi_path(home, "moved"), [homes.pi_header("moved"), *calls])
    target = origin.parent.parent / "--home-ines-shed--" / f"{origin.stem}_relocated_0a1b2c3d4e5f.jsonl"
    homes.write(target, [homes.pi_header("moved", cwd="/home/ines/shed"), *calls])
    homes.write(homes.claude_path(home, "n0153"), [homes.claude_prompt("n0153", 0)])
    branch = homes.pi_path(home, "branch")
    homes.write(branch, [homes.pi_header("branch", parent=str(target)), *calls, homes.pi_call(90)])
    record = {
        "ts": "2026-03-01T10:40:00.000Z", "fromCwd": "/home/ines/garden", "toCwd": "/home/ines/shed",
        "sourceSession": str(origin), "destinationSession": str(target), "parent": str(origin),
        "replacements": 1, "mode": "move", "tool": "pi-session-move", "operationType": "session_relocation",
    }  # fmt: skip
    homes.write(home / ".pi" / "agent" / "relocations.jsonl", [record])
    succeed(folder / "store", "import", home=home)
    succeed(folder / "store", "lineage", "import-sidecars", home=home)
    succeed(folder / "store", "lineage", "mark", "--label", "the good one", branch, "preserve", home=home)
    return folder / "store"


def read(folder: Path, name: str) -> Any:
    text = (folder / name).read_text()
    assert text.endswith("}\n") and text.startswith('{\n  "')
    return json.loads(text)


def test_keys_and_one_session_a_file(store: Path, tmp_path: Path) -> None:
    succeed(store, "lineage", "export", "--pi-compat", tmp_path)
    document = read(tmp_path, STORE_EXPORT)
    assert [key for key in document if key != "generator"] == STORE_KEYS.split()
    assert document["schemaVersion"] == 1 and document["events"] == []
    assert document["eventIndex"]["count"] == 26 + 26 + 27 + 1
    sessions = {one["metadata"]["path"].rpartition("_")[2]: one for one in document["sessions"]}
    assert len(sessions) == len(document["sessionObservations"]) == 4
    assert sessions["0a1b2c3d4e5f.jsonl"]["providerSessionId"] == sessions["moved.jsonl"]["providerSessionId"]
    assert sessions["0a1b2c3d4e5f.jsonl"]["metadata"]["cwd"] == "/home/ines/shed"
    assert {one["sessionId"] for one in document["sessionObservations"]} == {
        one["id"] for one in document["sessions"]
    }


def test_edges_between_files_in_the_renderers_words(store: Path, tmp_path: Path) -> None:
    succeed(store, "lineage", "export", "--pi-compat", tmp_path)
    graph = read(tmp_path, GRAPH_EXPORT)
    assert [key for key in graph if key != "generator"] == GRAPH_KEYS.split()
    paths = {one["id"]: one["metadata"]["path"].rpartition("_")[2] for one in graph["sessions"]}
    edges = {(paths[one["sourceSessionId"]], paths[one["targetSessionId"]]): one for one in graph["edges"]}
    moved = edges["moved.jsonl", "0a1b2c3d4e5f.jsonl"]
    assert (moved["edgeType"], moved["confidence"], moved["tool"]) == (
        "relocation", "authoritative", "pi-session-move",
    )  # fmt: skip
    assert (moved["mode"], moved["operationType"], moved["toCwd"]) == (
        "move", "session_relocation", "/home/ines/shed",
    )  # fmt: skip
    assert edges["0a1b2c3d4e5f.jsonl", "branch.jsonl"]["edgeType"] == "branch"
    assert all(source != target for source, target in edges)
    known = paths.keys()
    assert {one["sessionId"] for one in graph["threadMembers"]} <= known
    assert {
        one[end] for one in graph["threadEdges"] for end in ("sourceSessionId", "targetSessionId")
    } <= known


def test_marks_and_preserved_branches(store: Path, tmp_path: Path) -> None:
    succeed(store, "lineage", "export", "--pi-compat", tmp_path)
    graph = read(tmp_path, GRAPH_EXPORT)
    (preserved,) = graph["preservedBranches"]
    assert (preserved["markType"], preserved["label"]) == ("preserve", "the good one")
    branch = next(one for one in graph["sessions"] if one["id"] == preserved["sessionId"])
    assert branch["providerSessionId"] == "branch"
    assert {one["markType"] for one in graph["observationMarks"]} >= {"preserve", "superseded"}


def test_sessions_of_one_line_are_left_out_of_the_graph(store: Path, tmp_path: Path) -> None:
    succeed(store, "lineage", "export", "--pi-compat", tmp_path)
    graph = read(tmp_path, GRAPH_EXPORT)
    assert graph["graphFilters"]["excludedNoiseSessions"] == 1
    names = {one["providerSessionId"] for one in graph["sessions"]}
    assert names == {"moved", "branch"}
    assert {one["sessionId"] for one in graph["temporalActivitySpans"]} == {
        one["id"] for one in graph["sessions"]
    }


def test_the_same_bytes_again_and_over_no_other_file(store: Path, tmp_path: Path) -> None:
    first = succeed(store, "lineage", "export", "--pi-compat", "--json", tmp_path).json
    before = {path: Path(path).read_bytes() for path in first["files"]}
    assert [Path(path).relative_to(tmp_path).as_posix() for path in before] == [
        STORE_EXPORT, GRAPH_EXPORT, CURATED_STORE,
    ]  # fmt: skip
    succeed(store, "lineage", "export", "--pi-compat", tmp_path)
    assert {path: Path(path).read_bytes() for path in before} == before
    (tmp_path / GRAPH_EXPORT).write_text("{}\n")
    assert objstore(store, "lineage", "export", "--pi-compat", tmp_path).code == 5
    succeed(store, "lineage", "export", "--pi-compat", "--force", tmp_path)
