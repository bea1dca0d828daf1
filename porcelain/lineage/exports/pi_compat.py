"""The files that the existing renderer of Pi's session graph reads: the store export and the graph export, version 1.

There a session is one file. So each file of a conversation that the view has as a node is written as a session of its
own, and what the view says about a conversation is said about each of its files. No clock is read: ``generatedAt`` is
the latest time that the facts themselves state.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from porcelain.lineage.exports.json_view import json_row
from porcelain.lineage.exports.pi_compat_activity import active_time_metrics, compaction_events, work_bursts
from porcelain.lineage.facts.projection import Projection, Row, hosts_of, records
from porcelain.lineage.landed.events import EventCount, EventSource, no_events, observed_files, stated_count
from porcelain.lineage.tables.columns import Table
from porcelain.lineage.tables.schema import BY_NAME, SCHEMA_VERSION
from porcelain.lineage.usage.measuring import Measured
from porcelain.lineage.views.names import Names
from porcelain.output_file import replacing

#: Where the files stand within the folder that is given.
STORE_EXPORT = "session-store/session-store.export.json"
GRAPH_EXPORT = "session-graph/graph-export.json"
CURATED_STORE = "session-graph/curated-store.json"

_SOURCE = "objstore"
_EPOCH = "1970-01-01T00:00:00.000Z"
#: The renderer's words for ours, where they differ.
_LABEL_TYPES = {"lineage": "pinned_lineage_name"}
_EDGE_TYPES = {"fork": "branch"}
_PRESERVING = ("preserve", "intentional_branch")
#: Fields of an edge's metadata that the renderer looks for at the top, with our names for them.
_PROMOTED = {
    "operationType": "operation",
    "tool": "tool",
    "mode": "mode",
    "batchId": "batch",
    "sourceRepo": "source_repo",
    "targetRepo": "target_repo",
    "fromCwd": "from_cwd",
    "toCwd": "to_cwd",
}
#: Fields that name sessions, whose place is taken by the files that these columns name.
_FILES = {
    "sourceSessionId": "source_observation_id",
    "targetSessionId": "target_observation_id",
    "recommendedSessionId": "recommended_observation_id",
}


def write_compatible(
    folder: Path,
    projection: Projection,
    pages_of: EventSource = no_events,
    conversations: Iterable[Measured] = (),
    *,
    count: EventCount = stated_count,
    overwrite: bool = False,
) -> list[Path]:
    """Write the three files below ``folder`` and return their paths; see ``output_file.replacing`` for what may stand
    there. ``pages_of``, ``conversations`` and ``count`` say what the files' records add up to. Raises
    ``StorageError``."""
    making = _Making(projection, pages_of, list(conversations), count)
    graph = dict(making.graph_export())
    written = []
    for name, value in (
        (STORE_EXPORT, dict(making.store_export())),
        (GRAPH_EXPORT, graph),
        (CURATED_STORE, graph),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            replacing(path, _is_ours, overwrite=overwrite) as partial,
            partial.open("w", encoding="utf-8", newline="\n") as file,
        ):
            for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(value):
                file.write(piece)
            file.write("\n")
        written.append(path)
    return written


def _is_ours(head: bytes) -> bool:
    return f'"generator": "{_SOURCE}"'.encode() in head


class _Making:
    """Both exports of one view."""

    def __init__(
        self,
        projection: Projection,
        pages_of: EventSource,
        conversations: list[Measured],
        count: EventCount,
    ) -> None:
        self._view = projection
        self._pages_of = pages_of
        self._count = count
        self._conversations = conversations
        self._tables = projection.tables
        self._names = Names(projection.tables)
        self._sessions = {row["id"]: row for row in self._tables["sessions"]}
        self._nodes = [
            row for row in self._tables["session_observations"] if row["session_id"] in self._sessions
        ]
        self._hosts = hosts_of(self._nodes)
        self._files: dict[str, list[str]] = defaultdict(list)
        for row in self._nodes:
            self._files[row["session_id"]].append(row["id"])
        times = [row["last_event_at"] for row in self._nodes if row["last_event_at"]]
        self._generated = max(times, default=_EPOCH)

    # -- the store export --------------------------------------------------------------------------------------------

    def store_export(self) -> Iterator[tuple[str, Any]]:
        """Its keys in order."""
        yield "schemaVersion", SCHEMA_VERSION
        yield "generator", _SOURCE
        yield "generatedAt", self._generated
        yield "inputs", {"fold": self._view.fold}
        yield "sources", self._rows("sources")
        yield "importRuns", self._rows("import_runs")
        yield "sessions", [self._session(row) for row in self._nodes]
        yield "sessionObservations", [self._observation(row) for row in self._nodes]
        yield "events", []
        yield "edges", [self._edge(row) for row in self._edges()]
        yield "labels", self._labels()
        for name in (
            "aliases",
            "classifications",
            "evidence",
            "backup_observations",
            "repositories",
            "artifacts",
        ):
            yield BY_NAME[name].json_name, self._rows(name)
        yield "checkpointArtifacts", self._rows("checkpoints")
        yield "observationMarks", self._rows("observation_marks")
        yield "batchOperations", self._rows("batch_operations")
        yield from self._threads()
        yield "bucketStatuses", self._rows("bucket_statuses")
        yield from self._repositories()
        yield (
            "eventIndex",
            {
                "storage": "sqlite",
                "table": "events",
                "count": sum(map(self._count, observed_files(self._view))),
                "privacyStatus": "metadata-only",
            },
        )

    def _rows(self, name: str) -> list[dict[str, Any]]:
        table: Table = BY_NAME[name]
        return [self._plain(json_row(table, row)) for row in self._tables[name]]

    def _records(self, row: Row) -> int:
        """How many records of a file are of its own conversation."""
        host = self._hosts.get(row["id"])
        return records(row) if host is None else host.records

    @staticmethod
    def _plain(row: dict[str, Any]) -> dict[str, Any]:
        row.pop("objectId", None)
        return row

    def _session(self, row: Row) -> dict[str, Any]:
        session = self._sessions[row["session_id"]]
        folder = self._names.folder(row["id"])
        metadata = {
            "path": row["path"],
            "cwd": folder,
            "displayName": self._names.given(row["session_id"]),
            "conversation": row["session_id"],
            "exists": row["presence"] == "present",
        }
        value = {
            "id": row["id"],
            "provider": session["provider"],
            "providerSessionId": session["provider_session_id"],
            "canonicalKey": row["id"] if "inside" in row["metadata_json"] else row["path"] or row["id"],
            "firstSeenAt": row["first_event_at"],
            "lastSeenAt": row["last_event_at"],
            "startTimestamp": row["first_event_at"],
            "endTimestamp": row["last_event_at"],
            "eventCount": self._records(row),
            "lineCount": row["line_count"],
            "byteCount": row["file_size"],
            "contentSha256": row["content_sha256"],
            "metadata": _known(metadata),
        }
        return _known(value)

    def _observation(self, row: Row) -> dict[str, Any]:
        value = self._plain(json_row(BY_NAME["session_observations"], row))
        value["sessionId"] = row["id"]
        return value

    # -- the graph export --------------------------------------------------------------------------------------------

    def graph_export(self) -> Iterator[tuple[str, Any]]:
        """Its keys in order. Sessions of one line or none that nothing is connected with are left out."""
        connected = {
            end
            for row in self._edges()
            for end in (row["source_observation_id"], row["target_observation_id"])
        }
        noise = {
            row["id"] for row in self._nodes if (row["line_count"] or 0) <= 1 and row["id"] not in connected
        }
        kept = [row for row in self._nodes if row["id"] not in noise]
        marks = [row for row in self._rows("observation_marks") if row["observationId"] not in noise]
        yield "generator", _SOURCE
        yield "generatedAt", self._generated
        yield "source", f"{_SOURCE}:{self._view.fold}"
        yield "graphFilters", {"excludedNoiseSessions": len(noise), "policy": "no edge and at most one line"}
        yield "sessions", [self._session(row) for row in kept]
        yield "edges", [self._edge(row) for row in self._edges()]
        yield "labels", [one for one in self._labels() if one["targetId"] not in noise]
        yield "classifications", self._rows("classifications")
        yield "observationMarks", marks
        yield (
            "preservedBranches",
            [
                _known({**one, "sessionId": one["observationId"], "label": one.get("label")})
                for one in marks
                if one["markType"] in _PRESERVING
            ],
        )
        for name, rows in self._threads():
            yield name, [row for row in rows if row.get("sessionId") not in noise]
        yield from self._repositories()
        yield from self._activities(kept)
        yield "temporalActivitySpans", [self._span(row) for row in kept if row["first_event_at"]]
        yield "activityMetrics", list(self._activity(kept))

    def _activities(self, kept: list[Row]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        rows = {row["id"]: row for row in kept}
        files: dict[str, list[Row]] = defaultdict(list)
        for row in kept:
            files[row["session_id"]].append(row)
        providers = {session: row["provider"] for session, row in self._sessions.items()}
        repositories = {
            name: row["id"]
            for row in self._tables["repo_identities"]
            for name in (row["stable_name"], row["display_name"])
            if name
        }
        events = compaction_events(observed_files(self._view), rows, self._pages_of)
        bursts = work_bursts(kept, self._names, repositories, providers)
        metrics = active_time_metrics(
            self._view,
            self._conversations,
            self._names,
            lambda session: files.get(session, ()),
            repositories,
            providers,
        )
        yield "compactionEvents", [_known(one) for one in events]
        yield "workBursts", [_known({**one, "generatedAt": self._generated}) for one in bursts]
        yield "activeTimeMetrics", [_known({**one, "generatedAt": self._generated}) for one in metrics]

    def _edges(self) -> list[Row]:
        """Edges between two files that are here; what only says that files lie in one folder is no edge there."""
        here = {row["id"] for row in self._nodes}
        return [
            row
            for row in self._tables["edges"]
            if row["source_observation_id"] in here
            and row["target_observation_id"] in here
            and row["metadata_json"].get("claim") != "order"
        ]

    def _edge(self, row: Row) -> dict[str, Any]:
        value = self._by_file(self._plain(json_row(BY_NAME["edges"], row)), row)
        value["edgeType"] = _EDGE_TYPES.get(row["edge_type"], row["edge_type"])
        for theirs, ours in _PROMOTED.items():
            found = row["metadata_json"].get(ours)
            if found is not None:
                value[theirs] = found
        return value

    def _by_file(self, value: dict[str, Any], row: Row) -> dict[str, Any]:
        """``value`` with files in the places of sessions."""
        for session, file in _FILES.items():
            named = row.get(file) or row["metadata_json"].get(file)
            if session in value and named is not None:
                value[session] = named
        return value

    def _labels(self) -> list[dict[str, Any]]:
        found = []
        for row in self._tables["labels"]:
            value = self._plain(json_row(BY_NAME["labels"], row))
            value["labelType"] = _LABEL_TYPES.get(row["label_type"], row["label_type"])
            if row["target_type"] == "observation":
                found.append({**value, "targetType": "session"})
            elif row["target_type"] == "session":
                found += [
                    {
                        **value,
                        "id": value["id"] if number == 0 else f"{value['id']}_{number}",
                        "targetId": file,
                    }
                    for number, file in enumerate(self._files[row["target_id"]])
                ]
            else:
                found.append(value)
        return sorted(found, key=lambda one: (one["id"], one["targetId"]))

    def _threads(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        yield "logicalThreads", self._rows("logical_threads")
        members = [
            self._plain(json_row(BY_NAME["thread_members"], row)) for row in self._tables["thread_members"]
        ]
        yield (
            "threadMembers",
            [{**one, "sessionId": one.get("observationId", one["sessionId"])} for one in members],
        )
        yield (
            "threadEdges",
            [
                self._by_file(self._plain(json_row(BY_NAME["thread_edges"], row)), row)
                for row in self._tables["thread_edges"]
            ],
        )
        yield (
            "threadResumeTargets",
            [
                {
                    **self._by_file(self._plain(json_row(BY_NAME["thread_resume_targets"], row)), row),
                    "activeLeafSessionIds": row["metadata_json"].get("active_leaf_observation_ids", []),
                    "recoverableSessionIds": row["metadata_json"].get("recoverable_observation_ids", []),
                }
                for row in self._tables["thread_resume_targets"]
            ],
        )

    def _repositories(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        for name in ("repo_identities", "repo_observations", "repo_events"):
            yield BY_NAME[name].json_name, self._rows(name)

    def _span(self, row: Row) -> dict[str, Any]:
        return _known(
            {
                "id": f"span_{row['id']}",
                "sessionId": row["id"],
                "label": self._names.observation(row["id"]),
                "provider": self._sessions[row["session_id"]]["provider"],
                "cwd": self._names.folder(row["id"]),
                "start": row["first_event_at"],
                "end": row["last_event_at"],
                "eventCount": self._records(row),
                "confidence": "derived",
                "provenance": "session-metadata",
            }
        )

    def _activity(self, rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
        groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in rows:
            provider = self._sessions[row["session_id"]]["provider"]
            groups[provider, self._names.folder(row["id"]) or "unknown"].append(row)
        for number, ((provider, project), members) in enumerate(sorted(groups.items())):
            yield {
                "id": f"activity_{number}",
                "provider": provider,
                "project": project,
                "sessionCount": len(members),
                "eventCount": sum(self._records(row) for row in members),
            }


def _known(value: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if one is not None}
