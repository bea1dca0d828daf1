"""Active time: how long somebody or something was at work, from the times that records state.

Times that lie at most half an hour apart belong to one block. A copy of a conversation repeats the times of its origin;
what it repeats is taken off, so that no minute counts twice. Of a project, blocks of several conversations that overlap
count once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from porcelain.lineage.facts.kinds import Confidence
from porcelain.lineage.facts.projection import Projection, with_columns
from porcelain.lineage.usage.blocks import Block, length, united, without
from porcelain.lineage.usage.measuring import Measured

#: Below this share of records with a time, an active time is of low confidence.
_COVERED = 0.5


class SessionTime(Struct, frozen=True, kw_only=True):
    """The active time of one conversation: ``whole`` as its records state it, ``own`` without what an origin of it has
    too. ``coverage`` is the share of its records that state a time. ``places`` are the
    projects that its files stand in, a conversation that was moved goes on in another, with what is their own of it,
    the first first."""

    session: str
    project: str
    whole: list[Block]
    own: list[Block]
    coverage: float
    places: list[tuple[str, list[Block]]]

    @property
    def active(self) -> int:
        """Milliseconds of its own."""
        return length(self.own)

    @property
    def repeated(self) -> int:
        """Milliseconds that were taken off."""
        return length(self.whole) - length(self.own)


class ProjectTime(Struct, frozen=True, kw_only=True):
    """The active time of a project: blocks of all its conversations, united. ``sessions`` counts those with a time."""

    project: str
    blocks: list[Block]
    sessions: int
    confidence: Confidence
    warnings: list[str]

    @property
    def active(self) -> int:
        """Milliseconds."""
        return length(self.blocks)


def session_times(
    conversations: Iterable[Measured],
    projection: Projection,
    project_of: Callable[[str], str],
    place_of: Callable[[str], str | None],
) -> list[SessionTime]:
    """The active time of each conversation of a view, by the id of its session. ``project_of`` names the project of a
    session, ``place_of`` that of an observation, where it names any."""
    sessions = {
        (row["provider"], row["provider_session_id"]): row["id"]
        for row in with_columns(projection.tables["sessions"], "id", "provider", "provider_session_id")
    }
    several = _several(projection)
    members = with_columns(projection.tables["thread_members"], "observation_id", "ordinal")
    order = {row["observation_id"]: row["ordinal"] for row in members} if several else {}
    blocks: dict[str, list[Block]] = defaultdict(list)
    files: dict[str, list[tuple[int, str, list[Block]]]] = defaultdict(list)
    timed: dict[str, int] = defaultdict(int)
    all_records: dict[str, int] = defaultdict(int)
    for one in conversations:
        session = sessions.get((one.provider, one.native_id))
        if session is None:
            continue
        for file in one.activity.files:
            blocks[session] += file.blocks
            if session in several and file.blocks:
                observation = several[session].get(file.src)
                place = place_of(observation) if observation is not None else None
                turn = order.get(observation, len(order))
                files[session].append((turn, place or project_of(session), list(file.blocks)))
            timed[session] += file.timed
            all_records[session] += file.records
    whole = {session: united(found) for session, found in blocks.items()}
    origins = _origins(projection)
    found = []
    for session in sorted(all_records):
        before = _before(session, origins)
        mine = whole.get(session, [])
        project = project_of(session)
        theirs = united(block for other in before for block in whole.get(other, ()))
        found.append(
            SessionTime(
                session=session,
                project=project,
                whole=mine,
                own=(own := without(mine, theirs)),
                coverage=timed[session] / max(all_records[session], 1),
                places=_places(files.get(session, ()), theirs) or [(project, own)],
            )
        )
    return found


def _several(projection: Projection) -> dict[str, dict[str, str]]:
    """The conversations with several main files, and for each name of a file an observation of it."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    columns = ("id", "session_id", "metadata_json")
    for row in with_columns(projection.tables["session_observations"], *columns):
        metadata = row["metadata_json"]
        src = metadata.get("inside", {}).get("host", metadata).get("src")
        if src is not None and metadata.get("stream", "main") == "main":
            found[row["session_id"] or ""].setdefault(src, row["id"])
    return {session: files for session, files in found.items() if len(files) > 1}


def _places(
    files: Sequence[tuple[int, str, list[Block]]], theirs: Sequence[Block]
) -> list[tuple[str, list[Block]]]:
    """What the files of a conversation have of their own, by project: none for fewer than two projects. Of what
    several have the one that comes first in its thread had it first."""
    if len({project for _, project, _ in files}) < 2:
        return []
    taken = list(theirs)
    found: dict[str, list[Block]] = {}
    for _, project, blocks in sorted(files):
        own = without(united(blocks), taken)
        taken = united([*taken, *blocks])
        if own:
            found[project] = united([*found.get(project, ()), *own])
    return list(found.items())


def _origins(projection: Projection) -> dict[str, set[str]]:
    """What each session was copied from, directly. A subagent repeats nothing of who started it."""
    found: dict[str, set[str]] = defaultdict(set)
    columns = ("source_session_id", "target_session_id", "relation", "metadata_json")
    for row in with_columns(projection.tables["thread_edges"], *columns):
        source, target = row["source_session_id"], row["target_session_id"]
        if (
            source != target
            and row["relation"] in ("continuation", "fork")
            and not row["metadata_json"].get("subagent")
        ):
            found[target].add(source)
    return found


def _before(session: str, origins: Mapping[str, Iterable[str]]) -> set[str]:
    """All that ``session`` was copied from, over any number of steps; of a circle only what comes before it by id."""
    found: set[str] = set()
    work = [session]
    while work:
        for other in origins.get(work.pop(), ()):
            if other not in found:
                found.add(other)
                work.append(other)
    return {other for other in found if other < session} if session in found else found


def project_times(sessions: Iterable[SessionTime], repositories: Iterable[str] = ()) -> list[ProjectTime]:
    """The active time of each project, longest first. ``repositories`` names the projects that are known by more than
    a folder's name."""
    known = set(repositories)
    of_project: dict[str, list[tuple[SessionTime, list[Block]]]] = defaultdict(list)
    for one in sessions:
        for project, blocks in one.places:
            of_project[project].append((one, blocks))
    found = []
    for project, members in of_project.items():
        poor = sum(one.coverage < _COVERED for one, _ in members)
        warnings = [f"{poor} of {len(members)} conversations state few times"] if poor else []
        confidence: Confidence = "low" if warnings else "high" if project in known else "medium"
        found.append(
            ProjectTime(
                project=project,
                blocks=united(block for _, blocks in members for block in blocks),
                sessions=sum(bool(blocks) for _, blocks in members),
                confidence=confidence,
                warnings=warnings,
            )
        )
    return sorted(found, key=lambda one: (-one.active, one.project))
