"""The relocation manifests of Pi's session tools: one JSON line for each copy of a session's file to another folder.

A record is a statement about two paths. Of the two places where a manifest may lie both are read, and a record that
stands in both is one record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.statements import statement
from porcelain.lineage.facts.times import normal_time

#: Where a manifest may lie within Pi's agent folder.
MANIFESTS = ("relocations.jsonl", "session-move/manifests/relocations.jsonl")
PROVENANCE = "relocation-manifest"
#: Longest line that is looked at; one record is far below it.
MAX_LINE = 4 * 1024 * 1024


class Damage(Struct, frozen=True, kw_only=True):
    """A line, or a whole file (line 0), of which nothing could be made, and why."""

    path: str
    line: int
    reason: str


class Lines(Struct):
    """The JSON objects of a file, one a line, and what could not be read."""

    path: Path
    damage: list[Damage] = field(default_factory=list)

    def read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Line numbers (from 1) and objects. A last line that is cut is left for the next time."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                text = line.removeprefix(b"\xef\xbb\xbf" if number == 1 else b"").strip(b"\x00 \t\r\n")
                if not text:
                    continue
                try:
                    value = json.loads(text) if len(text) <= MAX_LINE else None
                except (ValueError, RecursionError):
                    if line.endswith(b"\n"):
                        self.note(number, "not JSON")
                    continue
                if isinstance(value, dict):
                    yield number, value
                else:
                    self.note(number, "not an object" if len(text) <= MAX_LINE else "too long")

    def note(self, line: int, reason: str) -> None:
        self.damage.append(Damage(path=str(self.path), line=line, reason=reason))


def relocation(record: dict[str, Any], host: str) -> Fact | None:
    """The statement of one manifest record; None for one that does not name two files."""
    nested = _nested(record)
    source, target = text(record, "sourceSession"), text(record, "destinationSession")
    if source is None or target is None:
        return None
    when = time(record, "ts")
    batch = text(record, "batchId") or text(nested, "batchId")
    operation = text(record, "operationType") or text(nested, "operationType")
    fields = {
        "batch": batch,
        "confidence": text(record, "confidence"),
        "from": source,
        "from_cwd": text(record, "fromCwd"),
        "inferred": True if record.get("inferred") is True else None,
        "mode": text(record, "mode") or text(nested, "mode") or "move",
        "native_id": text(record, "sourceSessionId") or text(record, "destinationSessionId"),
        "operation": operation or ("bucket_relocation" if batch else "session_relocation"),
        "replacements": count(record, "replacements"),
        "source_bytes": count(record, "sourceBytesAtEvent"),
        "source_lines": count(record, "sourceLinesAtEvent"),
        "source_repo": text(record, "sourceRepo") or text(nested, "sourceRepo"),
        "target_repo": text(record, "targetRepo") or text(nested, "targetRepo"),
        "to": target,
        "to_cwd": text(record, "toCwd"),
        "tool": text(record, "tool") or text(nested, "tool"),
        "ts": when,
    }
    summary = f"{fields['operation']} in mode {fields['mode']}".replace("_", " ")
    trust = "medium" if fields["inferred"] else "authoritative"
    return statement("relocation", host, fields, summary, provenance=PROVENANCE, trust=trust, time=when)  # type: ignore[arg-type]


def _nested(record: dict[str, Any]) -> dict[str, Any]:
    """Historical records hold some fields one level down, as an object or as JSON text."""
    value = record.get("metadata", record.get("metadata_json"))
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def text(record: dict[str, Any], name: str) -> str | None:
    """A text of a record as it can be kept, None for none: NUL and what is no Unicode replaced."""
    value = record.get(name)
    if not isinstance(value, str) or not value:
        return None
    return value.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")[:8192]


def count(record: dict[str, Any], name: str) -> int | None:
    """A count of a record, None for none."""
    value = record.get(name)
    return value if type(value) is int and 0 <= value < 2**53 else None


def time(record: dict[str, Any], name: str) -> str | None:
    """A time of a record in the normal form, None for none."""
    value = record.get(name)
    return normal_time(value) if isinstance(value, str) else None
