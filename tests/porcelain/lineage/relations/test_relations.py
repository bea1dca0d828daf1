"""The rules: what follows from a manifest, a link, records that are shared, and a person's word."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porcelain.lineage.adapters.reports import Stated
from porcelain.lineage.derived.lineage import derive
from porcelain.lineage.derived.rows import derived_facts
from porcelain.lineage.derived.view import view_of
from porcelain.lineage.facts.kinds import check_fact
from porcelain.lineage.relations.shared_records import Known
from tests.porcelain.lineage.conftest import digest
from tests.porcelain.lineage.world import ROOT, View, World


def ab() -> World:
    return World().session("A").session("B", 40)


def test_a_mode_that_nobody_knows_is_no_move() -> None:
    """Nothing is given up for it: what it was is not known."""
    alone = ab().moved("A", "B", mode="teleport").view()
    assert (alone.relations, alone.marks) == ({"A>B": "unknown"}, {})
    backed = ab().moved("A", "B", mode="teleport").share("A", "B", 30).view()
    assert backed.relations == {"A>B": "continuation"}
    assert all(row["manual_review_required"] for row in backed.tables["observation_marks"])
    assert backed.tables["thread_edges"][0]["confidence"] == "medium"


# -- the table of the design, row by row -----------------------------------------------------------------------------


def test_a_move_is_a_continuation() -> None:
    view = ab().moved("A", "B").view()
    assert view.relations == {"A>B": "continuation"} == view.topology
    assert view.threads == [["A", "B"]]
    assert view.resume == {"A": ("deterministic", ["B"])}
    assert view.marks == {"A": ["superseded"]}
    assert view.roles == {"A": "canonical_path", "B": "canonical_path"}
    mark = view.mark("A", "superseded")
    assert view.names([mark["replacement_observation_id"]]) == ["B"]
    assert (mark["confidence"], mark["manual_review_required"]) == ("authoritative", False)
    assert mark["timestamp"] == "2026-03-02T12:00:00.000Z"


def test_a_source_that_its_replacement_holds_whole_is_a_deletion_candidate() -> None:
    view = ab().moved("A", "B").share("A", "B", 30).view()
    assert view.marks == {"A": ["deletion_candidate", "superseded"]}
    assert view.mark("A", "deletion_candidate")["manual_review_required"] is True


@pytest.mark.parametrize("prefix", [0, 29])
def test_one_that_it_does_not_hold_whole_is_none(prefix: int) -> None:
    assert ab().moved("A", "B").share("A", "B", prefix).view().marks == {"A": ["superseded"]}


def test_nor_is_one_whose_replacement_is_shorter() -> None:
    world = World().session("A", 30).session("B", 20).moved("A", "B").share("A", "B", 20)
    assert world.view().marks == {"A": ["superseded"]}


@pytest.mark.parametrize(
    ("source", "target", "candidate"), [(30, 40, True), (31, 40, False), (30, 29, False), (29, 40, True)]
)
def test_nor_one_that_went_on_since_the_files_were_compared(
    source: int, target: int, candidate: bool
) -> None:
    """An earlier comparison says that all 30 records were in both; what the files have now is what counts."""
    world = World().session("A", source).session("B", target).moved("A", "B")
    world.said(
        "prefix",
        **{
            "from": World.path("A"),
            "to": World.path("B"),
            "shared": 30,
            "from_records": 30,
            "to_records": 40,
        },
    )
    assert world.view().marks == {"A": [*(["deletion_candidate"] if candidate else []), "superseded"]}


@pytest.mark.parametrize("mode", ["branch", "diverge", "copy", "Copy", "fork"])
def test_a_branch_is_a_fork(mode: str) -> None:
    view = ab().moved("A", "B", mode=mode).share("A", "B", 30).view()
    assert view.relations == {"A>B": "fork"} == view.topology
    assert view.resume == {"A": ("branch-choices", ["A", "B"])}
    assert view.marks == {}
    assert view.roles == {"A": "canonical_path", "B": "fork"}


def test_several_children_are_forks_of_the_thread() -> None:
    view = ab().session("C").moved("A", "B").moved("A", "C", at=1).share("A", "B", 30).view()
    assert view.relations == {"A>B": "continuation", "A>C": "continuation"}
    assert view.topology == {"A>B": "fork", "A>C": "fork"}
    assert view.resume == {"A": ("branch-choices", ["B", "C"])}
    assert view.marks == {"A": ["superseded"]}
    assert view.names(view.mark("A", "superseded")["metadata_json"]["replacements"]) == ["B", "C"]


def test_two_moves_to_one_place_are_no_fork() -> None:
    view = ab().moved("A", "B").moved("A", "B", at=5).view()
    assert view.topology == {"A>B": "continuation"}
    assert len(view.tables["edges"]) == 2
    assert view.resume == {"A": ("deterministic", ["B"])}


def test_a_chain() -> None:
    view = ab().session("C").moved("A", "B").moved("B", "C", at=1).view()
    assert view.relations == {"A>B": "continuation", "B>C": "continuation"}
    assert view.threads == [["A", "B", "C"]]
    assert view.resume == {"A": ("deterministic", ["C"])}
    assert view.marks == {"A": ["superseded"], "B": ["superseded"]}


def test_a_cycle_is_reported_and_not_followed() -> None:
    view = ab().moved("A", "B").moved("B", "A", at=1).view()
    assert view.relations == {"A>B": "continuation", "B>A": "continuation"}
    assert view.resume == {"A": ("branch-choices", ["A", "B"])}
    assert view.marks == {}
    (thread,) = view.tables["logical_threads"]
    assert [sorted(view.names(cycle)) for cycle in thread["metadata_json"]["cycles"]] == [["A", "B"]]
    (target,) = view.tables["thread_resume_targets"]
    assert "cycle" in target["reasons_json"]


def test_an_inferred_move_alone_is_unknown() -> None:
    view = ab().moved("A", "B", inferred=True, confidence="low").view()
    assert view.relations == {"A>B": "unknown"}
    assert view.threads == [["A"], ["B"]]
    assert view.resume == {"A": ("deterministic", ["A"]), "B": ("deterministic", ["B"])}
    assert view.marks == {}


def test_an_inferred_move_with_a_common_prefix() -> None:
    view = ab().moved("A", "B", inferred=True).share("A", "B", 30).view()
    assert view.relations == {"A>B": "continuation"}
    assert view.tables["thread_edges"][0]["confidence"] == "medium"
    assert view.resume == {"A": ("deterministic", ["B"])}
    assert view.marks == {"A": ["superseded"]}
    assert view.mark("A", "superseded")["manual_review_required"] is True


def test_an_inferred_move_that_the_records_contradict() -> None:
    view = ab().moved("A", "B", inferred=True).share("A", "B", 0).view()
    assert view.relations == {"A>B": "unrelated"}
    assert view.threads == [["A"], ["B"]]


def test_an_inferred_move_that_a_person_calls_a_continuation() -> None:
    world = ab().moved("A", "B", inferred=True, confidence="low")
    view = world.classified("A", "B", "explicit-continuation").view()
    assert view.relations == {"A>B": "continuation"}
    assert view.tables["thread_edges"][0]["confidence"] == "manual"
    assert view.resume == {"A": ("deterministic", ["B"])}
    assert view.marks == {"A": ["superseded"]}
    assert view.mark("A", "superseded")["manual_review_required"] is True


@pytest.mark.parametrize("native", [None, "id-A"])
def test_a_context_jump_begins_another_thread(native: str | None) -> None:
    """Also where both files carry one native id."""
    world = World().session("A").session("B", 40, native=native).moved("A", "B").share("A", "B", 30)
    view = world.classified("A", "B", "context-jump-new-lineage").view()
    assert view.relations == {"A>B": "context_jump"} == view.topology
    assert view.threads == [["A"], ["B"]]
    assert view.resume == {"A": ("deterministic", ["A"]), "B": ("deterministic", ["B"])}
    assert view.marks == {}
    assert view.roles == {"A": "canonical_path", "B": "context_jump"}
    assert len({row["id"] for row in view.tables["logical_threads"]}) == 2


def test_a_moved_repository() -> None:
    world = ab().moved(
        "A", "B", operationType="repo_move", tool="pi-repo-move", sourceRepo="/w/a", targetRepo="/w/b"
    )
    view = world.view()
    assert view.relations == {"A>B": "continuation"}
    (event,) = view.tables["repo_events"]
    assert (event["event_type"], event["from_path"], event["to_path"]) == ("move", "/w/a", "/w/b")
    assert view.resume == {"A": ("deterministic", ["B"])}
    assert view.marks == {"A": ["superseded"]}


def test_a_replacement_that_is_missing() -> None:
    view = World().session("A").moved("A", "B").view()
    assert view.relations == {"A>B": "continuation"}
    assert view.resume == {"A": ("recoverable-only", ["A"])}
    assert view.marks == {}
    (named,) = [row for row in view.tables["session_observations"] if row["presence"] == "absent"]
    assert view.names([named["id"]]) == ["B"] and named["path"] == World.path("B")


def test_nothing_that_is_missing_is_recommended() -> None:
    gone = World().session("A", gone=True).session("B", gone=True).moved("A", "B").view()
    assert gone.resume == {"A": ("no-target", [])}
    chain = ab().moved("A", "B").moved("B", "C", at=1).view()
    assert chain.resume == {"A": ("recoverable-only", ["B"])}
    assert chain.marks == {"A": ["superseded"]}


def test_a_batch() -> None:
    world = ab().session("C").session("D").moved("A", "B", batchId="b-1").moved("C", "D", at=1, batchId="b-1")
    view = world.view()
    (operation,) = view.tables["batch_operations"]
    assert (operation["operation_id"], operation["counts_json"]) == ("b-1", {"sessions": 2})
    assert operation["timestamp"] == "2026-03-02T12:00:00.000Z"
    assert view.resume == {"A": ("deterministic", ["B"]), "C": ("deterministic", ["D"])}
    assert view.marks == {"A": ["superseded"], "C": ["superseded"]}


# -- the rules in their order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "word", "relation"),
    [
        ("move", "context-jump-new-lineage", "context_jump"),
        ("branch", "context-jump", "context_jump"),
        ("branch", "explicit-continuation", "fork"),
        ("move", "manual-copy-edit-relocation-experiment", "fork"),
        ("move", "inferred-unresolved", "unknown"),
        ("move", "unrelated", "unrelated"),
        ("move", "explicit-continuation", "continuation"),
        ("move", "a remark", "continuation"),
    ],
)
def test_which_rule_wins(mode: str, word: str, relation: str) -> None:
    assert ab().moved("A", "B", mode=mode).classified("A", "B", word).view().relations == {"A>B": relation}


def test_a_classification_is_of_one_event() -> None:
    world = ab().session("C").moved("A", "B").moved("A", "C", at=1)
    world.classified("A", "C", "context-jump", ts="2026-03-02T12:01:00.000Z")
    assert world.view().relations == {"A>B": "continuation", "A>C": "context_jump"}
    other = ab().moved("A", "B").classified("A", "B", "context-jump", ts="2026-03-02T09:00:00.000Z")
    assert other.view().relations == {"A>B": "continuation"}


def test_a_provider_link_is_a_fork() -> None:
    world = World().session("A").session("B", links={"forked_from": (World.path("A"),)})
    view = world.view()
    assert view.relations == {"A>B": "fork"}
    assert view.resume == {"A": ("branch-choices", ["A", "B"])}
    assert view.tables["edges"][0]["confidence"] == "authoritative"


def test_a_link_to_what_is_not_there_names_it() -> None:
    world = World()
    for name in "BCD":
        world.session(name, provider="claude", links={"forked_from": ("id-A",)})
    view = world.view()
    assert len(view.threads) == 1
    assert view.resume[view.threads[0][0]][0] == "branch-choices"
    world.session("A", provider="claude")
    view = world.view()
    assert view.threads == [["A", "B", "C", "D"]]
    assert len(view.tables["sessions"]) == 4
    assert set(view.topology.values()) == {"fork"}


def test_subagents_are_no_way_to_go_on() -> None:
    world = World().session("A", provider="codex")
    for name in "BC":
        world.session(name, provider="codex", links={"parent": ("id-A",)})
    view = world.session("D", provider="codex", links={"parent": ("id-B",)}).view()
    assert view.threads == [["A", "B", "C", "D"]]
    assert view.resume == {"A": ("deterministic", ["A"])}
    assert view.roles == {"A": "canonical_path", "B": "reference", "C": "reference", "D": "reference"}


def test_the_first_statement_of_a_file_is_its_identity_and_the_second_an_origin() -> None:
    """R21: a Codex fork carries its parent's own first line."""
    world = World().session("A", provider="codex")
    view = world.session("B", provider="codex", links={"session": ("id-B", "id-A")}).view()
    assert view.relations == {"A>B": "fork"}
    assert view.tables["edges"][0]["confidence"] == "high"
    both = World().session("A", provider="codex")
    both.session("B", provider="codex", links={"session": ("id-A",), "forked_from": ("id-A",)})
    assert len(both.view().tables["edges"]) == 1


def test_links_that_run_in_a_circle() -> None:
    world = World()
    for name, origin in ("AC", "BA", "CB"):
        world.session(name, provider="codex", links={"base": (f"id-{origin}",)})
    view = world.view()
    assert view.threads == [["A", "B", "C"]]
    assert view.resume == {"A": ("branch-choices", ["A", "B", "C"])}
    assert len(view.tables["logical_threads"][0]["metadata_json"]["cycles"][0]) == 3


def test_a_native_id_in_two_files_joins_them_and_says_no_more() -> None:
    view = World().session("A").session("B", native="id-A").view()
    assert view.relations == {"A>B": "sibling"}
    assert view.threads == [["A", "B"]]
    assert view.resume == {"A": ("branch-choices", ["A", "B"])}
    assert view.marks == {}
    assert len(World().session("A").session("B", native="id-A", provider="codex").view().threads) == 2


def test_an_inferred_move_of_one_native_id() -> None:
    view = World().session("A").session("B", native="id-A").moved("A", "B", inferred=True).view()
    assert view.threads == [["A", "B"]]
    assert view.resume == {"A": ("branch-choices", ["A", "B"])}


def test_a_fork_without_any_link_is_found_by_its_records() -> None:
    view = World().session("A", 50).session("B", 40).share("A", "B", 30).view()
    assert view.relations == {"A>B": "fork"}
    assert view.tables["thread_edges"][0]["confidence"] == "medium"
    (evidence,) = [row for row in view.tables["evidence"] if row["kind"] == "prefix_match"]
    assert evidence["data_json"]["shared"] == 30


def test_a_fork_that_repeats_its_origin_under_other_ids() -> None:
    """R16: the agent says that it is a fork, what both say tells of what; never more than medium."""
    world = World()
    same = (Stated(value="/home/ines/shared"),)
    for name in "ABC":
        world.session(name, provider="opencode", cwds=same, links={"fork": ("1",)} if name == "C" else {})
    ids = world.ids()
    for retold, origin in (({"A": 7, "B": 9}, "B"), ({"A": 7, "B": 7}, "A"), ({"A": 1, "B": 0}, None)):
        evidence = Known({}, {(ids[name], ids["C"]): count for name, count in retold.items()})
        view = View(view_of(world.facts(), evidence), ids)
        assert view.relations == ({f"{origin}>C": "fork"} if origin else {})
        assert len(view.threads) == (2 if origin else 3)
        for row in view.tables["thread_edges"]:
            assert (row["confidence"], row["metadata_json"]["rule"]) == ("medium", "retold-fork")


def test_a_copy_that_goes_on_and_one_that_does_not() -> None:
    longer = World().session("A", 30).session("B", 40, native="id-A").share("A", "B", 30).view()
    assert longer.relations == {"A>B": "continuation"}
    assert longer.resume == {"A": ("deterministic", ["B"])}
    same = World().session("A", 30).session("B", 30, native="id-A").share("A", "B", 30).view()
    assert same.relations == {"A>B": "sibling"}
    assert same.resume == {"A": ("deterministic", ["A"])}
    assert same.roles["B"] == "reference"
    original_gone = World().session("A", 30, gone=True).session("B", 30, native="id-A").share("A", "B", 30)
    assert original_gone.view().resume == {"A": ("deterministic", ["B"])}


def test_a_moved_copy_all_of_whose_texts_name_the_folder() -> None:
    """No record of it is the same object then; ids and times are."""

    def begun(alike: int, *, of: int, target: int) -> View:
        world = World().session("A", of).session("B", target, native="id-A")
        return world.share("A", "B", alike, shared=0, identified=False).view()

    moved = begun(30, of=30, target=40)
    assert moved.relations == {"A>B": "continuation"}
    (edge,) = moved.tables["thread_edges"]
    assert (edge["confidence"], edge["metadata_json"]["rule"]) == ("medium", "prefix-of-moved-copy")
    assert moved.resume == {"A": ("deterministic", ["B"])}
    both_went_on = begun(38, of=40, target=44)
    assert both_went_on.relations == {"A>B": "fork"}
    same = begun(30, of=30, target=30)
    assert (same.relations, same.resume) == ({"A>B": "sibling"}, {"A": ("deterministic", ["A"])})
    for little in (begun(19, of=19, target=40), begun(30, of=60, target=60)):
        assert little.relations == {"A>B": "sibling"}
        assert little.resume == {"A": ("branch-choices", ["A", "B"])}


def test_boilerplate_alone_is_no_evidence() -> None:
    few = World().session("A").session("B").share("A", "B", 19, identified=False)
    assert few.view().relations == {}
    assert len(few.view().threads) == 2


def test_neighbours_in_a_folder_are_shown_and_nothing_follows() -> None:
    same = (Stated(value="/home/ines/shared"),)
    world = World().session("A", cwds=same).session("B", provider="codex", cwds=same)
    world.session("C", provider="codex", cwds=same)
    view = world.view()
    (edge,) = view.tables["edges"]
    assert (edge["confidence"], edge["metadata_json"]["relation"]) == ("low", "sibling")
    assert view.threads == [["A"], ["B"], ["C"]]
    assert all(status == "deterministic" for status, _ in view.resume.values())
    assert view.marks == {} and view.tables["thread_edges"] == []


def test_a_rewritten_file_stands_beside_what_it_was() -> None:
    """R30: what was imported stays, as a reference; the file as it is now is what to go on with."""
    before = World().session("A", 57)
    facts = before.facts()
    after = World().session("A", 5, differs="d" * 64, mtime="2026-04-01T00:00:00.000Z", state="conflict")
    world = World()
    world.others = [fact for _, fact in [*facts, *after.facts()]]
    view = world.view().projection
    assert sorted(row["metadata_json"]["records"] for row in view.tables["session_observations"]) == [5, 57]
    (thread,) = view.tables["logical_threads"]
    assert [row["role"] for row in view.tables["thread_members"] if row["thread_id"] == thread["id"]].count(
        "reference"
    ) == 1
    (target,) = view.tables["thread_resume_targets"]
    assert target["status"] == "deterministic"
    kept = {row["id"]: row for row in view.tables["session_observations"]}
    assert kept[target["recommended_observation_id"]]["metadata_json"]["records"] == 5


def test_a_bucket_name_is_no_identity() -> None:
    """R33: two folders whose names become the same."""
    world = World()
    for name, cwd in (("A", "/a/b-c"), ("B", "/a/b/c")):
        world.session(name, path=f"{World.path('AB')[:-8]}/{name}_{name}.jsonl", cwds=(Stated(value=cwd),))
    view = world.view()
    assert view.tables["edges"] == [] and len(view.threads) == 2
    assert sorted(row["label"] for row in view.tables["logical_threads"]) == ["/a/b-c", "/a/b/c"]


def test_thirty_six_forks_of_one_session() -> None:
    """R15: every fork is an edge from the one that they come from."""
    world = World().session("A", 500)
    for number in range(36):
        world.session(
            f"F{number:02}", 439 + 31, native=f"f{number}", links={"forked_from": (World.path("A"),)}
        )
    view = world.view()
    assert len(view.tables["edges"]) == 36
    assert set(view.relations.values()) == {"fork"}
    assert len(view.threads) == 1 and view.threads[0][0] == "A"


# -- order and doubt -------------------------------------------------------------------------------------------------

NAMES = "ABCDE"
pairs = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] != pair[1])
moves = st.lists(
    st.tuples(pairs, st.sampled_from(["move", "branch"]), st.booleans(), st.integers(0, 3)), max_size=6
)


def build(found: list[tuple[tuple[str, str], str, bool, int]], present: str) -> World:
    world = World()
    for name in present:
        world.session(name, native="id-A" if name == "E" else None)
    for (source, target), mode, inferred, at in found:
        world.moved(source, target, at=at, mode=mode, inferred=inferred)
    return world


@settings(max_examples=40, deadline=None)
@given(moves, st.sets(st.sampled_from(NAMES), min_size=1), st.randoms(use_true_random=False))
def test_no_order_of_facts_changes_a_row(
    found: list[tuple[tuple[str, str], str, bool, int]], present: set[str], order: random.Random
) -> None:
    world = build(found, "".join(sorted(present)))
    assert world.view().tables == world.view(order).tables


@settings(max_examples=40, deadline=None)
@given(moves, st.sets(st.sampled_from(NAMES), min_size=1))
def test_what_holds_of_every_view(
    found: list[tuple[tuple[str, str], str, bool, int]], present: set[str]
) -> None:
    world = build(found, "".join(sorted(present)))
    facts = world.facts()
    for _, one in derived_facts(derive((fact for _, fact in facts), Known({}))):
        check_fact(one)  # derived rows obey the rules of stored ones
    view = world.view()
    members = [name for thread in view.threads for name in thread]
    assert sorted(members) == sorted(set(members)) == sorted(view.names(view._names))
    there = set(present)
    for status, leaves in view.resume.values():
        assert set(leaves) <= there
        assert (status == "deterministic") <= (len(leaves) == 1)
    for name, types in view.marks.items():
        assert name in there and "deletion_candidate" not in types


@settings(max_examples=30, deadline=None)
@given(moves, st.sets(st.sampled_from(NAMES), min_size=1), pairs)
def test_suggestions_change_nothing(
    found: list[tuple[tuple[str, str], str, bool, int]], present: set[str], pair: tuple[str, str]
) -> None:
    from porcelain.lineage.facts.identity import session_id
    from porcelain.lineage.facts.making import fact

    world = build(found, "".join(sorted(present)))
    before = world.view().tables
    world.others.append(
        fact(
            "suggestion",
            {
                "source_session_id": session_id("pi", f"id-{pair[0]}"),
                "target_session_id": session_id("pi", f"id-{pair[1]}"),
                "proposed_relation": "continuation",
                "suggester": "guesser 1",
                "created_at": "2026-03-03T00:00:00.000Z",
            },
            provenance="guesser 1",
            confidence="low",
        )
    )
    after = view_of(world.facts(), Known({})).tables
    for name in ("edges", "logical_threads", "thread_members", "thread_resume_targets", "observation_marks"):
        assert after[name] == before[name]


@pytest.mark.parametrize("word", ["unrelated", "sibling"])
def test_a_persons_word_wins_over_what_records_say(word: str) -> None:
    """Rule 4 before rule 5: a supposed move that a prefix backs, and records that both hold."""
    supposed = ab().moved("A", "B", inferred=True).share("A", "B", 30)
    assert supposed.view().relations == {"A>B": "continuation"}
    assert supposed.classified("A", "B", word).view().relations == {"A>B": word}
    found = World().session("A", 50).session("B", 40).share("A", "B", 30)
    assert found.view().relations == {"A>B": "fork"}
    assert found.classified("A", "B", word).view().relations == {"A>B": word}


@pytest.mark.parametrize("number", range(6))
def test_of_two_that_say_the_same_the_person_is_named(number: int) -> None:
    """Whatever their ids: how sure a jump is, is what the person says."""
    world = ab().moved("A", "B").classified("A", "B", "context-jump", confidence="low", label=f"{number}")
    world.classified("A", "B", "context-jump", confidence="manual", label=f"{number}, by hand")
    (edge,) = world.view().tables["thread_edges"]
    assert (edge["relation"], edge["confidence"]) == ("context_jump", "manual")


def test_what_became_of_a_bucket() -> None:
    """By what its sessions state, never by its name: of one folder, of several, of none that is said, all gone."""

    def status(world: World) -> list[tuple[str, list[str]]]:
        rows = world.view().tables["bucket_statuses"]
        return [(row["status"], row["metadata_json"]["cwds"]) for row in rows]

    path = f"{ROOT}/--home-ines-a-b--/2026_{{}}.jsonl"
    one, other = (Stated(value="/home/ines/a/b"),), (Stated(value="/home/ines/a-b"),)
    first = World().session("A", path=path.format("A"), cwds=one)
    assert status(first) == [("active", ["/home/ines/a/b"])]
    assert status(first.session("B", path=path.format("B"), cwds=other)) == [
        ("shared", ["/home/ines/a-b", "/home/ines/a/b"])
    ]
    assert status(World().session("A", path=path.format("A"), cwds=())) == [("unknown", [])]
    gone = World().session("A", path=path.format("A"), cwds=one, gone=True)
    assert status(gone) == [("gone", ["/home/ines/a/b"])]
    assert status(gone.session("B", path=path.format("B"), cwds=one)) == [("active", ["/home/ines/a/b"])]


@pytest.mark.parametrize("name", list("BCDEFG"))
def test_of_copies_the_longest_counts(name: str) -> None:
    """Whatever their ids: files with the same first record are copies; another one has records of its own."""
    alike = {"native": "id-A", "first_record": digest("A", 0)}
    world = World().session("A", 30).session(name, 40, **alike).session("H", 7, native="id-A")
    (session,) = world.view().tables["sessions"]
    assert (session["event_count"], session["line_count"]) == (47, 47)
