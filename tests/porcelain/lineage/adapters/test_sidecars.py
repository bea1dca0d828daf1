"""Pi's manifests and sidecars: what is taken from each, damage, order, and that nothing is written or quoted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from porcelain.lineage.adapters.manifests import relocation
from porcelain.lineage.adapters.sidecars import Sidecars, read_sidecars
from porcelain.lineage.facts.kinds import Fact
from tests.porcelain.importing.driving import objstore, succeed
from tests.porcelain.lineage.pi_home import PiHome

HOST = "garden-laptop"
MARKER = "a marked sentence of a conversation"


@pytest.fixture
def home(tmp_path: Path) -> PiHome:
    return PiHome(tmp_path / "home")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    succeed(tmp_path / "store", "init")
    return tmp_path / "store"


def write(home: PiHome, name: str, *records: object) -> None:
    path = home.agent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def read(home: PiHome) -> Sidecars:
    return read_sidecars(home.agent, HOST)


def of(found: Sidecars, kind: str) -> list[Fact]:
    return [one for one in found.facts if one.kind == kind]


def said(found: Sidecars, says: str) -> list[dict[str, Any]]:
    return [one.columns["data"] for one in of(found, "evidence") if one.columns["data"].get("says") == says]


def record(source: str = "/h/a.jsonl", target: str = "/h/b.jsonl", **more: Any) -> dict[str, Any]:
    return {
        "ts": "2026-05-22T15:00:00.000Z",
        "fromCwd": "/w/alpha",
        "toCwd": "/w/beta",
        "sourceSession": source,
        "destinationSession": target,
        "replacements": 12,
        **more,
    }


# -- manifests -------------------------------------------------------------------------------------------------------


def test_what_is_taken_of_a_record() -> None:
    made = relocation(
        record(sourceLinesAtEvent=33, inferred=True, confidence="low", tool="pi-relocate"), HOST
    )
    assert made is not None and made.confidence == "medium"
    assert made.columns["data"] == {
        "confidence": "low",
        "from": "/h/a.jsonl",
        "from_cwd": "/w/alpha",
        "host": HOST,
        "inferred": True,
        "mode": "move",
        "operation": "session_relocation",
        "replacements": 12,
        "says": "relocation",
        "source_lines": 33,
        "to": "/h/b.jsonl",
        "to_cwd": "/w/beta",
        "tool": "pi-relocate",
        "ts": "2026-05-22T15:00:00.000Z",
    }


@pytest.mark.parametrize("nested", [{"mode": "branch", "batchId": "b"}, '{"mode":"branch","batchId":"b"}'])
def test_fields_that_older_records_nest(nested: object) -> None:
    more: dict[str, Any] = {"metadata" if isinstance(nested, dict) else "metadata_json": nested}
    made = relocation(record(**more), HOST)
    assert made is not None
    data = made.columns["data"]
    assert (data["mode"], data["batch"], data["operation"]) == ("branch", "b", "bucket_relocation")
    top = relocation(record(mode="move", **more), HOST)
    assert top is not None and top.columns["data"]["mode"] == "move"


def test_both_places_are_one_manifest(home: PiHome) -> None:
    write(home, "relocations.jsonl", record(), record("/h/b.jsonl", "/h/c.jsonl"))
    write(home, "session-move/manifests/relocations.jsonl", record(), record("/h/c.jsonl", "/h/d.jsonl"))
    assert len({one.id for one in of(read(home), "evidence")}) == 3
    assert [one.columns["kind"] for one in of(read(home), "source")] == ["relocation_manifest"] * 2


def test_what_is_damaged_is_reported_and_the_rest_read(home: PiHome) -> None:
    path = home.agent / "relocations.jsonl"
    path.parent.mkdir(parents=True)
    lines = [
        b"\xef\xbb\xbf" + json.dumps(record()).encode() + b"\r\n",
        b"\x00\x00\n",
        b"not json\n",
        b"[1]\n",
        b'{"ts":"x"}\n',
        json.dumps(record(target="/h/\ud800.jsonl")).encode() + b"\n",
        json.dumps(record(target="/h/c.jsonl")).encode()[:40],
    ]
    path.write_bytes(b"".join(lines))
    found = read(home)
    assert [(one.line, one.reason) for one in found.damage] == [
        (3, "not JSON"),
        (4, "not an object"),
        (5, "not a record of this file"),
    ]
    assert found.files == [(str(path), 2)]
    with path.open("ab") as file:
        file.write(json.dumps(record(target="/h/c.jsonl")).encode()[40:] + b"\n")
    assert read(home).files == [(str(path), 3)]


# -- the others ------------------------------------------------------------------------------------------------------


def test_overlays(home: PiHome) -> None:
    write(
        home,
        "session-graph/lineage-overlays.jsonl",
        {
            "kind": "root",
            "session": "/h/a.jsonl",
            "historicalCwd": "/w/old",
            "label": "Old root",
            "notes": ["n"],
        },
        {
            "kind": "edge",
            "source": "/h/a.jsonl",
            "destination": "/h/b.jsonl",
            "lineageKind": "explicit-continuation",
        },
        {"kind": "alias", "path": "/w/before", "label": "after", "note": "renamed"},
        {"kind": "session-label", "session": "/h/c.jsonl", "label": "from a backup", "source": "backup-1"},
        {"kind": "mystery"},
    )
    found = read(home)
    assert said(found, "root")[0]["label"] == "Old root" and said(found, "root")[0]["notes"] == "n"
    assert said(found, "edge")[0]["lineage"] == "explicit-continuation"
    assert said(found, "session-label")[0]["source"] == "backup-1"
    (alias,) = of(found, "alias")
    assert (alias.columns["from_value"], alias.columns["to_value"]) == ("/w/before", "after")
    assert [one.line for one in found.damage] == [5]


def test_a_bare_number_counts_the_legacy_manifest_from_one(home: PiHome) -> None:
    write(
        home, "relocations.jsonl", record(), record("/h/b.jsonl", "/h/c.jsonl", ts="2026-05-23T15:00:00.000Z")
    )
    write(
        home,
        "session-graph/lineage-overlays.jsonl",
        {"kind": "classification", "manifestIndex": 2, "lineageKind": "context-jump-new-lineage"},
        {"kind": "classification", "manifestIndex": 0, "lineageKind": "context-jump"},
        {"kind": "classification", "manifestIndex": 3, "lineageKind": "context-jump"},
    )
    found = read(home)
    right, *wrong = said(found, "classification")
    assert (right["from"], right["to"], right["ts"]) == (
        "/h/b.jsonl",
        "/h/c.jsonl",
        "2026-05-23T15:00:00.000Z",
    )
    assert [one["index"] for one in wrong] == [0, 3]
    assert found.remarks == [
        "classification of manifest record 0: the manifest has no such record",
        "classification of manifest record 3: the manifest has no such record",
    ]


def test_repository_identities_in_any_order(home: PiHome) -> None:
    write(
        home,
        "session-store/repo-identities.jsonl",
        {"kind": "repo-observation", "repoIdentityId": "own-1", "path": "/w/tidepool"},
        {
            "kind": "repo-event",
            "eventType": "rename",
            "stableName": "tidepool",
            "fromPath": "/w/a",
            "toPath": "/w/b",
        },
        {"kind": "repo-identity", "id": "own-1", "stableName": "tidepool", "displayName": "Tide pool"},
        {"kind": "repo-observation", "stableName": "other", "remoteUrl": "git@GitHub.com:Ines/Other.git"},
        {"kind": "repo-event", "eventType": "explosion", "stableName": "tidepool"},
    )
    found = read(home)
    names = {one.id: one.columns["stable_name"] for one in of(found, "repo_identity")}
    assert sorted(names.values()) == ["other", "tidepool"]
    first, second = of(found, "repo_observation")
    assert names[first.columns["repo_identity_id"]] == "tidepool"
    assert second.columns["remote_url"] == "https://github.com/ines/other"
    (event,) = of(found, "repo_event")
    assert event.columns["manual_review_required"] is True
    assert [one.line for one in found.damage] == [5]


def test_marks_and_names(home: PiHome, store: Path) -> None:
    path = home.write("a", home.entries("a", 3))
    write(
        home,
        "session-store/observation-marks.jsonl",
        {"kind": "observation-mark", "markType": "preserve", "path": str(path), "label": "the old branch"},
        {"kind": "observation-mark", "markType": "intentional_branch", "sessionId": home.native("a")},
        {"kind": "observation-mark", "markType": "sparkling", "path": str(path)},
        {"kind": "observation-mark", "markType": "preserve"},
    )
    write(
        home,
        "relocation-lineages.jsonl",
        {"type": "lineage_named", "root": str(path), "name": "publish", "updated": "2026-05-01T00:00:00Z"},
    )
    result = objstore(store, "lineage", "import-sidecars", "--strict", home=home.home)
    assert result.code == 1 and "mark sparkling: not one of" in result.out
    succeed(store, "import", home=home.home)
    query = "SELECT mark_type, label, confidence FROM observation_marks ORDER BY 1"
    rows = [json.loads(line) for line in succeed(store, "lineage", "sql", "--json", query).out.splitlines()]
    assert [row["mark_type"] for row in rows] == ["intentional_branch", "preserve"]
    assert rows[1] == {"confidence": "manual", "label": "the old branch", "mark_type": "preserve"}
    query = "SELECT value FROM labels WHERE label_type = 'lineage'"
    assert succeed(store, "lineage", "sql", "--json", query).json == {"value": "publish"}
    assert succeed(store, "lineage", "threads", "--all").out.startswith("publish ")


def test_a_replacement_under_an_id_of_another_tool_is_left_out(home: PiHome, store: Path) -> None:
    path = home.write("a", home.entries("a", 3))
    mark = {"kind": "observation-mark", "markType": "archived", "path": str(path)}
    write(
        home,
        "session-store/observation-marks.jsonl",
        {**mark, "replacementObservationId": "obs_0123456789abcdef"},
    )
    succeed(store, "import", home=home.home)
    succeed(store, "lineage", "import-sidecars", "--strict", home=home.home)
    query = "SELECT mark_type, replacement_observation_id FROM observation_marks"
    row = {"mark_type": "archived", "replacement_observation_id": None}
    assert succeed(store, "lineage", "sql", "--json", query).json == row


def test_a_preserved_source_is_no_deletion_candidate(home: PiHome, store: Path) -> None:
    source = home.write("a", home.entries("a", 25))
    target = home.move(source, "garden", "orchard")
    home.manifest(home.moved(source, target, "garden", "orchard"))
    mark = {"kind": "observation-mark", "markType": "preserve", "path": str(source)}
    write(home, "session-store/observation-marks.jsonl", mark)
    succeed(store, "import", home=home.home)
    succeed(store, "lineage", "import-sidecars", home=home.home)
    query = "SELECT group_concat(mark_type, ' ') AS marks FROM observation_marks ORDER BY 1"
    marks = succeed(store, "lineage", "sql", "--json", query).json["marks"]
    assert sorted(marks.split()) == ["preserve", "superseded"]


def test_reports_of_earlier_reconstructions(home: PiHome, store: Path) -> None:
    """One of them holds whole transcripts: nothing of that is taken."""
    write(
        home,
        "session-graph/pre-manifest-lineage.json",
        {
            "backupEvidence": {
                "main_root": {
                    "rootSession": "/h/a.jsonl",
                    "absentAtBst": "2026-05-22 21:10",
                    "presentAtBst": "2026-05-22 21:20",
                    "fileMtimeUtc": "2026-05-22T20:15:00Z",
                    "remark": MARKER,
                }
            }
        },
    )
    best = {
        "source": "/h/a.jsonl",
        "destination": "/h/b.jsonl",
        "sharedLines": 40,
        "sourceLines": 40,
        "destinationLines": 45,
        "confidence": "medium",
        "score": 70,
    }
    write(
        home,
        "session-graph/prefix-lineage.json",
        {
            "generatedAt": "2026-06-01T00:00:00Z",
            "sessions": [{"rawLines": [MARKER]}],
            "bestCandidates": [{"best": best}],
        },
    )
    write(home, "session-graph/temporal-inventory.json", {"generatedAt": "2026-06-01T00:00:00Z"})
    bucket = {"root": "/old", "bucket": "--w-a--", "status": "missing-unclassified", "sessionCount": 3}
    write(home, "session-graph/session-bucket-reconciliation.json", {"buckets": [bucket]})
    home.manifest(record(inferred=True))
    succeed(store, "lineage", "import-sidecars", home=home.home)
    query = "SELECT snapshot_timestamp AS at, presence FROM backup_observations ORDER BY 1"
    rows = [json.loads(line) for line in succeed(store, "lineage", "sql", "--json", query).out.splitlines()]
    assert rows == [
        {"at": "2026-05-22T20:10:00.000Z", "presence": "absent"},
        {"at": "2026-05-22T20:20:00.000Z", "presence": "present"},
    ]
    query = "SELECT json_extract(metadata_json, '$.rule') AS rule FROM edges"
    assert succeed(store, "lineage", "sql", "--json", query).json == {"rule": "prefix-backed"}
    query = "SELECT status FROM bucket_statuses WHERE root = '/old'"
    assert succeed(store, "lineage", "sql", "--json", query).json == {"status": "missing-unclassified"}
    query = "SELECT count(*) AS n FROM checkpoints WHERE privacy_status = 'metadata-only'"
    assert succeed(store, "lineage", "sql", "--json", query).json == {"n": 2}
    exported = store.parent / "view.json"
    succeed(store, "lineage", "export", exported)
    assert MARKER.encode() not in exported.read_bytes()
    objects = succeed(store, "ls-objects").out.split()
    assert MARKER not in succeed(store, "cat", *[one for one in objects if len(one) == 64]).out


def test_importing_again_learns_nothing(home: PiHome, store: Path) -> None:
    source = home.write("a", home.entries("a", 25))
    target = home.move(source, "garden", "orchard")
    home.manifest(home.moved(source, target, "garden", "orchard"))
    home.manifest(
        home.moved(source, target, "garden", "orchard"), name="session-move/manifests/relocations.jsonl"
    )
    files = {path: path.read_bytes() for path in home.agent.rglob("*") if path.is_file()}
    first = succeed(store, "lineage", "import-sidecars", "--compare", "--json", home=home.home)
    assert first.json["new"] == {"evidence": 2, "source": 2}
    again = succeed(store, "lineage", "import-sidecars", "--compare", "--json", home=home.home)
    assert again.json["new"] == {}
    assert {path: path.read_bytes() for path in home.agent.rglob("*") if path.is_file()} == files


def test_files_are_compared_before_any_is_imported(home: PiHome, store: Path) -> None:
    source = home.write("a", home.entries("a", 25, text="in /home/ines/garden"))
    target = home.move(source, "garden", "orchard")
    home.manifest(home.moved(source, target, "garden", "orchard", inferred=True))
    succeed(store, "lineage", "import-sidecars", "--compare", home=home.home)
    answer = succeed(store, "lineage", "why", "--json", source, target).json
    assert (answer["relation"], answer["rule"]) == ("continuation", "prefix-backed")


def test_nothing_to_read(tmp_path: Path, store: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no sidecar file" in succeed(store, "lineage", "import-sidecars", tmp_path / "empty").out
    assert objstore(store, "lineage", "import-sidecars", tmp_path / "none").code == 3
