"""From the joined fold of all lineage chains to the rows of the exported view.

The rows depend on the set of facts only, not on the chain or order in which they came. A reference to something that
is not there is emptied, or the row is left out where it cannot be without; ``Projection.dangling`` says which, so that
nothing goes without notice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from objstore.digest import hash_bytes
from objstore.fastcanonical import encode
from porcelain.lineage.columns import FILE_EVIDENCE, GONE, Column, Table
from porcelain.lineage.facts import Stored
from porcelain.lineage.kinds import Fact
from porcelain.lineage.schema import FACT_TABLES

#: One row by column name: text, int, bool, dict, list or None.
Row = dict[str, Any]


class Dangling(Struct, frozen=True, kw_only=True, order=True):
    """A reference to a row that is not there. ``left_out`` says that the row was left out for it."""

    table: str
    row: str
    column: str
    missing: str
    left_out: bool


class Projection(Struct, frozen=True, kw_only=True):
    """The rows of each table but ``events``, sorted by id; what was dangling, sorted; and ``fold``, the SHA-256 (hex)
    of the sorted object ids of all facts in it but the import runs, which names the state that the view was made from.
    """

    tables: Mapping[str, list[Row]]
    dangling: list[Dangling]
    fold: str


def project(facts: Iterable[Stored], derived: Iterable[Stored] = ()) -> Projection:
    """The view of ``facts`` (object id and fact): one for each id, none withdrawn, in any order; ``store.all_facts``
    reads them. ``derived`` are facts that are made from those and stand nowhere: of one id the stored fact counts."""
    stored = list(facts)
    names = {item.id for _, item in stored}
    live = stored + [pair for pair in derived if pair[1].id not in names]
    live.sort(key=lambda pair: pair[1].id)
    tables: dict[str, list[Row]] = {table.name: [] for table in FACT_TABLES}
    by_kind = {table.kind: (table, tables[table.name]) for table in FACT_TABLES}
    for object_name, item in live:
        table, rows = by_kind[item.kind]
        rows.append(_row(table, object_name, item))
    dangling = _settle_references(tables)
    _derive_observations(tables)
    _derive_sessions(tables)
    _derive_sources(tables)
    objects = sorted(name for name, item in stored if item.kind != "import_run")
    return Projection(
        tables=tables, dangling=sorted(dangling), fold=hash_bytes("\n".join(objects).encode()).hex()
    )


def comparable(projection: Projection) -> Projection:
    """``projection`` without what tells when something was observed or made: the part that is equal for equal input,
    whichever store imported it and when."""
    tables = {name: [dict(row) for row in rows] for name, rows in projection.tables.items()}
    tables["import_runs"] = []
    for table in FACT_TABLES:
        for column in table.columns:
            if column.volatile:
                for row in tables[table.name]:
                    row[column.name] = "" if column.required else None
    return Projection(tables=tables, dangling=projection.dangling, fold=projection.fold)


def cell(column: Column, value: Any) -> str | int | None:
    """``value`` of a row as SQLite holds it."""
    if value is None or type(value) is str or type(value) is int:
        return value
    if type(value) is bool:
        return int(value)
    return encode(value).decode()


def _row(table: Table, object_name: str, item: Fact) -> Row:
    row: Row = {}
    for column in table.columns:
        match column.origin:
            case "fact":
                value = item.columns.get(column.field)
                row[column.name] = _default(column) if value is None else value
            case "id":
                row[column.name] = item.id
            case "object":
                row[column.name] = object_name
            case "confidence":
                row[column.name] = item.confidence
            case "provenance":
                row[column.name] = item.provenance
            case "evidence":
                row[column.name] = item.evidence[0] if item.evidence else None
            case "derived":
                row[column.name] = None
    return row


def _default(column: Column) -> Any:
    match column.type:
        case "OBJECT":
            return {}
        case "LIST":
            return []
    return column.default


def _settle_references(tables: dict[str, list[Row]]) -> list[Dangling]:
    """Leave out rows that lack what they cannot be without, until none is left; then empty the other references."""
    found: list[Dangling] = []
    references = [
        (table.name, column)
        for table in FACT_TABLES
        for column in table.columns
        if column.references is not None
    ]
    ids = {name: {row["id"] for row in rows} for name, rows in tables.items()}
    again = True
    while again:
        again = False
        for name, column in references:
            if not column.required:
                continue
            held = ids[str(column.references)]
            lost = [row for row in tables[name] if row[column.name] not in held]
            for row in lost:
                found.append(_dangling(name, row, column, left_out=True))
            if lost:
                tables[name][:] = [row for row in tables[name] if row[column.name] in held]
                ids[name] = {row["id"] for row in tables[name]}
                again = True
    for name, column in references:
        held = ids[str(column.references)]
        for row in tables[name]:
            if row[column.name] is not None and row[column.name] not in held:
                found.append(_dangling(name, row, column, left_out=False))
                row[column.name] = None
    return found


def _dangling(table: str, row: Row, column: Column, *, left_out: bool) -> Dangling:
    return Dangling(
        table=table, row=row["id"], column=column.name, missing=row[column.name], left_out=left_out
    )


def _derive_observations(tables: dict[str, list[Row]]) -> None:
    """Presence from the evidence about each file; the whole path from the source's uri."""
    gone = {
        row["target_id"]
        for row in tables["evidence"]
        if row["kind"] == FILE_EVIDENCE and row["data_json"].get("state") == GONE
    }
    uris = {row["id"]: row["uri"] for row in tables["sources"]}
    for row in tables["session_observations"]:
        row["presence"] = "absent" if row["id"] in gone else "present"
        uri = uris.get(row["source_id"])
        if uri is not None and row["path"] is not None:
            row["path"] = _whole_path(uri, row["path"])


def _whole_path(uri: str, path: str) -> str:
    if path.startswith("/") or path[1:3] == ":/":
        return path
    return uri.rstrip("/\\") + "/" + path


def _derive_sessions(tables: dict[str, list[Row]]) -> None:
    """Times and counts of a session. Files of one stream that begin with the same record are copies of one another, or
    earlier and later states of one file: the one with most records counts. Sub-agents that were started at one moment
    begin alike as well and are not."""
    of_session: dict[str, list[Row]] = defaultdict(list)
    for row in tables["session_observations"]:
        if row["session_id"] is not None:
            of_session[row["session_id"]].append(row)
    for session in tables["sessions"]:
        files = of_session[session["id"]]
        session["canonical_key"] = f"{session['provider']}:{session['provider_session_id']}"
        session["start_timestamp"] = session["first_seen_at"] = _least(row["first_event_at"] for row in files)
        session["end_timestamp"] = session["last_seen_at"] = _greatest(row["last_event_at"] for row in files)
        longest: dict[tuple[str | None, str], Row] = {}
        for row in files:
            metadata = row["metadata_json"]
            beginning = (metadata.get("stream"), metadata.get("first_record") or row["id"])
            held = longest.get(beginning)
            if held is None or records(row) > records(held):
                longest[beginning] = row
        counted = longest.values()
        session["event_count"] = sum(records(row) for row in counted)
        session["line_count"] = sum(row["line_count"] or 0 for row in counted)
        session["byte_count"] = sum(row["file_size"] or 0 for row in counted)


def records(observation: Row) -> int:
    """How many records an observation's row has."""
    count: int = observation["metadata_json"].get("records", 0)
    return count


def _derive_sources(tables: dict[str, list[Row]]) -> None:
    runs: dict[str, list[Row]] = defaultdict(list)
    for run in tables["import_runs"]:
        runs[run["source_id"]].append(run)
    for source in tables["sources"]:
        source["first_observed_at"] = _least(run["started_at"] for run in runs[source["id"]])
        source["last_observed_at"] = _greatest(
            run["finished_at"] or run["started_at"] for run in runs[source["id"]]
        )


def _least(times: Iterable[str | None]) -> str | None:
    return min((time for time in times if time is not None), default=None)


def _greatest(times: Iterable[str | None]) -> str | None:
    return max((time for time in times if time is not None), default=None)
