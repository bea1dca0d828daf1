"""The lineage graph: threads of conversations as trees, for the forms that draw it.

The *focused* graph has a node for each file that is connected with another; the *topology* one for each conversation.
Every node hangs below one other, the surest that it comes from; what else is known to lie before it is listed beside
it. So the picture stays a tree that can be read line by line, whatever runs in circles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct, structs

from porcelain.lineage.facts.projection import Projection, Row, hosts_of, records, with_columns
from porcelain.lineage.views.listing import LABEL_PRIORITY
from porcelain.lineage.views.names import Names

Kind = Literal["focused", "topology"]
#: Relations, the one that a node hangs by first.
RELATIONS = ("continuation", "fork", "context_jump", "sibling", "unknown", "unrelated")


class Node(Struct, frozen=True, kw_only=True):
    """A file, or in a topology a conversation, of which ``files`` is the number of files. ``resume`` says that the
    thread is to be taken up here, ``active`` that it can be; ``marks`` are words of retention, sorted."""

    id: str
    session: str
    label: str
    provider: str
    native_id: str
    path: str
    records: int
    first: str | None
    last: str | None
    files: int = 1
    present: bool = True
    resume: bool = False
    active: bool = False
    role: str = "reference"
    marks: tuple[str, ...] = ()


class Link(Struct, frozen=True, kw_only=True):
    """How two nodes hang together. ``rule`` says by which rule that was decided; ``time`` is that of the event;
    ``origin`` is what the source is called."""

    source: str
    target: str
    relation: str
    confidence: str
    rule: str
    time: str | None = None
    subagent: bool = False
    origin: str = ""


class Placed(Struct, frozen=True, kw_only=True):
    """A node in its place: ``depth`` is how far it is indented, ``below`` the link that it hangs by (None for a root),
    ``also`` the other links that end in it."""

    node: Node
    depth: int
    below: Link | None
    also: tuple[Link, ...] = ()


class Thread(Struct, frozen=True, kw_only=True):
    """A thread: its nodes in reading order. ``status`` is that of its resume target; ``cycles`` how many circles."""

    id: str
    label: str
    status: str
    placed: list[Placed]
    cycles: int = 0


class Graph(Struct, frozen=True, kw_only=True):
    """A graph made from ``fold``. ``weak`` are links that say nothing about lineage (neighbours in a folder);
    ``single`` counts the threads of one node that are not shown."""

    kind: Kind
    fold: str
    threads: list[Thread]
    weak: list[Link]
    single: int
    around: str = ""


def make_graph(
    projection: Projection,
    kind: Kind = "focused",
    *,
    priority: Sequence[str] = LABEL_PRIORITY,
    everything: bool = False,
    around: str | None = None,
    hops: int | None = None,
) -> Graph:
    """The graph of a view. ``around`` is the id of a session that it is limited to, with what lies within ``hops``
    links of it, or all of its thread. ``everything`` shows threads of one node too."""
    names = Names(projection.tables, priority)
    making = _Making(projection, kind, names, everything=everything, around=around)
    threads, single = [], 0
    for row in with_columns(projection.tables["logical_threads"], "id", "root_session_id", "metadata_json"):
        if row["id"] not in making.wanted:
            single += around is None
            continue
        thread = making.thread(row, around, hops)
        if thread is None:
            continue
        if len(thread.placed) > 1 or everything or around is not None or making.has_jump(row["id"]):
            threads.append(thread)
        else:
            single += 1
    threads.sort(key=lambda one: one.id)
    threads.sort(key=lambda one: -len(one.placed))
    threads.sort(key=lambda one: max((p.node.last or "" for p in one.placed), default=""), reverse=True)
    shown = {placed.node.id for thread in threads for placed in thread.placed}
    weak = [link for link in making.weak if link.source in shown or link.target in shown or everything]
    return Graph(
        kind=kind,
        fold=projection.fold,
        threads=threads,
        weak=weak,
        single=single,
        around=around or "",
    )


#: Columns of a file that are shown.
_FILE = ("id", "session_id", "path", "first_event_at", "last_event_at", "presence", "metadata_json")


class _Making:
    """``wanted`` are the ids of the threads that may be shown: of the others no row is held."""

    def __init__(
        self, projection: Projection, kind: Kind, names: Names, *, everything: bool, around: str | None
    ) -> None:
        tables = projection.tables
        self._kind = kind
        self._names = names
        members = _grouped(
            with_columns(
                tables["thread_members"], "thread_id", "session_id", "observation_id", "role", "ordinal"
            )
        )
        self._links = _grouped(tables["thread_edges"])
        left = {
            row["metadata_json"].get("source_observation_id")
            for rows in self._links.values()
            for row in rows
            if row["relation"] == "context_jump"
        }
        self._left = {
            thread
            for thread, rows in (members.items() if left else ())
            if any(row["observation_id"] in left for row in rows)
        }
        self.wanted = {
            thread
            for thread, rows in members.items()
            if (
                any(row["session_id"] == around for row in rows)
                if around is not None
                else everything or len(rows) > 1 or self.has_jump(thread)
            )
        }
        self._members = {thread: rows for thread, rows in members.items() if thread in self.wanted}
        del members
        mine = {row["observation_id"] for rows in self._members.values() for row in rows}
        self._files = {
            row["id"]: row
            for row in with_columns(tables["session_observations"], *_FILE)
            if row["id"] in mine
        }
        self._hosts = hosts_of(with_columns(tables["session_observations"], "id", "metadata_json"))
        own = {row["session_id"] for row in self._files.values()}
        columns: tuple[str, ...] = ("id", "provider", "provider_session_id")
        self._sessions = {
            row["id"]: row for row in with_columns(tables["sessions"], *columns) if row["id"] in own
        }
        columns = ("thread_id", "status", "recommended_observation_id", "metadata_json")
        targets = with_columns(tables["thread_resume_targets"], *columns)
        self._targets = {row["thread_id"]: row for row in targets if row["thread_id"] in self.wanted}
        self._edges = {row["id"]: row for row in tables["edges"]}
        self._marks: dict[str, set[str]] = defaultdict(set)
        for row in tables["observation_marks"]:
            self._marks[row["observation_id"]].add(row["mark_type"])
        self.weak = sorted(
            (
                self._weak(row)
                for row in tables["edges"]
                if row["confidence"] == "low"
                and row["metadata_json"].get("claim") == "order"
                and row["source_observation_id"] is not None
                and row["target_observation_id"] is not None
            ),
            key=lambda link: (link.source, link.target),
        )

    def has_jump(self, thread: str) -> bool:
        """Whether a thread begins with a jump from another, or is what one led away from."""
        return thread in self._left or any(
            row["relation"] == "context_jump" for row in self._links.get(thread, ())
        )

    def thread(self, row: Row, around: str | None, hops: int | None) -> Thread | None:
        """The thread of a row, limited to what is near ``around``; None where nothing of it is."""
        members = sorted(self._members.get(row["id"], ()), key=lambda one: one["ordinal"])
        nodes = self._nodes(members, self._targets.get(row["id"]))
        links = self._thread_links(row["id"])
        if around is not None:
            near = _near({node.id for node in nodes.values() if node.session == around}, links, hops)
            nodes = {key: node for key, node in nodes.items() if key in near}
        if not nodes:
            return None
        target = self._targets.get(row["id"])
        return Thread(
            id=row["id"],
            label=self._names.session(row["root_session_id"]),
            status=target["status"] if target is not None else "no-target",
            placed=place(list(nodes.values()), links),
            cycles=len(row["metadata_json"].get("cycles", ())),
        )

    def _nodes(self, members: Iterable[Row], target: Row | None) -> dict[str, Node]:
        nodes: dict[str, Node] = {}
        resumed = target and target["recommended_observation_id"]
        active = target["metadata_json"].get("active_leaf_observation_ids", ()) if target is not None else ()
        for member in members:
            file = self._files.get(member["observation_id"] or "")
            if file is None:
                continue
            node = structs.replace(
                self._node(file, member["role"]), resume=file["id"] == resumed, active=file["id"] in active
            )
            held = nodes.get(node.id)
            nodes[node.id] = node if held is None else _merged(held, node)
        return nodes

    def _node(self, file: Row, role: str) -> Node:
        session = self._sessions[file["session_id"]]
        topology = self._kind == "topology"
        host = self._hosts.get(file["id"])
        return Node(
            id=session["id"] if topology else file["id"],
            session=session["id"],
            label=self._name(session["id"] if topology else file["id"]),
            provider=session["provider"],
            native_id=session["provider_session_id"] or "",
            path=file["path"] or "",
            records=host.records if host is not None else records(file),
            first=host.first if host is not None else file["first_event_at"],
            last=host.last if host is not None else file["last_event_at"],
            present=file["presence"] == "present",
            role=role,
            marks=tuple(sorted(self._marks.get(file["id"], ()))),
        )

    def _thread_links(self, thread: str) -> list[Link]:
        found = []
        for row in self._links.get(thread, ()):
            metadata = row["metadata_json"]
            source = metadata.get("source_observation_id")
            target = metadata.get("target_observation_id")
            if self._kind == "topology":
                source, target = row["source_session_id"], row["target_session_id"]
            if source is None or target is None or source == target:
                continue
            edge = self._edges.get(row["edge_id"] or "")
            link = Link(
                source=source,
                target=target,
                relation=row["relation"],
                confidence=row["confidence"],
                rule=metadata.get("rule", ""),
                time=edge["timestamp"] if edge is not None else None,
                subagent=metadata.get("subagent", False),
                origin=self._name(source),
            )
            found.append(link)
        return list(dict.fromkeys(found))

    def _name(self, node: str) -> str:
        return self._names.session(node) if self._kind == "topology" else self._names.observation(node)

    def _weak(self, row: Row) -> Link:
        topology = self._kind == "topology"
        return Link(
            source=row["source_session_id" if topology else "source_observation_id"],
            target=row["target_session_id" if topology else "target_observation_id"],
            relation=row["metadata_json"].get("relation", "unknown"),
            confidence=row["confidence"],
            rule=row["metadata_json"].get("rule", ""),
            time=row["timestamp"],
        )


def _grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["thread_id"]].append(row)
    return found


def _merged(held: Node, more: Node) -> Node:
    """A conversation of several files in a topology."""
    return structs.replace(
        held,
        files=held.files + more.files,
        records=max(held.records, more.records),
        first=min(filter(None, (held.first, more.first)), default=None),
        last=max(filter(None, (held.last, more.last)), default=None),
        present=held.present or more.present,
        resume=held.resume or more.resume,
        active=held.active or more.active,
        marks=tuple(sorted({*held.marks, *more.marks})),
    )


def _near(start: set[str], links: Iterable[Link], hops: int | None) -> set[str]:
    beside: dict[str, set[str]] = defaultdict(set)
    for link in links:
        beside[link.source].add(link.target)
        beside[link.target].add(link.source)
    found, edge, step = set(start), set(start), 0
    while edge and (hops is None or step < hops):
        edge = {other for one in edge for other in beside[one]} - found
        found |= edge
        step += 1
    return found


def place(nodes: Sequence[Node], links: Iterable[Link]) -> list[Placed]:
    """``nodes`` (in topological order) as a tree, each below the surest node that it comes from: first the branches of
    a node, indented, then what continues it, straight below."""
    order = {node.id: number for number, node in enumerate(nodes)}
    into: dict[str, list[Link]] = defaultdict(list)
    for link in links:
        if link.target in order:
            into[link.target].append(link)
    parents: dict[str, Link] = {}
    for node in nodes:
        candidates = sorted(
            (link for link in into[node.id] if link.source in order),
            key=lambda link: (RELATIONS.index(link.relation), link.subagent, order[link.source]),
        )
        for link in candidates:
            if not _leads_to(link.source, node.id, parents):
                parents[node.id] = link
                break
    children: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.id in parents:
            children[parents[node.id].source].append(node)
    placed: list[Placed] = []
    work = [(node, 0) for node in reversed(nodes) if node.id not in parents]
    while work:
        node, depth = work.pop()
        below = parents.get(node.id)
        also = tuple(link for link in into[node.id] if link != below)
        placed.append(Placed(node=node, depth=depth, below=below, also=also))
        below_it = children[node.id]
        straight = _straight(below_it, parents)
        work += [(one, depth) for one in below_it if one is straight]
        work += [(one, depth + 1) for one in reversed(below_it) if one is not straight]
    return placed


def _straight(children: Sequence[Node], parents: dict[str, Link]) -> Node | None:
    """The one that stands straight below its origin: the only one that continues it."""
    going_on = [one for one in children if parents[one.id].relation == "continuation"]
    return going_on[0] if len(going_on) == 1 else None


def _leads_to(start: str, end: str, parents: dict[str, Link]) -> bool:
    at: str | None = start
    while at is not None:
        if at == end:
            return True
        above = parents.get(at)
        at = above.source if above is not None else None
    return False
