"""What became of the buckets, the folders in which agents keep the sessions of one working directory.

A bucket's name is made from the working directory and cannot be turned back into it: two directories may share one. So
only what the sessions state counts, and the name is never decoded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from porcelain.lineage.derived_statements import made
from porcelain.lineage.identity import bucket_status_id
from porcelain.lineage.kinds import Confidence, Fact
from porcelain.lineage.nodes import Node, Nodes, Said

#: Agents that keep sessions in buckets.
PROVIDERS = frozenset({"claude", "factory", "oh-my-pi", "pi"})
PROVENANCE = "stated-folders"


def bucket_facts(said: Said, nodes: Nodes) -> Iterator[Fact]:
    """The status of each bucket: ``active`` with one working directory, ``shared`` with several, ``unknown`` where no
    session states any, ``gone`` where no file is there any more."""
    roots = {one.id: one.columns["uri"] for one in said.of("source")}
    held: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in nodes:
        root = roots.get(node.source, "")
        if node.provider in PROVIDERS and not (node.named or node.older):
            inside = PurePosixPath(node.path).parent
            held[root, inside.name if str(inside) != root else "."].append(node)
    for (root, bucket), found in sorted(held.items()):
        cwds = sorted({node.cwds[0] for node in found if node.cwds})
        if not any(node.present for node in found):
            status = "gone"
        else:
            status = "unknown" if not cwds else "active" if len(cwds) == 1 else "shared"
        trust: Confidence = "high" if cwds else "low"
        columns = {
            "root": root,
            "bucket": bucket,
            "decoded_path": cwds[0] if len(cwds) == 1 else None,
            "status": status,
            "session_count": len({node.session for node in found}),
            "earliest": min((node.first for node in found if node.first), default=None),
            "latest": max((node.last for node in found if node.last), default=None),
            "reasons": [f"stated by sessions: {cwd}" for cwd in cwds],
            "metadata": {"cwds": cwds},
        }
        yield made("bucket_status", bucket_status_id(root, bucket), columns, PROVENANCE, trust)
