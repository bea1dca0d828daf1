"""The rows of the view that follow from a fold, as facts that stand nowhere: edges, threads, marks and what they need.

They are made without the checks that stored facts go through, for there are several to every session; a test holds
them to the same rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from porcelain.lineage.derived.buckets import bucket_facts
from porcelain.lineage.derived.guests import guest_facts
from porcelain.lineage.derived.lineage import Lineage
from porcelain.lineage.derived.statements import made, statement_facts
from porcelain.lineage.facts import identity
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import Stored, object_id
from porcelain.lineage.relations.decision import Decision
from porcelain.lineage.relations.marks import PROVENANCE, as_mark
from porcelain.lineage.relations.nodes import NAMED_URI, Node
from porcelain.lineage.relations.prefixes import graded
from porcelain.lineage.relations.resume import Resume, aside_nodes
from porcelain.lineage.relations.threads import Thread
from porcelain.lineage.tables.columns import FILE_EVIDENCE, GONE

#: Which name a thread is shown under, best first.
_NAMES = ("lineage", "display_name", "cwd", "project", "alias")


def derived_facts(found: Lineage, *, buckets: bool = True) -> Iterator[Stored]:
    """Every derived row of a view, each once, with the id that its object would have; ``buckets`` too, unless
    ``found`` has only a part of the transcripts."""
    seen: set[str] = set()
    for one in chain(_facts(found), bucket_facts(found.said, found.nodes) if buckets else ()):
        if one.id not in seen:
            seen.add(one.id)
            yield object_id(one), one


def _facts(found: Lineage) -> Iterator[Fact]:
    named = list(_named_nodes(found))
    yield from named
    stated = list(statement_facts(found.said, found.nodes, found.claims, found.judged))
    yield from stated
    compared = _comparisons(found)
    yield from compared.values()
    yield from _edges(found, compared)
    for node, one in found.stated_marks:
        if one.kind != "mark":
            yield as_mark(one, node)
    yield from _marks(found)
    labels = _labels([*found.said.of("label"), *(one for one in (*named, *stated) if one.kind == "label")])
    names = thread_ids(found.threads)
    jumps: dict[str, list[Decision]] = defaultdict(list)
    for decision in found.decisions:
        if decision.relation == "context_jump":
            jumps[decision.target].append(decision)
    for thread, target in zip(found.threads, found.resumes, strict=True):
        yield from _thread(thread, target, names[thread.root.id], labels, found, jumps)


def thread_ids(threads: Iterable[Thread]) -> dict[str, str]:
    """The id of each thread, by the id of the node at its root."""
    of_session: dict[str, list[Thread]] = defaultdict(list)
    for thread in threads:
        of_session[thread.root.session].append(thread)
    found = {}
    for session, same in of_session.items():
        first = same[0] if len(same) == 1 else min(same, key=lambda one: (one.jumped, one.root.order))
        for thread in same:
            apart = None if thread is first else thread.root.id
            found[thread.root.id] = identity.thread_id(session, apart)
    return found


def _named_nodes(found: Lineage) -> Iterator[Fact]:
    """Source, session and observation of files that are only named, and that they are absent; and of conversations that
    stand in the files of others."""
    sessions = {one.id for one in found.said.of("session")}
    for node in found.nodes:
        if not node.named:
            continue
        yield made(
            "source",
            node.source,
            {
                "provider": node.provider,
                "kind": "relocation_manifest",
                "uri": NAMED_URI,
                "label": f"named files on {node.host}",
                "metadata": {"host": node.host},
            },
            PROVENANCE,
            "medium",
        )
        if node.session not in sessions:
            yield made(
                "session",
                node.session,
                {
                    "provider": node.provider,
                    "provider_session_id": node.native_id,
                    "metadata": {"native_id_from": "file-name" if node.part is None else "record"},
                },
                PROVENANCE,
                "medium" if node.part is None else "high",
            )
        if node.part is not None and node.guest_of is not None:
            yield from guest_facts(node, node.part, node.guest_of, found.alone[node.id])
            continue
        columns = {
            "session_id": node.session,
            "source_id": node.source,
            "path": node.path,
            "provider_session_id": node.native_id,
            "metadata": {"named": True},
        }
        yield made("observation", node.id, columns, PROVENANCE, "medium")
        data = {"state": GONE}
        columns = {
            "kind": FILE_EVIDENCE,
            "target_type": "observation",
            "target_id": node.id,
            "summary": "named, and never seen",
            "data": data,
        }
        name = identity.evidence_id(FILE_EVIDENCE, [node.id], data)
        yield made("evidence", name, columns, PROVENANCE, "medium")


def _comparisons(found: Lineage) -> dict[tuple[str, str], Fact]:
    """Evidence of what pairs of files were found to have in common."""
    facts = {}
    for (source, target), comparison in sorted(found.claims.compared.items()):
        if comparison is None:
            continue
        prefix = comparison.prefix
        data = {
            "exact": comparison.exact,
            "identified": comparison.identified,
            "other_targets": [source],
            "prefix": prefix.shared,
            "run": comparison.run,
            "shared": comparison.shared,
            "source_records": prefix.source,
            "target_records": prefix.target,
        }
        columns = {
            "kind": "prefix_match",
            "target_type": "observation",
            "target_id": target,
            "summary": f"{comparison.shared} records in both, the first {prefix.shared} alike",
            "data": data,
        }
        name = identity.evidence_id("prefix_match", [target, source], data)
        trust = "high" if comparison.identified else graded(prefix) or "low"
        facts[source, target] = made("evidence", name, columns, "shared-records", trust)
    return facts


def _edges(found: Lineage, compared: Mapping[tuple[str, str], Fact]) -> Iterator[Fact]:
    decisions = {(one.source, one.target): one for one in found.decisions}
    for claim in found.claims.all:
        if claim.stored is not None:
            continue
        decision = decisions[claim.source, claim.target]
        source, target = found.nodes.by_id[claim.source], found.nodes.by_id[claim.target]
        evidence = list(claim.evidence)
        comparison = compared.get((claim.source, claim.target))
        if comparison is not None:
            evidence.append(comparison.id)
        columns = {
            "source_session_id": source.session,
            "target_session_id": target.session,
            "edge_type": claim.edge_type,
            "timestamp": claim.time,
            "source_observation_id": source.id,
            "target_observation_id": target.id,
            "metadata": {
                **claim.metadata,
                "claim": claim.mode,
                "relation": decision.relation,
                "rule": decision.rule,
            },
        }
        yield made("edge", claim.id, columns, claim.provenance, claim.confidence, evidence)


def _marks(found: Lineage) -> Iterator[Fact]:
    for mark in found.marks:
        only = mark.replacements[0] if len(mark.replacements) == 1 else None
        columns = {
            "observation_id": mark.node.id,
            "mark_type": mark.mark_type,
            "reason": mark.reason,
            "replacement_observation_id": only and only.id,
            "replacement_session_id": only and only.session,
            "timestamp": mark.time,
            "manual_review_required": mark.review,
            "metadata": {"replacements": [node.id for node in mark.replacements]},
        }
        name = identity.mark_id(mark.node.id, mark.mark_type, None, PROVENANCE)
        yield made("mark", name, columns, PROVENANCE, mark.confidence, mark.evidence)


def _labels(labels: Iterable[Fact]) -> dict[tuple[str, str], str]:
    """The name that holds, by target and type of label: a person's before others, then the latest, of folders
    the first."""
    held: dict[tuple[str, str], tuple[tuple[bool, bool, str, str], str]] = {}
    for one in labels:
        columns = one.columns
        key = (columns["target_id"], columns["label_type"])
        weight = (
            "valid_to" not in columns,
            one.confidence == "manual",
            columns.get("valid_from", ""),
            one.id,
        )
        before = held.get(key)
        if before is None:
            held[key] = (weight, columns["value"])
        elif key[1] == "cwd" and weight[:2] == before[0][:2]:
            held[key] = min(before, (weight, columns["value"]))
        else:
            held[key] = max(before, (weight, columns["value"]))
    return {key: value for key, (_, value) in held.items() if value}


def _label(thread: Thread, labels: Mapping[tuple[str, str], str]) -> str | None:
    for label_type in _NAMES:
        for node in thread.members:
            found = labels.get((node.id, label_type)) or labels.get((node.session, label_type))
            if found is not None:
                return found
    return None


def _thread(
    thread: Thread,
    target: Resume,
    name: str,
    labels: Mapping[tuple[str, str], str],
    found: Lineage,
    jumps: Mapping[str, list[Decision]],
) -> Iterator[Fact]:
    root = thread.root
    metadata: dict[str, Any] = {"members": len(thread.members)}
    if thread.cycles:
        metadata["cycles"] = [list(cycle) for cycle in thread.cycles]
    if thread.jumped:
        metadata["context_jump"] = True
    if name != identity.thread_id(root.session):
        metadata["root_observation"] = root.id
    columns: dict[str, Any] = {
        "root_session_id": root.session,
        "label": _label(thread, labels),
        "metadata": metadata,
    }
    yield made("thread", name, columns, PROVENANCE, _trust(thread))
    roles = _roles(thread, target)
    for ordinal, node in enumerate(thread.members):
        columns = {
            "thread_id": name,
            "session_id": node.session,
            "observation_id": node.id,
            "role": roles[node.id],
            "ordinal": ordinal,
        }
        member = identity.thread_member_id(name, node.session, node.id)
        yield made("thread_member", member, columns, PROVENANCE, "high")
    for one in thread.relations:
        rule: dict[str, Any] = {"decided_by": one.decision.rule, "rule": one.rule}
        if one.decision.subagent:
            rule["subagent"] = True
        yield _relation(name, one.decision, one.relation, rule, found)
    for node in thread.members if thread.jumped else ():
        for decision in jumps.get(node.id, ()):
            yield _relation(name, decision, decision.relation, {"rule": decision.rule}, found)
    columns = {
        "thread_id": name,
        "status": target.status,
        "recommended_session_id": target.recommended and target.recommended.session,
        "recommended_observation_id": target.recommended and target.recommended.id,
        "active_leaf_session_ids": _sessions(target.active),
        "recoverable_session_ids": _sessions(target.recoverable),
        "reasons": list(target.reasons),
        "metadata": {
            "active_leaf_observation_ids": [node.id for node in target.active],
            "recoverable_observation_ids": [node.id for node in target.recoverable],
        },
    }
    yield made("resume_target", identity.resume_target_id(name), columns, PROVENANCE, "high")


def _relation(
    thread: str, decision: Decision, relation: str, metadata: dict[str, Any], found: Lineage
) -> Fact:
    source, target = found.nodes.by_id[decision.source], found.nodes.by_id[decision.target]
    edge = decision.edges[0] if decision.edges else None
    columns = {
        "thread_id": thread,
        "source_session_id": source.session,
        "target_session_id": target.session,
        "relation": relation,
        "edge_id": edge,
        "metadata": {
            **metadata,
            "source_observation_id": source.id,
            "target_observation_id": target.id,
        },
    }
    name = identity.thread_edge_id(thread, source.session, target.session, relation, edge)
    return made("thread_edge", name, columns, PROVENANCE, decision.confidence, decision.evidence)


def _trust(thread: Thread) -> Any:
    rank = ("low", "medium", "manual", "high", "authoritative")
    return min((one.decision.confidence for one in thread.relations), key=rank.index, default="high")


def _sessions(nodes: Iterable[Node]) -> list[str]:
    return list(dict.fromkeys(node.session for node in nodes))


def _roles(thread: Thread, target: Resume) -> dict[str, str]:
    """What each node is in its thread."""
    aside = aside_nodes(thread)
    if len(thread.members) == 1:
        role = "reference" if aside else "context_jump" if thread.jumped else "canonical_path"
        return {thread.root.id: role}
    roles: dict[str, str] = {}
    parents: dict[str, list[str]] = defaultdict(list)
    for one in thread.relations:
        parents[one.decision.target].append(one.decision.source)
        if one.decision.is_child:
            held = roles.get(one.decision.target)
            roles[one.decision.target] = "fork" if "fork" in (held, one.relation) else "continuation"
    for one in thread.relations:
        if one.decision.copy and one.decision.target in roles:
            roles.setdefault(one.decision.source, roles[one.decision.target])
    path: set[str] = {thread.root.id}
    if target.recommended is not None:
        work = [target.recommended.id]
        while work:
            reached = work.pop()
            path.add(reached)
            work += [origin for origin in parents[reached] if origin not in path]
    for node in thread.members:
        if node.id in aside:
            roles[node.id] = "reference"
        elif node is thread.root and thread.jumped:
            roles[node.id] = "context_jump"
        elif node.id in path:
            roles[node.id] = "canonical_path"
        else:
            roles.setdefault(node.id, "reference")
    return roles
