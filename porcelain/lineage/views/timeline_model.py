"""What timelines show: for each project or conversation when it was active, and what moved from one to another.

Quiet times of more than a week are drawn as one day, so that years fit on a page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct, structs

from porcelain.lineage.facts.projection import Projection, with_columns
from porcelain.lineage.usage.active_time import session_times
from porcelain.lineage.usage.blocks import Block, blocks_of, length, united, without
from porcelain.lineage.usage.measuring import Measured
from porcelain.lineage.views.listing import LABEL_PRIORITY
from porcelain.lineage.views.names import Names

Kind = Literal["project", "session"]
DAY = 24 * 60 * 60 * 1000
#: A longer quiet time is drawn as one day.
QUIET = 7 * DAY


class Line(Struct, frozen=True, kw_only=True):
    """One row: a project, or a conversation. ``blocks`` are when it was active (milliseconds since 1970), ``repeated``
    when an origin of it was, which it repeats; ``first`` and ``last`` are its times, ``sessions`` counts the
    conversations in it. ``places`` as in ``active_time.SessionTime``."""

    id: str
    label: str
    project: str
    provider: str
    first: int
    last: int
    blocks: list[Block]
    native_id: str = ""
    repeated: list[Block] = []
    sessions: int = 1
    places: list[tuple[str, list[Block]]] = []

    @property
    def active(self) -> int:
        """Milliseconds."""
        return length(self.blocks)


class Step(Struct, frozen=True, kw_only=True):
    """Something that led from one row to another, at ``time``."""

    source: str
    target: str
    relation: str
    time: int


class Timeline(Struct, frozen=True, kw_only=True):
    """A timeline made from ``fold``. ``untimed`` counts the conversations that state no time."""

    kind: Kind
    fold: str
    lines: list[Line]
    steps: list[Step]
    untimed: int


def make_timeline(
    projection: Projection,
    conversations: Iterable[Measured],
    kind: Kind,
    *,
    priority: Sequence[str] = LABEL_PRIORITY,
    wanted: Callable[[str], bool] = lambda project: True,
) -> Timeline:
    """The timeline of a view; ``wanted`` says of which projects."""
    names = Names(projection.tables, priority)
    times = {one.session: one for one in session_times(conversations, projection, names.project, names.place)}
    lines, untimed = [], 0
    columns = ("id", "provider", "provider_session_id", "start_timestamp", "end_timestamp")
    for row in with_columns(projection.tables["sessions"], *columns):
        project = names.project(row["id"])
        time = times.get(row["id"])
        places = time.places if time is not None else []
        if not any(map(wanted, {project, *(name for name, _ in places)})):
            continue
        whole = time.whole if time is not None else []
        whole = whole or _life(row["start_timestamp"], row["end_timestamp"])
        if not whole:
            untimed += 1
            continue
        own = time.own if time is not None else whole
        lines.append(
            Line(
                id=row["id"],
                label=names.session(row["id"]),
                project=project or "-",
                provider=row["provider"],
                native_id=row["provider_session_id"] or "",
                first=whole[0][0],
                last=whole[-1][1],
                blocks=own,
                repeated=without(whole, own),
                places=[(name or "-", blocks) for name, blocks in places],
            )
        )
    if kind == "project":
        lines, steps = _by_project(lines, _steps(projection, lines, names.place), wanted)
    else:
        steps = _steps(projection, lines)
        lines = _in_order(lines)
    return Timeline(kind=kind, fold=projection.fold, lines=lines, steps=steps, untimed=untimed)


def _in_order(lines: list[Line]) -> list[Line]:
    """Conversations beside those of the same project, the project and the conversation that began first at the top."""
    begun: dict[str, int] = {}
    for line in lines:
        begun[line.project] = min(begun.get(line.project, line.first), line.first)
    return sorted(lines, key=lambda line: (begun[line.project], line.project, line.first, line.id))


def _by_project(
    lines: list[Line], steps: list[Step], wanted: Callable[[str], bool]
) -> tuple[list[Line], list[Step]]:
    of_project: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        for project, blocks in line.places or [(line.project, line.blocks)]:
            if not wanted(project):
                continue
            part = line
            if len(line.places) > 1:
                part = structs.replace(line, blocks=blocks, first=blocks[0][0], last=blocks[-1][1])
            of_project[project].append(part)
    found = [
        Line(
            id=project,
            label=project,
            project=project,
            provider=", ".join(sorted({line.provider for line in members})),
            first=min(line.first for line in members),
            last=max(line.last for line in members),
            blocks=united(block for line in members for block in line.blocks),
            sessions=len(members),
        )
        for project, members in of_project.items()
    ]
    between = {one for one in steps if one.source in of_project and one.target in of_project}
    order = sorted(between, key=lambda one: (one.time, one.source, one.target, one.relation))
    return sorted(found, key=lambda line: (line.first, line.id)), order


def _steps(
    projection: Projection, lines: Iterable[Line], place_of: Callable[[str], str | None] | None = None
) -> list[Step]:
    """The relations between two rows, each at the time of its event, else when the later one begins on its own: between
    conversations, or with ``place_of`` between the projects that their files stand in."""
    times = {
        row["id"]: row["timestamp"] for row in with_columns(projection.tables["edges"], "id", "timestamp")
    }
    shown = {line.id: line for line in lines}
    found = set()
    columns = ("source_session_id", "target_session_id", "relation", "edge_id", "metadata_json")
    for row in with_columns(projection.tables["thread_edges"], *columns):
        source, target = row["source_session_id"], row["target_session_id"]
        if source not in shown or target not in shown:
            continue
        if row["relation"] not in ("continuation", "fork", "context_jump"):
            continue
        stated = times.get(row["edge_id"] or "")
        own = shown[target].blocks
        if place_of is not None:
            ends = [row["metadata_json"].get(f"{end}_observation_id") for end in ("source", "target")]
            places = [place_of(end) if end is not None else None for end in ends]
            source, target = places[0] or shown[source].project, places[1] or shown[target].project
            own = next(
                (blocks for name, blocks in shown[row["target_session_id"]].places if name == target), own
            )
        if source == target:
            continue
        time = milliseconds(stated) if stated else own[0][0] if own else shown[row["target_session_id"]].first
        found.add(Step(source=source, target=target, relation=row["relation"], time=time))
    return sorted(found, key=lambda one: (one.time, one.source, one.target, one.relation))


def _life(first: str | None, last: str | None) -> list[Block]:
    return blocks_of({milliseconds(time) for time in (first, last) if time})


def milliseconds(time: str) -> int:
    """``time`` (RFC 3339) in milliseconds since 1970."""
    return round(datetime.fromisoformat(time).timestamp() * 1000)


def day_of(time: int) -> str:
    """The day (UTC) of a time in milliseconds since 1970."""
    return time_of(time)[:10]


def time_of(time: int) -> str:
    """A time in milliseconds since 1970 as text."""
    return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time % 1000:03}Z"


class Axis:
    """Where times lie between 0 and ``length``, with long quiet times drawn short. ``gaps`` are those, from and to."""

    def __init__(self, lines: Iterable[Line], pixels: float) -> None:
        busy = united(block for line in lines for block in (*line.blocks, *line.repeated))
        pieces: list[Block] = []
        self.gaps: list[Block] = []
        for start, end in busy:
            if pieces and start - pieces[-1][1] <= QUIET:
                pieces[-1] = (pieces[-1][0], end)
            else:
                if pieces:
                    self.gaps.append((pieces[-1][1], start))
                pieces.append((start, end))
        self.pieces = pieces
        shown = length(pieces) + DAY * len(self.gaps)
        self._scale = pixels / max(shown, 1)
        self._at: list[float] = []
        at = 0.0
        for start, end in pieces:
            self._at.append(at)
            at += end - start + DAY

    def x(self, time: int) -> float:
        """The place of ``time``."""
        for number in range(len(self.pieces) - 1, -1, -1):
            start, end = self.pieces[number]
            if time >= start:
                beyond = 0.0
                if time > end and number + 1 < len(self.pieces):
                    beyond = DAY * (time - end) / (self.pieces[number + 1][0] - end)
                return (self._at[number] + min(time, end) - start + beyond) * self._scale
        return 0.0
