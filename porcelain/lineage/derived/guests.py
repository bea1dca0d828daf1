"""The rows about a conversation that stands in the file of another (see ``relations.guests``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plumbing.interface.output import counted
from porcelain.lineage.derived.statements import made
from porcelain.lineage.facts import identity
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.landed.strays import Part
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.tables.columns import FILE_EVIDENCE, GONE, INSIDE

#: By what a guest is known.
GUEST = "stated-session"


def guest_facts(node: Node, part: Part, host: Node, alone: int) -> Iterator[Fact]:
    """The observation of a conversation in the file of another, the folders that its records name, and the evidence.
    ``alone`` of its records stand in no file of its own."""
    beside = {
        "differs": host.differs,
        "first_record": host.first_record,
        "native_id": host.native_id,
        "provider": host.provider,
        "records": host.records,
        "src": host.src,
    }
    inside = {
        "alone": alone,
        "first": host.first,
        "host": {name: value for name, value in beside.items() if value is not None},
        "last": host.last,
        "left": [list(rows) for rows in host.rows or ()],
        "observation": host.id,
        "rows": [list(rows) for rows in part.rows],
    }
    columns: dict[str, Any] = {
        "session_id": node.session,
        "source_id": node.source,
        "path": node.path,
        "provider_session_id": node.native_id,
        "file_size": part.size,
        "line_count": part.records,
        "first_event_at": part.first,
        "last_event_at": part.last,
        "metadata": {
            "first_record": part.first_record,
            "inside": {name: value for name, value in inside.items() if value is not None},
            "kind": "transcript",
            "records": part.records,
            "stream": "main",
        },
    }
    yield made("observation", node.id, columns, GUEST, "high")
    for folder, time in part.folders:
        columns = {
            "target_type": "observation",
            "target_id": node.id,
            "label_type": "cwd",
            "value": folder,
            "valid_from": time,
        }
        yield made("label", identity.label_id(node.id, "cwd", folder, GUEST), columns, GUEST, "high")
    data = {"other_targets": [host.id], "state": INSIDE}
    columns = {
        "kind": FILE_EVIDENCE,
        "target_type": "observation",
        "target_id": node.id,
        "summary": f"{counted(part.records, 'record')} in the file of {host.native_id}",
        "data": data,
    }
    yield made(
        "evidence", identity.evidence_id(FILE_EVIDENCE, [node.id, host.id], data), columns, GUEST, "high"
    )
    if not host.present:
        data = {"state": GONE}
        columns = {**columns, "summary": "the file that they stand in is no longer there", "data": data}
        name = identity.evidence_id(FILE_EVIDENCE, [node.id], data)
        yield made("evidence", name, columns, GUEST, "high")
