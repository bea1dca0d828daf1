"""How any two transcripts stand to one another, whether or not anything is claimed about them."""

from __future__ import annotations

from collections import defaultdict, deque

from msgspec import Struct

from plumbing.interface.output import counted
from porcelain.lineage.adapters.repos import repo_of
from porcelain.lineage.derived.lineage import Lineage
from porcelain.lineage.facts.kinds import Confidence
from porcelain.lineage.relations.decision import Decision
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.relations.prefixes import LEAST
from porcelain.lineage.relations.shared_records import Evidence


class Between(Struct, frozen=True, kw_only=True):
    """``direct`` are decisions about the pair itself, either way; ``path`` connects the two within a thread otherwise.
    ``topology`` says what a direct decision looks like from the whole thread, where that differs. ``suggested`` are
    proposals of models and tools, on which nothing rests.
    """

    source: Node
    target: Node
    relation: str
    rule: str
    confidence: Confidence
    because: str
    would_change: str
    direct: tuple[Decision, ...] = ()
    path: tuple[Decision, ...] = ()
    topology: str | None = None
    suggested: tuple[str, ...] = ()


def between(found: Lineage, evidence: Evidence, source: Node, target: Node) -> Between:
    """The relation of two nodes: what was decided about them, else what their folders and records say."""
    direct = [one for one in found.decisions if {one.source, one.target} == {source.id, target.id}]
    suggested = tuple(
        f"{one.columns['suggester']}: {one.columns['proposed_relation']} ({one.columns.get('status', 'candidate')})"
        for one in found.said.of("suggestion")
        if {one.columns.get("source_session_id"), one.columns.get("target_session_id")}
        == {source.session, target.session}
    )
    if direct:
        first = min(direct, key=lambda one: (one.source != source.id, one.relation))
        return _made(
            source, target, first, direct=tuple(direct), suggested=suggested, topology=_topology(found, first)
        )
    path = _path(found, source, target)
    said = _apart(found, evidence, source, target)
    if path:  # what the two have in common says nothing against that
        said = (
            "sibling",
            "same-thread",
            "medium",
            "nothing connects them directly, and others connect both",
            "a manifest record, records that both hold, or a person's classification",
        )
    relation, rule, trust, because, change = said
    return Between(
        source=source,
        target=target,
        relation=relation,
        rule=rule,
        confidence=trust,
        because=because,
        would_change=change,
        path=tuple(path),
        suggested=suggested,
    )


def _made(
    source: Node,
    target: Node,
    decision: Decision,
    *,
    direct: tuple[Decision, ...],
    suggested: tuple[str, ...],
    topology: str | None,
) -> Between:
    return Between(
        source=source,
        target=target,
        relation=decision.relation,
        rule=decision.rule,
        confidence=decision.confidence,
        because=decision.because,
        would_change=decision.would_change,
        direct=direct,
        suggested=suggested,
        topology=topology,
    )


def _topology(found: Lineage, decision: Decision) -> str | None:
    for thread in found.threads:
        for one in thread.relations:
            if one.decision == decision and one.relation != decision.relation:
                return f"{one.relation} ({one.rule})"
    return None


def _apart(
    found: Lineage, evidence: Evidence, source: Node, target: Node
) -> tuple[str, str, Confidence, str, str]:
    """The relation of two nodes about which nothing is claimed."""
    for host, other in ((source, target), (target, source)):
        inside = [
            node
            for node in found.nodes.of_session[other.session]
            if node.guest_of is not None and node.guest_of.id == host.id
        ]
        if inside and host.session != other.session:
            count = counted(sum(node.records for node in inside), "record")
            because = f"{count} of {other.native_id} stand in the file of {host.native_id}"
            change = "nothing but the records themselves, each of which names its session"
            return "sibling", "same-file", "low", because, change
    change = "a manifest record, records that both hold, or a person's classification"
    shared = set(source.cwds) & set(target.cwds)
    if shared and source.host == target.host:
        return "sibling", "same-folder", "low", f"both worked in {min(shared)}", change
    observations = found.said.of("repo_observation")
    projects = [
        {repo for cwd in node.cwds if (repo := repo_of(cwd, node.first, observations)) is not None}
        for node in (source, target)
    ]
    if projects[0] & projects[1]:
        return "sibling", "same-project", "low", "both worked on one project", change
    comparison = evidence.compare(source, target)
    if (
        comparison is not None
        and not comparison.shared
        and min(comparison.prefix.source, comparison.prefix.target) >= LEAST
    ):
        because = "they have no record in common, and no folder or project"
        return "unrelated", "nothing-in-common", "medium", because, change
    return "unknown", "not-enough-evidence", "low", "nothing is known that connects or parts them", change


def _path(found: Lineage, source: Node, target: Node) -> list[Decision]:
    """The shortest way from one node to the other through decisions that join."""
    steps: dict[str, list[Decision]] = defaultdict(list)
    for one in found.decisions:
        if one.joins:
            steps[one.source].append(one)
            steps[one.target].append(one)
    came: dict[str, Decision | None] = {source.id: None}
    work = deque([source.id])
    while work and target.id not in came:
        node = work.popleft()
        for one in steps[node]:
            other = one.target if one.source == node else one.source
            if other not in came:
                came[other] = one
                work.append(other)
    path: list[Decision] = []
    node = target.id
    while (step := came.get(node)) is not None:
        path.append(step)
        node = step.source if step.target == node else step.target
    return path[::-1]
