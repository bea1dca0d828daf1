"""What is decided about a pair of nodes, and all that the decision is taken from.

Every decision says its rule, its evidence and what would change it; the rules are in ``rules``.
"""

from __future__ import annotations

from msgspec import Struct

from porcelain.lineage.facts.kinds import Confidence, Fact
from porcelain.lineage.relations.edges import Claim
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.relations.prefixes import Prefix
from porcelain.lineage.relations.shared_records import Comparison


class Decision(Struct, frozen=True, kw_only=True):
    """The relation of the nodes ``source`` and ``target``. ``edges`` are the ids of the claims that it rests on, the
    deciding one first; ``evidence`` ids of evidence facts. ``joins`` says that both belong to one thread, ``continues``
    that the target takes the source's place, ``subagent`` that the target serves the source and is no way to go on.
    """

    source: str
    target: str
    relation: str
    rule: str
    confidence: Confidence
    because: str
    would_change: str
    edges: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    joins: bool = False
    continues: bool = False
    subagent: bool = False
    copy: bool = False

    @property
    def is_child(self) -> bool:
        """Whether the target counts as a child of the source."""
        return self.relation in ("continuation", "fork") and not self.subagent


def meaning(text: str) -> str | None:
    """The relation that a classification's word stands for, or None."""
    word = text.lower()
    for part, relation in (
        ("context", "context_jump"),
        ("new-lineage", "context_jump"),
        ("new-task", "context_jump"),
        ("unrelated", "unrelated"),
        ("sibling", "sibling"),
        ("copy", "fork"),
        ("fork", "fork"),
        ("branch", "fork"),
        ("unresolved", "unknown"),
        ("unknown", "unknown"),
        ("candidate", None),
        ("continuation", "continuation"),
    ):
        if part in word:
            return relation
    return None


class Pair:
    """Two nodes and all that is said about them. ``judged`` has, for each relation, the judgement that counts;
    ``prefix`` what they have in common from the beginning, where that is known."""

    def __init__(
        self,
        source: Node,
        target: Node,
        claims: list[Claim],
        judged: list[Fact],
        comparison: Comparison | None,
        known_prefix: tuple[Prefix, str] | None,
    ) -> None:
        self.source = source
        self.target = target
        self.claims = claims
        self.comparison = comparison
        self.prefix = comparison.prefix if comparison is not None else known_prefix and known_prefix[0]
        self._prefix_evidence = known_prefix[1] if known_prefix is not None else None
        self.judged: dict[str, Fact] = {}
        for one in judged:
            relation = meaning(_word(one))
            if relation is not None and (
                relation not in self.judged or _weight(one) > _weight(self.judged[relation])
            ):
                self.judged[relation] = one

    def with_mode(self, *modes: str) -> Claim | None:
        return next((claim for claim in self.claims if claim.mode in modes), None)

    def of_type(self, edge_type: str) -> Claim | None:
        return next((claim for claim in self.claims if claim.edge_type == edge_type), None)

    def decision(
        self,
        relation: str,
        rule: str,
        confidence: Confidence,
        because: str,
        would_change: str,
        *,
        by: Claim | None = None,
        fact: Fact | None = None,
        joins: bool = False,
        continues: bool = False,
        subagent: bool = False,
        copy: bool = False,
    ) -> Decision:
        edges = [claim.id for claim in self.claims]
        if by is not None:
            edges = [by.id, *(edge for edge in edges if edge != by.id)]
        evidence = {found for claim in self.claims for found in claim.evidence}
        evidence.update(one.id for one in self.judged.values() if one.kind == "evidence")
        evidence.update(found for one in self.judged.values() for found in one.evidence)
        if self._prefix_evidence is not None:
            evidence.add(self._prefix_evidence)
        return Decision(
            source=self.source.id,
            target=self.target.id,
            relation=relation,
            rule=rule,
            confidence=confidence,
            because=because,
            would_change=would_change,
            edges=tuple(edges),
            evidence=tuple(sorted(evidence)),
            joins=joins,
            continues=continues,
            subagent=subagent,
            copy=copy,
        )


def _word(judged: Fact) -> str:
    text: str = judged.columns.get("classification") or judged.columns["data"].get("lineage", "")
    return text


def _weight(judged: Fact) -> tuple[bool, str]:
    return (judged.confidence == "manual", judged.id)
