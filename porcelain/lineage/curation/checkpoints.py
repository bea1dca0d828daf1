"""Checkpoints: the places in conversations where an agent replaced what came before by a summary.

A checkpoint names the landed record of the summary and the hashes of its content, never its text. A record that copies
of a conversation share is a checkpoint of the oldest file that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import fact
from porcelain.lineage.facts.times import normal_time
from porcelain.lineage.relations.nodes import Node
from porcelain.providers.records import Record

KIND = "compaction_summary"
PROVENANCE = "landed-records"
#: Flag of a record that holds such a summary.
SUMMARY = "reset_summary"
_NO_TIME = "1970-01-01T00:00:00.000Z"

#: Ids and records of a transcript, in landing order.
RecordsOf = Callable[[Node], Iterable[tuple[str, Record]]]


def checkpoint_facts(nodes: Iterable[Node], records_of: RecordsOf) -> Iterator[Fact]:
    """A fact (not revised) for each summary in the transcripts ``nodes``, which are all files of some threads."""
    seen: set[str] = set()
    for node in sorted(nodes, key=lambda node: node.order):
        for row, (name, record) in enumerate(records_of(node)):
            if SUMMARY in (record.flags or ()) and name not in seen:
                seen.add(name)
                yield _checkpoint(node, name, record, row)


def _checkpoint(node: Node, name: str, record: Record, row: int) -> Fact:
    contents = [part.content for part in record.parts or () if isinstance(part.content, str)]
    size = sum(part.bytes for part in record.parts or () if part.k == "text")
    stated = normal_time(record.time) if isinstance(record.time, str) else None
    metadata = {"bytes": size, "entry": record.entry or "unknown", "row": row}
    columns = {
        "session_id": node.session,
        "observation_id": node.id,
        "kind": KIND,
        "generated_at": stated or node.last or _NO_TIME,
        "generator": node.provider,
        "input_hash": name,
        "input_hashes": contents or None,
        "privacy_status": "metadata-only",
        "summary": f"a summary of {size} bytes at record {row + 1}",
        "metadata": metadata,
    }
    return fact("checkpoint", columns, provenance=PROVENANCE, confidence="authoritative")
