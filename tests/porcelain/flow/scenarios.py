"""Runs the scenario language of the public tool: a session told in steps becomes landed files and rounds.

Only what decides structure is made: ids, times, marks and part kinds, not the text. Workspace changes are not landed.
"""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec import UNSET, Raw, Struct, field
from msgspec.structs import replace

from porcelain.flow.assembly import Written, rounds
from porcelain.flow.assembly.entries import Landed, from_sd
from porcelain.flow.chain.folding import Fold
from porcelain.flow.formats.sd import SdHeader, SdPart, SdRecord, SdUsage, write_sd
from porcelain.flow.formats.sd_reading import read_sd
from porcelain.flow.formats.times import instant, rfc3339nano

Step = dict[str, Any]
BASE = instant("2026-01-01T00:00:00Z") or 0
_UNITS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_FRAGMENT = 100 * 10**6


def duration(text: str) -> int:
    """Nanoseconds of ``900ms``, ``1.5s``, ``10m``."""
    unit = next(unit for unit in ("ms", "s", "m", "h") if text.endswith(unit))
    whole, _, fraction = text.removesuffix(unit).partition(".")
    scale = _UNITS[unit]
    return int(whole) * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)


def stream_of(agent: str) -> str:
    """The stream of a child, by its name in the scenario."""
    return "a" + hashlib.sha256(f"agent:{agent}".encode()).hexdigest()[:16]


class Checkpoint(Struct):
    """The session as it stood at a checkpoint: the fold, the round written there, if any, and the landed files."""

    fold: Fold
    written: Written | None
    files: int


class Clock(Struct):
    """The time of the last record, and the pause before the next."""

    interval: int
    now: int = BASE
    started: bool = False

    def step(self, after: str | None) -> int:
        if self.started:
            self.now += duration(after) if after else self.interval
        self.started = True
        return self.now


class Line(Struct):
    """One stream of the session while it is told; the first ``landed`` rows have landed. ``prefix`` keeps the ids of a
    child's steps apart."""

    name: str
    prefix: str
    clock: Clock
    rows: list[SdRecord] = field(default_factory=list)
    landed: int = 0
    last: str = ""
    cycle: str = ""

    def add(self, name: str, time: int, *parts: SdPart, lost: bool = False, **marks: Any) -> None:
        record = SdRecord(
            1,
            0,
            "",
            1,
            id=name,
            parent=self.last or UNSET,
            time=rfc3339nano(time),
            parts=list(parts) or UNSET,
            **marks,
        )
        self.last = name
        self.clock.now = time
        if not lost:
            self.rows.append(record)


class Session(Struct):
    """A session under way: streams, sidecars and journals that are not landed yet, and what is."""

    name: str
    interval: int
    fold: Fold = field(default_factory=Fold)
    landed: list[Landed] = field(default_factory=list)
    children: list[Line] = field(default_factory=list)
    metas: list[tuple[str, SdRecord]] = field(default_factory=list)
    runs: list[tuple[str, str, list[SdRecord]]] = field(default_factory=list)


def run(scenario: Step) -> tuple[dict[str, Checkpoint], dict[str, str]]:
    """Tell a scenario. Returns its checkpoints (the end is ``final``) and the streams of its agents by name."""
    session = Session(scenario.get("session", "scenario"), duration(scenario.get("interval", "1s")))
    main = Line("main", "", Clock(session.interval))
    if "title" in scenario:
        main.rows.append(SdRecord(1, 0, "", 1, label=scenario["title"], from_="runtime"))
    agents: dict[str, str] = {}
    found: dict[str, Checkpoint] = {}
    for number, step in enumerate(scenario["steps"], 1):
        _tell(session, main, number, step, agents)
        if "checkpoint" in step:
            found[step["checkpoint"]] = _land(session, main)
    found["final"] = _land(session, main)
    return found, agents


def _tell(session: Session, line: Line, number: int, step: Step, agents: dict[str, str]) -> None:
    name = f"{line.prefix}s{number}"
    if "replay" in step:
        for row in [row for row in line.rows if row.id is not UNSET][-step["replay"] :]:
            line.rows.append(replace(row, run=f"{name}-replay"))
        return
    now = line.clock.step(step.get("after"))
    lost = bool(step.get("lost"))
    if "input" in step or "queued" in step:
        line.cycle = f"{name}-cycle"
        line.add(
            f"{name}-input",
            now,
            SdPart("text", state="available"),
            lost=lost,
            run=line.cycle,
            from_="external",
            trigger="external",
            flags=["external_input"],
        )
    elif "inject" in step:
        line.add(f"{name}-inject", now, SdPart("text"), lost=lost, from_="runtime", flags=["injected"])
    elif "call" in step:
        _call(session, line, name, step["call"], now, lost, agents)
    elif "result" in step:
        wanted = step["result"]
        time = now + (duration(wanted["after"]) - session.interval if "after" in wanted else 0)
        part = SdPart("result", of=wanted["of"])
        line.add(f"{name}-result", time, part, lost=lost, from_="external", run=line.cycle or UNSET)
    elif "error" in step:
        line.add(
            f"{name}-synthetic",
            now,
            SdPart("text"),
            lost=lost,
            call=f"{name}-synthetic-call",
            from_="agent",
            flags=["synthetic"],
        )
    elif "reset" in step:
        before = line.last
        line.add(f"{name}-boundary", now, continues=before, from_="runtime", flags=["context_reset"])
        line.add(
            f"{name}-summary",
            now - 400 * 10**6,
            SdPart("text"),
            run=f"{name}-cycle-compact",
            from_="external",
            flags=["reset_summary"],
        )
        line.clock.now = now
    else:
        raise ValueError(f"step {number} is of no kind known here: {sorted(step)}")


def _call(
    session: Session, line: Line, name: str, call: Step, now: int, lost: bool, agents: dict[str, str]
) -> None:
    tool = call.get("tool") or call.get("agent") or call.get("workflow")
    words = {"tool": "", "agent": "Agent", "workflow": "Workflow"}
    word = next((words[key] for key in words if key in call), "")
    tool_id = (tool or {}).get("id", f"{name}-tool")
    parts = []
    if "thinking" in call:
        parts.append(SdPart("reasoning", state="unavailable"))
    if "text" in call:
        parts.append(SdPart("text"))
    if tool:
        parts.append(SdPart("call", id=tool_id, name=word or tool["name"], data=Raw(b"{}")))
    for index, part in enumerate(parts):
        line.add(
            f"{name}-call-f{index + 1}",
            now + index * _FRAGMENT,
            part,
            lost=lost,
            call=f"{name}-call",
            from_="agent",
            usage=SdUsage(2, 40, 900, 100),
            flags=["finished"] if index == len(parts) - 1 else UNSET,
        )
    if "tool" in call:
        answer = call["tool"].get("result")
        if answer is not None:
            detail = answer if isinstance(answer, dict) else {}
            pause = duration(detail["after"]) if "after" in detail else session.interval
            line.add(
                f"{name}-result",
                line.clock.now + pause,
                SdPart("result", of=tool_id),
                lost=lost or bool(detail.get("lost")),
                run=line.cycle or UNSET,
                from_="external",
            )
    elif "agent" in call:
        _agent(session, line, name, call["agent"], tool_id, lost, agents)
    elif "workflow" in call:
        _workflow(session, line, name, call["workflow"], tool_id, agents)


def _child(session: Session, agent: Step, start: int, agents: dict[str, str]) -> Line:
    """A child stream, told from its prompt to its end."""
    stream = stream_of(agent["name"])
    agents[agent["name"]] = stream
    child = Line(stream, f"{agent['name']}-", Clock(session.interval, start, True), cycle=f"{stream}-cycle")
    child.add(f"{stream}-prompt", start, SdPart("text"), run=child.cycle, from_="external")
    for number, step in enumerate(agent["steps"], 1):
        _tell(session, child, number, step, agents)
    return child


def _agent(
    session: Session, line: Line, name: str, agent: Step, tool_id: str, lost: bool, agents: dict[str, str]
) -> None:
    stream = stream_of(agent["name"])
    cycle = line.cycle or UNSET
    line.add(
        f"{name}-ack",
        line.clock.now + _FRAGMENT,
        SdPart("result", of=tool_id),
        lost=lost,
        run=cycle,
        child=stream,
        from_="external",
        flags=["launch_ack"],
    )
    pause = duration(agent["after"]) if "after" in agent else session.interval
    child = _child(session, agent, line.clock.now + pause, agents)
    if not agent.get("lost"):
        session.children.append(child)
        meta = SdRecord(1, 0, "", 1, child=stream, label=agent["name"], from_="runtime")
        session.metas.append((stream, meta))
    if agent.get("notify"):
        line.add(
            f"{name}-notice",
            max(line.clock.now, child.clock.now) + session.interval,
            SdPart("text"),
            lost=lost,
            run=f"{name}-cycle-notification",
            tool=tool_id,
            child=stream,
            from_="external",
            trigger="notification",
        )


def _workflow(
    session: Session, line: Line, name: str, workflow: Step, tool_id: str, agents: dict[str, str]
) -> None:
    batch = f"wf_{workflow['name']}"
    part = SdPart("result", of=tool_id)
    line.add(
        f"{name}-ack",
        line.clock.now + _FRAGMENT,
        part,
        run=line.cycle or UNSET,
        batch=batch,
        from_="external",
    )
    journal = []
    for agent in workflow["children"]:
        child = _child(session, agent, line.clock.now + session.interval, agents)
        session.children.append(child)
        for flags in (UNSET, ["child_result"]):
            journal.append(SdRecord(1, 0, "", 1, child=child.name, batch=batch, from_="runtime", flags=flags))
    session.runs.append(("journal", batch, journal))
    manifest = SdRecord(1, 0, "", 1, batch=batch, label=workflow["name"], from_="runtime")
    session.runs.append(("workflow_manifest", batch, [manifest]))


def _land(session: Session, main: Line) -> Checkpoint:
    """Land what is new, one file a stream and kind, and write the round that follows."""

    def file(kind: str, rows: list[SdRecord], stream: str = "", batch: str = "") -> None:
        if not rows:
            return
        header = SdHeader(
            1,
            "sd/1",
            len(session.landed) + 1,
            "2026-01-01T00:00:00Z",
            kind,
            "mock/1",
            "mock/1",
            f"{session.name}/{stream or batch}",
            session.name,
            stream or UNSET,
            batch or UNSET,
        )
        session.landed.append(from_sd(read_sd(write_sd(header, rows), exact=True)))

    file("transcript", main.rows[main.landed :], "main")
    main.landed = len(main.rows)
    for child in session.children:
        file("transcript", child.rows, child.name)
    for stream, meta in session.metas:
        file("agent_meta", [meta], stream)
    for kind, batch, rows in session.runs:
        file(kind, rows, batch=batch)
    session.children, session.metas, session.runs = [], [], []
    written = list(rounds(session.landed, session.fold, conversation=session.name, session=session.name))
    fold = session.fold
    copy = Fold(
        fold.round, fold.digest, fold.header, dict(fold.nodes), dict(fold.relations), dict(fold.unresolved)
    )
    return Checkpoint(copy, written[-1] if written else None, len(session.landed))
