from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from porcelain.lineage.adapters.importing import import_run
from porcelain.lineage.adapters.reports import RunReport
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import Stored, fact, object_id
from porcelain.lineage.facts.projection import comparable, project


def stored(*facts: Fact) -> list[Stored]:
    return [(object_id(item), item) for item in facts]


def test_times_and_counts_of_a_session_count_copies_once(fake: Any) -> None:
    first = fake.digest("a", 0)
    copy = fake.source("copy", 5, first_record=first, size=512)
    agent = fake.source("a/subagents/agent-1", 2, first_time="2026-03-01T09:00:00Z", stream="agent-1")
    view = fake.view(fake.conversation("a", fake.source("a", 3), copy, agent))
    (row,) = view.tables["sessions"]
    assert (row["event_count"], row["line_count"], row["byte_count"]) == (7, 7, 712)
    assert row["start_timestamp"] == row["first_seen_at"] == "2026-03-01T09:00:00.000Z"
    assert row["end_timestamp"] == row["last_seen_at"] == "2026-03-01T10:04:00.000Z"
    assert row["canonical_key"] == "claude:a"


def test_subagents_that_begin_with_the_same_record_are_counted_each(fake: Any) -> None:
    """Their headers state the same moment, and ids are in no record."""
    first = fake.digest("b", 0)
    agents = [
        fake.source(f"a/subagents/agent-{n}", 2, first_record=first, stream=f"agent-{n}") for n in (1, 2)
    ]
    (row,) = fake.view(fake.conversation("a", fake.source("a", 3), *agents)).tables["sessions"]
    assert row["event_count"] == 7


def test_a_row_holds_the_whole_path_and_the_object_of_its_fact(fake: Any) -> None:
    facts = fake.learn({}, fake.conversation("a"))
    (row,) = project(stored(*facts)).tables["session_observations"]
    assert row["path"] == f"{fake.root}/-home-ines-garden/a.jsonl"
    assert row["object_id"] == next(object_id(item) for item in facts if item.kind == "observation")
    assert row["presence"] == "present"


def test_confidence_provenance_and_evidence_come_from_the_envelope(fake: Any) -> None:
    facts = fake.learn({}, fake.conversation("a", fake.source("a", state="gone")))
    evidence = next(item for item in facts if item.kind == "evidence")
    judgement = fact(
        "classification",
        {"target_type": "session", "target_id": facts[1].id, "classification": "explicit-continuation"},
        provenance="ines",
        confidence="manual",
        evidence=[evidence.id],
    )
    (row,) = project(stored(*facts, judgement)).tables["classifications"]
    assert (row["confidence"], row["source"], row["evidence_id"]) == ("manual", "ines", evidence.id)
    assert row["metadata_json"] == {}


def test_what_refers_to_nothing_is_emptied_or_left_out_and_named(fake: Any) -> None:
    facts = fake.learn({}, fake.conversation("a", fake.source("a", state="gone")))
    kept = [item for item in facts if item.kind in ("observation", "evidence")]
    orphan = facts[0].id
    run = fact(
        "import_run",
        {"source_id": orphan, "started_at": "2026-03-01T10:00:00.000Z", "tool": "t", "status": "done"},
        provenance="t",
        confidence="authoritative",
    )
    identity = "repo_identity_" + "5" * 32
    seen = fact("repo_observation", {"repo_identity_id": identity}, provenance="t", confidence="low")
    view = project(stored(*kept, run, seen))
    assert view.tables["import_runs"] == view.tables["repo_observations"] == []
    assert view.tables["session_observations"][0]["source_id"] is None
    assert view.tables["session_observations"][0]["path"] == "-home-ines-garden/a.jsonl"
    assert {(one.table, one.column, one.left_out) for one in view.dangling} == {
        ("import_runs", "source_id", True),
        ("repo_observations", "repo_identity_id", True),
        ("session_observations", "session_id", False),
        ("session_observations", "source_id", False),
        ("evidence", "source_id", False),
    }


def test_a_row_left_out_takes_with_it_what_needs_it() -> None:
    thread = fact("thread", {"root_session_id": "session_" + "1" * 32}, provenance="r", confidence="low")
    target = fact(
        "resume_target", {"thread_id": thread.id, "status": "no-target"}, provenance="r", confidence="low"
    )
    view = project(stored(target, thread))
    assert view.tables["logical_threads"] == view.tables["thread_resume_targets"] == []
    assert len(view.dangling) == 2


def test_what_two_stores_saw_at_different_times_compares_equal(fake: Any) -> None:
    views = []
    for hour in (8, 9):
        known: dict[str, Fact] = {}
        source = fake.learn(known, fake.conversation("a"))[0]
        run = RunReport(source=source.id, started_at=f"2026-03-02T0{hour}:00:00Z", tool="t", status="done")
        views.append(project(fake.join([*known.values(), *import_run(run, known)])))
    assert views[0].tables["sources"] != views[1].tables["sources"]
    assert comparable(views[0]) == comparable(views[1])
    assert views[0].tables["import_runs"]


@settings(max_examples=60)
@given(st.data())
def test_the_order_of_facts_and_chains_makes_no_difference(fake: Any, data: st.DataObject) -> None:
    reports = [
        fake.conversation(
            name, fake.source(name, data.draw(st.integers(0, 4)), pending_bytes=data.draw(st.integers(0, 1)))
        )
        for name in data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=6))
    ]
    half = len(reports) // 2
    # two stores that do not know of one another, each importing what it sees
    chains = [fake.learn({}, *reports[half:]), fake.learn({}, *reports[:half])]
    expected = project(fake.join(*chains))
    shuffled = data.draw(st.permutations([item for chain in chains for item in chain]))
    found = project(data.draw(st.permutations(fake.join(shuffled))))
    assert found == expected
    assert project(fake.join(*chains, *chains)) == expected
