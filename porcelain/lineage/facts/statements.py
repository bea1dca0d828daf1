"""What people and tools have stated about sessions in sidecar files, as evidence facts.

A statement names files by path, for a file may be named before it is imported, or may never be. It is kept as evidence
with the fields that matter and without any text of a conversation; which observations it means is worked out whenever a
view is made, so that the order of imports does not matter.

``data`` of a statement has ``says`` (what it is), ``host`` (the label of the host whose paths it names), and the
fields of ``STATEMENTS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from porcelain.lineage.facts.kinds import Confidence, Fact
from porcelain.lineage.facts.making import fact

#: For each ``says``: the kind of evidence, and the fields that are kept.
STATEMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "relocation": (
        "manifest_record",
        (
            "batch",
            "confidence",
            "from",
            "from_cwd",
            "inferred",
            "mode",
            "native_id",
            "operation",
            "replacements",
            "source_bytes",
            "source_lines",
            "source_repo",
            "target_repo",
            "to",
            "to_cwd",
            "tool",
            "ts",
        ),
    ),
    "edge": ("manual_note", ("confidence", "from", "from_cwd", "lineage", "notes", "to", "to_cwd", "ts")),
    "classification": (
        "manual_note",
        ("confidence", "from", "index", "label", "lineage", "notes", "to", "ts"),
    ),
    "root": ("manual_note", ("confidence", "cwd", "label", "notes", "path")),
    "session-label": ("manual_note", ("confidence", "cwd", "label", "native_id", "note", "path", "source")),
    "lineage-name": ("manual_note", ("created", "current", "description", "label", "path", "updated")),
    "mark": (
        "manual_note",
        (
            "confidence",
            "label",
            "mark",
            "native_id",
            "observation",
            "path",
            "reason",
            "replacement",
            "review",
            "source",
            "ts",
        ),
    ),
    "backup": ("backup_presence", ("absent", "key", "mtime", "path", "present")),
    "prefix": (
        "prefix_match",
        (
            "best",
            "confidence",
            "from",
            "from_records",
            "score",
            "shared",
            "to",
            "to_records",
        ),
    ),
}

_CONFIDENCES: dict[str, Confidence] = {
    "authoritative": "authoritative",
    "high": "high",
    "medium": "medium",
    "low": "low",
    "manual": "manual",
    "observed": "high",
    "derived": "medium",
    "inferred": "medium",
    "inferred-from-legacy-manifest": "medium",
    "filename-and-session-bucket": "medium",
}


def confidence(text: object, default: Confidence = "manual") -> Confidence:
    """The confidence that a sidecar's own word for it means."""
    return _CONFIDENCES.get(text, default) if isinstance(text, str) else default


def statement(
    says: str,
    host: str,
    fields: Mapping[str, Any],
    summary: str,
    *,
    provenance: str,
    trust: Confidence,
    time: str | None = None,
) -> Fact:
    """The evidence fact (not revised) of one statement; fields that are None are left out."""
    kind, allowed = STATEMENTS[says]
    data: dict[str, Any] = {"host": host, "says": says}
    data.update((name, fields[name]) for name in allowed if fields.get(name) is not None)
    columns = {"kind": kind, "timestamp": time, "summary": summary, "data": data}
    return fact("evidence", columns, provenance=provenance, confidence=trust)
