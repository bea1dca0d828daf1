"""Comparing the files that manifests name, line by line, with both folders neutralised."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.statements import statement
from porcelain.lineage.relations.prefixes import compare_lines, graded

PROVENANCE = "file-comparison"


def compared_files(facts: Iterable[Fact], host: str) -> list[Fact]:
    """For each pair of files that a relocation among ``facts`` names and that are both there: how far they agree. Only
    counts are kept. The files are read as streams and never written."""
    found = []
    for one in facts:
        data = one.columns.get("data", {}) if one.kind == "evidence" else {}
        if data.get("says") != "relocation":
            continue
        source, target = Path(data["from"]), Path(data["to"])
        if not (source.is_file() and target.is_file()):
            continue
        with source.open("rb") as left, target.open("rb") as right:
            prefix = compare_lines(left, right, data.get("from_cwd"), data.get("to_cwd"))
        fields = {
            "from": data["from"],
            "from_records": prefix.source,
            "shared": prefix.shared,
            "to": data["to"],
            "to_records": prefix.target,
        }
        summary = f"the first {prefix.shared} lines are alike"
        trust = graded(prefix, backed="inferred" not in data) or "low"
        found.append(statement("prefix", host, fields, summary, provenance=PROVENANCE, trust=trust))
    return found
