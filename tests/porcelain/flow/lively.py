"""Conversations as agents have them, landed a few records at a time, with some of the records late."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from porcelain.flow.assembly.entries import Landed
from porcelain.providers.records import Changes, Record
from tests.porcelain.flow.sample import asked, came, landed, result, said, text, use

#: A record, the stream, kind and batch of its file.
Event = tuple[Record, Any, str, Any]


def _main(record: Record, stream: str = "main") -> Event:
    return record, stream, "transcript", UNSET


def talk(draw: st.DrawFn, number: int, second: float) -> list[Event]:
    """One talk and what it starts."""
    run, tool, kid, flow = f"run{number}", f"t{number}", f"kid{number}", f"wf{number}"
    begins = draw(st.sampled_from(["external", "external", "later", "notification"]))
    first = asked(f"u{number}", run, second)
    if begins != "external":
        first = replace(first, trigger=UNSET if begins == "later" else "notification", flags=UNSET)
    events = [_main(first)]
    parent = f"u{number}"
    for step in range(draw(st.integers(1, 5))):
        name = f"a{number}.{step}"
        events.append(_main(said(name, f"c{number}.{step // 2}", parent, second + step, text(), flags=[])))
        parent = name
    if begins != "external":
        trigger = draw(st.sampled_from(["external", "notification"]))
        events.append(_main(came(f"v{number}", run, second + 6, trigger=trigger)))
    events.append(_main(said(f"b{number}", f"c{number}.u", parent, second + 7, use(tool, "Agent"))))
    names = draw(
        st.sampled_from(["nothing", "result", "sidecar", "notification", "workflow", "parent", "both"])
    )
    told = {"child": kid} if names in ("result", "both") else {}
    flags = ["auxiliary"] if draw(st.integers(0, 5)) == 0 else UNSET
    for nth in range(draw(st.sampled_from([1, 1, 1, 2, 0]))):
        answer = came(
            f"r{number}.{nth}", run, second + 8, result(tool), parent=f"b{number}", flags=flags, **told
        )
        events.append(_main(replace(answer, batch=flow) if names == "workflow" else answer))
    if names != "nothing":
        events += _child(draw, number, second, names, flags)
    if draw(st.integers(0, 3)) == 0:
        back = draw(st.sampled_from([f"u{number}", f"u{number + 1}", "gone"]))
        events.append(
            _main(Record(id=f"x{number}", from_="runtime", flags=["context_reset"], continues=back))
        )
        events.append(_main(came(f"s{number}", f"sum{number}", second + 9, flags=["reset_summary"])))
    if draw(st.integers(0, 3)) == 0:
        events.append(
            (Record(id=tool, tool=tool, changes=Changes(added=number, removed=1)), "main", "changes", UNSET)
        )
    events.append(_main(Record(label=f"title {number}", from_="runtime")))
    return events


def _child(draw: st.DrawFn, number: int, second: float, names: str, flags: Any) -> list[Event]:
    tool, kid, flow = f"t{number}", f"kid{number}", f"wf{number}"
    own = draw(st.sampled_from([f"k{number}.tool", tool]))
    events = [
        _main(came(f"k{number}", f"{kid}-run", second + draw(st.sampled_from([2, 30, 2000])), text()), kid),
        _main(said(f"l{number}", f"kc{number}", f"k{number}", second + 3, text(), use(own)), kid),
        _main(came(f"m{number}", f"{kid}-run", second + 4, result(own), parent=f"l{number}"), kid),
    ]
    if names in ("sidecar", "both"):
        events.append((Record(child=kid, label="looks", tool=tool, flags=flags), kid, "agent_meta", UNSET))
    if names == "parent":
        parent = draw(st.sampled_from(["main", f"kid{max(0, number - 1)}", f"kid{number + 1}"]))
        events.append((Record(child=kid, started_by=parent, flags=flags), kid, "agent_meta", UNSET))
    if names in ("notification", "both"):
        said_of = {"child": kid} if draw(st.booleans()) else {}
        events.append(
            _main(
                came(f"n{number}", f"note{number}", second + 9, tool=tool, trigger="notification", **said_of)
            )
        )
    if names == "workflow":
        events.append((Record(label="flow", from_="runtime"), UNSET, "workflow_manifest", flow))
        events.append((Record(child=kid, from_="runtime"), UNSET, "journal", flow))
        events.append((Record(child=kid, flags=["child_result"], from_="runtime"), UNSET, "journal", flow))
    return events


@st.composite
def lively(draw: st.DrawFn) -> list[Landed]:
    """Landed files, most of them in order."""
    events: list[Event] = []
    second = 0.0
    for number in range(draw(st.integers(1, 5))):
        second += draw(st.sampled_from([10, 10, 30, 1200]))
        events += talk(draw, number, second)
    late = draw(st.lists(st.tuples(st.integers(0, len(events) - 1), st.integers(1, 60)), max_size=8))
    places = {at: at + by for at, by in late}
    order = sorted(range(len(events)), key=lambda at: (places.get(at, at), at))
    for at in draw(st.lists(st.integers(0, len(events) - 1), max_size=1)):
        order.append(at)  # it comes again
    files: list[list[Event]] = []
    for at in order:
        event = events[at]
        if files and files[-1][0][1:] == event[1:] and draw(st.booleans()):
            files[-1].append(event)
        else:
            files.append([event])
    return [
        landed(seq, [one[0] for one in file], stream=file[0][1], kind=file[0][2], batch=file[0][3])
        for seq, file in enumerate(files, 1)
    ]
