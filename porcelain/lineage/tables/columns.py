"""What the tables of the lineage view are made of: columns, tables, and the words that a column may hold.

A column is filled from one of these, its ``origin``:

``fact``        the fact's own columns, under the same name (``metadata_json`` from ``metadata``);
``confidence``  ``provenance`` and ``evidence``: the envelope of the fact (the first evidence id);
``derived``     computed by the projection from other facts;
``id``          ``object``: the fact's id, and the id of the object that holds it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: ``TIME`` is text in the form of ``times``; ``FLAG`` true or false (1 or 0 in SQLite); ``OBJECT`` and ``LIST`` JSON.
ColumnType = Literal["TEXT", "TIME", "INTEGER", "FLAG", "OBJECT", "LIST"]
Origin = Literal["fact", "confidence", "provenance", "evidence", "derived", "id", "object"]

CONFIDENCES = ("authoritative", "high", "medium", "low", "manual")
SOURCE_KINDS = (
    "live_sessions",
    "relocation_manifest",
    "backup_snapshot",
    "git_repository",
    "provider_export",
    "manual_overlay",
)
EDGE_TYPES = (
    "relocation",
    "continuation",
    "fork",
    "context_jump",
    "manual_copy",
    "same_session_id",
    "derived_from",
)
RELATIONS = ("context_jump", "fork", "continuation", "sibling", "unrelated", "unknown")
LABEL_TYPES = ("display_name", "cwd", "project", "lineage", "alias", "source")
TARGET_TYPES = ("session", "observation", "edge", "source", "project")
ALIAS_TYPES = ("path", "project", "repo", "lineage")
EVIDENCE_KINDS = (
    "manifest_record",
    "backup_presence",
    "filesystem_stat",
    "git_activity",
    "prefix_match",
    "filename_chain",
    "manual_note",
    "shell_history",
)
PRESENCES = ("present", "absent")
MARK_TYPES = ("active", "superseded", "archived", "deletion_candidate", "preserve", "intentional_branch")
MEMBER_ROLES = ("canonical_path", "fork", "continuation", "context_jump", "reference")
REPO_EVENT_TYPES = ("rename", "move", "swap", "fork", "archive", "superseded_by", "alias")
RESUME_STATUSES = ("deterministic", "branch-choices", "recoverable-only", "no-target")
ARTIFACT_KINDS = ("mermaid", "html", "json", "markdown", "inventory", "timeline")
VCS_KINDS = ("git", "jj", "git+jj", "none")

#: The kind of evidence that says what is wrong with a file, and the words for it in ``data.state``.
FILE_EVIDENCE = "filesystem_stat"
GONE = "gone"
DAMAGE = "damage"
PENDING = "pending"
CONFLICT = "conflict"
#: That a conversation stands in the file of another, which is nothing wrong with what is known of it.
INSIDE = "inside"


class Column(Struct, frozen=True, kw_only=True):
    """One column. ``references`` is a table; ``default`` is used where a fact leaves the column out; ``volatile``
    marks what tells when something was observed or made, which comparisons of views leave out."""

    name: str
    type: ColumnType = "TEXT"
    required: bool = False
    origin: Origin = "fact"
    references: str | None = None
    values: tuple[str, ...] = ()
    default: str | bool | None = None
    unique: bool = False
    volatile: bool = False

    @property
    def field(self) -> str:
        """The name in a fact: that of the table without ``_json``."""
        return self.name.removesuffix("_json")

    @property
    def json_name(self) -> str:
        """The name in the JSON export."""
        return camel_case(self.field)


class Table(Struct, frozen=True, kw_only=True):
    """One table. ``kind`` is the kind of fact that its rows come from and the prefix of their ids; ``events`` has rows
    of landed records instead of facts."""

    name: str
    kind: str
    about: str
    columns: tuple[Column, ...]
    indexes: tuple[tuple[str, ...], ...] = ()

    @property
    def json_name(self) -> str:
        """The name in the JSON export."""
        return camel_case(self.name)


def camel_case(name: str) -> str:
    """``session_observations`` as ``sessionObservations``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def need(name: str, values: tuple[str, ...] = (), *, default: str | None = None) -> Column:
    """Text that is always there."""
    return Column(name=name, required=True, values=values, default=default)


def text(name: str, values: tuple[str, ...] = ()) -> Column:
    """Text."""
    return Column(name=name, values=values)


def time(name: str, *, required: bool = False, volatile: bool = False, origin: Origin = "fact") -> Column:
    """A time."""
    return Column(name=name, type="TIME", required=required, volatile=volatile, origin=origin)


def count(name: str, *, required: bool = False, origin: Origin = "fact") -> Column:
    """An integer from 0 up."""
    return Column(name=name, type="INTEGER", required=required, origin=origin)


def reference(name: str, table: str, *, required: bool = False) -> Column:
    """The id of a row of ``table``."""
    return Column(name=name, references=table, required=required)


def json_object(name: str) -> Column:
    """A JSON object, empty where nothing is said."""
    return Column(name=name, type="OBJECT", required=True, default="{}")


def json_list(name: str) -> Column:
    """A JSON list, empty where nothing is said."""
    return Column(name=name, type="LIST", required=True, default="[]")


ID = Column(name="id", required=True, origin="id")
CONFIDENCE = Column(name="confidence", required=True, origin="confidence", values=CONFIDENCES)
PROVENANCE = Column(name="provenance", required=True, origin="provenance")
SOURCE = Column(name="source", required=True, origin="provenance")
EVIDENCE = Column(name="evidence_id", origin="evidence", references="evidence")
REVIEW = Column(name="manual_review_required", type="FLAG", required=True, default=True)
METADATA = json_object("metadata_json")
OBJECT_ID = Column(name="object_id", required=True, origin="object")


def table(
    name: str, kind: str, about: str, columns: tuple[Column, ...], indexes: tuple[tuple[str, ...], ...] = ()
) -> Table:
    """A table of facts or events: its own columns between the id and the object's id."""
    return Table(name=name, kind=kind, about=about, columns=(ID, *columns, OBJECT_ID), indexes=indexes)
