"""What the renderer of Pi's session graph is told about activity: compactions, bursts of work, active time.

The names and meanings of the fields are the renderer's. Differing from the program that it was written for, a summary
that copies of a conversation share is counted once, for the oldest file that holds it, and what a copy repeats of its
origin's time is taken off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from porcelain.lineage.curation.checkpoints import KIND, SUMMARY
from porcelain.lineage.facts.identity import fact_id
from porcelain.lineage.facts.projection import Projection, Row
from porcelain.lineage.facts.times import normal_time, time_of_ns
from porcelain.lineage.landed.events import EventSource, ObservedFile
from porcelain.lineage.landed.strays import within
from porcelain.lineage.usage.active_time import project_times, session_times
from porcelain.lineage.usage.blocks import PAUSE
from porcelain.lineage.usage.measuring import Measured
from porcelain.lineage.views.names import Names
from porcelain.providers.records import Record, page_record_ids

#: Conversations in one burst of work.
_BURST = 12
_GENERATOR = "objstore"
#: How many places of summaries are named.
_SAMPLES = 5


def compaction_events(
    files: Iterable[ObservedFile], rows: Mapping[str, Row], pages_of: EventSource
) -> list[dict[str, Any]]:
    """One entry for each file (of ``rows``, by observation id) in which an agent replaced history by a summary."""
    seen: set[str] = set()
    found = []
    wanted = (file for file in files if file.observation in rows)
    for file in sorted(
        wanted, key=lambda one: (rows[one.observation]["first_event_at"] or "~", one.observation)
    ):
        held: list[tuple[int, Record]] = []
        line = number = 0
        for page, records in pages_of(file):
            jumps = {row: ord for row, ord, _ in page.jumps or ()}
            line = page.ord - 1
            for row, (name, record) in enumerate(zip(page_record_ids(page), records, strict=True)):
                line = jumps.get(row, line + 1)
                mine = within(file.rows, number)
                number += 1
                if mine and SUMMARY in (record.flags or ()) and name not in seen:
                    seen.add(name)
                    held.append((line, record))
        if held:
            found.append(_compaction(file, rows[file.observation], held))
    return sorted(found, key=lambda one: (one["timestamp"] or "", one["id"]))


def _compaction(file: ObservedFile, row: Row, held: Sequence[tuple[int, Record]]) -> dict[str, Any]:
    stated = [normal_time(record.time) for _, record in held if isinstance(record.time, str)]
    times = [time for time in stated if time is not None]
    parts = [part for _, record in held for part in record.parts or () if part.k == "text"]
    data = {
        "eventCount": len(held),
        "summaryEventCount": sum(any(p.k == "text" for p in record.parts or ()) for _, record in held),
        "compactedLineCount": 0,
        "compactedCharCount": 0,
        "firstCompactionAt": min(times, default=None),
        "lastCompactionAt": max(times, default=None),
        "summaryHashes": sorted({part.content for part in parts if isinstance(part.content, str)}),
        "sampleLines": [line for line, _ in held[:_SAMPLES]],
    }
    return {
        "id": fact_id("evidence", [KIND, file.observation]),
        "kind": KIND,
        "sessionId": file.observation,
        "sourceId": file.source,
        "timestamp": data["lastCompactionAt"] or row["last_event_at"],
        "confidence": "authoritative",
        "provenance": "landed-records",
        "privacyStatus": "metadata-only",
        **data,
        "summary": f"history was replaced by a summary {len(held)} times",
        "metadata": data,
    }


def work_bursts(
    rows: Iterable[Row], names: Names, repository_ids: Mapping[str, str], providers: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Runs of a dozen files of one repository that more than one agent worked on, in order of their beginnings.
    ``providers`` is by session id."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        repository = repository_ids.get(names.project(row["session_id"]))
        if repository is not None:
            groups[repository].append(row)
    found = []
    for repository, members in sorted(groups.items()):
        if len({providers[row["session_id"]] for row in members}) < 2:
            continue
        members.sort(key=lambda row: (row["first_event_at"] or "~", row["id"]))
        for at in range(0, len(members), _BURST):
            burst = members[at : at + _BURST]
            data = {
                "repoIdentityId": repository,
                "sessionIds": [row["id"] for row in burst],
                "providers": sorted({providers[row["session_id"]] for row in burst}),
                "start": burst[0]["first_event_at"],
                "end": max((row["last_event_at"] for row in burst if row["last_event_at"]), default=None),
                "sessionCount": len(burst),
            }
            found.append(
                {
                    "id": fact_id("artifact", ["work-burst", repository, burst[0]["id"], burst[-1]["id"]]),
                    "kind": "temporal_work_burst",
                    "path": f"derived:{repository}:{at}",
                    "generator": _GENERATOR,
                    **data,
                    "confidence": "derived",
                    "provenance": _GENERATOR,
                    "metadata": data,
                }
            )
    return found


def active_time_metrics(
    projection: Projection,
    conversations: Iterable[Measured],
    names: Names,
    files_of: Callable[[str], Sequence[Row]],
    repository_ids: Mapping[str, str],
    providers: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    """The active time of each project; ``files_of`` gives the files of a session."""
    sessions = session_times(conversations, projection, names.project, names.place)
    of_project: dict[str, list[str]] = defaultdict(list)
    for one in sessions:
        for place, _ in one.places:
            of_project[place].append(one.session)
    for project in sorted(project_times(sessions, names.repositories), key=lambda one: one.project):
        own = of_project[project.project]
        files = [row for session in own for row in files_of(session)]
        minutes = round(project.active / 60_000, 2)
        repository = repository_ids.get(project.project)
        data = {
            "project": repository or project.project or "unknown",
            "repoIdentityId": repository,
            "displayName": project.project if repository else None,
            "contributingPaths": sorted({f for row in files if (f := names.folder(row["id"])) is not None}),
            "activeMinutes": minutes,
            "activeHours": round(minutes / 60, 2),
            "workBlockCount": len(project.blocks),
            "sessionCount": project.sessions,
            "sessionIds": sorted(row["id"] for row in files),
            "providers": sorted({providers[session] for session in own}),
            "idleThresholdMinutes": PAUSE // 60_000,
            "confidence": project.confidence,
            "coverageWarnings": project.warnings,
            "collapsedIntervals": [
                {"start": _time(start), "end": _time(end)} for start, end in project.blocks
            ],
        }
        yield {
            "id": fact_id("artifact", ["active-time", data["project"]]),
            "kind": "active_time_metric",
            "path": f"derived:active-time:{data['project']}",
            "generator": _GENERATOR,
            **{
                name: value
                for name, value in data.items()
                if name not in ("coverageWarnings", "collapsedIntervals")
            },
            "provenance": "record-times",
            "metadata": data,
        }


def _time(milliseconds: int) -> str | None:
    return time_of_ns(milliseconds * 1_000_000)
