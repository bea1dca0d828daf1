"""Neighbours in a folder: transcripts of different agents that follow one another, shown by a weak edge.

Where both are of one group, it is derived from that group; else it is made here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Set
from itertools import pairwise

from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import Stored, object_id
from porcelain.lineage.facts.projection import plain_rows
from porcelain.lineage.index.groups import Groups
from porcelain.lineage.index.tables import in_parts, placed
from porcelain.lineage.index.tokens import of_id
from porcelain.lineage.index.written import Written
from porcelain.lineage.relations.edges import neighbour_claim


class Neighbours:
    """Who follows whom, as the index has it. ``judged`` are the ids of edges that somebody has classified: they are
    looked at together with the classification."""

    def __init__(
        self, connection: sqlite3.Connection, groups: Groups, written: Written, judged: Set[str]
    ) -> None:
        self._connection = connection
        self._run = connection.execute
        self._groups = groups
        self._written = written
        self._judged = judged

    def settle(self, wanted: set[str] | None) -> set[int]:
        """Bring the neighbours in these folders, or in all, up to date; the groups that have to be derived from again,
        because of neighbours within them."""
        if wanted is not None and not wanted:
            return set()
        now = set(_neighbours(self._connection, wanted))
        known: dict[tuple[str, str, str], tuple[str, int | None]] = {}
        if wanted is not None:
            for part in in_parts(sorted(one for one in wanted if one is not None)):
                rows = self._run(
                    f"SELECT folder, source, target, edge, grp FROM weak WHERE folder IN ({placed(part)})",
                    part,
                )
                known.update(((folder, one, two), (edge, grp)) for folder, one, two, edge, grp in rows)
        again: set[int] = set()
        for pair in known.keys() - now:
            edge, grp = known[pair]
            self._run("DELETE FROM weak WHERE folder = ? AND source = ? AND target = ?", pair)
            if grp is None:
                self._written.take_out("edges", [edge])
            else:
                again.add(grp)
        names = {name for _, one, two in now for name in (one, two)}
        held = self._groups.of(of_id(name) for name in names)
        made: list[Stored] = []
        for pair in sorted(now):
            folder, source, target = pair
            one, two = held[of_id(source)], held[of_id(target)]
            grp = one if one == two else None
            before = known.get(pair)
            if before is not None and before[1] == grp:
                continue
            if before is not None and before[1] is None:
                self._written.take_out("edges", [before[0]])
            edge_fact = _weak_edge((source, self._session_of(source)), (target, self._session_of(target)))
            edge = edge_fact[1].id
            if edge in self._judged and grp is None:
                self._groups.join([of_id(source), of_id(target), of_id(edge)])
                (grp,) = self._groups.settle()
            self._run(
                "INSERT OR REPLACE INTO weak VALUES (?, ?, ?, ?, ?)", (folder, source, target, edge, grp)
            )
            if grp is None:
                made.append(edge_fact)
            else:
                again.add(grp)
        if made:
            self._written.write(plain_rows(made))
            self._written.added.update(one.id for _, one in made)
        return again

    def _session_of(self, name: str) -> str:
        return str(self._run("SELECT session FROM node WHERE id = ?", (name,)).fetchone()[0])


def _neighbours(connection: sqlite3.Connection, folders: set[str] | None) -> Iterator[tuple[str, str, str]]:
    """Folder, earlier and later transcript of those that follow one another and are of different agents, in these
    folders or in all."""
    select = "SELECT folder, provider, id FROM node WHERE folder "
    order = " ORDER BY folder, first, last, id"
    if folders is None:
        queries = iter([connection.execute(f"{select} IS NOT NULL {order}")])
    else:
        queries = (
            connection.execute(f"{select} IN ({placed(part)}) {order}", part)
            for part in in_parts(sorted(one for one in folders if one is not None))
        )
    for rows in queries:
        for before, after in pairwise(rows):
            if before[0] == after[0] and before[1] != after[1]:
                yield before[0], before[2], after[2]


def _weak_edge(source: tuple[str, str], target: tuple[str, str]) -> Stored:
    """The edge between neighbours of different groups (observation and session of each), about whom nothing else is
    claimed."""
    claim = neighbour_claim(source[0], target[0])
    columns = {
        "source_session_id": source[1],
        "target_session_id": target[1],
        "edge_type": claim.edge_type,
        "source_observation_id": source[0],
        "target_observation_id": target[0],
        "metadata": {"claim": claim.mode, "relation": "sibling", "rule": "same-folder"},
    }
    made = Fact(
        columns=columns,
        confidence=claim.confidence,
        evidence=[],
        id=claim.id,
        kind="edge",
        provenance=claim.provenance,
        revision=0,
    )
    return object_id(made), made
