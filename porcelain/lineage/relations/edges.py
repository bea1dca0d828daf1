"""What is claimed about pairs of nodes: by manifests, by people, by the agents themselves, and by records they share.

A claim becomes a row of ``edges``. It says what happened; which relation follows from all claims about a pair is
decided in ``rules``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from porcelain.lineage.facts.identity import edge_id
from porcelain.lineage.facts.kinds import Confidence, Fact
from porcelain.lineage.facts.statements import confidence
from porcelain.lineage.relations.nodes import Node, Nodes, Said
from porcelain.lineage.relations.prefixes import graded
from porcelain.lineage.relations.shared_records import Comparison, Evidence

#: How a pair came to be: what a claim says beyond its type.
Mode = Literal[
    "move",  # explicitly moved: the target goes on where the source ended
    "branch",  # explicitly branched or copied
    "inferred",  # somebody or something supposes a connection
    "link",  # the agent itself names the origin
    "subagent",  # the agent itself names the session that started this one
    "curated",  # a person says so
    "records",  # they hold the same records
    "retold",  # the agent calls one a fork, and they say the same under other ids
    "native",  # they carry the same native id
    "inside",  # the target's records stand in another conversation's file
    "order",  # they stand next to one another in time in one folder
]

#: What a sidecar's word for a kind of lineage makes of an edge; the first word that is in it counts.
_TYPES: tuple[tuple[str, str], ...] = (
    ("context", "context_jump"),
    ("new-lineage", "context_jump"),
    ("copy", "manual_copy"),
    ("fork", "fork"),
    ("branch", "fork"),
    ("explicit-continuation", "continuation"),
)
#: What manifests call a copy whose original goes on.
_BRANCHING = frozenset({"branch", "copy", "diverge", "fork"})
#: Records that say the same from the beginning on, for a fork to come from another file.
RETOLD = 2
_LINK_TYPES = {"base": "fork", "forked_from": "fork", "session": "fork", "parent": "derived_from"}


class Claim(Struct, frozen=True, kw_only=True):
    """One thing that is claimed about the nodes ``source`` and ``target``."""

    source: str
    target: str
    edge_type: str
    mode: Mode
    confidence: Confidence
    provenance: str
    time: str | None = None
    evidence: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    stored: str | None = None

    @property
    def id(self) -> str:
        """The id of the edge."""
        return edge_id(self.edge_type, self.source, self.target, self.time, self.provenance)


class Claims(Struct):
    """All claims, and what pairs of nodes were found to have in common; ``None`` where records are not at hand."""

    all: list[Claim]
    compared: dict[tuple[str, str], Comparison | None]

    def by_pair(self) -> dict[tuple[str, str], list[Claim]]:
        """The claims about each pair, in order of edge id; pairs in order."""
        found: dict[tuple[str, str], list[Claim]] = defaultdict(list)
        for claim in sorted(self.all, key=lambda claim: claim.id):
            found[claim.source, claim.target].append(claim)
        return dict(sorted(found.items()))


class Components:
    """Which nodes are connected."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def of(self, node: str) -> str:
        """The node that stands for the component of ``node``: the smallest id in it."""
        top = node
        while (above := self._above.get(top, top)) != top:
            top = above
        while (above := self._above.get(node, node)) != top:
            self._above[node] = top
            node = above
        return top

    def join(self, one: str, other: str) -> None:
        first, second = sorted((self.of(one), self.of(other)))
        self._above[second] = first


def read_claims(
    said: Said, nodes: Nodes, evidence: Evidence, neighbours: Iterable[tuple[str, str]] | None = None
) -> Claims:
    """Everything that is claimed in a fold, each edge once. ``neighbours`` are the pairs of nodes that follow one
    another in a folder, where ``nodes`` are not all that there are."""
    strong = [*_relocations(said, nodes), *_overlays(said, nodes), *_stored(said, nodes), *_links(nodes)]
    compared: dict[tuple[str, str], Comparison | None] = {}
    connected = Components()
    for claim in strong:
        connected.join(claim.source, claim.target)
        pair = (claim.source, claim.target)
        if pair not in compared:
            compared[pair] = evidence.compare(nodes.by_id[pair[0]], nodes.by_id[pair[1]])
    retold = list(_retold(nodes, evidence, connected))
    shared = list(_shared(nodes, evidence, connected, compared))
    return Claims(all=_once([*strong, *retold, *shared, *_order(nodes, neighbours)]), compared=compared)


def _once(claims: Iterable[Claim]) -> list[Claim]:
    """Each edge once; of several claims of one id the one with the smallest evidence, and the evidence of all."""
    by_id: dict[str, Claim] = {}
    for claim in claims:
        held = by_id.get(claim.id)
        if held is None:
            by_id[claim.id] = claim
        else:
            first = min(held, claim, key=lambda one: one.evidence)
            by_id[claim.id] = replace(first, evidence=tuple(sorted({*held.evidence, *claim.evidence})))
    return list(by_id.values())


def _relocations(said: Said, nodes: Nodes) -> Iterator[Claim]:
    for one in said.statements("relocation"):
        data = one.columns["data"]
        source, target = nodes.at(data["host"], data["from"]), nodes.at(data["host"], data["to"])
        if source is None or target is None or source is target:
            continue
        mode = data.get("mode", "move").lower()
        branched = mode in _BRANCHING
        # A mode that nobody knows is no explicit move, for which the source would be given up.
        inferred = data.get("inferred") is True or not (branched or mode == "move")
        yield Claim(
            source=source.id,
            target=target.id,
            edge_type="fork" if branched else "relocation",
            mode="branch" if branched else "inferred" if inferred else "move",
            confidence=confidence(data.get("confidence"), "medium") if inferred else "authoritative",
            provenance=f"{data.get('tool', 'relocation')}-manifest",
            time=data.get("ts"),
            evidence=(one.id,),
            metadata={name: value for name, value in data.items() if name not in ("says", "from", "to")},
        )


def _overlays(said: Said, nodes: Nodes) -> Iterator[Claim]:
    for one in said.statements("edge"):
        data = one.columns["data"]
        source, target = nodes.at(data["host"], data["from"]), nodes.at(data["host"], data["to"])
        if source is None or target is None or source is target:
            continue
        lineage = data.get("lineage", "")
        edge_type = next((found for word, found in _TYPES if word in lineage), "derived_from")
        yield Claim(
            source=source.id,
            target=target.id,
            edge_type=edge_type,
            mode="inferred" if edge_type == "derived_from" else "curated",
            confidence=confidence(data.get("confidence")),
            provenance="lineage-overlays",
            time=data.get("ts"),
            evidence=(one.id,),
            metadata={name: value for name, value in data.items() if name not in ("says", "from", "to")},
        )


def _stored(said: Said, nodes: Nodes) -> Iterator[Claim]:
    """Edges that are facts themselves: a person stated them."""
    for one in said.of("edge"):
        columns = one.columns
        source, target = columns["source_observation_id"], columns["target_observation_id"]
        if source in nodes.by_id and target in nodes.by_id and source != target:
            yield Claim(
                source=source,
                target=target,
                edge_type=columns["edge_type"],
                mode="curated",
                confidence=one.confidence,
                provenance=one.provenance,
                time=columns.get("timestamp"),
                evidence=tuple(one.evidence),
                metadata=columns.get("metadata", {}),
                stored=one.id,
            )


def _links(nodes: Nodes) -> Iterator[Claim]:
    """What the agents' own files say about where they come from."""
    for node in nodes:
        named: set[str] = set()
        for link in ("forked_from", "base", "parent", "session"):
            if link == "session" and node.provider != "codex":
                continue  # lines of another session in a file of these agents are strays, not history
            for value in node.links.get(link, ()):
                origin = nodes.linked(node, value)
                if origin is None or origin.session == node.session or origin.session in named:
                    continue
                named.add(origin.session)
                yield Claim(
                    source=origin.id,
                    target=node.id,
                    edge_type=_LINK_TYPES[link],
                    mode="subagent" if link == "parent" else "link",
                    confidence="high" if link == "session" else "authoritative",
                    provenance=f"{node.provider}-link",
                    metadata={"link": link},
                )
        for values in node.links.get("moved_from", ()):
            for value in values.split("\n"):
                origin = nodes.at(node.host, value)
                if origin is not None and origin is not node:
                    yield Claim(
                        source=origin.id,
                        target=node.id,
                        edge_type="relocation",
                        mode="move",
                        confidence="authoritative",
                        provenance=f"{node.provider}-link",
                        metadata={"link": "moved_from"},
                    )


def _retold(nodes: Nodes, evidence: Evidence, connected: Components) -> Iterator[Claim]:
    """Forks that do not name their origin and repeat it under ids of their own: each from the file of its folder with
    which it says the same for longest, of several the oldest."""
    folders: dict[tuple[str, str, str], list[Node]] = defaultdict(list)
    forks = sorted((node for node in nodes if "fork" in node.links), key=lambda node: node.order)
    wanted = {(node.provider, node.host, cwd) for node in forks for cwd in node.cwds}
    for node in sorted(nodes, key=lambda node: node.order) if forks else ():
        for cwd in node.cwds:
            if (node.provider, node.host, cwd) in wanted and not node.older:
                folders[node.provider, node.host, cwd].append(node)
    for node in forks:
        best: tuple[int, Node] | None = None
        for cwd in node.cwds:
            for other in folders[node.provider, node.host, cwd]:
                if other.order >= node.order or other.session == node.session:
                    continue
                if connected.of(other.id) != connected.of(node.id):
                    count = evidence.retold(other, node)
                    if count >= RETOLD and (best is None or count > best[0]):
                        best = (count, other)
        if best is not None:
            connected.join(best[1].id, node.id)
            yield Claim(
                source=best[1].id,
                target=node.id,
                edge_type="fork",
                mode="retold",
                confidence="medium",
                provenance="same-content",
                metadata={"retold": best[0]},
            )


def _shared(
    nodes: Nodes,
    evidence: Evidence,
    connected: Components,
    compared: dict[tuple[str, str], Comparison | None],
) -> Iterator[Claim]:
    """For each node that holds the records of an older one it is not connected to yet: an edge from the one with which
    it shares most."""
    candidates: dict[str, list[str]] = defaultdict(list)
    for older, newer in evidence.pairs([node for node in nodes if not node.older]):
        candidates[newer].append(older)
    for newer in sorted(candidates, key=lambda one: nodes.by_id[one].order):
        best: tuple[tuple[int, int], str, Comparison] | None = None
        for place, older in enumerate(candidates[newer]):
            if connected.of(older) == connected.of(newer):
                continue
            found = evidence.compare(nodes.by_id[older], nodes.by_id[newer])
            if found is not None and found.is_evidence:
                rank = (-found.shared, place)
                if best is None or rank < best[0]:
                    best = (rank, older, found)
        if best is None:
            continue
        _, older, found = best
        compared[older, newer] = found
        connected.join(older, newer)
        yield _by_records(nodes.by_id[older], nodes.by_id[newer], found)


def same_native(
    nodes: Nodes, claims: Claims, evidence: Evidence, joined: Components, apart: set[tuple[str, str]]
) -> Iterator[Claim]:
    """Nodes with one native id, each with the oldest, where nothing else is claimed about the two: that they hold the
    same records or begin alike but for their texts (into which a move puts another path), or else, if nothing has
    ``joined`` them, just that they carry the id. ``apart`` has pairs of components, in order, that must not come
    together by this. What is compared goes into ``claims``.
    """
    explicit = {"move", "branch", "inferred", "curated"}
    claimed = {(claim.source, claim.target) for claim in claims.all}
    placed = {node for claim in claims.all if claim.mode in explicit for node in (claim.source, claim.target)}
    for found in nodes.of_session.values():
        if len(found) == 1:
            continue
        current = (node for node in found if not node.older)
        oldest, *others = sorted(current, key=lambda node: (node.guest_of is not None, node.order))
        for node in others:
            first, second = sorted((joined.of(oldest.id), joined.of(node.id)))
            pair = (oldest.id, node.id)
            settled = pair in claimed or pair[::-1] in claimed or not placed.isdisjoint(pair)
            if (first, second) in apart or (first == second and settled):
                continue
            if node.guest_of is not None:
                yield _inside(oldest, node)
                joined.join(first, second)
                continue
            comparison = claims.compared[pair] = evidence.compare(oldest, node)
            if comparison is not None and (comparison.is_evidence or graded(comparison.prefix) is not None):
                yield _by_records(oldest, node, comparison)
            elif first != second or _begin_alike(oldest, node):
                yield Claim(
                    source=oldest.id,
                    target=node.id,
                    edge_type="manual_copy" if _begin_alike(oldest, node) else "same_session_id",
                    mode="native",
                    confidence="high",
                    provenance="native-id",
                )
            else:
                continue
            joined.join(first, second)


def _inside(own: Node, guest: Node) -> Claim:
    return Claim(
        source=own.id,
        target=guest.id,
        edge_type="same_session_id",
        mode="inside",
        confidence="high",
        provenance="stated-session",
    )


def _by_records(older: Node, newer: Node, found: Comparison) -> Claim:
    copied = older.session == newer.session and found.prefix.is_whole_target
    return Claim(
        source=older.id,
        target=newer.id,
        edge_type="manual_copy" if copied else "derived_from",
        mode="records",
        confidence="high" if found.identified else "medium",
        provenance="shared-records",
    )


def _begin_alike(one: Node, other: Node) -> bool:
    """Whether two files of one session have the same number of records and the same first one: forms in which an agent
    keeps one conversation, of which only one was landed."""
    return (
        one.first_record is not None
        and one.first_record == other.first_record
        and one.records == other.records
    )


def _order(nodes: Nodes, neighbours: Iterable[tuple[str, str]] | None) -> Iterator[Claim]:
    """Neighbours in time in one folder, of different agents: shown, and nothing else follows from it."""
    for before, after in _neighbours(nodes) if neighbours is None else neighbours:
        yield neighbour_claim(before, after)


def neighbour_claim(before: str, after: str) -> Claim:
    """What is claimed about two nodes that follow one another in a folder."""
    return Claim(
        source=before,
        target=after,
        edge_type="derived_from",
        mode="order",
        confidence="low",
        provenance="same-folder-order",
    )


def folder_of(node: Node) -> tuple[str, str] | None:
    """Host and working directory in which a node has neighbours; None for one that has none anywhere."""
    if node.older or node.stand_in or node.guest_of is not None:
        return None
    return (node.host, node.cwds[0]) if node.cwds and node.first else None


def _neighbours(nodes: Nodes) -> Iterator[tuple[str, str]]:
    folders: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in nodes:
        folder = folder_of(node)
        if folder is not None:
            folders[folder].append(node)
    for found in folders.values():
        found.sort(key=lambda node: node.order)
        for before, after in pairwise(found):
            if before.provider != after.provider:
                yield before.id, after.id


def classifications(said: Said, nodes: Nodes, claims: Claims) -> dict[tuple[str, str], list[Fact]]:
    """What people and rules judge about pairs of nodes, by pair: matched by edge id, or by the two files and, where it
    is stated, the time of the event."""
    by_edge = {claim.id: (claim.source, claim.target) for claim in claims.all}
    times: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for claim in claims.all:
        times[claim.source, claim.target].add(claim.time)
    found: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for one in [*said.of("classification"), *said.statements("classification")]:
        pair = by_edge.get(one.columns.get("target_id", ""))
        if pair is None:
            data = one.columns.get("data") or one.columns.get("metadata", {})
            pair = _pair(nodes, data)
            if pair is None or (data.get("ts") is not None and data["ts"] not in times[pair]):
                continue
        found[pair].append(one)
    return found


def _pair(nodes: Nodes, data: dict[str, Any]) -> tuple[str, str] | None:
    if not {"host", "from", "to"} <= data.keys():
        return None
    source, target = nodes.at(data["host"], data["from"]), nodes.at(data["host"], data["to"])
    return None if source is None or target is None else (source.id, target.id)
