from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porcelain.lineage.adapters.importing import facts_of_conversation, import_run, source_of
from porcelain.lineage.adapters.reports import RunReport, Stated
from porcelain.lineage.facts.identity import observation_id
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.projection import project


def of_kind(facts: list[Fact], kind: str) -> list[Fact]:
    return [item for item in facts if item.kind == kind]


def test_a_conversation_gives_source_session_observations_and_labels(fake: Any) -> None:
    report = fake.conversation(
        "a",
        fake.source("a", cwds=(Stated(value="/home/ines/garden", time="2026-03-01T10:00:00Z"),)),
        fake.source("a/subagents/agent-1", stream="agent-1", cwds=(Stated(value="/home/ines/garden"),)),
    )
    facts = fake.learn({}, report)
    assert [item.kind for item in facts] == ["source", "session", "observation", "label", "observation"]
    source, session, observation, label, _ = facts
    assert [item.revision for item in facts] == [1, 1, 3, 1, 3]
    assert observation.columns["path"] == "-home-ines-garden/a.jsonl"
    assert observation.columns["session_id"] == session.id
    assert observation.columns["source_id"] == source.id == source_of(report, "garden-laptop").id
    assert label.columns["target_id"] == observation.id
    assert label.columns["value"] == "/home/ines/garden"


def test_the_same_report_again_is_no_news(fake: Any) -> None:
    known: dict[str, Fact] = {}
    report = fake.conversation(
        "a",
        fake.source(
            "a",
            pending_bytes=3,
            damage_count=1,
            damage_bytes=9,
            titles=(Stated(value="Beans", time="2026-03-01T10:00:00Z"), Stated(value="Peas", time=None)),
            cwds=(Stated(value="/a", time="2026-03-01T10:00:00Z"), Stated(value="/b")),
            versions=("2.1.0",),
        ),
    )
    assert fake.learn(known, report)
    assert fake.learn(known, report) == []


def test_nothing_of_the_clock_and_no_host_but_in_the_source(fake: Any) -> None:
    here = fake.learn({}, fake.conversation("a"), host="here")
    there = fake.learn({}, fake.conversation("a"), host="there")
    assert here[0].id != there[0].id
    assert here[1] == there[1]


def test_growth_is_a_revision_of_the_same_observation(fake: Any) -> None:
    known: dict[str, Fact] = {}
    fake.learn(known, fake.conversation("a", fake.source("a", 3, versions=("1",))))
    (grown,) = fake.learn(known, fake.conversation("a", fake.source("a", 5, versions=("2",))))
    assert (grown.kind, grown.revision) == ("observation", 5)
    assert grown.columns["metadata"]["versions"] == ["1", "2"]


def test_a_touched_file_is_no_news(fake: Any) -> None:
    known: dict[str, Fact] = {}
    fake.learn(known, fake.conversation("a"))
    touched = fake.source("a", mtime="2026-03-09T00:00:00Z", size=301)
    assert fake.learn(known, fake.conversation("a", touched)) == []


@pytest.mark.parametrize(
    ("state", "changes"),
    [
        ("pending", {"pending_bytes": 12}),
        ("gone", {"state": "gone"}),
        ("damage", {"damage_count": 2, "damage_bytes": 40}),
    ],
)
def test_what_is_wrong_with_a_file_is_evidence_until_it_has_passed(
    fake: Any, state: str, changes: dict[str, Any]
) -> None:
    known: dict[str, Fact] = {}
    fake.learn(known, fake.conversation("a"))
    wrong = fake.conversation("a", fake.source("a", **changes))
    (first,) = fake.learn(known, wrong)
    assert (first.kind, first.columns["data"], first.revision) == ("evidence", {"state": state}, 1)
    (second,) = fake.learn(known, fake.conversation("a"))
    assert (second.id, second.revision, second.tombstone) == (first.id, 2, True)
    assert fake.learn(known, fake.conversation("a")) == []
    (third,) = fake.learn(known, wrong)
    assert (third.id, third.revision, third.columns) == (first.id, 3, first.columns)


def test_presence_follows_the_file(fake: Any) -> None:
    known: dict[str, Fact] = {}
    chain = fake.learn(known, fake.conversation("a"))
    seen = []
    for state in ("gone", "active"):
        chain += fake.learn(known, fake.conversation("a", fake.source("a", state=state)))
        (row,) = project(fake.join(chain)).tables["session_observations"]
        seen.append(row["presence"])
    assert seen == ["absent", "present"]


def test_a_rewritten_file_is_a_new_observation_and_a_conflict_that_stays(fake: Any) -> None:
    known: dict[str, Fact] = {}
    fake.learn(known, fake.conversation("a", fake.source("a", 5)))
    changes = {"differs": fake.digest("other"), "state": "conflict"}
    new = fake.learn(known, fake.conversation("a", fake.source("a", 4, **changes)))
    assert [item.kind for item in new] == ["observation", "evidence"]
    assert new[1].columns["target_id"] == new[0].id
    assert len(of_kind(list(known.values()), "observation")) == 2
    quiet = fake.conversation("a", fake.source("a", 4, differs=fake.digest("other")))
    assert fake.learn(known, quiet) == []


def test_a_file_without_records_waits_and_a_damaged_one_is_replaced_by_its_first_record(fake: Any) -> None:
    known: dict[str, Fact] = {}
    facts = fake.learn(known, fake.conversation("a", fake.source("a", 0)))
    assert [item.kind for item in facts] == ["source", "session"]
    fake.learn(known, fake.conversation("a", fake.source("a", 0, damage_count=1, damage_bytes=7)))
    early = observation_id(facts[0].id, "-home-ines-garden/a.jsonl", None)
    assert known[early].tombstone is not True
    chain = list(known.values())
    chain += fake.learn(known, fake.conversation("a", fake.source("a", 1, damage_count=1, damage_bytes=7)))
    assert known[early].tombstone is True
    tables = project(fake.join(chain)).tables
    (row,) = tables["session_observations"]
    (evidence,) = tables["evidence"]
    assert evidence["target_id"] == row["id"] != early


def test_titles_hold_from_when_they_were_last_given(fake: Any) -> None:
    known: dict[str, Fact] = {}
    titles = [("Beans", 1), ("Peas", 2), ("Beans", 3)]
    report = fake.conversation(
        "a",
        fake.source("a", titles=tuple(Stated(value=v, time=f"2026-03-0{d}T00:00:00Z") for v, d in titles)),
    )
    labels = of_kind(fake.learn(known, report), "label")
    assert {item.columns["value"]: item.columns["valid_from"] for item in labels} == {
        "Beans": "2026-03-03T00:00:00.000Z",
        "Peas": "2026-03-02T00:00:00.000Z",
    }
    assert [item.revision for item in labels] == [1, 1]


def test_odd_names_are_made_text(fake: Any) -> None:
    source = fake.source("a", path=f"{fake.root}/gar\udce9den\x00.jsonl", titles=(Stated(value="x" * 5000),))
    facts = fake.learn({}, fake.conversation("a", source))
    assert of_kind(facts, "observation")[0].columns["path"] == "gar\\udce9den\ufffd.jsonl"
    assert len(of_kind(facts, "label")[0].columns["value"]) == 1024


def test_a_file_elsewhere_keeps_its_whole_path(fake: Any) -> None:
    facts = fake.learn({}, fake.conversation("a", fake.source("a", path="/mnt/old/a.jsonl")))
    assert of_kind(facts, "observation")[0].columns["path"] == "/mnt/old/a.jsonl"
    (row,) = project(fake.join(facts)).tables["session_observations"]
    assert row["path"] == "/mnt/old/a.jsonl"


def test_a_run_is_a_fact_once(fake: Any) -> None:
    known: dict[str, Fact] = {}
    source = fake.learn(known, fake.conversation("a"))[0]
    run = RunReport(
        source=source.id,
        started_at="2026-03-02T08:00:00+01:00",
        finished_at="2026-03-02T07:00:09Z",
        tool="objstore import",
        status="done",
        stats={"records": 3},
    )
    (made,) = import_run(run, known)
    assert made.columns["started_at"] == "2026-03-02T07:00:00.000Z"
    known[made.id] = made
    assert import_run(run, known) == []
    view = project(fake.join(known.values()))
    assert view.tables["sources"][0]["last_observed_at"] == "2026-03-02T07:00:09.000Z"
    assert view.fold == project(fake.join(set_without(known, made))).fold


def set_without(known: dict[str, Fact], item: Fact) -> list[Fact]:
    return [one for one in known.values() if one is not item]


moments = st.integers(0, 30).map(lambda minute: f"2026-03-01T10:{minute:02}:00.000Z")
stated = st.builds(lambda value, time: Stated(value=value, time=time), st.sampled_from("abc"), moments)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), stated), max_size=12), st.data())
def test_reading_a_file_in_parts_ends_where_reading_it_at_once_does(
    fake: Any, lines: list[tuple[bool, Stated]], data: st.DataObject
) -> None:
    def report(start: int, end: int) -> Any:
        new = lines[start:end]
        return fake.conversation(
            "a",
            fake.source(
                "a",
                end + 1,
                titles=tuple(one for is_title, one in new if is_title),
                cwds=tuple(one for is_title, one in new if not is_title),
                versions=tuple(one.value for _, one in new),
            ),
        )

    # the records of one file come in the order of their times, as an agent that appends writes them
    lines.sort(key=lambda line: line[1].time or "")
    cuts = sorted(data.draw(st.sets(st.integers(0, len(lines)))) | {0, len(lines)})
    in_parts: dict[str, Fact] = {}
    for start, end in pairwise(cuts):
        fake.learn(in_parts, report(start, end))
    fake.learn(in_parts, report(len(lines), len(lines)))
    at_once: dict[str, Fact] = {}
    fake.learn(at_once, report(0, len(lines)))
    assert said(in_parts) == said(at_once)


def said(known: dict[str, Fact]) -> dict[str, object]:
    return {name: (item.columns, item.tombstone) for name, item in known.items()}


def test_only_get_is_asked_of_what_is_known(fake: Any) -> None:
    class Nothing:
        def get(self, fact_id: str, /) -> Fact | None:
            return None

    assert facts_of_conversation(fake.conversation("a"), "garden-laptop", Nothing())
