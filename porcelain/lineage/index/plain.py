"""Rows of facts that go with no group, of sources and of buckets."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from objstore.snapshot import Snapshot
from porcelain.lineage.facts.identity import bucket_status_id
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
        rows = connection.execute("SELECT id FROM fact WHERE token IS NULL AND NOT removed").fetchall()
        names = [name for (name,) in rows]
    else:
        grouped = {"session", "observation"}
        names = [one.id for one in changed if one.kind not in grouped]
    rewrite_plain(connection, view, written, names)
    runs = {one.columns["source_id"] for one in changed if one.kind == "import_run" and not anew} | {
        one.id for one in changed if one.kind == "source"
    }
    _observe_sources(connection, intake, written, set(intake.sources) if anew else runs)


def rewrite_plain(
    connection: sqlite3.Connection, view: Snapshot, written: Written, names: Iterable[str]
) -> None:
    """Write the rows of those facts with these ids that go with no group, and take out those that were withdrawn."""
    keys: list[bytes] = []
    for part in in_parts(names):
        rows = connection.execute(
            f"SELECT id, kind, key, removed FROM fact WHERE token IS NULL AND id IN ({placed(part)})", part
        )
        for name, kind, key, removed in rows.fetchall():
            if removed:
                written.take_out(BY_KIND[kind].name, [name])
            else:
                keys.append(key)
    for some in in_parts(keys, PART):
        written.write_settled(plain_rows(stored_facts(view, some)))


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
    """Write the rows of these buckets, or of all: of a bucket about which a fact is stored, that counts."""
    facts, empty = bucket_rows(connection, places)
    stored = {
        name
        for (name,) in connection.execute(
            "SELECT id FROM fact WHERE kind = 'bucket_status' AND NOT removed AND token IS NULL"
        )
    }
    written.write(plain_rows(pair for pair in facts if pair[1].id not in stored))
    for place in empty:
        if bucket_status_id(*place) not in stored:
            connection.execute("DELETE FROM bucket_statuses WHERE root = ? AND bucket = ?", place)
