"""Marks on transcripts: what people have set, and what follows from a thread.

A node whose place another one took is ``superseded``. It is a ``deletion_candidate`` too when it was moved explicitly,
once, to a file that is there, is at least as long and begins with all that it holds, and nobody wants it preserved.
That is advice for a person: nothing in this program deletes a transcript.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct

from porcelain.lineage.facts.identity import is_fact_id
from porcelain.lineage.facts.kinds import Confidence, Fact
from porcelain.lineage.facts.statements import confidence
from porcelain.lineage.relations.decision import Decision
from porcelain.lineage.relations.nodes import Node, Nodes, Said
from porcelain.lineage.relations.prefixes import Prefix
from porcelain.lineage.relations.resume import PRESERVING, replacements
from porcelain.lineage.relations.threads import Thread
from porcelain.lineage.tables.columns import MARK_TYPES

PROVENANCE = "lineage-rules"
_RANK: dict[Confidence, int] = {"low": 0, "medium": 1, "manual": 2, "high": 3, "authoritative": 4}


class Mark(Struct, frozen=True, kw_only=True):
    """A mark that follows from a thread: on ``node``, because of ``replacements`` (in order of age)."""

    node: Node
    mark_type: str
    replacements: tuple[Node, ...]
    reason: str
    time: str | None
    confidence: Confidence
    review: bool
    evidence: tuple[str, ...]


def stated_marks(said: Said, nodes: Nodes) -> list[tuple[str, Fact]]:
    """The marks that people have set, each with the id of its node: facts of their own, and statements in sidecars,
    which are given as they stand."""
    found = [(one.columns["observation_id"], one) for one in said.of("mark")]
    for one in said.statements("mark"):
        data = one.columns["data"]
        found += [(node.id, one) for node in _marked(data, nodes) if data["mark"] in MARK_TYPES]
    return [(node, one) for node, one in found if node in nodes.by_id]


def _marked(data: Mapping[str, str], nodes: Nodes) -> list[Node]:
    """The nodes that a statement marks: by observation, else by path, else all of a session."""
    if "observation" in data and data["observation"] in nodes.by_id:
        return [nodes.by_id[data["observation"]]]
    if "path" in data:
        node = nodes.at(data["host"], data["path"])
        return [] if node is None else [node]
    if "native_id" in data:
        by_id = nodes.of_session.get(data["native_id"], [])
        return [node for node in by_id if not node.older] or nodes.native("pi", data["native_id"])
    return []


def marks_of_people(stated: list[tuple[str, Fact]]) -> dict[str, list[Fact]]:
    """By node: facts whose ``columns`` have ``mark_type``, whichever way they were stated."""
    found: dict[str, list[Fact]] = defaultdict(list)
    for node, one in stated:
        found[node].append(one if one.kind == "mark" else as_mark(one, node))
    return found


def as_mark(statement: Fact, node: str) -> Fact:
    """The mark fact that a sidecar's statement makes on ``node``. A replacement under an id of another tool's is not
    known here."""
    from porcelain.lineage.facts.making import fact

    data = statement.columns["data"]
    replacement = data.get("replacement")
    return fact(
        "mark",
        {
            "observation_id": node,
            "mark_type": data["mark"],
            "label": data.get("label"),
            "reason": data.get("reason") or data.get("label"),
            "replacement_observation_id": replacement if is_fact_id(replacement or "") else None,
            "timestamp": data.get("ts"),
            "manual_review_required": data.get("review", False),
        },
        provenance=data.get("source") or "observation-marks",
        confidence=confidence(data.get("confidence")),
        evidence=(statement.id,),
    )


def derived_marks(
    thread: Thread,
    nodes: Nodes,
    people: Mapping[str, list[Fact]],
    prefixes: Mapping[tuple[str, str], Prefix],
    times: Mapping[str, str | None],
) -> Iterator[Mark]:
    """The marks that follow from a thread. ``prefixes`` has the common prefix of pairs, ``times`` that of each edge."""
    replaced = replacements(thread)
    if not replaced:
        return
    decisions: dict[str, list[Decision]] = defaultdict(list)
    children: dict[str, set[str]] = defaultdict(set)
    for one in thread.relations:
        if one.decision.continues:
            decisions[one.decision.source].append(one.decision)
        if one.decision.is_child:
            children[one.decision.source].add(one.decision.target)
    for node_id in sorted(replaced):
        node = nodes.by_id[node_id]
        found = _present(node_id, replaced, nodes)
        if not found or not node.present:
            continue
        why = decisions[node_id]
        trust = min((one.confidence for one in why), key=lambda one: _RANK[one])
        mark = Mark(
            node=node,
            mark_type="superseded",
            replacements=tuple(found),
            reason="moved" if len(found) == 1 else f"moved to {len(found)} places",
            time=max((times[one.edges[0]] or "" for one in why), default="") or None,
            confidence=trust,
            review=trust != "authoritative",
            evidence=tuple(sorted({item for one in why for item in one.evidence})),
        )
        yield mark
        kept = any(one.columns["mark_type"] in PRESERVING for one in people.get(node_id, ()))
        if not kept and len(children[node_id]) == 1 and _qualifies(why, node, found[0], prefixes):
            reason = "the file it was moved to is there and holds all of it"
            yield Mark(
                node=node,
                mark_type="deletion_candidate",
                replacements=mark.replacements,
                reason=reason,
                time=mark.time,
                confidence=trust,
                review=True,
                evidence=mark.evidence,
            )


def _present(node: str, replaced: Mapping[str, set[str]], nodes: Nodes) -> list[Node]:
    """The nearest nodes after ``node`` that are there."""
    found: dict[str, Node] = {}
    work, done = [node], {node}
    while work:
        for target in replaced.get(work.pop(), ()):
            if target not in done:
                done.add(target)
                if nodes.by_id[target].present:
                    found[target] = nodes.by_id[target]
                else:
                    work.append(target)
    return sorted(found.values(), key=lambda one: one.order)


def _qualifies(
    why: list[Decision], node: Node, replacement: Node, prefixes: Mapping[tuple[str, str], Prefix]
) -> bool:
    prefix = prefixes.get((node.id, replacement.id))
    return (
        all(one.rule == "explicit-move" and one.target == replacement.id for one in why)
        and replacement.records >= node.records
        and prefix is not None
        and prefix.is_whole_source
        and prefix.source >= node.records
    )
