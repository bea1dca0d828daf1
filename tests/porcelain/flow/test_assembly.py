from __future__ import annotations

from hypothesis import given
from msgspec import UNSET

from porcelain.flow.assembly import Assembled
from porcelain.flow.assembly.dialects import DIALECTS
from porcelain.flow.assembly.entries import Landed
from porcelain.flow.formats.sf import Ref
from porcelain.providers.records import Changes, Part, Record
from tests.porcelain.flow.sample import (
    SESSION,
    asked,
    at,
    attrs,
    build,
    came,
    conversation,
    landed,
    nodes,
    relations,
    result,
    said,
    sessions,
    text,
    unresolved,
    use,
)


def kinds(assembled: Assembled) -> dict[str, str]:
    return {node.id: node.kind for node in assembled.nodes}


def parent(assembled: Assembled, name: str) -> object:
    return nodes(assembled)[name].parent


def test_a_whole_conversation() -> None:
    found = build(*conversation())
    assert kinds(found) == {
        "ack/1/7": "agent.launch_ack",
        "boundary/4/3": "epoch.boundary",
        "call/call-1": "llm.call",
        "call/call-2": "llm.call",
        "call/call-3": "llm.call",
        "call/call-4": "llm.call",
        "call/call-kid": "llm.call",
        "epoch/kid/0": "epoch",
        "epoch/main/0": "epoch",
        "epoch/main/b1": "epoch",
        "input/1/2": "message.external",
        "input/4/5": "message.external",
        "msg/1/4:0": "message.assistant",
        "msg/2/2:0": "message.assistant",
        "msg/4/2:0": "message.assistant",
        "notify/4/1": "runtime.notification",
        "output/kid": "agent.output",
        "run/talk_kid/kid-run": "run",
        "run/talk_main_run-1/run-1": "run",
        "run/talk_main_run-1/run-2": "run",
        "run/talk_main_run-3/run-3": "run",
        "run/talk_main_run-4/run-4": "run",
        "segment/at_1_2": "segment",
        "segment/at_4_5": "segment",
        f"session/{SESSION}": "session",
        "stream/kid": "stream",
        "stream/main": "stream",
        "summary/4/4": "epoch.summary",
        "talk/kid": "talk",
        "talk/main/run-1": "talk",
        "talk/main/run-3": "talk",
        "talk/main/run-4": "talk",
        "think/1/3:0": "thinking",
        "tool/tool-1": "tool",
        "tool/tool-2": "agent.call",
        "tool/tool-3": "tool",
    }
    assert {(r.type, r.from_, r.to, r.quality) for r in found.relations} == {
        ("ends_with", "stream/kid", "output/kid", "exact_unique"),
        ("follows", "epoch/main/b1", "epoch/main/0", "exact_unique"),
        ("in_segment", "talk/kid", "segment/at_1_2", "strong_inference"),
        ("in_segment", "talk/main/run-1", "segment/at_1_2", "exact_unique"),
        ("in_segment", "talk/main/run-3", "segment/at_1_2", "exact_unique"),
        ("in_segment", "talk/main/run-4", "segment/at_4_5", "exact_unique"),
        ("reports", "notify/4/1", "stream/kid", "exact_unique"),
        ("starts", "tool/tool-2", "stream/kid", "exact_unique"),
        ("summarizes", "summary/4/4", "boundary/4/3", "exact_unique"),
    }
    assert unresolved(found).keys() == {"unres/tool_result/tool-3"}
    by_id = nodes(found)
    assert attrs(by_id["call/call-1"]) == {
        "fragments": 2,
        "usage": "observed_replayable",
        "usage_at": {"row": 4, "seq": 1},
        "usage_from": "last_fragment_in_line_order",
    }
    assert attrs(by_id["tool/tool-3"])["result_join"] == "unresolved"
    assert attrs(by_id["stream/kid"]) == {
        "label": "look at the <beams> & joists",
        "records": 3,
        "role": "child",
    }
    assert attrs(by_id["epoch/main/b1"])["continues_from"] == "a4"
    assert attrs(by_id["segment/at_1_2"]) == {
        "committable": True,
        "gates_unmet": [],
        "state": "candidate",
        "talks": 2,
    }
    assert attrs(by_id["segment/at_4_5"])["gates_unmet"] == [
        "activity_boundary",
        "no_crossing_open_operation",
        "lateness_watermark",
    ]
    assert found.title == "mend the roof"
    assert (found.session_from, found.session_through) == ("2026-03-01T00:00:01Z", "2026-03-01T01:06:41Z")
    totals = found.totals
    assert (totals.talks, totals.streams, totals.segments, totals.llm_calls) == (4, 2, 2, 5)
    assert (totals.changes, totals.lines_added, totals.lines_removed) == (1, 3, 2)
    assert (totals.subagents, totals.bash_runs, totals.steps) == (1, 1, 19)


def test_a_record_that_comes_again_is_left_out() -> None:
    first = [asked("u1", "run", 1), said("a1", "c1", "u1", 2, use("t1"))]
    again = [
        asked("u1", "another", 9),
        said("a1", "c1", "u1", 9, use("t1")),
        came("r1", "run", 10, result("t1")),
    ]
    once = build(landed(1, first), landed(2, again[2:]))
    twice = build(landed(1, first), landed(2, again))
    assert kinds(once) == kinds(twice)
    assert attrs(nodes(twice)["stream/main"])["records"] == 3


def test_an_unfinished_call_states_no_usage() -> None:
    found = build(landed(1, [asked("u1", "r", 1), said("a1", "c", "u1", 2, text(), flags=["synthetic"])]))
    assert attrs(nodes(found)["call/c"]) == {
        "fragments": 1,
        "stop_reason": "unavailable",
        "usage": "unavailable",
        "usage_from": "last_fragment_in_line_order",
    }
    assert kinds(found)["msg/1/2:0"] == "message.synthetic"


def test_two_results_stay_ambiguous() -> None:
    found = build(
        landed(
            1,
            [
                said("a1", "c", "u", 1, use("t/1")),
                came("r1", "r", 2, result("t/1")),
                came("r2", "r", 3, result("t/1"), result("lost")),
            ],
        )
    )
    tool = nodes(found)["tool/t_1"]
    assert tool.refs == [Ref(1, 1, 0)]
    assert (attrs(tool)["result"], attrs(tool)["result_join"]) == ("unavailable", "exact_ambiguous")
    assert [(u.kind, u.ref, u.reason) for u in found.unresolved] == [
        ("tool_result", "t/1", "several results carry this tool-use id"),
        ("tool_use", "lost", "a result arrived for a request that was never landed"),
    ]


def test_tools_of_servers_and_tools_outside_calls() -> None:
    found = build(
        landed(
            1,
            [
                Record(
                    id="x",
                    run="r",
                    from_="agent",
                    parts=[use("t1", 'a "tool"', server="maps", server_tool="find")],
                ),
                said("a", "c", "x", 1, use("t2")),
            ],
        )
    )
    assert parent(found, "tool/t1") == "run/talk_main_r/r"
    assert parent(found, "tool/t2") == "call/c"
    assert attrs(nodes(found)["tool/t1"]) == {
        "mcp_server": "maps",
        "mcp_tool": "find",
        "name": 'a "tool"',
        "result": "unavailable",
        "result_join": "unresolved",
        "timing": "unavailable",
    }


def test_children_that_are_not_there() -> None:
    launch = [
        said("a1", "c", "u", 1, use("t1", "Agent")),
        came("k1", "r", 2, result("t1"), child="gone"),
        came("n1", "r", 3, text(), child="gone", tool="t1", trigger="notification"),
    ]
    orphan = [came("o1", "kr", 4, text())]
    found = build(landed(1, launch), landed(2, orphan, stream="orphan"))
    assert kinds(found)["tool/t1"] == "tool"
    assert unresolved(found).keys() == {
        "unres/child_stream/gone",
        "unres/notified_child/gone",
        "unres/spawn_of_child/orphan",
    }
    assert "no_crossing_open_operation" in attrs(nodes(found)["segment/at_1_2"])["gates_unmet"]


def test_children_of_a_workflow() -> None:
    launch = [
        said("a1", "c", "u", 1, use("t1", "Workflow")),
        came("k1", "r", 2, result("t1"), batch="wf"),
    ]
    journal = [
        Record(child="kid", from_="runtime"),
        Record(child="kid", from_="runtime", flags=["child_result"]),
        Record(child="late", from_="runtime"),
    ]
    files = [
        landed(1, launch),
        landed(2, [came("p1", "kr", 3, text())], stream="kid"),
        landed(3, journal, stream=UNSET, kind="journal", batch="wf"),
        landed(
            4, [Record(label="tidy up", from_="runtime")], stream=UNSET, kind="workflow_manifest", batch="wf"
        ),
        landed(
            5, [Record(label="tidier", from_="runtime")], stream=UNSET, kind="workflow_manifest", batch="wf"
        ),
    ]
    found = build(*files)
    by_id = nodes(found)
    assert by_id["tool/t1"].kind == "agent.call"
    assert attrs(by_id["tool/t1"])["launched"] == "tidy up"
    assert by_id["tool/t1"].refs == [Ref(1, 1, 0), Ref(1, 2, 0), Ref(4, 1)]
    assert by_id["output/kid"].refs == [Ref(3, 2)]
    assert by_id["output/kid"].parent == "stream/kid"
    assert attrs(by_id["output/kid"]) == {"returned_value": "observed_replayable"}
    start = relations(found)["rel/starts/tool_t1/stream_kid"]
    assert (start.quality, start.via, start.evidence) == ("strong_inference", "run journal", [Ref(3, 1)])
    assert unresolved(found).keys() == {"unres/child_stream/late"}
    no_launch = build(
        landed(1, [came("p1", "kr", 3, text())], stream="kid"),
        landed(2, journal, kind="journal", batch="wf", stream=UNSET),
    )
    assert "unres/spawn_call/wf" in unresolved(no_launch)
    assert "unres/spawn_of_child/kid" not in unresolved(no_launch)


def test_a_child_started_by_a_child_and_a_better_witness() -> None:
    nested = [Record(child="kid", started_by="main", from_="runtime")]
    found = build(
        landed(1, [asked("u1", "r", 1), said("a1", "c", "u1", 2, use("t1", "Task"))]),
        landed(2, [came("p1", "kr", 3, text())], stream="kid"),
        landed(3, nested, stream="kid", kind="agent_meta"),
    )
    assert not any(r.type == "starts" for r in found.relations)
    assert unresolved(found).keys() == {"unres/tool_result/t1"}
    batch = [came("k1", "r", 3, result("t1"), batch="wf")]
    both = build(
        landed(1, [asked("u1", "r", 1), said("a1", "c", "u1", 2, use("t1", "Task")), *batch]),
        landed(2, [came("p1", "kr", 3, text())], stream="kid"),
        landed(3, [Record(child="kid", from_="runtime")], stream=UNSET, kind="journal", batch="wf"),
        landed(4, [Record(child="kid", tool="t1", from_="runtime")], stream="kid", kind="agent_meta"),
    )
    start = relations(both)["rel/starts/tool_t1/stream_kid"]
    assert (start.quality, start.via) == ("exact_unique", "child sidecar")
    assert start.evidence == [Ref(4, 1), Ref(3, 1)]


def test_an_auxiliary_stream_is_no_agent() -> None:
    found = build(
        landed(
            1,
            [
                said("a1", "c", "u", 1, use("t1")),
                came("k1", "r", 2, result("t1"), child="aux", flags=["auxiliary"]),
            ],
        ),
        landed(2, [said("p1", "c2", "x", 3, text())], stream="aux"),
    )
    assert attrs(nodes(found)["stream/aux"])["role"] == "auxiliary"
    assert kinds(found)["tool/t1"] == "tool"
    assert "output/aux" not in nodes(found)
    assert found.totals.subagents == 0


def test_resets_cut_epochs_and_the_first_record_cuts_none() -> None:
    def reset(name: str, second: float, **more: str) -> Record:
        return Record(id=name, from_="runtime", time=at(second), flags=["context_reset"], **more)

    found = build(
        landed(
            1,
            [
                reset("b0", 1, continues="elsewhere"),
                came("s0", "r", 2, text(), flags=["reset_summary"]),
                Record(from_="runtime", time=at(3), flags=["context_reset"]),
            ],
        )
    )
    assert [n.id for n in found.nodes if n.kind == "epoch"] == ["epoch/main/0", "epoch/main/at_1_3"]
    assert attrs(nodes(found)["epoch/main/0"]) == {"records": 2, "reset": "none"}
    assert "rel/summarizes/summary_1_2/boundary_1_1" in relations(found)
    assert unresolved(found).keys() == {"unres/epoch_continuation/elsewhere"}


def test_runs_come_from_ancestors_so_many_hops_away() -> None:
    def chain(length: int) -> Assembled:
        records = [asked("i0", "run", 1)]
        records += [Record(id=f"i{n}", parent=f"i{n - 1}", from_="runtime") for n in range(1, length)]
        records.append(Record(id="last", parent=f"i{length - 1}", from_="runtime", flags=["notice"]))
        return build(landed(1, records))

    assert parent(chain(64), "notice/1/65") == "run/talk_main_run/run"
    assert parent(chain(65), "notice/1/66") == "talk/main/run"
    loop = [
        Record(id="a", parent="b", from_="runtime", flags=["notice"]),
        Record(id="b", parent="a", from_="runtime"),
    ]
    assert parent(build(landed(1, loop)), "notice/1/1") == "epoch/main/0"


def test_what_opens_a_talk() -> None:
    found = build(
        landed(
            1,
            [
                Record(id="x", from_="runtime", flags=["notice"]),
                came("u1", "silent", 1, text()),
                came("n1", "told", 2, text(), trigger="notification"),
                came("n2", "silent", 3, text(), flags=["notice"]),
                Record(id="y", from_="runtime", flags=["command"]),
                came("q1", "queued", 4, text(), trigger="notification"),
                came("q2", "queued", 5, text(), trigger="external"),
            ],
        )
    )
    assert [n.id for n in found.nodes if n.kind == "talk"] == ["talk/main/queued", "talk/main/silent"]
    assert attrs(nodes(found)["talk/main/silent"]) == {"loops": 2, "runs": 2, "trigger": "external"}
    assert attrs(nodes(found)["run/talk_main_silent/told"]) == {"trigger": "notification"}
    assert parent(found, "notice/1/1") == "epoch/main/0"
    assert parent(found, "notice/1/4") == "run/talk_main_silent/silent"
    assert parent(found, "command/1/5") == "talk/main/silent"


def test_steps_of_single_records() -> None:
    def step(*flags: str, **more: str) -> str:
        record = Record(id="x", from_="runtime", flags=list(flags), **more)
        leaf = [n for n in build(landed(1, [record])).nodes if n.id.endswith("/1/1")]
        return leaf[0].kind if leaf else ""

    assert step("external_input", "injected") == "message.external"
    assert step("injected") == "context.injection"
    assert step("launch_ack", trigger="notification") == "agent.launch_ack"
    assert step("notice", trigger="notification") == "runtime.notification"
    assert step("error") == "error.api"
    assert step("turn_duration") == "turn.duration"
    assert step("command") == "control.command"
    assert step("notice") == "control.notice"
    assert step("finished") == ""


def test_a_notification_by_its_call_only() -> None:
    files = conversation()
    found = build(
        *files,
        landed(5, [came("n9", "run-9", 5000, text(), tool="tool-2", trigger="notification")]),
    )
    report = relations(found)["rel/reports/notify_5_1/stream_kid"]
    assert (report.quality, report.via) == ("strong_inference", "the call the notification completes")


def test_idle_time_cuts_segments_and_open_work_crosses() -> None:
    found = build(
        landed(
            1,
            [
                asked("u1", "r1", 0),
                said("a1", "c1", "u1", 10, use("t1")),
                asked("u2", "r2", 610),
                said("a2", "c2", "u2", 620, text()),
                asked("u3", "r3", 1220.001),
                came("late", "r3", 1230, result("t1")),
            ],
        )
    )
    by_id = nodes(found)
    assert attrs(by_id["segment/at_1_1"]) == {
        "committable": False,
        "gates_unmet": ["no_crossing_open_operation"],
        "state": "candidate",
        "talks": 2,
    }
    assert attrs(by_id["segment/at_1_5"])["state"] == "open"


def test_a_window_waits_for_what_may_come_late() -> None:
    """The first talk lasts beyond the third, from which on a window of its own began."""

    def gates(last: float) -> object:
        found = build(
            landed(
                1,
                [
                    asked("u1", "r1", 0),
                    asked("u2", "r2", 5),
                    asked("u3", "r3", 700),
                    came("x1", "r1", 2000, text()),
                    came("x3", "r3", last, text()),
                ],
            )
        )
        return attrs(nodes(found)["segment/at_1_1"])["gates_unmet"]

    assert gates(2600) == ["lateness_watermark"]
    assert gates(2600.001) == []


def test_a_title_is_a_label_of_what_is_no_record_of_the_talk() -> None:
    named = Record(label="mend the roof", from_="runtime")
    assert build(landed(1, [named, asked("u1", "r", 1, label="a label")])).title == "mend the roof"


def test_a_provider_body_takes_no_id_from_a_record() -> None:
    found = build(
        landed(1, [Record(id="u1", from_="runtime")], stream=UNSET, kind="provider_body"),
        landed(2, [asked("u1", "r", 1)]),
    )
    assert nodes(found)["input/2/1"].kind == "message.external"


def test_side_files_count_but_make_no_nodes() -> None:
    change = Record(id="t1", tool="t1", changes=Changes(files=1, added=4, removed=1))
    found = build(
        landed(1, [asked("u1", "r", 1)]),
        landed(2, [change], kind="changes"),
        landed(3, [change], kind="changes"),
    )
    assert (found.totals.changes, found.totals.lines_added) == (1, 4)
    assert attrs(nodes(found)["stream/main"])["records"] == 1


def test_nothing_landed() -> None:
    found = build()
    assert [n.kind for n in found.nodes] == ["session"]
    assert attrs(found.nodes[0]) == {"conversation": SESSION}


def test_a_response_without_text() -> None:
    found = build(landed(1, [said("a", "c", "x", 1, Part(k="media", bytes=4))]))
    assert [n.id for n in found.nodes if n.parent == "call/c"] == []


@given(sessions())
def test_every_structure_holds_together(files: list[Landed]) -> None:
    found = build(*files)
    by_id = nodes(found)
    for group in (found.nodes, found.relations, found.unresolved):
        ids = [frame.id for frame in group]
        assert ids == sorted(set(ids))
    roots = [n for n in found.nodes if n.parent is UNSET]
    assert [n.kind for n in roots] == ["session"]
    for node in found.nodes:
        assert node.parent is UNSET or node.parent in by_id
        seen = {node.id}
        above = node.parent
        while isinstance(above, str):
            assert above not in seen
            seen.add(above)
            above = by_id[above].parent
    for relation in found.relations:
        assert relation.from_ in by_id and relation.to in by_id
        assert relation.evidence
    assert {entry.state for entry in found.unresolved} <= {"open"}
    totals = found.totals
    assert totals.llm_calls == sum(n.kind == "llm.call" for n in found.nodes)
    assert totals.bash_runs == sum(
        n.kind in ("tool", "agent.call") and attrs(n)["name"] == "Bash" for n in found.nodes
    )
    assert totals.subagents == sum(n.kind == "stream" and attrs(n)["role"] == "child" for n in found.nodes)


def test_the_glossary_names_each_word_once() -> None:
    for terms in DIALECTS.values():
        names = [(term.of, term.name) for term in terms]
        assert len(names) == len(set(names))
        assert all(term.where for term in terms if term.native)
