"""What became of the buckets, the folders in which agents keep the sessions of one working directory.

A bucket's name is made from the working directory and cannot be turned back into it: two directories may share one. So
only what the sessions state counts, and the name is never decoded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from msgspec import Struct

from porcelain.lineage.derived.statements import made
from porcelain.lineage.facts.identity import bucket_status_id
from porcelain.lineage.facts.kinds import Confidence, Fact
from porcelain.lineage.relations.nodes import Node, Nodes, Said

#: Agents that keep sessions in buckets.
PROVIDERS = frozenset({"claude", "factory", "oh-my-pi", "pi"})
PROVENANCE = "stated-folders"


class Kept(Struct, frozen=True, array_like=True):
    """What of a transcript counts for its bucket; texts that are not known are None."""

    session: str
    cwd: str | None
    present: bool
    first: str | None
    last: str | None


def bucket_facts(said: Said, nodes: Nodes) -> Iterator[Fact]:
    """The status of each bucket."""
    roots = {one.id: one.columns["uri"] for one in said.of("source")}
    held: dict[tuple[str, str], list[Kept]] = defaultdict(list)
    for node in nodes:
        place = bucket_of(node, roots.get(node.source, ""))
        if place is not None:
            held[place].append(kept(node))
    for (root, bucket), found in sorted(held.items()):
        yield bucket_fact(root, bucket, found)


def kept(node: Node) -> Kept:
    """What of a node counts for its bucket."""
    return Kept(node.session, node.cwds[0] if node.cwds else None, node.present, node.first, node.last)


def bucket_of(node: Node, root: str) -> tuple[str, str] | None:
    """The root and the name of the bucket that a node is in, or None; ``root`` is its source's."""
    if node.provider not in PROVIDERS or node.named or node.older:
        return None
    inside = PurePosixPath(node.path).parent
    return root, inside.name if str(inside) != root else "."


def bucket_fact(root: str, bucket: str, found: Iterable[Kept]) -> Fact:
    """The status of a bucket: ``active`` with one working directory, ``shared`` with several, ``unknown`` where no
    session states any, ``gone`` where no file is there any more."""
    nodes = list(found)
    cwds = sorted({node.cwd for node in nodes if node.cwd})
    if not any(node.present for node in nodes):
        status = "gone"
    else:
        status = "unknown" if not cwds else "active" if len(cwds) == 1 else "shared"
    trust: Confidence = "high" if cwds else "low"
    columns = {
        "root": root,
        "bucket": bucket,
        "decoded_path": cwds[0] if len(cwds) == 1 else None,
        "status": status,
        "session_count": len({node.session for node in nodes}),
        "earliest": min((node.first for node in nodes if node.first), default=None),
        "latest": max((node.last for node in nodes if node.last), default=None),
        "reasons": [f"stated by sessions: {cwd}" for cwd in cwds],
        "metadata": {"cwds": cwds},
    }
    return made("bucket_status", bucket_status_id(root, bucket), columns, PROVENANCE, trust)
