from __future__ import annotations

from typing import Any

import msgspec
import pytest

from objstore import kinds
from objstore.canonical import decode, encode
from objstore.errors import CheckFailed
from porcelain.lineage.facts.kinds import Fact, FactRefused, check_fact
from porcelain.lineage.facts.making import fact, withdrawn
from porcelain.lineage.tables.schema import BY_KIND

SOURCE = {
    "provider": "pi",
    "kind": "live_sessions",
    "uri": "/home/ines/.pi/agent/sessions",
    "metadata": {"host": "garden-laptop"},
}


def source(**changes: Any) -> Fact:
    return fact("source", {**SOURCE, **changes}, provenance="pi-import", confidence="high")


def test_a_fact_is_stored_canonically_and_read_back() -> None:
    made = source(metadata={"zebra": [1, {"b": None, "a": True}], "host": "garden-laptop"})
    data = kinds.encode(made)
    assert encode(decode(data)) == data
    assert kinds.decode("fact", data) == made
    assert decode(data)["type"] == "fact"
    gone = kinds.encode(withdrawn(made))
    assert decode(gone)["tombstone"] is True
    assert kinds.decode("fact", gone) == withdrawn(made)


def test_columns_that_are_none_are_left_out() -> None:
    assert "label" not in source(label=None).columns


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"kind": "attic"}, "kind"),
        ({"provider": None}, "provider"),
        ({"uri": 3}, "uri"),
        ({"uri": "a\x00b"}, "uri"),
        ({"label": "x" * 70_000}, "label"),
        ({"metadata": []}, "metadata"),
        ({"colour": "green"}, "colour"),
        ({"first_observed_at": "2026-01-01T00:00:00.000Z"}, "first_observed_at"),
        ({"metadata": {}}, "host"),
    ],
)
def test_what_a_source_may_not_say(changes: dict[str, Any], column: str) -> None:
    with pytest.raises(FactRefused) as refused:
        source(**changes)
    assert refused.value.column == column
    assert "\n" not in str(refused.value)


def test_floats_are_refused_when_written_and_when_read() -> None:
    with pytest.raises(CheckFailed):
        source(metadata={"host": "garden-laptop", "size": 1.5})
    data = kinds.encode(source(metadata={"host": "garden-laptop", "size": 15})).replace(b"15", b"1.5")
    with pytest.raises(CheckFailed):
        kinds.decode("fact", data)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "source_" + "0" * 32},
        {"provenance": ""},
        {"evidence": ["evidence_" + "1" * 32] * 2},
        {"evidence": ["source_" + "1" * 32]},
        {"tombstone": False},
        {"kind": "session"},
        {"kind": "dream"},
        {"columns": {**SOURCE, "uri": "/elsewhere"}},
    ],
)
def test_a_fact_whose_envelope_is_wrong_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(CheckFailed):
        check_fact(msgspec.structs.replace(source(), **changes))


@pytest.mark.parametrize("change", [b'"revision":-1', b'"revision":0,"why":"x"', b'"revision":"0"'])
def test_an_envelope_of_another_shape_is_refused(change: bytes) -> None:
    with pytest.raises(CheckFailed):
        kinds.decode("fact", kinds.encode(source()).replace(b'"revision":0', change))


def ids(kind: str, digit: str) -> str:
    return f"{kind}_{digit * 32}"


TIME = "2026-03-01T10:00:00.000Z"
#: The least that a fact of each kind says.
LEAST: dict[str, dict[str, Any]] = {
    "source": SOURCE,
    "import_run": {"source_id": ids("source", "1"), "started_at": TIME, "tool": "t", "status": "done"},
    "session": {"provider": "pi", "provider_session_id": "a"},
    "observation": {"source_id": ids("source", "1"), "path": "a.jsonl"},
    "edge": {
        "edge_type": "fork",
        "source_observation_id": ids("observation", "1"),
        "target_observation_id": ids("observation", "2"),
    },
    "label": {
        "target_type": "session",
        "target_id": ids("session", "1"),
        "label_type": "lineage",
        "value": "Beans",
    },
    "alias": {"alias_type": "path", "from_value": "/a", "to_value": "/b"},
    "classification": {
        "target_type": "edge",
        "target_id": ids("edge", "1"),
        "classification": "context-jump",
    },
    "evidence": {"kind": "manual_note", "summary": "said so", "data": {}},
    "backup_observation": {
        "source_id": ids("source", "1"),
        "snapshot_label": "monday",
        "path": "/a",
        "presence": "absent",
    },
    "repository": {"path": "/g"},
    "artifact": {"kind": "html", "path": "/r.html", "generated_at": TIME, "generator": "g"},
    "suggestion": {"proposed_relation": "fork", "suggester": "m 1", "created_at": TIME},
    "repo_identity": {"stable_name": "garden"},
    "repo_observation": {"repo_identity_id": ids("repo_identity", "1")},
    "repo_event": {"event_type": "move"},
    "batch_operation": {
        "operation_type": "bucket_relocation",
        "source_path": "/a",
        "destination_path": "/b",
        "timestamp": TIME,
        "status": "applied",
    },
    "mark": {"observation_id": ids("observation", "1"), "mark_type": "preserve"},
    "thread": {"root_session_id": ids("session", "1")},
    "thread_member": {
        "thread_id": ids("thread", "1"),
        "session_id": ids("session", "1"),
        "role": "fork",
        "ordinal": 0,
    },
    "thread_edge": {
        "thread_id": ids("thread", "1"),
        "source_session_id": ids("session", "1"),
        "target_session_id": ids("session", "2"),
        "relation": "fork",
    },
    "resume_target": {"thread_id": ids("thread", "1"), "status": "no-target"},
    "checkpoint": {
        "kind": "summary",
        "generated_at": TIME,
        "generator": "g",
        "privacy_status": "metadata-only",
    },
    "bucket_status": {"root": "/r", "bucket": "b", "status": "active", "session_count": 0},
}


def test_every_kind_is_tried() -> None:
    assert set(LEAST) == set(BY_KIND)


@pytest.mark.parametrize("kind", LEAST)
def test_every_kind_of_fact_can_be_written_and_needs_each_of_these(kind: str) -> None:
    made = fact(kind, LEAST[kind], provenance="ines", confidence="manual")
    assert kinds.decode("fact", kinds.encode(made)) == made
    for name in LEAST[kind]:
        with pytest.raises(CheckFailed) as refused:
            fact(kind, {**LEAST[kind], name: None}, provenance="ines", confidence="manual")
            pytest.fail(f"{kind} without {name} was taken")
        assert "\n" not in str(refused.value)
