"""What follows from the facts of a fold: edges, threads, their members and relations, resume targets, marks.

None of it is ever stored. It is worked out anew from the joined fold and the landed records whenever a view is made, by
pure functions, so that neither the order of imports nor the number of stores has a part in it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.relations.decision import Decision
from porcelain.lineage.relations.edges import Claims, classifications, read_claims, same_native
from porcelain.lineage.relations.guests import counted_alone, with_guests
from porcelain.lineage.relations.marks import Mark, derived_marks, marks_of_people, stated_marks
from porcelain.lineage.relations.nodes import Nodes, Said, read_nodes
from porcelain.lineage.relations.prefixes import Prefix
from porcelain.lineage.relations.resume import Resume, resume
from porcelain.lineage.relations.rules import decide_all
from porcelain.lineage.relations.shared_records import Evidence, NoEvidence
from porcelain.lineage.relations.threads import Thread, apart, joined, make_threads


class Lineage(Struct, frozen=True, kw_only=True):
    """Everything that follows from a fold. ``resumes`` are in the order of ``threads``; ``prefixes`` has the common
    prefix of each pair that was compared, now or by an earlier comparison of files; ``alone`` how many records of each
    guest stand nowhere else."""

    said: Said
    nodes: Nodes
    claims: Claims
    decisions: list[Decision]
    threads: list[Thread]
    resumes: list[Resume]
    marks: list[Mark]
    stated_marks: list[tuple[str, Fact]]
    judged: dict[tuple[str, str], list[Fact]]
    prefixes: dict[tuple[str, str], Prefix]
    alone: dict[str, int]


def derive(
    facts: Iterable[Fact],
    evidence: Evidence | None = None,
    neighbours: Iterable[tuple[str, str]] | None = None,
) -> Lineage:
    """What follows from ``facts`` (one for each id, none withdrawn, in any order) and from what landed records say.
    ``neighbours`` as in ``edges.read_claims``."""
    said = Said(facts)
    records = evidence or NoEvidence()
    nodes = with_guests(read_nodes(said), records)
    claims = read_claims(said, nodes, records, neighbours)
    earlier = _earlier_comparisons(said, nodes)
    judged = classifications(said, nodes, claims)
    decisions = decide_all(nodes, claims, judged, earlier)
    components = joined(nodes, decisions)
    native = list(same_native(nodes, claims, records, components, apart(components, decisions)))
    if native:
        claims = Claims(all=[*claims.all, *native], compared=claims.compared)
        decisions = decide_all(nodes, claims, judged, earlier)
        components = joined(nodes, decisions)
    threads = make_threads(nodes, decisions, components)
    prefixes = {pair: prefix for pair, (prefix, _) in earlier.items()}
    prefixes.update((pair, found.prefix) for pair, found in claims.compared.items() if found is not None)
    stated = stated_marks(said, nodes)
    people = marks_of_people(stated)
    times = {claim.id: claim.time for claim in claims.all}
    return Lineage(
        said=said,
        nodes=nodes,
        claims=claims,
        decisions=decisions,
        threads=threads,
        resumes=[resume(thread, people) for thread in threads],
        marks=[
            mark
            for thread in threads
            if thread.relations
            for mark in derived_marks(thread, nodes, people, prefixes, times)
        ],
        stated_marks=stated,
        judged=judged,
        prefixes=prefixes,
        alone=counted_alone(nodes, records),
    )


def _earlier_comparisons(said: Said, nodes: Nodes) -> dict[tuple[str, str], tuple[Prefix, str]]:
    """What comparisons of files have found, with the evidence's id: of several about one pair, that of the longest
    source."""
    found: dict[tuple[str, str], tuple[Prefix, str]] = {}
    for one in said.statements("prefix"):
        data = one.columns["data"]
        source, target = nodes.at(data["host"], data["from"]), nodes.at(data["host"], data["to"])
        if source is None or target is None:
            continue
        prefix = Prefix(shared=data["shared"], source=data["from_records"], target=data["to_records"])
        held = found.get((source.id, target.id))
        if held is None or (prefix.source, one.id) > (held[0].source, held[1]):
            found[source.id, target.id] = (prefix, one.id)
    return found
