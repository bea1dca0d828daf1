"""Bringing the index up to date: what is new is read, the groups it belongs to are derived again, their rows replaced.

An index that has nothing yet goes the same way, with everything new; its groups are derived some thousand facts at a
time, so that memory does not grow with the store.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from objstore.digest import hasher
from objstore.garbage import without_gc
from objstore.snapshot import Snapshot
from porcelain.lineage.index.changes import OutOfStep, moved_landings
from porcelain.lineage.index.deriving import Deriving
from porcelain.lineage.index.intake import Intake
from porcelain.lineage.index.neighbours import Neighbours
from porcelain.lineage.index.plain import rewrite_plain, write_buckets, write_plain
from porcelain.lineage.index.standing import edition, heads_text, lineage_heads
from porcelain.lineage.index.tables import INDEXES, KEPT, make_tables, run_all, write_info
from porcelain.lineage.index.written import Written
from porcelain.lineage.relations.nodes import NAMED_URI


class Work(Struct):
    """What an update did: facts and files (their records) that were read because they are new, groups and facts that
    were derived from again, rows written, and whether everything was made anew."""

    new_facts: int = 0
    new_files: int = 0
    groups: int = 0
    facts: int = 0
    rows: int = 0
    anew: bool = False


def update(connection: sqlite3.Connection, view: Snapshot, path: str | None = None) -> Work:
    """Bring the index in step with ``view``, within the open transaction. ``path`` is the store's folder, where other
    processes may open it."""
    with without_gc():
        return _updated(connection, view, path)


def _updated(connection: sqlite3.Connection, view: Snapshot, path: str | None) -> Work:
    row = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'state'").fetchone()
    stamp = None
    if row is not None:
        stamp = connection.execute("SELECT value FROM state WHERE name = 'edition'").fetchone()
    if stamp is not None and stamp[0] == edition():
        connection.execute("SAVEPOINT onward")
        try:
            done = _brought_up(connection, view, path, anew=False)
            connection.execute("RELEASE onward")
            return done
        except OutOfStep:
            connection.execute("ROLLBACK TO onward")
            connection.execute("RELEASE onward")
    make_tables(connection)
    return _brought_up(connection, view, path, anew=True)


def _brought_up(connection: sqlite3.Connection, view: Snapshot, path: str | None, *, anew: bool) -> Work:
    intake, written = Intake(connection, view, path, anew=anew), Written(connection)
    moved = moved_landings(connection, view)
    if moved:
        connection.execute("DELETE FROM state WHERE name LIKE ?", (f"{KEPT}%",))
    changed = intake.read_facts()
    intake.load_sources()
    judged = intake.judged_edges()
    if not anew and any(intake.is_strange(one) for one in changed.values()):
        raise OutOfStep
    deriving = Deriving(connection, view, intake, written, judged, anew=anew)
    neighbours = Neighbours(connection, intake.groups, written, judged)
    folders, buckets = deriving.places
    groups = intake.group(changed, moved)
    everywhere = anew
    while groups:
        deriving.derive(groups)
        some = _taken(folders)
        groups = neighbours.settle(None if everywhere else some)
        everywhere = False
    write_plain(connection, view, intake, written, changed.values(), anew=anew)
    while not anew and (rows := written.loose()):
        groups = deriving.groups_of(rows)
        while groups:
            deriving.derive(groups)
            groups = neighbours.settle(_taken(folders))
        rewrite_plain(connection, view, written, [name for _, name in rows])
    buckets |= {
        (one.columns["root"], one.columns["bucket"])
        for one in changed.values()
        if one.kind == "bucket_status"
    }
    write_buckets(connection, written, None if anew else buckets)
    _finish(connection, view)
    return Work(
        new_facts=intake.new_facts,
        new_files=intake.new_files,
        groups=deriving.groups,
        facts=deriving.facts,
        rows=written.count,
        anew=anew,
    )


def _taken(names: set[str]) -> set[str]:
    taken = set(names)
    names.clear()
    return taken


def _finish(connection: sqlite3.Connection, view: Snapshot) -> None:
    connection.execute(
        "DELETE FROM sources WHERE uri = ? AND id NOT IN (SELECT id FROM fact WHERE NOT removed) "
        "AND id NOT IN (SELECT source_id FROM session_observations WHERE source_id IS NOT NULL) "
        "AND id NOT IN (SELECT source_id FROM backup_observations WHERE source_id IS NOT NULL)",
        (NAMED_URI,),
    )
    run_all(connection, INDEXES)
    fold = _fold(connection)
    write_info(connection, fold)
    state = {
        "edition": edition(),
        "fold": fold,
        "heads": heads_text(lineage_heads(view)),
    }
    connection.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", state.items())


def _fold(connection: sqlite3.Connection) -> str:
    """The name of the fold, as ``projection.Projection`` has it."""
    digest = hasher("sha256")
    rows = connection.execute(
        "SELECT key FROM fact WHERE NOT removed AND kind <> 'import_run' ORDER BY key"
    ).fetchall()
    return digest("\n".join(key.hex() for (key,) in rows).encode()).hex()
