"""Stage 7, talks and runs: what was asked, and each turn of the runtime that worked on it.

A record belongs to a run by its own word or by its nearest ancestor's. A run that something outside triggered opens a
talk; one that the runtime started itself goes on with the talk it is in. A child stream is one talk.
"""

from __future__ import annotations

from msgspec import Struct

from porcelain.flow.assembly.entries import Entry
from porcelain.flow.assembly.ids import joined
from porcelain.flow.assembly.streams import MAIN, Stream

#: Ancestors that are asked for a run.
MAX_HOPS = 64


class Run(Struct):
    """A run of a talk; ``first`` is its earliest record."""

    id: str
    first: Entry
    opens: bool


class Talk(Struct):
    """A talk. ``first`` is its earliest record (a child stream's always has one); ``start`` and ``end`` are the times,
    in nanoseconds, of its records that belong to a run, 0 for none."""

    id: str
    stream: str
    epoch: str
    first: Entry
    runs: list[Run]
    start: int
    end: int


class Ancestry:
    """Finds the run of a record through its ancestors, remembering what it found on the way."""

    def __init__(self, by_id: dict[str, Entry]) -> None:
        self._by_id = by_id
        #: Record id -> (run, hops to the record that names it).
        self._known: dict[str, tuple[str, int]] = {}

    def run_of(self, entry: Entry) -> str:
        """The run of ``entry``, empty for none."""
        if entry.run:
            return entry.run
        walked: list[str] = []
        name, run, hops = entry.parent, "", 0
        while name and len(walked) < MAX_HOPS:
            known = self._known.get(name)
            if known is not None:
                run, hops = known
                break
            ancestor = self._by_id.get(name)
            if ancestor is None:
                break
            if ancestor.run:
                run, hops = ancestor.run, 0
                self._known[name] = (run, 0)
                break
            walked.append(name)
            name = ancestor.parent
        else:
            if name:
                return ""
        for name in reversed(walked):
            hops += 1
            self._known[name] = (run, hops)
        return run if run and hops < MAX_HOPS else ""


def talks(stream: Stream, ancestry: Ancestry) -> list[Talk]:
    """The talks of a stream, in landed order. Fills ``stream.containers``."""
    entries = stream.entries
    runs = [entry.run or ancestry.run_of(entry) for entry in entries]
    external: set[str] = set()
    stated: set[str] = set()
    for entry, run in zip(entries, runs, strict=True):
        if entry.trigger and run:
            stated.add(run)
            if entry.trigger == "external":
                external.add(run)
    found: list[Talk] = []
    current: Talk | None = None
    if stream.name != MAIN:
        current = Talk(joined("talk", stream.name), stream.name, stream.epochs[0].id, entries[0], [], 0, 0)
        found.append(current)
    by_run: dict[str, tuple[Run, Talk]] = {}
    containers = stream.containers
    for epoch in stream.epochs:
        for index in range(epoch.start, epoch.start + epoch.size):
            run = runs[index]
            if not run:
                containers.append(current.id if current is not None else epoch.id)
                continue
            entry = entries[index]
            known = by_run.get(run)
            if known is None:
                if current is None or (stream.name == MAIN and (run in external or run not in stated)):
                    current = Talk(joined("talk", stream.name, run), stream.name, epoch.id, entry, [], 0, 0)
                    found.append(current)
                known = (Run(joined("run", current.id, run), entry, not current.runs), current)
                current.runs.append(known[0])
                by_run[run] = known
            containers.append(known[0].id)
            talk, time = known[1], entry.time
            if time:
                if time > talk.end:
                    talk.end = time
                if time < talk.start or not talk.start:
                    talk.start = time
    return found
