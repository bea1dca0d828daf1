"""Rows of facts that go with no group, of sources and of buckets."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from objstore.snapshot import Snapshot
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.projection import observe_source, plain_rows
from porcelain.lineage.index.deriving import key_of, stored_facts
from porcelain.lineage.index.folders import bucket_rows
from porcelain.lineage.index.intake import PART, Intake
from porcelain.lineage.index.tables import in_parts, placed
from porcelain.lineage.index.written import Written
from porcelain.lineage.tables.schema import BY_KIND


def write_plain(
    connection: sqlite3.Connection,
    view: Snapshot,
    intake: Intake,
    written: Written,
    changed: Iterable[Fact],
    *,
    anew: bool,
) -> None:
    """Write the rows of facts that go with no group: those of ``changed``, or all."""
    if anew:
        rows = connection.execute("SELECT key FROM fact WHERE token IS NULL AND NOT removed").fetchall()
        keys = [key for (key,) in rows]
    else:
        grouped = {"session", "observation"}
        names = [one.id for one in changed if one.kind not in grouped]
        keys = []
        for part in in_parts(names):
            within = f"FROM fact WHERE token IS NULL AND id IN ({placed(part)})"
            for kind, name in connection.execute(f"SELECT kind, id {within} AND removed", part).fetchall():
                written.take_out(BY_KIND[kind].name, [name])
            keys += (key for (key,) in connection.execute(f"SELECT key {within} AND NOT removed", part))
    for some in in_parts(keys, PART):
        written.write_settled(plain_rows(stored_facts(view, some)))
    runs = {one.columns["source_id"] for one in changed if one.kind == "import_run" and not anew} | {
        one.id for one in changed if one.kind == "source"
    }
    _observe_sources(connection, intake, written, set(intake.sources) if anew else runs)


def _observe_sources(
    connection: sqlite3.Connection, intake: Intake, written: Written, names: set[str]
) -> None:
    wanted = [
        (key_of(connection, name), intake.sources[name]) for name in sorted(names) if name in intake.sources
    ]
    tables = plain_rows(wanted)
    for row in tables["sources"]:
        runs = connection.execute(
            "SELECT started_at, finished_at FROM import_runs WHERE source_id = ?", (row["id"],)
        )
        observe_source(row, ({"started_at": start, "finished_at": end} for start, end in runs))
    written.write({"sources": tables["sources"]})


def write_buckets(
    connection: sqlite3.Connection, written: Written, places: set[tuple[str, str]] | None
) -> None:
    """Write the rows of these buckets, or of all."""
    facts, empty = bucket_rows(connection, places)
    written.write(plain_rows(facts))
    for place in empty:
        connection.execute("DELETE FROM bucket_statuses WHERE root = ? AND bucket = ?", place)
