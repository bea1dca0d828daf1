"""The files for the existing renderer of Pi's session graph: its keys, its words, a session for each file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from porcelain.lineage.exports.pi_compat import CURATED_STORE, GRAPH_EXPORT, STORE_EXPORT
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


COMPACTION_KEYS = """
id kind sessionId sourceId timestamp confidence provenance privacyStatus eventCount summaryEventCount
compactedLineCount compactedCharCount firstCompactionAt lastCompactionAt summaryHashes sampleLines summary metadata
"""
BURST_KEYS = """
id kind path generatedAt generator repoIdentityId sessionIds providers start end sessionCount confidence provenance
metadata
"""
ACTIVE_KEYS = """
id kind path generatedAt generator project repoIdentityId displayName contributingPaths activeMinutes activeHours
workBlockCount sessionCount sessionIds providers idleThresholdMinutes confidence provenance metadata
"""


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Pi works for twenty minutes and, three hours later, for five more; twice its history is replaced by a summary. A
    copy of the file repeats all that. Claude Code works on the same project for ten minutes of the first twenty."""
    folder = tmp_path_factory.mktemp("busy")
    home = folder / "home"

    def compaction(number: int, minute: int) -> dict[str, Any]:
        return {
            "type": "compaction",
            "id": f"c{number:07x}",
            "parentId": f"{number:08x}",
            "timestamp": f"2026-03-01T00:{minute:02}:00.000Z",
            "summary": f"beds and paths {number}",
            "firstKeptEntryId": f"{number:08x}",
            "tokensBefore": 900,
        }

    lines = [homes.pi_header("dug"), *(homes.pi_call(n) for n in range(8)), compaction(1, 8)]
    lines += [*(homes.pi_call(n) for n in range(9, 20)), compaction(2, 20)]
    lines += [homes.pi_call(n) for n in range(180, 186)]
    homes.write(homes.pi_path(home, "dug"), lines)
    homes.write(homes.pi_path(home, "dug", folder="--copy--"), lines)
    prompts = [homes.claude_prompt("n0153", n) for n in range(2)]
    for minute, prompt in zip((5, 15), prompts, strict=True):
        prompt["timestamp"] = f"2026-03-01T00:{minute:02}:00.000Z"
        prompt["cwd"] = "/home/ines/garden"
    homes.write(homes.claude_path(home, "n0153"), prompts)
    succeed(folder / "store", "import", home=home)
    succeed(folder / "store", "lineage", "repo", "--path", "/home/ines/garden", "garden")
    succeed(folder / "store", "lineage", "export", "--pi-compat", folder)
    assert "beds and paths" not in (folder / GRAPH_EXPORT).read_text()
    graph: dict[str, Any] = read(folder, GRAPH_EXPORT)
    return graph


def test_compactions_are_counted_once_with_their_times_lines_and_hashes(busy: dict[str, Any]) -> None:
    (event,) = busy["compactionEvents"]
    assert set(event) == set(COMPACTION_KEYS.split())
    assert (event["kind"], event["eventCount"], event["summaryEventCount"]) == ("compaction_summary", 2, 2)
    assert event["firstCompactionAt"] == "2026-03-01T00:08:00.000Z"
    assert event["timestamp"] == event["lastCompactionAt"] == "2026-03-01T00:20:00.000Z"
    assert event["sampleLines"] == [10, 22]
    assert len(event["summaryHashes"]) == 2
    assert event["metadata"]["eventCount"] == 2
    assert event["sessionId"] in {one["id"] for one in busy["sessions"]}


def test_bursts_are_runs_of_one_repository_and_several_agents(busy: dict[str, Any]) -> None:
    (burst,) = busy["workBursts"]
    assert set(burst) == set(BURST_KEYS.split())
    (repository,) = busy["repoIdentities"]
    assert burst["repoIdentityId"] == repository["id"]
    assert (burst["providers"], burst["sessionCount"]) == (["claude", "pi"], 3)
    assert (burst["start"], burst["end"]) == ("2026-03-01T00:00:00.000Z", "2026-03-01T10:00:00.000Z")
    assert (burst["kind"], burst["confidence"]) == ("temporal_work_burst", "derived")
    assert set(burst["sessionIds"]) == {one["id"] for one in busy["sessions"]}


def test_active_time_counts_no_minute_twice(busy: dict[str, Any]) -> None:
    (metric,) = busy["activeTimeMetrics"]
    assert set(metric) == set(ACTIVE_KEYS.split())
    assert (metric["activeMinutes"], metric["activeHours"]) == (25, 0.42)
    assert (metric["workBlockCount"], metric["sessionCount"]) == (3, 2)
    assert metric["contributingPaths"] == ["/home/ines/garden"]
    assert (metric["displayName"], metric["providers"]) == ("garden", ["claude", "pi"])
    assert (metric["idleThresholdMinutes"], metric["confidence"]) == (30, "high")
    assert [one["start"][11:16] for one in metric["metadata"]["collapsedIntervals"]] == [
        "00:00",
        "03:00",
        "10:00",
    ]
