"""The conversations of a view, one row each, under the names that people know them by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from porcelain.lineage.facts.projection import Projection, Row, with_columns
from porcelain.lineage.tables.columns import CONFLICT, FILE_EVIDENCE

#: Which name of a conversation is shown, best first; ``source`` and ``path`` need no label.
LABEL_PRIORITY = ("lineage", "display_name", "cwd", "project", "source", "path")


class SessionRow(Struct, frozen=True, kw_only=True):
    """One conversation. ``label`` is its best name and ``label_type`` says of what type it is. ``records`` counts
    copies once; ``sources`` is the number of files, ``absent`` of those that are no longer there; ``damage`` is the
    number of stretches that were set aside in ``damage_bytes`` bytes; ``conflicts`` of files that were rewritten."""

    id: str
    provider: str
    native_id: str
    label: str
    label_type: str
    records: int
    first: str | None
    last: str | None
    sources: int
    absent: int
    damage: int
    damage_bytes: int
    conflicts: int


def session_rows(projection: Projection, priority: Sequence[str] = LABEL_PRIORITY) -> list[SessionRow]:
    """The conversations of a view, the latest first; those without a time last; ties by id."""
    tables = projection.tables
    files: dict[str, list[Row]] = defaultdict(list)
    columns = ("id", "session_id", "source_id", "path", "presence", "metadata_json")
    for row in with_columns(tables["session_observations"], *columns):
        files[row["session_id"]].append(row)
    names = _names(tables["labels"])
    sources = {row["id"]: row for row in tables["sources"]}
    rewritten = {
        row["target_id"]
        for row in tables["evidence"]
        if row["kind"] == FILE_EVIDENCE and row["data_json"].get("state") == CONFLICT
    }
    rows = [_listed(row, files[row["id"]], names, sources, rewritten, priority) for row in tables["sessions"]]
    return sorted(sorted(rows, key=lambda row: row.id), key=lambda row: row.last or "", reverse=True)


def _listed(
    session: Row,
    files: list[Row],
    names: dict[tuple[str, str], Row],
    sources: dict[str, Row],
    rewritten: set[str],
    priority: Sequence[str],
) -> SessionRow:
    label_type, label = _label(session, files, names, sources, priority)
    damage = [row["metadata_json"].get("damage", {}) for row in files]
    return SessionRow(
        id=session["id"],
        provider=session["provider"],
        native_id=session["provider_session_id"] or "",
        label=label,
        label_type=label_type,
        records=session["event_count"],
        first=session["start_timestamp"],
        last=session["end_timestamp"],
        sources=len(files),
        absent=sum(row["presence"] == "absent" for row in files),
        damage=sum(found.get("count", 0) for found in damage),
        damage_bytes=sum(found.get("bytes", 0) for found in damage),
        conflicts=sum(row["id"] in rewritten for row in files),
    )


def _names(labels: Iterable[Row]) -> dict[tuple[str, str], Row]:
    """The label that holds, by target and type: one still valid before others, then a curator's, then
    the latest (of folders the first); an empty one clears."""
    held: dict[tuple[str, str], Row] = {}
    for row in labels:
        key = (row["target_id"], row["label_type"])
        before = held.get(key)
        if before is None:
            held[key] = row
        elif key[1] == "cwd" and _weight(row)[:2] == _weight(before)[:2]:
            held[key] = min(row, before, key=_weight)
        else:
            held[key] = max(row, before, key=_weight)
    return {key: row for key, row in held.items() if row["value"]}


def _weight(label: Row) -> tuple[bool, bool, str, str]:
    return (
        label["valid_to"] is None,
        label["confidence"] == "manual",
        label["valid_from"] or "",
        label["id"],
    )


def _label(
    session: Row,
    files: list[Row],
    names: dict[tuple[str, str], Row],
    sources: dict[str, Row],
    priority: Sequence[str],
) -> tuple[str, str]:
    for label_type in priority:
        if label_type == "path":
            paths = sorted(row["path"] for row in files if row["path"])
            if paths:
                return label_type, PurePosixPath(paths[0]).name
            continue
        own = names.get((session["id"], label_type))
        if own is not None:
            return label_type, own["value"]
        targets = [row["source_id"] if label_type == "source" else row["id"] for row in files]
        found = [names[target, label_type] for target in targets if (target, label_type) in names]
        if found:
            return label_type, max(found, key=_weight)["value"]
        if label_type == "source":
            labels = sorted(
                sources[row["source_id"]]["label"] or "" for row in files if row["source_id"] in sources
            )
            if labels and labels[0]:
                return label_type, labels[0]
    return "native_id", session["provider_session_id"] or session["id"]
