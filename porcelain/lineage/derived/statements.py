"""The rows that statements in sidecar files make, once it is known which observations they mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from porcelain.lineage.facts import identity
from porcelain.lineage.facts.kinds import Confidence, Fact
from porcelain.lineage.facts.statements import confidence
from porcelain.lineage.facts.times import normal_time
from porcelain.lineage.relations.edges import Claims
from porcelain.lineage.relations.nodes import NAMED_URI, Nodes, Said
from porcelain.lineage.tables.columns import PRESENCES

OVERLAYS = "lineage-overlays"
_MOVED = "the repository was moved, and its sessions with it"


def made(
    kind: str,
    name: str,
    columns: Mapping[str, Any],
    provenance: str,
    trust: Confidence,
    evidence: Iterable[str] = (),
) -> Fact:
    """A fact of which all is known to be right; columns that are None are left out."""
    return Fact(
        columns={column: value for column, value in columns.items() if value is not None},
        confidence=trust,
        evidence=sorted(set(evidence)),
        id=name,
        kind=kind,
        provenance=provenance,
        revision=0,
    )


def statement_facts(
    said: Said, nodes: Nodes, claims: Claims, judged: Mapping[tuple[str, str], list[Fact]]
) -> Iterator[Fact]:
    """Labels, classifications, backup observations, repository events and batch operations of all statements."""
    for one in said.statements("lineage-name", "session-label", "root"):
        yield from _labels(one, nodes)
    yield from _classifications(claims, judged)
    for one in said.statements("backup"):
        yield from _backups(one, nodes)
    stored = {one.id for one in said.of("batch_operation")}
    yield from (one for one in _batches(said) if one.id not in stored)
    for one in said.statements("relocation"):
        yield from _repo_moves(one)


def _labels(one: Fact, nodes: Nodes) -> Iterator[Fact]:
    """A lineage's name goes on its root and its current file; a label on the file it was given to."""
    data = one.columns["data"]
    if not data.get("label"):
        return
    named = data["says"] == "lineage-name"
    label_type = "lineage" if named else "source" if data.get("source") else "alias"
    provenance = "lineage-names" if named else OVERLAYS
    when = data.get("updated") or data.get("created")
    for path in dict.fromkeys(data[field] for field in ("path", "current") if field in data):
        node = nodes.at(data["host"], path)
        if node is not None:
            columns = {
                "target_type": "observation",
                "target_id": node.id,
                "label_type": label_type,
                "value": data["label"],
                "valid_from": when,
            }
            name = identity.label_id(node.id, label_type, data["label"], provenance)
            yield made("label", name, columns, provenance, one.confidence, [one.id])


def _classifications(claims: Claims, judged: Mapping[tuple[str, str], list[Fact]]) -> Iterator[Fact]:
    of_pair = (
        claims.by_pair() if any(one.kind == "evidence" for found in judged.values() for one in found) else {}
    )
    for pair, found in sorted(judged.items()):
        for one in found:
            if one.kind != "evidence":
                continue
            data = one.columns["data"]
            for claim in of_pair.get(pair, ()):
                if data.get("ts") not in (None, claim.time):
                    continue
                columns = {
                    "target_type": "edge",
                    "target_id": claim.id,
                    "classification": data["lineage"],
                    "notes": data.get("notes"),
                    "metadata": {"label": data["label"]} if "label" in data else {},
                }
                name = identity.classification_id(claim.id, "edge", data["lineage"], OVERLAYS)
                trust = confidence(data.get("confidence"))
                yield made("classification", name, columns, OVERLAYS, trust, [one.id])


def _backups(one: Fact, nodes: Nodes) -> Iterator[Fact]:
    data = one.columns["data"]
    host = data["host"]
    source = identity.source_id("backup-snapshot", "backup_snapshot", host, NAMED_URI)
    path = data.get("path") or data["key"]
    node = nodes.at(host, path)
    yield made(
        "source",
        source,
        {
            "provider": "backup-snapshot",
            "kind": "backup_snapshot",
            "uri": NAMED_URI,
            "label": f"backups of {host}",
            "metadata": {"host": host},
        },
        OVERLAYS,
        "high",
    )
    for presence in PRESENCES:
        stated = data.get(presence)
        if stated is None:
            continue
        columns = {
            "source_id": source,
            "session_observation_id": node and node.id,
            "snapshot_label": stated,
            "snapshot_timestamp": _british_summer(stated),
            "path": path,
            "presence": presence,
            "file_mtime": data.get("mtime"),
            "metadata": {"key": data["key"]},
        }
        name = identity.backup_observation_id(source, stated, path, presence)
        yield made("backup_observation", name, columns, "backup-evidence", "high", [one.id])


def _british_summer(text: str) -> str | None:
    """A time of day as the field's name means it: British Summer Time, an hour ahead of UTC."""
    return normal_time(text) if text.endswith("Z") or "+" in text else normal_time(text + "+01:00")


def _batches(said: Said) -> Iterator[Fact]:
    batches: dict[str, list[Fact]] = defaultdict(list)
    for one in said.statements("relocation"):
        if "batch" in one.columns["data"]:
            batches[one.columns["data"]["batch"]].append(one)
    for operation, records in sorted(batches.items()):
        data = [one.columns["data"] for one in records]
        first = min(data, key=lambda one: (one.get("ts", "~"), one["from"], one["to"]))
        provenance = f"{first.get('tool', 'relocation')}-manifest"
        columns = {
            "operation_id": operation,
            "operation_type": "bucket_relocation",
            "source_path": first.get("source_repo") or first.get("from_cwd") or first["from"],
            "destination_path": first.get("target_repo") or first.get("to_cwd") or first["to"],
            "source_bucket": PurePosixPath(first["from"]).parent.name,
            "destination_bucket": PurePosixPath(first["to"]).parent.name,
            "timestamp": first.get("ts"),
            "status": "applied",
            "counts": {"sessions": len({(one["from"], one["to"]) for one in data})},
        }
        if columns["timestamp"] is not None:
            yield made(
                "batch_operation",
                identity.fact_id("batch_operation", [operation]),
                columns,
                provenance,
                "authoritative",
                [one.id for one in records],
            )


def repo_move(data: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Id and columns of the event that the record of a relocation (its ``data``) tells of, if that is the move of a
    repository: every session that moved with it tells of the same one."""
    if data.get("operation") not in ("repo_move", "repo_root_move"):
        return None
    from_path = data.get("source_repo") or data.get("from_cwd")
    to_path = data.get("target_repo") or data.get("to_cwd")
    columns = {
        "event_type": "move",
        "from_path": from_path,
        "to_path": to_path,
        "timestamp": data.get("ts"),
        "manual_review_required": False,
        "summary": _MOVED,
    }
    return identity.repo_event_id("move", None, None, from_path, to_path, data.get("ts"), _MOVED), columns


def _repo_moves(one: Fact) -> Iterator[Fact]:
    data = one.columns["data"]
    found = repo_move(data)
    if found is None:
        return
    name, columns = found
    provenance = f"{data.get('tool', 'relocation')}-manifest"
    yield made("repo_event", name, columns, provenance, "authoritative", [one.id])
