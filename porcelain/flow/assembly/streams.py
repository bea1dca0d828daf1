"""Stage 2, streams: the records of each line of work, what it is to the session, its title and label."""

from __future__ import annotations

from msgspec import Struct

from porcelain.flow.assembly.entries import AUXILIARY, Entry

MAIN = "main"


class Epoch(Struct):
    """A stretch of a stream between context resets: ``size`` entries from ``start`` on. ``boundary`` is the reset that
    opened it; the first epoch has none."""

    id: str
    start: int
    size: int
    boundary: Entry | None


class Stream(Struct):
    """The canonical records of one stream in landed order. ``containers`` has, for each of them, the id of the node
    that its leaves go under; it is filled in with the talks."""

    name: str
    role: str
    label: str
    entries: list[Entry]
    containers: list[str]
    epochs: list[Epoch]


class Session(Struct):
    """What holds for the session as a whole; times are nanoseconds, 0 for none."""

    title: str
    first: int
    last: int


def streams(entries: list[Entry]) -> list[Stream]:
    """All streams in order of name."""
    groups: dict[str, list[Entry]] = {}
    labels: dict[str, str] = {}
    named: dict[str, bool] = {}
    for entry in entries:
        if entry.stream:
            group = groups.get(entry.stream)
            if group is None:
                groups[entry.stream] = [entry]
            else:
                group.append(entry)
        if entry.child:
            auxiliary = entry.flags & AUXILIARY != 0
            named[entry.child] = named.get(entry.child, True) and auxiliary
        if entry.label and entry.kind == "agent_meta":
            for name in (entry.stream, entry.child):
                if name:
                    labels.setdefault(name, entry.label)
    return [
        Stream(
            name,
            MAIN if name == MAIN else "auxiliary" if named.get(name, False) else "child",
            labels.get(name, ""),
            groups[name],
            [],
            [],
        )
        for name in sorted(groups)
    ]


def session(entries: list[Entry]) -> Session:
    """Title (the last label of a record without an id that is neither a sidecar's nor a manifest's) and time range."""
    title = ""
    first = last = 0
    for entry in entries:
        time = entry.time
        if time:
            if time > last:
                last = time
            if time < first or not first:
                first = time
        if entry.label and not entry.id and entry.kind not in ("agent_meta", "workflow_manifest"):
            title = entry.label
    return Session(title, first, last)
