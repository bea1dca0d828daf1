"""From the joined fold of all lineage chains to the rows of the exported view.

The rows depend on the set of facts only, not on the chain or order in which they came. A reference to something that
is not there is emptied, or the row is left out where it cannot be without; ``Projection.dangling`` says which, so that
nothing goes without notice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from objstore.digest import hash_bytes
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import Stored
from porcelain.lineage.tables.columns import FILE_EVIDENCE, GONE, Column, Table
from porcelain.lineage.tables.schema import BY_KIND, FACT_TABLES

_ENCODER = msgspec.json.Encoder(order="sorted")
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

    tables: Mapping[str, Sequence[Row]]
    dangling: list[Dangling]
    fold: str


def project(facts: Iterable[Stored], derived: Iterable[Stored] = ()) -> Projection:
    """The view of ``facts`` (object id and fact): one for each id, none withdrawn, in any order; ``store.all_facts``
    reads them. ``derived`` are facts that are made from those and stand nowhere: of one id the stored fact counts."""
    stored = list(facts)
    names = {item.id for _, item in stored}
    live = stored + [pair for pair in derived if pair[1].id not in names]
    tables = plain_rows(live)
    dangling = settle_references(tables)
    uris = {row["id"]: row["uri"] for row in tables["sources"]}
    derive_columns(tables, uris)
    _derive_sources(tables)
    objects = sorted(name for name, item in stored if item.kind != "import_run")
    return Projection(
        tables=tables, dangling=sorted(dangling), fold=hash_bytes("\n".join(objects).encode()).hex()
    )


def plain_rows(live: Iterable[Stored]) -> dict[str, list[Row]]:
    """A row for each fact, in the table of its kind and in order of id; columns that others determine are empty."""
    tables: dict[str, list[Row]] = {table.name: [] for table in FACT_TABLES}
    for object_name, item in sorted(live, key=lambda pair: pair[1].id):
        table = BY_KIND[item.kind]
        tables[table.name].append(_row(table, object_name, item))
    return tables


def derive_columns(tables: Mapping[str, list[Row]], uris: Mapping[str, str]) -> None:
    """Fill the columns of observations and sessions that follow from the other rows about them, which are all in
    ``tables``; ``uris`` are those of the sources."""
    _derive_observations(tables, uris)
    _derive_sessions(tables)


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
    if not value:
        return "[]" if type(value) is list else "{}"
    return _ENCODER.encode(value).decode()  # what facts hold has been checked, or made here


def with_columns(rows: Sequence[Row], *columns: str) -> Iterable[Row]:
    """Rows that have at least these columns; of rows that are read from SQLite, no more."""
    only = getattr(rows, "only", None)
    return only(columns) if only is not None else rows


def cells_of(table: Table, rows: Sequence[Row]) -> Iterator[tuple[str | int | None, ...]]:
    """The rows of a table as SQLite holds them; those that come from SQLite are not taken apart for it."""
    cells = getattr(rows, "cells", None)
    if cells is not None:
        yield from cells()
        return
    for row in rows:
        yield tuple(cell(column, row[column.name]) for column in table.columns)


class _Form(Struct, frozen=True):
    """How the row of a fact is made: the row of one that says nothing, in the order of the columns; the column that
    each field fills; the containers, which are made anew for each row; the columns that have the fact's confidence or
    provenance; that of its first evidence."""

    empty: Row
    filled: dict[str, str]
    containers: list[tuple[str, Callable[[], Any]]]
    envelope: list[tuple[str, str]]
    evidence: str | None


def _form(table: Table) -> _Form:
    facts = [column for column in table.columns if column.origin == "fact"]
    boxed = [column for column in facts if column.type in ("OBJECT", "LIST")]
    return _Form(
        empty={column.name: None for column in table.columns}
        | {column.name: column.default for column in facts if column not in boxed},
        filled={column.field: column.name for column in facts},
        containers=[(column.name, dict if column.type == "OBJECT" else list) for column in boxed],
        envelope=[
            (column.name, column.origin)
            for column in table.columns
            if column.origin in ("confidence", "provenance")
        ],
        evidence=next((column.name for column in table.columns if column.origin == "evidence"), None),
    )


_FORMS = {table.name: _form(table) for table in FACT_TABLES}


def _row(table: Table, object_name: str, item: Fact) -> Row:
    form = _FORMS[table.name]
    row, filled = form.empty.copy(), form.filled
    for field, value in item.columns.items():
        if value is not None and field in filled:
            row[filled[field]] = value
    for name, made in form.containers:
        if row[name] is None:
            row[name] = made()
    row["id"], row["object_id"] = item.id, object_name
    for name, attribute in form.envelope:
        row[name] = getattr(item, attribute)
    if form.evidence is not None and item.evidence:
        row[form.evidence] = item.evidence[0]
    return row


def settle_references(
    tables: Mapping[str, list[Row]], elsewhere: Callable[[str, str], bool] = lambda _table, _id: False
) -> list[Dangling]:
    """Leave out rows that lack what they cannot be without, until none is left; then empty the other references.
    ``elsewhere`` says whether a table has a row with this id that is not in ``tables``."""
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
            target = str(column.references)
            held = ids[target]
            lost = [
                row
                for row in tables[name]
                if row[column.name] not in held and not elsewhere(target, row[column.name])
            ]
            for row in lost:
                found.append(_dangling(name, row, column, left_out=True))
            if lost:
                gone = {row["id"] for row in lost}
                tables[name][:] = [row for row in tables[name] if row["id"] not in gone]
                ids[name] = {row["id"] for row in tables[name]}
                again = True
    for name, column in references:
        target = str(column.references)
        held = ids[target]
        for row in tables[name]:
            named = row[column.name]
            if named is not None and named not in held and not elsewhere(target, named):
                found.append(_dangling(name, row, column, left_out=False))
                row[column.name] = None
    return found


def _dangling(table: str, row: Row, column: Column, *, left_out: bool) -> Dangling:
    return Dangling(
        table=table, row=row["id"], column=column.name, missing=row[column.name], left_out=left_out
    )


def _derive_observations(tables: Mapping[str, list[Row]], uris: Mapping[str, str]) -> None:
    """Presence from the evidence about each file; the whole path from the source's uri."""
    gone = {
        row["target_id"]
        for row in tables["evidence"]
        if row["kind"] == FILE_EVIDENCE and row["data_json"].get("state") == GONE
    }
    for row in tables["session_observations"]:
        row["presence"] = "absent" if row["id"] in gone else "present"
        uri = uris.get(row["source_id"])
        if uri is not None and row["path"] is not None:
            row["path"] = _whole_path(uri, row["path"])


def _whole_path(uri: str, path: str) -> str:
    if path.startswith("/") or path[1:3] == ":/":
        return path
    return uri.rstrip("/\\") + "/" + path


def _derive_sessions(tables: Mapping[str, list[Row]]) -> None:
    """Times and counts of a session. Files of one stream that begin with the same record are copies of one another, or
    earlier and later states of one file: the one with most records counts. Sub-agents that were started at one moment
    begin alike as well and are not. Records in the file of another conversation count for their own, those that no file
    of its own has."""
    of_session: dict[str, list[Row]] = defaultdict(list)
    for row in tables["session_observations"]:
        if row["session_id"] is not None:
            of_session[row["session_id"]].append(row)
    hosts = hosts_of(tables["session_observations"])
    for session in tables["sessions"]:
        files = of_session[session["id"]]
        session["canonical_key"] = f"{session['provider']}:{session['provider_session_id']}"
        session["start_timestamp"] = session["first_seen_at"] = _least(
            hosts[row["id"]].first if row["id"] in hosts else row["first_event_at"] for row in files
        )
        session["end_timestamp"] = session["last_seen_at"] = _greatest(
            hosts[row["id"]].last if row["id"] in hosts else row["last_event_at"] for row in files
        )
        longest: dict[tuple[str | None, str], Row] = {}
        guests = [row for row in files if "inside" in row["metadata_json"]]
        for row in files:
            metadata = row["metadata_json"]
            if "inside" in metadata:
                continue
            beginning = (metadata.get("stream"), metadata.get("first_record") or row["id"])
            held = longest.get(beginning)
            if held is None or records(row) > records(held):
                longest[beginning] = row
        counted = longest.values()
        theirs = [other for row in counted if row["id"] in hosts for other in hosts[row["id"]].guests]
        mine = sum(row["metadata_json"]["inside"]["alone"] for row in guests)
        more = [row for row in guests if row["metadata_json"]["inside"]["alone"] == records(row)]
        session["event_count"] = sum(map(records, counted)) - sum(map(records, theirs)) + mine
        session["line_count"] = _sum("line_count", counted) - _sum("line_count", theirs) + mine
        session["byte_count"] = (
            _sum("file_size", counted) - _sum("file_size", theirs) + _sum("file_size", more)
        )


class Host(Struct, frozen=True):
    """A file that others stand in: the rows of those, how many records are its own conversation's, their times."""

    guests: list[Row]
    records: int
    first: str | None
    last: str | None


def hosts_of(observations: Iterable[Row]) -> dict[str, Host]:
    """The files that others stand in, by observation; the rows have at least ``id`` and ``metadata_json``."""
    guests: dict[str, list[Row]] = defaultdict(list)
    for row in observations:
        if "inside" in row["metadata_json"]:
            guests[row["metadata_json"]["inside"]["observation"]].append(row)
    found = {}
    for name, rows in guests.items():
        inside = rows[0]["metadata_json"]["inside"]
        own = inside["host"]["records"] - sum(map(records, rows))
        found[name] = Host(rows, own, inside.get("first"), inside.get("last"))
    return found


def _sum(column: str, rows: Iterable[Row]) -> int:
    return sum(row[column] or 0 for row in rows)


def records(observation: Row) -> int:
    """How many records an observation's row has."""
    count: int = observation["metadata_json"].get("records", 0)
    return count


def _derive_sources(tables: Mapping[str, list[Row]]) -> None:
    runs: dict[str, list[Row]] = defaultdict(list)
    for run in tables["import_runs"]:
        runs[run["source_id"]].append(run)
    for source in tables["sources"]:
        observe_source(source, runs[source["id"]])


def observe_source(source: Row, runs: Iterable[Row]) -> None:
    """Fill the columns of a source that its import runs say."""
    own = list(runs)
    source["first_observed_at"] = _least(run["started_at"] for run in own)
    source["last_observed_at"] = _greatest(run["finished_at"] or run["started_at"] for run in own)


def _least(times: Iterable[str | None]) -> str | None:
    return min((time for time in times if time is not None), default=None)


def _greatest(times: Iterable[str | None]) -> str | None:
    return max((time for time in times if time is not None), default=None)
