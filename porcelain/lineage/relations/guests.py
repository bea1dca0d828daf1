"""Conversations that stand in the files of others: a node for each, and the host's node without what is theirs.

A guest has no file of its own there: it is known by its records, and its file is that of the host, which is where it
was seen. It can be read and counted, and not be resumed. Where it has a file of its own too, from wherever and whenever
that comes, the guest is one more place at which some of its records were seen.
"""

from __future__ import annotations

from collections import defaultdict

from msgspec.structs import replace

from porcelain.lineage.facts.identity import observation_id, session_id, source_id
from porcelain.lineage.landed.strays import TELLING, Part
from porcelain.lineage.relations.nodes import NAMED_URI, Node, Nodes
from porcelain.lineage.relations.shared_records import Evidence


def with_guests(nodes: Nodes, evidence: Evidence) -> Nodes:
    """``nodes``, and those of the guests in their files."""
    found: dict[str, Node] = {}
    for host in nodes:
        if host.provider not in TELLING or "session" not in host.links:
            continue
        if host.older or host.named or host.stand_in:
            continue
        for part in evidence.parts(host):
            if part.native_id == host.native_id:
                cwds = tuple(folder for folder, _ in part.folders)
                found[host.id] = replace(
                    host, rows=part.rows, first=part.first, last=part.last, cwds=cwds or host.cwds
                )
            else:
                made = _guest(found[host.id], part)
                found[made.id] = made
    if not found:
        return nodes
    return Nodes({**nodes.by_id, **found}.values())


def _guest(host: Node, part: Part) -> Node:
    source = source_id(host.provider, "relocation_manifest", host.host, NAMED_URI)
    return Node(
        id=observation_id(source, host.path, part.first_record),
        session=session_id(host.provider, part.native_id),
        provider=host.provider,
        native_id=part.native_id,
        host=host.host,
        source=source,
        path=host.path,
        records=part.records,
        first=part.first,
        last=part.last,
        first_record=part.first_record,
        present=False,
        named=True,
        cwds=tuple(folder for folder, _ in part.folders),
        rows=part.rows,
        guest_of=host,
        part=part,
    )


def counted_alone(nodes: Nodes, evidence: Evidence) -> dict[str, int]:
    """For each guest how many of its records stand in no file of its own, and in no guest before it in order of id."""
    guests: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.guest_of is not None:
            guests[node.session].append(node)
    found: dict[str, int] = {}
    for session, mine in guests.items():
        seen: set[str] = set()
        for node in nodes.of_session[session]:
            if node.guest_of is None and not node.named:
                seen.update(evidence.record_ids(node))
        for node in mine:
            own = evidence.record_ids(node)
            found[node.id] = sum(name not in seen for name in own)
            seen.update(own)
    return found
