"""The inventory: every file that a conversation was seen in, what is known of it, and whether it is still there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs

from plumbing.interface.output import counted, human_size
from porcelain.lineage.facts.projection import Projection, hosts_of, records, with_columns
from porcelain.lineage.tables.columns import CONFLICT, DAMAGE, FILE_EVIDENCE, PENDING
from porcelain.lineage.views.listing import LABEL_PRIORITY
from porcelain.lineage.views.names import Names
from porcelain.lineage.views.view_document import Document, Grid, Section

_STATES = (DAMAGE, PENDING, CONFLICT)


class Item(Struct, frozen=True, kw_only=True):
    """One file. ``states`` are what evidence says of it (``damage pending conflict``), ``marks`` words of retention,
    ``backups`` how many backups have it; ``inside`` is the conversation whose file it is, where that is another.
    Records and times of a file that others stand in are those of its own conversation."""

    observation: str
    session: str
    provider: str
    native_id: str
    label: str
    project: str
    source: str
    path: str
    kind: str
    present: bool
    size: int | None
    records: int
    first: str | None
    last: str | None
    modified: str | None
    states: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    backups: int = 0
    inside: str = ""


class Inventory(Struct, frozen=True, kw_only=True):
    """All files, by agent, project and path."""

    fold: str
    items: list[Item]


def make_inventory(projection: Projection, priority: Sequence[str] = LABEL_PRIORITY) -> Inventory:
    """The inventory of a view."""
    tables = projection.tables
    names = Names(projection.tables, priority)
    sources = {row["id"]: row for row in tables["sources"]}
    sessions = {row["id"]: row for row in with_columns(tables["sessions"], "id", "provider")}
    states: dict[str, set[str]] = defaultdict(set)
    for row in tables["evidence"]:
        if row["kind"] == FILE_EVIDENCE and row["data_json"].get("state") in _STATES:
            states[row["target_id"] or ""].add(row["data_json"]["state"])
    marks: dict[str, set[str]] = defaultdict(set)
    for row in tables["observation_marks"]:
        marks[row["observation_id"]].add(row["mark_type"])
    backups: dict[str, set[str]] = defaultdict(set)
    for row in tables["backup_observations"]:
        if row["session_observation_id"] is not None and row["presence"] == "present":
            backups[row["session_observation_id"]].add(row["snapshot_label"])
    items = []
    hosts = hosts_of(with_columns(tables["session_observations"], "id", "metadata_json"))
    for row in tables["session_observations"]:
        session = sessions.get(row["session_id"])
        source = sources.get(row["source_id"])
        items.append(
            Item(
                observation=row["id"],
                session=row["session_id"] or "",
                provider=session["provider"] if session is not None else "-",
                native_id=row["provider_session_id"] or "",
                label=names.observation(row["id"]),
                project=names.project(session["id"]) if session is not None else "",
                source=source["uri"] if source is not None else "",
                path=row["path"] or "",
                kind=row["metadata_json"].get("kind", "transcript"),
                present=row["presence"] == "present",
                size=row["file_size"] if "inside" not in row["metadata_json"] else None,
                records=hosts[row["id"]].records if row["id"] in hosts else records(row),
                first=hosts[row["id"]].first if row["id"] in hosts else row["first_event_at"],
                last=hosts[row["id"]].last if row["id"] in hosts else row["last_event_at"],
                modified=row["file_mtime"],
                states=tuple(sorted(states.get(row["id"], ()))),
                marks=tuple(sorted(marks.get(row["id"], ()))),
                backups=len(backups.get(row["id"], ())),
                inside=row["metadata_json"].get("inside", {}).get("host", {}).get("native_id", ""),
            )
        )
    items.sort(key=lambda one: (one.provider, one.project, one.path, one.observation))
    return Inventory(fold=projection.fold, items=items)


def inventory_document(inventory: Inventory) -> Document:
    """The document of an inventory: sums for each agent, then every file."""
    files = [one for one in inventory.items if not one.inside]
    absent = sum(not one.present for one in files)
    says = (f"{counted(len(files), 'file')}, {absent:,} of them gone.",)
    by_provider: dict[str, list[Item]] = defaultdict(list)
    for one in inventory.items:
        by_provider[one.provider].append(one)
    sums = [
        (
            provider,
            f"{len({one.session for one in items}):,}",
            f"{sum(not one.inside for one in items):,}",
            f"{sum(one.records for one in items):,}",
            human_size(sum(one.size or 0 for one in items)),
            f"{sum(not (one.present or one.inside) for one in items):,}",
            f"{sum(bool(one.states) for one in items):,}",
        )
        for provider, items in sorted(by_provider.items())
    ]
    header = ("agent", "conversations", "files", "records", "size", "gone", "remarkable")
    sections = [Section(heading="By agent", grid=Grid(header=header, rows=sums, right=(1, 2, 3, 4, 5, 6)))]
    for provider, items in sorted(by_provider.items()):
        rows = [
            (
                one.path,
                f"{one.records:,}",
                human_size(one.size) if one.size is not None else "-",
                (one.first or "-")[:10],
                (one.last or "-")[:10],
                ", ".join(remarks(one)),
            )
            for one in items
        ]
        grid = Grid(header=("file", "records", "size", "first", "last", ""), rows=rows, right=(1, 2))
        sections.append(Section(heading=provider, grid=grid))
    return Document(kind="inventory", title="Inventory", fold=inventory.fold, says=says, sections=sections)


def remarks(item: Item) -> list[str]:
    """What is remarkable about a file."""
    said = [] if item.kind == "transcript" else [item.kind.replace("_", " ")]
    said += [f"{item.native_id[:13]} in it"] if item.inside else []
    said += [] if item.present else ["gone"]
    said += [{"conflict": "rewritten", "damage": "damaged"}.get(state, state) for state in item.states]
    said += [mark.replace("_", " ") for mark in item.marks]
    return [*said, f"in {counted(item.backups, 'backup')}"] if item.backups else said


def inventory_value(inventory: Inventory) -> list[dict[str, Any]]:
    """The files for JSON."""
    return [structs.asdict(one) for one in inventory.items]
