"""Pi's sidecar files as facts: names, overlays, marks, repository identities, reports of earlier reconstructions.

What a file says about sessions becomes statements, what it says about repositories and aliases facts of their own. The
files are only read. Of the reports only numbers and paths are taken: one of them holds whole transcripts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from porcelain.lineage.adapters.manifests import MANIFESTS, Damage, Lines, count, relocation, text, time
from porcelain.lineage.adapters.repos import RepoRecords
from porcelain.lineage.facts.kinds import Confidence, Fact
from porcelain.lineage.facts.making import fact
from porcelain.lineage.facts.statements import confidence, statement
from porcelain.lineage.tables.columns import MARK_TYPES

#: Where lineage names may lie within Pi's agent folder.
NAMES = ("relocation-lineages.jsonl", "session-move/manifests/relocation-lineages.jsonl")
OVERLAYS = "session-graph/lineage-overlays.jsonl"
RECONSTRUCTION = "session-graph/pre-manifest-lineage.json"
PREFIXES = "session-graph/prefix-lineage.json"
INVENTORY = "session-graph/temporal-inventory.json"
BUCKETS = "session-graph/session-bucket-reconciliation.json"
REPOS = "session-store/repo-identities.jsonl"
MARKS = "session-store/observation-marks.jsonl"
#: A report larger than this is not read.
MAX_REPORT = 512 * 1024 * 1024


class Sidecars(Struct):
    """What the sidecar files of one agent folder say: facts (not revised, parents first), the files read with the
    number of records taken from each, what could not be read, and remarks for a person."""

    facts: list[Fact] = field(default_factory=list)
    files: list[tuple[str, int]] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def read_sidecars(folder: Path, host: str, store_folder: Path | None = None) -> Sidecars:
    """All sidecar files below Pi's agent folder. ``store_folder`` is where the session store's own files are, if not in
    ``session-store`` there."""
    return _Reading(folder, host, store_folder or folder / "session-store").read()


class _Reading:
    def __init__(self, folder: Path, host: str, store_folder: Path) -> None:
        self._folder = folder
        self._host = host
        self._store_folder = store_folder
        self._found = Sidecars()
        #: The records of the legacy manifest in order, by which overlays count.
        self._numbered: list[Fact | None] = []
        self._repos = RepoRecords()

    def read(self) -> Sidecars:
        for number, name in enumerate(MANIFESTS):
            self._lines(name, "relocation_manifest", self._relocation if number else self._legacy_relocation)
        for name in NAMES:
            self._lines(name, "manual_overlay", self._name)
        self._lines(OVERLAYS, "manual_overlay", self._overlay)
        self._lines(REPOS, "manual_overlay", self._repo)
        self._found.facts += self._repos.facts()
        self._lines(MARKS, "manual_overlay", self._mark)
        self._report(RECONSTRUCTION, "curated_reconstruction_summary", self._backups)
        self._report(PREFIXES, "prefix_lineage_summary", self._prefixes)
        self._report(INVENTORY, None, _nothing)
        self._report(BUCKETS, None, self._buckets)
        return self._found

    def _path(self, name: str) -> Path:
        inside = name.removeprefix("session-store/")
        return self._folder / name if inside == name else self._store_folder / inside

    def _lines(
        self, name: str, kind: str, read: Callable[[dict[str, Any]], Iterator[Fact] | list[Fact] | None]
    ) -> None:
        """Take what ``read`` makes of each record of a file of JSON lines; None for a record that is of no use."""
        path = self._path(name)
        if not path.is_file():
            return
        lines = Lines(path)
        taken = 0
        self._source(path, kind)
        for number, record in lines.read():
            made = read(record)
            if made is None:
                lines.note(number, "not a record of this file")
            else:
                self._found.facts += made
                taken += 1
        self._found.files.append((str(path), taken))
        self._found.damage += lines.damage

    def _source(self, path: Path, kind: str) -> None:
        columns = {
            "provider": "pi" if kind == "relocation_manifest" else "manual-curation",
            "kind": kind,
            "uri": str(path).encode("utf-8", "backslashreplace").decode(),
            "label": f"{path.name} on {self._host}",
            "metadata": {"host": self._host},
        }
        self._found.facts.append(fact("source", columns, provenance="sidecar-import", confidence="high"))

    # -- manifests and names -----------------------------------------------------------------------------------------

    def _legacy_relocation(self, record: dict[str, Any]) -> list[Fact] | None:
        made = self._relocation(record)
        self._numbered.append(made[0] if made else None)
        return made

    def _relocation(self, record: dict[str, Any]) -> list[Fact] | None:
        made = relocation(record, self._host)
        return None if made is None else [made]

    def _name(self, record: dict[str, Any]) -> list[Fact] | None:
        root, name = text(record, "root"), text(record, "name")
        if record.get("type") != "lineage_named" or root is None or name is None:
            return None
        fields = {
            "created": time(record, "created"),
            "current": text(record, "currentSession"),
            "description": text(record, "description"),
            "label": name,
            "path": root,
            "updated": time(record, "updated"),
        }
        return [self._said("lineage-name", fields, "a lineage was named", "authoritative", "lineage-names")]

    def _repo(self, record: dict[str, Any]) -> list[Fact] | None:
        return [] if self._repos.add(record) else None

    # -- overlays ----------------------------------------------------------------------------------------------------

    def _overlay(self, record: dict[str, Any]) -> list[Fact] | None:
        match record.get("kind"):
            case "root":
                return self._overlay_root(record)
            case "edge":
                return self._overlay_edge(record)
            case "alias":
                return self._overlay_alias(record)
            case "session-label":
                return self._overlay_label(record)
            case "classification":
                return self._overlay_classification(record)
        return None

    def _overlay_root(self, record: dict[str, Any]) -> list[Fact] | None:
        fields = {
            "confidence": text(record, "confidence"),
            "cwd": text(record, "historicalCwd"),
            "label": text(record, "label"),
            "notes": _notes(record),
            "path": text(record, "session"),
        }
        return self._overlaid("root", fields, "a root of a lineage", "path")

    def _overlay_edge(self, record: dict[str, Any]) -> list[Fact] | None:
        fields = {
            "confidence": text(record, "confidence"),
            "from": text(record, "source"),
            "from_cwd": text(record, "fromCwd"),
            "lineage": text(record, "lineageKind"),
            "notes": _notes(record),
            "to": text(record, "destination"),
            "to_cwd": text(record, "toCwd"),
            "ts": time(record, "ts"),
        }
        return self._overlaid("edge", fields, "a connection stated by hand", "from", "to")

    def _overlay_alias(self, record: dict[str, Any]) -> list[Fact] | None:
        path, label = text(record, "path"), text(record, "label")
        if path is None or label is None:
            return None
        columns = {"alias_type": "path", "from_value": path, "to_value": label, "notes": text(record, "note")}
        return [fact("alias", columns, provenance="lineage-overlays", confidence="manual")]

    def _overlay_label(self, record: dict[str, Any]) -> list[Fact] | None:
        fields = {
            "confidence": text(record, "confidence"),
            "cwd": text(record, "cwd"),
            "label": text(record, "label"),
            "native_id": text(record, "sessionId"),
            "note": text(record, "note"),
            "path": text(record, "session"),
            "source": text(record, "source"),
        }
        return self._overlaid("session-label", fields, "a label given by hand", "path", "label")

    def _overlay_classification(self, record: dict[str, Any]) -> list[Fact] | None:
        """Matched by the event's time and files. A bare number is that of the record in the legacy manifest, counted
        from 1."""
        fields: dict[str, Any] = {
            "confidence": text(record, "recordConfidence"),
            "from": text(record, "source") or text(record, "sourceSession"),
            "label": text(record, "displayLabel"),
            "lineage": text(record, "lineageKind"),
            "notes": _notes(record),
            "to": text(record, "destination") or text(record, "destinationSession"),
            "ts": time(record, "ts"),
        }
        index = count(record, "manifestIndex")
        if index is not None and not (fields["from"] and fields["to"]):
            named = self._numbered[index - 1] if 1 <= index <= len(self._numbered) else None
            if named is None:
                self._found.remarks.append(
                    f"classification of manifest record {index}: the manifest has no such record"
                )
                fields["index"] = index
            else:
                data = named.columns["data"]
                fields |= {"from": data["from"], "to": data["to"], "ts": data.get("ts")}
        return self._overlaid("classification", fields, "a classification by hand", "lineage")

    def _overlaid(self, says: str, fields: dict[str, Any], summary: str, *needed: str) -> list[Fact] | None:
        if not all(fields[name] for name in needed):
            return None
        trust = confidence(fields.get("confidence"))
        return [self._said(says, fields, summary, trust, "lineage-overlays")]

    def _said(
        self, says: str, fields: dict[str, Any], summary: str, trust: Confidence, provenance: str
    ) -> Fact:
        return statement(
            says,
            self._host,
            fields,
            summary,
            provenance=provenance,
            trust=trust,
            time=fields.get("ts") or fields.get("updated") or fields.get("created"),
        )

    # -- marks -------------------------------------------------------------------------------------------------------

    def _mark(self, record: dict[str, Any]) -> list[Fact] | None:
        mark = text(record, "markType")
        fields: dict[str, Any] = {
            "confidence": text(record, "confidence"),
            "label": text(record, "label"),
            "mark": mark,
            "native_id": text(record, "sessionId"),
            "observation": text(record, "observationId"),
            "path": text(record, "path"),
            "reason": text(record, "reason"),
            "replacement": text(record, "replacementObservationId"),
            "review": True if record.get("manualReviewRequired") is True else None,
            "source": text(record, "source"),
            "ts": time(record, "timestamp"),
        }
        if record.get("kind") != "observation-mark" or mark is None:
            return None
        if not any(fields[name] for name in ("native_id", "observation", "path")):
            return None
        if mark not in MARK_TYPES:
            self._found.remarks.append(f"mark {mark}: not one of {' '.join(MARK_TYPES)}")
            return []
        trust = confidence(fields["confidence"])
        return [self._said("mark", fields, f"marked {mark} by hand", trust, "observation-marks")]

    # -- reports -----------------------------------------------------------------------------------------------------

    def _report(
        self, name: str, checkpoint: str | None, read: Callable[[dict[str, Any]], Iterator[Fact]]
    ) -> None:
        """Take a JSON document: what ``read`` makes of it, and that it was there, with its hash."""
        path = self._path(name)
        if not path.is_file():
            return
        try:
            data = path.read_bytes() if path.stat().st_size <= MAX_REPORT else b""
            document = json.loads(data)
        except (ValueError, RecursionError):
            self._found.damage.append(Damage(path=str(path), line=0, reason="not JSON, or too large"))
            return
        if not isinstance(document, dict):
            self._found.damage.append(Damage(path=str(path), line=0, reason="not an object"))
            return
        self._source(path, "manual_overlay")
        made = list(read(document))
        digest = hashlib.sha256(data).hexdigest()
        shown = str(path).encode("utf-8", "backslashreplace").decode()
        generated = time(document, "generatedAt") or "1970-01-01T00:00:00.000Z"
        if checkpoint is None:
            columns: dict[str, Any] = {
                "kind": "inventory",
                "path": shown,
                "generated_at": generated,
                "generator": path.name,
                "input_hash": digest,
            }
            made.append(fact("artifact", columns, provenance="sidecar-import", confidence="high"))
        else:
            columns = {
                "kind": checkpoint,
                "path": shown,
                "generated_at": generated,
                "generator": path.name,
                "input_hash": digest,
                "input_hashes": [digest],
                "privacy_status": "metadata-only",
                "curator": "manual-curation",
            }
            made.append(fact("checkpoint", columns, provenance="sidecar-import", confidence="manual"))
        self._found.facts += made
        self._found.files.append((str(path), len(made)))

    def _backups(self, document: dict[str, Any]) -> Iterator[Fact]:
        found = document.get("backupEvidence")
        for key, one in sorted(found.items()) if isinstance(found, dict) else ():
            if not isinstance(one, dict) or not key:
                continue
            names = ("rootSession", "session", "sourceSession", "destinationSession")
            fields = {
                "absent": text(one, "absentAtBst"),
                "key": key,
                "mtime": time(one, "fileMtimeUtc"),
                "path": next((text(one, name) for name in names if text(one, name)), None),
                "present": text(one, "presentAtBst"),
            }
            yield self._said("backup", fields, f"backup evidence: {key[:200]}", "high", "backup-evidence")

    def _prefixes(self, document: dict[str, Any]) -> Iterator[Fact]:
        candidates = document.get("bestCandidates")
        for one in candidates if isinstance(candidates, list) else ():
            best = one.get("best") if isinstance(one, dict) else None
            if not isinstance(best, dict):
                continue
            fields = {
                "confidence": text(best, "confidence"),
                "from": text(best, "source"),
                "from_records": count(best, "sourceLines"),
                "score": count(best, "score"),
                "shared": count(best, "sharedLines"),
                "to": text(best, "destination"),
                "to_records": count(best, "destinationLines"),
            }
            if all(
                fields[name] is not None for name in ("from", "from_records", "shared", "to", "to_records")
            ):
                yield self._said("prefix", fields, "a common beginning was found", "medium", "prefix-lineage")

    def _buckets(self, document: dict[str, Any]) -> Iterator[Fact]:
        buckets = document.get("buckets")
        for one in buckets if isinstance(buckets, list) else ():
            if not isinstance(one, dict):
                continue
            root, bucket, status = text(one, "root"), text(one, "bucket"), text(one, "status")
            if root is None or bucket is None or status is None:
                continue
            reasons = one.get("reasons")
            columns = {
                "root": root,
                "bucket": bucket,
                "decoded_path": text(one, "decodedPath"),
                "status": status,
                "session_count": count(one, "sessionCount") or 0,
                "earliest": time(one, "earliest"),
                "latest": time(one, "latest"),
                "reasons": [r for r in reasons if isinstance(r, str)] if isinstance(reasons, list) else [],
            }
            trust = confidence(one.get("confidence"), "low")
            yield fact("bucket_status", columns, provenance="bucket-reconciliation", confidence=trust)


def _nothing(_document: dict[str, Any]) -> Iterator[Fact]:
    return iter(())


def _notes(record: dict[str, Any]) -> str | None:
    """The notes of a record, a text or a list of texts, as one text."""
    found = record.get("notes", record.get("note"))
    if isinstance(found, str):
        return text({"notes": found}, "notes")
    if isinstance(found, list):
        return text({"notes": "; ".join(one for one in found if isinstance(one, str))}, "notes")
    return None
