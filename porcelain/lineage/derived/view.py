"""The whole lineage of a store or of a fold, without an index: what the index is compared with, and small enough stores
are read by."""

from __future__ import annotations

from collections.abc import Iterable

from objstore.snapshot import Snapshot
from porcelain.lineage.derived.lineage import Lineage, derive
from porcelain.lineage.derived.rows import derived_facts
from porcelain.lineage.facts.making import Stored
from porcelain.lineage.facts.projection import Projection, project
from porcelain.lineage.facts.store import all_facts
from porcelain.lineage.relations.shared_records import Evidence, LandedEvidence


def lineage_of(view: Snapshot) -> tuple[list[Stored], Lineage]:
    """The stored facts of a store, and what follows from them and its landed records."""
    facts = list(all_facts(view))
    return facts, derive((fact for _, fact in facts), LandedEvidence(view))


def lineage_view(view: Snapshot) -> Projection:
    """All rows of the exported view of a store."""
    facts, found = lineage_of(view)
    return project(facts, derived_facts(found))


def view_of(facts: Iterable[Stored], evidence: Evidence | None = None) -> Projection:
    """All rows of the exported view of a fold."""
    stored = list(facts)
    return project(stored, derived_facts(derive((fact for _, fact in stored), evidence)))
