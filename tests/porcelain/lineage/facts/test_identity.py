from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porcelain.lineage.facts import identity

SOURCE = "source_" + "1" * 32
SESSION = "session_" + "2" * 32
OBSERVATION = "observation_" + "3" * 32
RECORD = "4" * 64


def expected(prefix: str, parts: list[object]) -> str:
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return f"{prefix}_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


@pytest.mark.parametrize(
    ("found", "prefix", "parts"),
    [
        (
            identity.source_id("pi", "live_sessions", "laptop", "/s"),
            "source",
            ["pi", "live_sessions", "laptop", "/s"],
        ),
        (identity.session_id("pi", "né"), "session", ["pi", "né"]),
        (
            identity.observation_id(SOURCE, "b/x.jsonl", RECORD),
            "observation",
            [SOURCE, "b/x.jsonl", RECORD, None],
        ),
        (
            identity.observation_id(SOURCE, "b/x.jsonl", None, RECORD),
            "observation",
            [SOURCE, "b/x.jsonl", None, RECORD],
        ),
        (identity.import_run_id(SOURCE, "tool", "t"), "import_run", [SOURCE, "tool", "t"]),
        (identity.edge_id("fork", "a", "b", None, "rule"), "edge", ["fork", "a", "b", None, "rule"]),
        (
            identity.label_id(SESSION, "display_name", "Beans", "ines"),
            "label",
            ["label", SESSION, "display_name", "Beans", "ines"],
        ),
        (identity.alias_id("/a", "path", "/b", "ines"), "alias", ["alias", "/a", "path", "/b", "ines"]),
        (
            identity.classification_id("e", "edge", "fork", "ines"),
            "classification",
            ["classification", "e", "edge", "fork", "ines"],
        ),
        (
            identity.mark_id(OBSERVATION, "preserve", None, "ines"),
            "mark",
            ["mark", OBSERVATION, "preserve", None, "ines"],
        ),
        (
            identity.evidence_id("prefix_match", [OBSERVATION, SESSION], {"b": 1, "a": 2}),
            "evidence",
            ["prefix_match", [OBSERVATION, SESSION], {"a": 2, "b": 1}],
        ),
        (
            identity.backup_observation_id(SOURCE, "monday", "/x", "absent"),
            "backup_observation",
            [SOURCE, "monday", "/x", "absent"],
        ),
        (identity.repository_id("garden", "c0ffee", "/g"), "repository", ["garden", None, None]),
        (identity.repository_id(None, "c0ffee", "/g"), "repository", [None, "c0ffee", None]),
        (identity.repository_id(None, None, "/g"), "repository", [None, None, "/g"]),
        (identity.repo_identity_id("garden"), "repo_identity", ["garden"]),
        (
            identity.repo_observation_id("i", "/g", None, None, None, None),
            "repo_observation",
            ["i", "/g", None, None, None, None],
        ),
        (
            identity.repo_event_id("move", "i", None, "/a", "/b", None, None),
            "repo_event",
            ["move", "i", None, "/a", "/b", None, None],
        ),
        (identity.batch_operation_id("op-1", "t", "/a", "/b", "x"), "batch_operation", ["op-1"]),
        (identity.batch_operation_id(None, "t", "/a", "/b", "x"), "batch_operation", ["t", "/a", "/b", "x"]),
        (identity.thread_id(SESSION), "thread", [SESSION]),
        (identity.thread_member_id("t", SESSION, None), "thread_member", ["t", SESSION, None]),
        (
            identity.thread_edge_id("t", "a", "b", "fork", None),
            "thread_edge",
            ["t", "a", "b", "fork", None],
        ),
        (identity.resume_target_id("t"), "resume_target", ["t"]),
        (identity.suggestion_id("a", None, "fork", "m 1"), "suggestion", ["a", None, "fork", "m 1"]),
        (
            identity.checkpoint_id(None, "s", None, "summary", None, "h"),
            "checkpoint",
            [None, "s", None, "summary", None, "h"],
        ),
        (identity.artifact_id("html", "/r", "g", None), "artifact", ["html", "/r", "g", None]),
        (identity.bucket_status_id("/r", "--b--"), "bucket_status", ["/r", "--b--"]),
        (identity.event_id(OBSERVATION, 7, RECORD), "event", [OBSERVATION, 7, RECORD]),
    ],
)
def test_an_id_is_the_digest_of_its_parts(found: str, prefix: str, parts: list[object]) -> None:
    assert found == expected(prefix, parts)
    assert identity.is_fact_id(found, prefix)
    assert not identity.is_fact_id(found, "other")


def test_ids_that_are_in_stores_never_change() -> None:
    assert [
        identity.source_id("pi", "live_sessions", "garden-laptop", "/home/ines/.pi/agent/sessions"),
        identity.session_id("claude", "0b2f6e1c-5d54-4c5e-9f3a-77aa31f0c9d2"),
        identity.observation_id(SOURCE, "-home-ines-garden/a.jsonl", RECORD),
        identity.label_id(SESSION, "display_name", "Beans", "claude-import"),
        identity.evidence_id("filesystem_stat", [OBSERVATION], {"state": "gone"}),
    ] == [
        "source_0cda6ad114ec7cf232dd7b5b8db30551",
        "session_b2289dc867dbd319ece64f34b3815eb2",
        "observation_7b9384be45538ac576aca0a2bedf1c76",
        "label_a5535029aab6ba21595625b0cc141994",
        "evidence_cdaa3fe54317dd8b241e950e2a06e37f",
    ]


parts = st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]))), max_size=5)


@given(parts, parts)
def test_different_parts_give_different_ids(one: list[str | None], other: list[str | None]) -> None:
    assert (identity.fact_id("x", one) == identity.fact_id("x", other)) == (one == other)
