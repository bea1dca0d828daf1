"""The rules by which a relation is decided, in order: the first that fits decides.

1. a context jump, by a person's or a rule's classification: wins over all, and is never merged
2. an explicit branch or copy, and the agent's own fork link: fork
3. an explicit move: continuation, unless classified otherwise
4. a person's own word
5. a common prefix, behind a supposed move or by itself: continuation or fork, ``medium`` at most
6. a shared native id: together in one thread, nothing more
7. neighbours in a folder: siblings, and nothing follows

That several distinct children of one node are forks is a matter of the whole thread and is seen to in ``threads``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from porcelain.lineage.facts.kinds import Confidence, Fact
from porcelain.lineage.relations.decision import Decision, Pair
from porcelain.lineage.relations.edges import Claim, Claims
from porcelain.lineage.relations.nodes import Node, Nodes
from porcelain.lineage.relations.prefixes import LEAST, Prefix, graded
from porcelain.lineage.relations.shared_records import Comparison


def decide_all(
    nodes: Nodes,
    claims: Claims,
    judged: Mapping[tuple[str, str], list[Fact]],
    prefixes: Mapping[tuple[str, str], tuple[Prefix, str]],
) -> list[Decision]:
    """One decision for each pair about which something is claimed, in order of the pair. ``prefixes`` has what earlier
    comparisons of files are known to have found, with the evidence's id."""
    return [
        decide(
            nodes.by_id[pair[0]],
            nodes.by_id[pair[1]],
            found,
            judged.get(pair, ()),
            claims.compared.get(pair),
            prefixes.get(pair),
        )
        for pair, found in claims.by_pair().items()
    ]


def decide(
    source: Node,
    target: Node,
    claims: Iterable[Claim],
    judged: Iterable[Fact],
    comparison: Comparison | None,
    known_prefix: tuple[Prefix, str] | None = None,
) -> Decision:
    """The relation of one pair."""
    pair = Pair(source, target, list(claims), list(judged), comparison, known_prefix)
    for rule in (_context_jump, _branch, _move, _curated, _prefix, _native):
        found = rule(pair)
        if found is not None:
            return found
    return pair.decision(
        "unknown",
        "not-enough-evidence",
        "low",
        "somebody or something supposes a connection, and nothing supports it",
        "a common prefix of 20 records, a manifest record that is not inferred, or a person's word",
    )


def _context_jump(pair: Pair) -> Decision | None:
    fact, claim = pair.judged.get("context_jump"), pair.of_type("context_jump")
    if fact is None and claim is None:
        return None
    return pair.decision(
        "context_jump",
        "context-jump",
        fact.confidence if fact is not None else claim.confidence if claim is not None else "manual",
        "it is classified as the beginning of a new task",
        "withdrawing the classification",
        by=claim,
        fact=fact,
    )


def _branch(pair: Pair) -> Decision | None:
    change = "a classification as context jump"
    claim = pair.with_mode("branch")
    if claim is not None:
        return pair.decision(
            "fork",
            "explicit-branch",
            claim.confidence,
            "it was branched or copied on purpose",
            change,
            by=claim,
            joins=True,
        )
    claim = pair.with_mode("link")
    if claim is not None:
        return pair.decision(
            "fork",
            "provider-fork-link",
            claim.confidence,
            "the agent's own file names its origin",
            change,
            by=claim,
            joins=True,
        )
    fact = pair.judged.get("fork")
    claim = next(
        (one for one in pair.claims if one.mode == "curated" and one.edge_type in ("fork", "manual_copy")),
        None,
    )
    if fact is not None or claim is not None:
        trust: Confidence = (
            fact.confidence if fact is not None else claim.confidence if claim is not None else "manual"
        )
        return pair.decision(
            "fork",
            "curated-fork",
            trust,
            "a person calls it a branch or copy",
            f"withdrawing that, or {change}",
            by=claim,
            joins=True,
        )
    claim = pair.with_mode("subagent")
    if claim is not None:
        return pair.decision(
            "fork",
            "provider-subagent-link",
            claim.confidence,
            "the agent started it as a subagent",
            change,
            by=claim,
            joins=True,
            subagent=True,
        )
    return None


def _move(pair: Pair) -> Decision | None:
    claim = pair.with_mode("move")
    if claim is None:
        return None
    for relation in ("unrelated", "sibling", "unknown"):
        fact = pair.judged.get(relation)
        if fact is not None:
            return pair.decision(
                relation,
                "classified-otherwise",
                fact.confidence,
                "it was moved, and is classified as something else than a continuation",
                "withdrawing the classification",
                by=claim,
            )
    return pair.decision(
        "continuation",
        "explicit-move",
        claim.confidence,
        "it was moved, and goes on in the new place",
        "a classification as context jump or branch",
        by=claim,
        joins=True,
        continues=True,
    )


def _curated(pair: Pair) -> Decision | None:
    for relation in ("unrelated", "continuation", "sibling"):
        fact = pair.judged.get(relation)
        if fact is not None:
            return pair.decision(
                relation,
                f"curated-{relation}",
                "manual",
                f"a person calls it a {relation}"
                if relation != "unrelated"
                else "a person calls them unrelated",
                "withdrawing the classification",
                joins=relation == "continuation",
                continues=relation == "continuation",
            )
    claim = pair.with_mode("curated")
    if claim is None:
        return None
    continues = claim.edge_type in ("continuation", "relocation")
    return pair.decision(
        "continuation" if continues else "sibling" if claim.edge_type == "same_session_id" else "fork",
        "curated-edge",
        claim.confidence,
        "a person says that one comes from the other",
        "withdrawing the edge, or a classification",
        by=claim,
        joins=True,
        continues=continues,
    )


def _prefix(pair: Pair) -> Decision | None:
    claim = pair.with_mode("inferred")
    if claim is not None and "unknown" not in pair.judged:
        if pair.prefix is not None and (
            graded(pair.prefix) is not None or (pair.prefix.is_whole_source and pair.prefix.shared >= LEAST)
        ):
            return pair.decision(
                "continuation",
                "prefix-backed",
                "medium",
                f"a move is supposed, and {_shared(pair.prefix)}",
                "a person's classification, or a manifest record that is not inferred",
                by=claim,
                joins=True,
                continues=True,
            )
        found = pair.comparison
        if found is not None and not found.shared and min(found.prefix.source, found.prefix.target) >= LEAST:
            return pair.decision(
                "unrelated",
                "records-contradict",
                "medium",
                "a move is supposed, and the two have no record in common",
                "a person's classification",
                by=claim,
            )
    claim = pair.with_mode("retold")
    if claim is not None:
        return pair.decision(
            "fork",
            "retold-fork",
            claim.confidence,
            f"the agent calls it a fork, and its first {claim.metadata['retold']} records say the same",
            "a link in the agent's own file, or a person's classification",
            by=claim,
            joins=True,
        )
    claim = pair.with_mode("records")
    if claim is None or pair.comparison is None:
        return None
    return _by_records(pair, claim, pair.comparison)


def _by_records(pair: Pair, claim: Claim, found: Comparison) -> Decision:
    prefix = found.prefix
    moved = pair.source.native_id == pair.target.native_id or "_relocated_" in pair.target.path
    change = "a manifest record, a link in the agent's own file, or a person's classification"
    if claim.edge_type == "manual_copy":
        return pair.decision(
            "sibling",
            "same-records",
            claim.confidence,
            "it holds nothing that the other does not",
            change,
            by=claim,
            joins=True,
            copy=True,
        )
    if moved and prefix.is_whole_source:
        return pair.decision(
            "continuation",
            "prefix-of-moved-copy",
            "medium",
            f"it is a copy under the same id that goes on, and {_shared(prefix)}",
            change,
            by=claim,
            joins=True,
            continues=True,
        )
    return pair.decision(
        "fork",
        "shared-records",
        "medium",
        f"{_in_both(found)}, and nothing says how they came there",
        change,
        by=claim,
        joins=True,
    )


def _in_both(found: Comparison) -> str:
    if found.is_evidence:
        return f"{found.shared} records are in both"
    return f"the first {found.prefix.shared} records of both are alike"


def _shared(prefix: Prefix) -> str:
    return f"the first {prefix.shared} of its {prefix.source} records begin the other's {prefix.target}"


def _native(pair: Pair) -> Decision | None:
    claim = pair.with_mode("inside")
    if claim is not None:
        return pair.decision(
            "sibling",
            "in-another-file",
            claim.confidence,
            "records of the same conversation stand in the file of another",
            "nothing but the records themselves",
            by=claim,
            joins=True,
            copy=True,
        )
    claim = pair.with_mode("native")
    if claim is not None and claim.edge_type == "manual_copy":
        return pair.decision(
            "sibling",
            "same-beginning",
            claim.confidence,
            "both are one conversation, with as many records and the same first one",
            "records that only one of them holds",
            by=claim,
            joins=True,
            copy=True,
        )
    if claim is not None:
        return pair.decision(
            "sibling",
            "shared-native-id",
            claim.confidence,
            "both carry the same native id, which alone says nothing about order",
            "records that both hold, a manifest record, or a person's classification",
            by=claim,
            joins=True,
        )
    claim = pair.with_mode("order")
    if claim is not None and len(pair.claims) == 1:
        return pair.decision(
            "sibling",
            "same-folder",
            "low",
            "they follow one another in one folder, which proves nothing",
            "any deterministic evidence, or a person's classification",
            by=claim,
        )
    return None
