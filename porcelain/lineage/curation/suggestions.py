"""Relations that a model or tool proposes.

A suggestion is kept and shown, and nothing is derived from it. It begins to count when a person promotes it, which
states an edge of that person's own, or when evidence comes to say the same without it. Rejecting it afterwards takes
that edge back.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from objstore.errors import NotFound, UsageError
from porcelain.lineage.curation.stating import CURATOR, EDGE_OF, edge
from porcelain.lineage.derived.lineage import Lineage
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import fact, withdrawn
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.tables.columns import RELATIONS

CANDIDATE, PROMOTED, REJECTED = "candidate", "promoted", "rejected"


def suggestion(
    source: str,
    target: str,
    relation: str,
    suggester: str,
    when: str,
    *,
    model_confidence: str | None = None,
    reasons: Sequence[str] = (),
) -> Fact:
    """The fact of a proposal about two sessions (ids). ``suggester`` is a model's or tool's name and version;
    ``model_confidence`` is its own, and says nothing about how sure this store is."""
    if relation not in RELATIONS:
        raise UsageError(f"{relation}: not one of {' '.join(RELATIONS)}")
    if source == target:
        raise UsageError("both names mean the same conversation")
    columns = {
        "source_session_id": source,
        "target_session_id": target,
        "proposed_relation": relation,
        "suggester": suggester,
        "model_confidence": model_confidence,
        "status": CANDIDATE,
        "created_at": when,
        "reasons": list(reasons) or None,
    }
    return fact("suggestion", columns, provenance=suggester, confidence="low")


def find_suggestion(found: Lineage, text: str) -> Fact:
    """The suggestion whose id begins with ``text``, with or without its prefix."""
    near = [
        one
        for one in found.said.of("suggestion")
        if one.id.startswith(text) or one.id.removeprefix("suggestion_").startswith(text)
    ]
    if not near:
        raise NotFound(f"{text}: no such suggestion", hint="list them with: objstore lineage suggest list")
    if len(near) > 1:
        raise UsageError(f"{text}: names {len(near)} suggestions", hint="type more of the id")
    return near[0]


def promoted(found: Lineage, one: Fact, curator: str = CURATOR) -> list[Fact]:
    """What a person states by promoting a suggestion: an edge between the longest files of both sessions, and that it
    was promoted."""
    relation = one.columns["proposed_relation"]
    if relation not in EDGE_OF:
        raise UsageError(
            f"{relation}: nothing follows from it, so that there is nothing to promote",
            hint="what can be promoted: " + " ".join(EDGE_OF),
        )
    source = _longest(found, one.columns["source_session_id"])
    target = _longest(found, one.columns["target_session_id"])
    made = edge(source, target, EDGE_OF[relation], curator=curator)
    return [made, _with_status(one, PROMOTED)]


def rejected(found: Lineage, one: Fact, curator: str = CURATOR) -> list[Fact]:
    """What a person states by turning a suggestion down: that, and the end of what was stated by promoting it. Raises
    ``UsageError`` where somebody else has promoted it."""
    columns = one.columns
    stated = [
        edge
        for edge in found.said.of("edge")
        if edge.columns["edge_type"] == EDGE_OF.get(columns["proposed_relation"])
        and edge.columns.get("source_session_id") == columns["source_session_id"]
        and edge.columns.get("target_session_id") == columns["target_session_id"]
    ]
    if columns.get("status") != PROMOTED:
        return [_with_status(one, REJECTED)]
    mine = [edge for edge in stated if edge.provenance == curator]
    if stated and not mine:
        names = sorted({edge.provenance for edge in stated})
        raise UsageError(
            f"{one.id}: was promoted by {names[0]}", hint=f"to take it back for them: --by '{names[0]}'"
        )
    return [*(withdrawn(edge) for edge in mine), _with_status(one, REJECTED)]


def _with_status(one: Fact, status: str) -> Fact:
    return msgspec.structs.replace(one, columns={**one.columns, "status": status})


def _longest(found: Lineage, session: str) -> Node:
    current = [node for node in found.nodes.of_session.get(session, ()) if not node.older]
    if not current:
        raise NotFound(f"{session}: no file of it is known")
    return max(current, key=lambda node: (node.records, node.id))
