"""``objstore lineage why``: how two conversations stand to one another, and what that rests on."""

from __future__ import annotations

from typing import Any

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context
from plumbing.interface.output import Writer, printable
from plumbing.interface.stores import open_store
from porcelain.lineage.derived.between import Between, between
from porcelain.lineage.derived.lineage import Lineage
from porcelain.lineage.derived.lookup import find_node, shown
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.relations.decision import Decision

SUMMARY = "how two conversations are related, and why"
USAGE = "lineage why [--json] A B"
OPTIONS = (JSON,)
EXAMPLES = ("objstore lineage why 3f2a 9c41",)
ARGUMENTS = (2, 2)


def run(arguments: Arguments, context: Context) -> int:
    """Print the relation, the rule, the evidence, and what would change it."""
    with open_store(context) as store, open_lineage(store) as indexed:
        evidence = indexed.evidence()
        found = indexed.around(arguments.args)
        source, target = (find_node(found, text) for text in arguments.args)
        if source is target:
            raise UsageError("lineage why: both names mean the same file")
        answer = between(found, evidence, source, target)
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(_document(answer))
        else:
            for line in _lines(found, answer):
                out.line(printable(line))
    return 0


def _lines(found: Lineage, answer: Between) -> list[str]:
    lines = [
        f"from      {shown(answer.source)}",
        f"to        {shown(answer.target)}",
        f"relation  {answer.relation}, confidence {answer.confidence}",
        f"rule      {answer.rule}: {answer.because}",
    ]
    if answer.topology is not None:
        lines.append(f"in thread {answer.topology}")
    evidence = {one.id: one.columns["summary"] for one in found.said.of("evidence")}
    for one in answer.direct:
        for claim in found.claims.all:
            if claim.id in one.edges:
                lines.append(
                    f"claim     {claim.edge_type} by {claim.provenance}, {claim.confidence}"
                    + (f", at {claim.time}" if claim.time else "")
                )
        comparison = found.claims.compared.get((one.source, one.target))
        if comparison is not None:
            prefix = comparison.prefix
            lines.append(
                f"records   {comparison.shared} in both, the first {prefix.shared} of {prefix.source} and "
                f"{prefix.target} alike"
            )
        lines += [f"evidence  {name}  {evidence[name]}" for name in one.evidence if name in evidence]
        for fact in found.judged.get((one.source, one.target), ()):
            word = fact.columns.get("classification") or fact.columns["data"].get("lineage")
            lines.append(f"judged    {word} by {fact.provenance}")
    lines += [f"through   {_step(found, one)}" for one in answer.path]
    lines += [f"suggested {text}; advice only" for text in answer.suggested]
    lines.append(f"changed by {answer.would_change}")
    return lines


def _step(found: Lineage, one: Decision) -> str:
    nodes = found.nodes.by_id
    return f"{shown(nodes[one.source])} -> {shown(nodes[one.target])}: {one.relation} ({one.rule})"


def _document(answer: Between) -> dict[str, Any]:
    return {
        "because": answer.because,
        "confidence": answer.confidence,
        "direct": [
            {
                "edges": list(one.edges),
                "evidence": list(one.evidence),
                "relation": one.relation,
                "rule": one.rule,
                "source": one.source,
                "target": one.target,
            }
            for one in answer.direct
        ],
        "path": [
            {"relation": one.relation, "source": one.source, "target": one.target} for one in answer.path
        ],
        "relation": answer.relation,
        "rule": answer.rule,
        "source": answer.source.id,
        "suggested": list(answer.suggested),
        "target": answer.target.id,
        "topology": answer.topology,
        "wouldChange": answer.would_change,
    }
