"""The evidence report: for each connection what is claimed, what was decided and why; what contradicts, what is
missing, what only a program proposes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from plumbing.interface.output import counted
from porcelain.lineage.facts.projection import Dangling, Projection, Row
from porcelain.lineage.tables.columns import FILE_EVIDENCE, INSIDE
from porcelain.lineage.views.listing import LABEL_PRIORITY
from porcelain.lineage.views.names import Names
from porcelain.lineage.views.view_document import Document, Grid, Section


class Claimed(Struct, frozen=True, kw_only=True):
    """An edge: what is said to have happened between two files, by whom, and what follows from it. ``support`` are the
    summaries of the evidence about it."""

    edge: str
    source: str
    target: str
    source_label: str
    target_label: str
    edge_type: str
    time: str | None
    provenance: str
    confidence: str
    relation: str
    rule: str
    support: tuple[str, ...]


class Finding(Struct, frozen=True, kw_only=True):
    """Evidence about one file or conversation, or a judgement, mark or suggestion."""

    kind: str
    about: str
    label: str
    says: str
    confidence: str
    provenance: str


class Evidence(Struct, frozen=True, kw_only=True):
    """Everything that supports a view."""

    fold: str
    claims: list[Claimed]
    findings: list[Finding]
    dangling: list[Dangling]
    cycles: int


def make_evidence(
    projection: Projection, priority: Sequence[str] = LABEL_PRIORITY, session: str | None = None
) -> Evidence:
    """The evidence of a view, or of what concerns one session of it."""
    tables = projection.tables
    names = Names(projection.tables, priority)
    sessions = {row["id"]: row["session_id"] for row in tables["session_observations"]}
    called = {
        row["id"]: f"{names.observation(row['id'])} ({(row['provider_session_id'] or '-')[:13]})"
        for row in tables["session_observations"]
    }
    evidence = {row["id"]: row for row in tables["evidence"]}
    about_pair = _about_pairs(tables["evidence"])
    decided = {row["edge_id"]: row for row in tables["thread_edges"] if row["edge_id"] is not None}
    claims = []
    for row in tables["edges"]:
        if session is not None and session not in (row["source_session_id"], row["target_session_id"]):
            continue
        claims.append(_claimed(row, decided.get(row["id"]), called, about_pair))
    claims.sort(key=lambda one: (one.confidence == "low", one.target_label, one.source_label, one.edge))
    findings = [
        found
        for found in (
            *_about_files(evidence.values(), names, sessions),
            *_strays(projection, names),
            *_judgements(projection, names, sessions),
        )
        if session is None or sessions.get(found.about, found.about) == session
    ]
    return Evidence(
        fold=projection.fold,
        claims=claims,
        findings=sorted(findings, key=lambda one: (one.kind, one.label, one.about, one.says)),
        dangling=list(projection.dangling) if session is None else [],
        cycles=sum(len(row["metadata_json"].get("cycles", ())) for row in tables["logical_threads"]),
    )


def _about_pairs(rows: Iterable[Row]) -> dict[frozenset[str], list[str]]:
    """Summaries of the evidence about two things at once."""
    found: dict[frozenset[str], list[str]] = defaultdict(list)
    for row in rows:
        others = row["data_json"].get("other_targets", ())
        for other in others:
            found[frozenset((row["target_id"] or "", other))].append(row["summary"])
    return found


def _claimed(
    row: Row,
    relation: Row | None,
    called: Mapping[str, str],
    about_pair: dict[frozenset[str], list[str]],
) -> Claimed:
    source, target = row["source_observation_id"] or "", row["target_observation_id"] or ""
    metadata = row["metadata_json"]
    return Claimed(
        edge=row["id"],
        source=source,
        target=target,
        source_label=called.get(source, "-"),
        target_label=called.get(target, "-"),
        edge_type=row["edge_type"],
        time=row["timestamp"],
        provenance=row["provenance"],
        confidence=row["confidence"],
        relation=relation["relation"] if relation is not None else metadata.get("relation", "unknown"),
        rule=relation["metadata_json"].get("rule", "") if relation is not None else metadata.get("rule", ""),
        support=tuple(sorted(set(about_pair.get(frozenset((source, target)), ())))),
    )


def _about_files(rows: Iterable[Row], names: Names, sessions: dict[str, str | None]) -> list[Finding]:
    return [
        Finding(
            kind=f"file {row['data_json'].get('state', '')}".strip(),
            about=row["target_id"],
            label=names.observation(row["target_id"]),
            says=row["summary"],
            confidence=row["confidence"],
            provenance="",
        )
        for row in rows
        if row["kind"] == FILE_EVIDENCE
        and row["data_json"].get("state") != INSIDE  # said of the file that it stands in
        and row["target_id"] in sessions
    ]


def _strays(projection: Projection, names: Names) -> list[Finding]:
    """Lines of one conversation in a file of another. In a fork of Codex they are its origin's, which is an edge; the
    file of a subagent may have an id of its own."""
    with_file = {
        row["session_id"]
        for row in projection.tables["session_observations"]
        if "inside" not in row["metadata_json"]
    }
    known = {
        (row["provider"], row["provider_session_id"])
        for row in projection.tables["sessions"]
        if row["id"] in with_file
    }
    providers = {row["id"]: row["provider"] for row in projection.tables["sessions"]}
    found = []
    for row in projection.tables["session_observations"]:
        provider = providers.get(row["session_id"])
        metadata = row["metadata_json"]
        others = metadata.get("links", {}).get("session", ())
        if provider == "codex" or metadata.get("stream", "main") != "main":
            continue
        for other in others:
            gone = "" if (provider, other) in known else ", of which no file is here"
            found.append(
                Finding(
                    kind="lines of another conversation",
                    about=row["id"],
                    label=names.observation(row["id"]),
                    says=f"lines of {other} stand in this file{gone}",
                    confidence="high",
                    provenance="",
                )
            )
    return found


def _judgements(projection: Projection, names: Names, sessions: dict[str, str | None]) -> list[Finding]:
    tables = projection.tables
    known = {row["id"] for row in tables["sessions"]}

    def called(target: str | None) -> str:
        if target in sessions:
            return names.observation(str(target))
        return names.session(str(target)) if target in known else target or "-"

    found = [
        Finding(
            kind="classification",
            about=row["target_id"],
            label=called(row["target_id"]),
            says=f"{row['classification']}{': ' + row['notes'] if row['notes'] else ''}",
            confidence=row["confidence"],
            provenance=row["source"],
        )
        for row in tables["classifications"]
    ]
    found += [
        Finding(
            kind="mark",
            about=row["observation_id"],
            label=called(row["observation_id"]),
            says=f"{row['mark_type']}{': ' + row['reason'] if row['reason'] else ''}",
            confidence=row["confidence"],
            provenance=row["source"],
        )
        for row in tables["observation_marks"]
    ]
    found += [
        Finding(
            kind="suggestion",
            about=row["source_session_id"] or "",
            label=called(row["source_session_id"]),
            says=f"{row['proposed_relation']} of {called(row['target_session_id'])}, {row['status']}",
            confidence="low",
            provenance=row["suggester"],
        )
        for row in tables["merge_suggestions"]
    ]
    return found


def evidence_document(evidence: Evidence) -> Document:
    """The document of a report."""
    counts = Counter(one.relation for one in evidence.claims)
    parts = [f"{number:,} {relation.replace('_', ' ')}" for relation, number in sorted(counts.items())]
    says = [f"{counted(len(evidence.claims), 'claim')}{': ' if parts else ''}{', '.join(parts)}."]
    if evidence.cycles:
        says.append(f"{counted(evidence.cycles, 'circle')} among the claims, not followed.")
    says.append(
        f"{counted(len(evidence.dangling), 'reference')} to what is not here."
        if evidence.dangling
        else "Every reference leads to something that is here."
    )
    sections = [Section(heading="Claims and what follows from them", grid=_claims(evidence.claims))]
    kinds = sorted({one.kind for one in evidence.findings})
    for kind in kinds:
        rows = [
            (one.label, one.says, one.confidence, one.provenance)
            for one in evidence.findings
            if one.kind == kind
        ]
        grid = Grid(header=("about", "says", "confidence", "by"), rows=rows)
        sections.append(Section(heading=kind.capitalize(), grid=grid))
    if evidence.dangling:
        lost = [
            (one.table, one.row, one.column, one.missing, "left out" if one.left_out else "emptied")
            for one in evidence.dangling
        ]
        grid = Grid(header=("table", "row", "column", "missing", ""), rows=lost)
        sections.append(Section(heading="References to what is not here", grid=grid))
    return Document(
        kind="evidence", title="Evidence", fold=evidence.fold, says=tuple(says), sections=sections
    )


def _claims(claims: Iterable[Claimed]) -> Grid:
    rows = [
        (
            one.source_label,
            one.target_label,
            f"{one.edge_type}, {one.confidence}",
            (one.time or "-")[:16].replace("T", " "),
            one.provenance,
            one.relation.replace("_", " "),
            one.rule,
            "; ".join(one.support),
        )
        for one in claims
    ]
    header = ("from", "to", "claim", "time", "by", "relation", "rule", "support")
    return Grid(header=header, rows=rows)


def evidence_value(evidence: Evidence) -> dict[str, Any]:
    """The report for JSON."""
    return {
        "claims": evidence.claims,
        "cycles": evidence.cycles,
        "dangling": evidence.dangling,
        "findings": evidence.findings,
    }
