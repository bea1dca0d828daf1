"""What people state by command, what it changes, and taking it back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.porcelain.importing.driving import objstore, succeed
from tests.porcelain.lineage.pi_home import PiHome


@pytest.fixture
def home(tmp_path: Path) -> PiHome:
    home = PiHome(tmp_path / "home")
    for name, folder in (("a", "garden"), ("b", "orchard"), ("c", "meadow")):
        home.write(name, home.entries(name, 22), folder=folder)
    return home


@pytest.fixture
def store(tmp_path: Path, home: PiHome) -> Path:
    succeed(tmp_path / "store", "import", home=home.home)
    return tmp_path / "store"


def rows(store: Path, query: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in succeed(store, "lineage", "sql", "--json", query).out.splitlines()]


def derived(store: Path) -> list[list[dict[str, Any]]]:
    """All that may depend on a person's word."""
    tables = ("edges", "logical_threads", "thread_members", "thread_edges", "thread_resume_targets")
    return [rows(store, f"SELECT * FROM {name} ORDER BY id") for name in (*tables, "observation_marks")]


def relation(store: Path, source: Path, target: Path) -> str:
    answer: str = succeed(store, "lineage", "why", "--json", source, target).json["relation"]
    return answer


def test_a_name_given_changed_cleared_and_taken_back(store: Path, home: PiHome) -> None:
    session = home.native("a")
    assert "stated: lineage of session" in succeed(store, "lineage", "label", session, "tide tables").out
    assert succeed(store, "lineage", "sessions", "tide").out.count("tide tables") == 1
    succeed(store, "lineage", "label", "--undo", session, "tide tables")
    assert rows(store, "SELECT * FROM labels WHERE label_type = 'lineage'") == []
    missing = objstore(store, "lineage", "label", "--undo", session, "tide tables")
    assert missing.code == 3 and "was not stated" in missing.err
    succeed(store, "lineage", "label", "--type", "project", home.path("b", "orchard"), "fruit")
    assert rows(store, "SELECT target_type FROM labels WHERE value = 'fruit'") == [
        {"target_type": "observation"}
    ]


def test_an_alias(store: Path) -> None:
    succeed(store, "lineage", "alias", "--note", "renamed", "/w/before", "/w/after")
    query = "SELECT alias_type, from_value, to_value, notes, confidence FROM aliases"
    assert rows(store, query) == [
        {
            "alias_type": "path",
            "confidence": "manual",
            "from_value": "/w/before",
            "notes": "renamed",
            "to_value": "/w/after",
        }
    ]
    succeed(store, "lineage", "alias", "--undo", "--note", "renamed", "/w/before", "/w/after")
    assert rows(store, query) == []


@pytest.mark.parametrize(
    ("word", "said"), [("continuation", "continuation"), ("fork", "fork"), ("context-jump", "context_jump")]
)
def test_a_connection_made_and_unmade(store: Path, home: PiHome, word: str, said: str) -> None:
    source, target = home.path("a"), home.path("b", "orchard")
    before = derived(store)
    succeed(store, "lineage", "classify", source, target, word)
    assert relation(store, source, target) == said
    assert len(rows(store, "SELECT id FROM logical_threads")) == (3 if said == "context_jump" else 2)
    succeed(store, "lineage", "classify", "--undo", source, target, word)
    assert derived(store) == before


def test_a_judgement_of_what_a_manifest_says(store: Path, home: PiHome) -> None:
    source, target = home.path("a"), home.path("b", "orchard")
    home.manifest(home.moved(source, target, "garden", "orchard"))
    succeed(store, "lineage", "import-sidecars", home=home.home)
    before = derived(store)
    assert relation(store, source, target) == "continuation"
    succeed(store, "lineage", "classify", source, target, "context-jump")
    assert relation(store, source, target) == "context_jump"
    assert rows(store, "SELECT mark_type FROM observation_marks") == []
    succeed(store, "lineage", "classify", "--undo", source, target, "context-jump")
    assert derived(store) == before


def test_what_cannot_be_judged(store: Path, home: PiHome) -> None:
    nothing = objstore(store, "lineage", "classify", home.path("a"), home.path("b", "orchard"), "unrelated")
    assert nothing.code == 2 and "nothing connects" in nothing.err
    assert objstore(store, "lineage", "classify", "zzz", "unrelated").code == 3
    assert objstore(store, "lineage", "classify", "0000", "unrelated").code == 2
    succeed(store, "lineage", "classify", home.native("a"), "worth keeping")
    assert rows(store, "SELECT target_type, classification FROM classifications") == [
        {"classification": "worth keeping", "target_type": "session"}
    ]


def test_marks(store: Path, home: PiHome) -> None:
    file = home.path("a")
    succeed(store, "lineage", "mark", "--reason", "the old way", file, "archived")
    (mark,) = rows(store, "SELECT mark_type, reason, confidence FROM observation_marks")
    assert mark == {"confidence": "manual", "mark_type": "archived", "reason": "the old way"}
    (target,) = (
        json.loads(line)
        for line in succeed(store, "lineage", "resume", "--json", "0000000a").out.splitlines()
    )
    assert (target["status"], target["recommended"]["path"]) == ("recoverable-only", str(file))
    succeed(store, "lineage", "mark", "--undo", file, "archived")
    (target,) = (
        json.loads(line)
        for line in succeed(store, "lineage", "resume", "--json", "0000000a").out.splitlines()
    )
    assert target["status"] == "deterministic"
    assert objstore(store, "lineage", "mark", file, "sparkling").code == 2
    assert file.exists()


def test_a_conflict_is_cleared(store: Path, home: PiHome) -> None:
    """R30: 22 turns, written back with 5: both stay, and a person clears the conflict."""
    home.write("a", home.entries("d", 5))
    succeed(store, "import", home=home.home)
    listed = succeed(store, "lineage", "sessions", "--json", "0000000a").json
    assert (listed["conflicts"], listed["sources"]) == (1, 2)
    (target,) = (
        json.loads(line)
        for line in succeed(store, "lineage", "resume", "--json", "0000000a").out.splitlines()
    )
    assert target["status"] == "deterministic"
    counts = rows(
        store, "SELECT json_extract(metadata_json, '$.records') AS n FROM session_observations ORDER BY 1"
    )
    assert [row["n"] for row in counts] == [6, 23, 23, 23]
    succeed(store, "lineage", "mark", "--clear-conflict", home.path("a"))
    assert succeed(store, "lineage", "sessions", "--json", "0000000a").json["conflicts"] == 0
    assert objstore(store, "lineage", "mark", "--clear-conflict", home.path("a")).code == 3
    succeed(store, "import", home=home.home)
    assert succeed(store, "lineage", "sessions", "--json", "0000000a").json["conflicts"] == 0


def test_a_suggestion_counts_only_when_promoted(store: Path, home: PiHome) -> None:
    names = [home.native("a"), home.native("b")]
    before = derived(store)
    added = succeed(store, "lineage", "suggest", "add", "--suggester", "matcher 2.1", "--json", *names).json
    assert added["status"] == "candidate" and derived(store) == before
    again = succeed(store, "lineage", "suggest", "add", "--suggester", "matcher 2.1", "--json", *names).json
    assert again == {**added, "facts": []}
    assert "advice only" in succeed(store, "lineage", "why", *names).out
    succeed(store, "lineage", "suggest", "reject", added["id"])
    assert derived(store) == before
    assert succeed(store, "lineage", "suggest", "list", "--json").json["status"] == "rejected"
    succeed(store, "lineage", "suggest", "promote", added["id"])
    (edge,) = rows(store, "SELECT edge_type, confidence, provenance FROM edges")
    assert edge == {"confidence": "manual", "edge_type": "continuation", "provenance": "manual-curation"}
    assert len(rows(store, "SELECT id FROM logical_threads")) == 2
    succeed(store, "lineage", "classify", "--undo", *names, "continuation")
    assert derived(store) == before


def test_a_suggestion_that_was_promoted_and_is_rejected_leaves_nothing(store: Path, home: PiHome) -> None:
    names = [home.native("a"), home.native("b")]
    before = derived(store)
    added = succeed(store, "lineage", "suggest", "add", "--suggester", "m", "--json", *names).json
    succeed(store, "lineage", "suggest", "promote", "--by", "ines", added["id"])
    assert derived(store) != before
    refused = objstore(store, "lineage", "suggest", "reject", added["id"])
    assert (refused.code, "promoted by ines" in refused.err, "--by 'ines'" in refused.err) == (2, True, True)
    assert derived(store) != before
    succeed(store, "lineage", "suggest", "reject", "--by", "ines", added["id"])
    assert derived(store) == before
    assert succeed(store, "lineage", "suggest", "list", "--json").json["status"] == "rejected"
    succeed(store, "lineage", "suggest", "promote", added["id"])
    assert rows(store, "SELECT provenance FROM edges") == [{"provenance": "manual-curation"}]


def test_suggestions_that_cannot_be(store: Path, home: PiHome) -> None:
    names = [home.native("a"), home.native("b")]
    assert objstore(store, "lineage", "suggest", "add", *names).code == 2
    assert objstore(store, "lineage", "suggest", "burn", *names).code == 2
    assert objstore(store, "lineage", "suggest", "promote", "zz").code == 3
    assert objstore(store, "lineage", "suggest", "add", "--suggester", "m", names[0], names[0]).code == 2
    made = succeed(
        store, "lineage", "suggest", "add", "--suggester", "m", "--relation", "sibling", "--json", *names
    ).json
    assert objstore(store, "lineage", "suggest", "promote", made["id"]).code == 2


def test_projects(store: Path) -> None:
    succeed(store, "lineage", "repo", "--path", "/home/ines/garden", "--display", "Garden", "allotment")
    succeed(store, "lineage", "repo", "--remote", "git@example.org:ines/allotment.git", "allotment")
    listed = succeed(store, "lineage", "repo").out
    assert listed == "allotment  /home/ines/garden  https://example.org/ines/allotment\n"
    assert rows(store, "SELECT display_name, confidence FROM repo_identities") == [
        {"confidence": "manual", "display_name": "Garden"}
    ]
    succeed(store, "lineage", "repo", "--undo", "--path", "/home/ines/garden", "allotment")
    assert succeed(store, "lineage", "repo").out == "allotment  https://example.org/ines/allotment\n"
    succeed(store, "lineage", "repo", "--event", "rename", "--from", "a", "--to", "b", "allotment")
    assert rows(store, "SELECT event_type FROM repo_events") == [{"event_type": "rename"}]


def test_facts_and_log(store: Path, home: PiHome) -> None:
    text = succeed(store, "lineage", "facts", "0000000a").out
    assert str(home.path("a").name) in text and "derived" in text and "revision" in text
    assert "says 3" not in text
    first = json.loads(succeed(store, "lineage", "facts", "--json", "0000000a").out.splitlines()[0])
    assert succeed(store, "lineage", "facts", first["id"]).out
    assert objstore(store, "lineage", "facts", "zzz").code == 3
    succeed(store, "lineage", "label", home.native("a"), "x")
    newest, oldest = succeed(store, "lineage", "log").out.splitlines()
    assert "round 2" in newest and "1 label" in newest and "round 1" in oldest
    (only,) = succeed(store, "lineage", "log", "--json", "--facts", "-n", "1").out.splitlines()
    assert [one["kind"] for one in json.loads(only)["facts"]] == ["label"]


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM sessions",
        "CREATE TABLE t (a)",
        "ATTACH 'x.db' AS x",
        "PRAGMA writable_schema = 1",
        "SELECT 1; SELECT 2",
        "SELECT * FROM nothing",
    ],
)
def test_sql_only_reads(store: Path, tmp_path: Path, query: str) -> None:
    result = objstore(store, "lineage", "sql", query)
    assert (result.code, result.out) == (2, "")
    assert not (tmp_path / "x.db").exists()


def test_sql_over_events_and_views(store: Path) -> None:
    assert rows(store, "SELECT count(*) AS n FROM events") == [{"n": 69}]  # not none, because nobody asked
    assert len(rows(store, "SELECT s.id FROM sessions s JOIN events e ON e.session_id = s.id")) == 69
    found = succeed(store, "lineage", "sql", "--events", "SELECT count(*) AS n FROM events").out
    assert found.split() == ["n", "69"]
    assert len(rows(store, "SELECT path FROM readable_observations")) == 3


def test_sql_with_steps_lists_and_values_of_each_sort(store: Path, home: PiHome) -> None:
    names = [home.native("a"), home.native("b")]
    succeed(store, "lineage", "classify", *names, "continuation")
    up = """WITH RECURSIVE up (id, steps) AS (
          SELECT target_session_id, 0 FROM edges
          UNION SELECT e.source_session_id, steps + 1 FROM edges e JOIN up ON e.target_session_id = up.id)
        SELECT count(*) AS n, max(steps) AS steps FROM up"""
    assert rows(store, up) == [{"n": 2, "steps": 1}]
    listed = "SELECT DISTINCT j.key AS k FROM session_observations o, json_each(o.metadata_json) j ORDER BY 1"
    assert "records" in [row["k"] for row in rows(store, listed)]
    odd = "SELECT x'00ff' AS b, 1.5 AS f, 9e999 AS i, NULL AS n, 1 AS a, 2 AS a, 3 AS a"
    assert rows(store, odd) == [{"b": "00ff", "f": 1.5, "i": "inf", "n": None, "a": 1, "a:1": 2, "a:2": 3}]
    assert succeed(store, "lineage", "sql", "SELECT x'00ff' AS b").out == "b\n00ff\n"


@pytest.mark.parametrize(
    "query",
    [
        "",
        "-- nothing",
        "SELECT * FROM fact",
        "SELECT count(*) FROM token",
        "SELECT (SELECT count(*) FROM state)",
        "SELECT * FROM pragma_table_info('sessions')",
        "WITH x AS (SELECT * FROM node) SELECT * FROM x",
    ],
)
def test_sql_has_nothing_that_an_export_has_not(store: Path, query: str) -> None:
    result = objstore(store, "lineage", "sql", query)
    assert (result.code, result.out) == (2, "")


def test_a_file_is_not_judged_against_itself(store: Path, home: PiHome) -> None:
    before = derived(store)
    assert objstore(store, "lineage", "classify", home.path("a"), home.native("a"), "fork").code == 2
    assert derived(store) == before
