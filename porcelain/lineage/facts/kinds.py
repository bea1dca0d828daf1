"""The object of lineage: the fact, a frame of a store's chain ``lineage/<store>``.

There is one kind of object for all facts. What a fact of each kind may and must say stands in ``schema``; the check
here holds every fact to it, and its id to its identity parts, so that ``verify`` refuses a fact that no table could
show or that stands under another fact's id.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from objstore import kinds
from objstore.errors import CheckFailed
from objstore.fastcanonical import encode
from porcelain.lineage.facts import identity
from porcelain.lineage.facts.times import is_time
from porcelain.lineage.tables.columns import Column
from porcelain.lineage.tables.schema import BY_KIND

Confidence = Literal["authoritative", "high", "medium", "low", "manual"]
Count = Annotated[int, Meta(ge=0, le=kinds.MAX_SAFE_INTEGER)]

#: Bytes of UTF-8 in one text of a fact.
MAX_TEXT = 64 * 1024


#: For each kind the columns that its facts may have by field, and the fields that they must have.
_ALLOWED: dict[str, tuple[dict[str, Column], tuple[str, ...]]] = {
    kind: (
        {column.field: column for column in table.columns if column.origin == "fact"},
        tuple(
            column.field
            for column in table.columns
            if column.origin == "fact" and column.required and column.default is None
        ),
    )
    for kind, table in BY_KIND.items()
}


class FactRefused(CheckFailed):
    """A fact breaks the rules of its kind. ``fact`` is its id and ``column`` the column at fault, or None."""

    def __init__(self, fact: str, column: str | None, reason: str) -> None:
        super().__init__(f"{fact[:80]}: {reason}" if column is None else f"{fact[:80]}: {column}: {reason}")
        self.fact = fact
        self.column = column


class Fact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing learned, as one frame of a lineage chain.

    ``columns`` holds what the fact says, by the field names of its table; a column that is absent is not known.
    ``evidence`` lists ids of evidence facts, sorted. ``provenance`` names the rule, tool or curator that it comes from.
    With ``tombstone`` the fact is withdrawn from this revision on.
    """

    columns: dict[str, Any]
    confidence: Confidence
    evidence: list[str]
    id: str
    kind: str
    provenance: str
    revision: Count
    tombstone: bool | UnsetType = UNSET
    type: Literal["fact"] = "fact"


def identity_of(kind: str, columns: dict[str, Any], provenance: str) -> str:
    """The id of the fact of ``kind`` with these columns, which have been checked. Raises ``FactRefused`` for one that
    is missing and that the identity needs."""
    try:
        return _identity(kind, columns, provenance)
    except KeyError as error:
        raise FactRefused(kind, str(error.args[0]), "missing, and part of the identity") from None


def _identity(kind: str, columns: dict[str, Any], provenance: str) -> str:
    c = columns
    metadata = c.get("metadata", {})
    get = c.get
    match kind:
        case "source":
            return identity.source_id(c["provider"], c["kind"], metadata["host"], c["uri"])
        case "import_run":
            return identity.import_run_id(c["source_id"], c["tool"], c["started_at"])
        case "session":
            return identity.session_id(c["provider"], c["provider_session_id"])
        case "observation":
            return identity.observation_id(
                c["source_id"], c["path"], metadata.get("first_record"), metadata.get("differs")
            )
        case "edge":
            return identity.edge_id(
                c["edge_type"],
                c["source_observation_id"],
                c["target_observation_id"],
                get("timestamp"),
                provenance,
            )
        case "label":
            return identity.label_id(c["target_id"], c["label_type"], c["value"], provenance)
        case "alias":
            return identity.alias_id(c["from_value"], c["alias_type"], c["to_value"], provenance)
        case "classification":
            return identity.classification_id(
                c["target_id"], c["target_type"], c["classification"], provenance
            )
        case "mark":
            return identity.mark_id(c["observation_id"], c["mark_type"], get("label"), provenance)
        case "evidence":
            data = c["data"]
            targets = [c["target_id"]] if "target_id" in c else []
            return identity.evidence_id(c["kind"], targets + list(data.get("other_targets", [])), data)
        case "backup_observation":
            return identity.backup_observation_id(
                c["source_id"], c["snapshot_label"], c["path"], c["presence"]
            )
        case "repository":
            return identity.repository_id(metadata.get("stable_name"), get("first_commit"), c["path"])
        case "repo_identity":
            return identity.repo_identity_id(c["stable_name"])
        case "repo_observation":
            return identity.repo_observation_id(
                c["repo_identity_id"],
                get("path"),
                get("bucket"),
                get("remote_url"),
                get("valid_from"),
                get("valid_to"),
            )
        case "repo_event":
            return identity.repo_event_id(
                c["event_type"],
                get("repo_identity_id"),
                get("related_repo_identity_id"),
                get("from_path"),
                get("to_path"),
                get("timestamp"),
                get("summary"),
            )
        case "batch_operation":
            return identity.batch_operation_id(
                get("operation_id"),
                c["operation_type"],
                c["source_path"],
                c["destination_path"],
                c["timestamp"],
            )
        case "thread":
            return identity.thread_id(c["root_session_id"], metadata.get("root_observation"))
        case "thread_member":
            return identity.thread_member_id(c["thread_id"], c["session_id"], get("observation_id"))
        case "thread_edge":
            return identity.thread_edge_id(
                c["thread_id"], c["source_session_id"], c["target_session_id"], c["relation"], get("edge_id")
            )
        case "resume_target":
            return identity.resume_target_id(c["thread_id"])
        case "suggestion":
            return identity.suggestion_id(
                get("source_session_id"), get("target_session_id"), c["proposed_relation"], c["suggester"]
            )
        case "checkpoint":
            return identity.checkpoint_id(
                get("thread_id"),
                get("session_id"),
                get("observation_id"),
                c["kind"],
                get("path"),
                get("input_hash"),
            )
        case "artifact":
            return identity.artifact_id(c["kind"], c["path"], c["generator"], get("input_hash"))
        case "bucket_status":
            return identity.bucket_status_id(c["root"], c["bucket"])
    raise _unknown(kind)


def _unknown(kind: str) -> CheckFailed:
    return CheckFailed(
        f"{kind[:40]!r}: unknown kind of fact", hint="a newer objstore may know it; this one does not"
    )


def check_columns(kind: str, columns: dict[str, Any], name: str) -> None:
    """Raise ``FactRefused`` (about the fact called ``name``) unless ``columns`` say what a fact of ``kind`` must, and
    nothing it cannot."""
    found = _ALLOWED.get(kind)
    if found is None:
        raise _unknown(kind)
    allowed, needed = found
    for field, value in columns.items():
        column = allowed.get(field)
        if column is None:
            raise FactRefused(name, field[:40], f"a {kind} has no such column")
        reason = _fault(column, value)
        if reason is not None:
            raise FactRefused(name, field, reason)
    for field in needed:
        if field not in columns:
            raise FactRefused(name, field, "missing")


def check_fact(fact: Fact) -> None:
    """Raise ``FactRefused`` unless the columns and the envelope of ``fact`` are right and its id is its own."""
    check_columns(fact.kind, fact.columns, fact.id)
    check_envelope(fact)
    expected = identity_of(fact.kind, fact.columns, fact.provenance)
    if fact.id != expected:
        raise FactRefused(fact.id, None, f"its identity parts give {expected}")


def check_envelope(fact: Fact) -> None:
    """Raise ``FactRefused`` unless what stands around the columns and the id of ``fact`` is right."""
    if not fact.provenance:
        raise FactRefused(fact.id, "provenance", "empty")
    if sorted(set(fact.evidence)) != fact.evidence:
        raise FactRefused(fact.id, "evidence", "not sorted, or an id stands twice")
    if not all(identity.is_fact_id(item, "evidence") for item in fact.evidence):
        raise FactRefused(fact.id, "evidence", "not the id of evidence")
    if fact.tombstone is False:
        raise FactRefused(fact.id, "tombstone", "false is written by leaving it out")


def _fault(column: Column, value: object) -> str | None:
    """What is wrong with ``value`` in ``column``, or None."""
    match column.type:
        case "TEXT" | "TIME":
            return _text_fault(column, value)
        case "INTEGER":
            return None if type(value) is int and value >= 0 else "not a count"
        case "FLAG":
            return None if type(value) is bool else "neither true nor false"
        case "OBJECT" | "LIST":
            if type(value) is not (dict if column.type == "OBJECT" else list):
                return f"not a JSON {column.type.lower()}"
            encode(value)
            targets = value.get("other_targets", []) if isinstance(value, dict) else []
            return None if type(targets) is list else "its other_targets are no list"


def _text_fault(column: Column, value: object) -> str | None:
    if type(value) is not str:
        return "not a text"
    if len(value) * 4 > MAX_TEXT and len(value.encode()) > MAX_TEXT:
        return f"more than {MAX_TEXT} bytes"
    if "\x00" in value:
        return "holds NUL, at which text ends in SQLite"
    if column.type == "TIME" and not is_time(value):
        return "not a time of the form 2026-01-31T23:59:59.000Z"
    if column.values and value not in column.values:
        return "not one of " + " ".join(column.values)
    if column.references is not None and not identity.is_fact_id(value):
        return "not the id of a fact"
    return None


FACT = kinds.register(kinds.Kind(name="fact", struct=Fact, check=check_fact))
