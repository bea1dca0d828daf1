"""The nodes of the lineage graph: the transcripts of a view, and absent files that a manifest or a person names.

A node is the observation of one transcript. What a session's subagents and companion files are is no node; a session
of which only those are known is stood for by one of them. An earlier state of a file that was rewritten in place is a
node of its own that only refers to the current one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct, field

from porcelain.lineage.facts.identity import observation_id, session_id, source_id
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.landed.strays import Part, Ranges
from porcelain.lineage.tables.columns import FILE_EVIDENCE, GONE

#: The source of files that are only named, one for each host.
NAMED_URI = "named:"
_IN_NAME = re.compile(r"_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?=[_.]|$)")
#: Fields of statements that name a transcript's path, each with the field that may give its native id.
_PATHS = (("from", "native_id"), ("to", "native_id"), ("path", "native_id"), ("current", "native_id"))


class Node(Struct, frozen=True, kw_only=True):
    """One transcript. ``id`` is the observation's; ``path`` is whole; ``cwds`` in the order in which they were first
    stated; ``links`` what the provider states about where it comes from (see ``reports.LINKS``). ``named`` marks a file
    that is only named, ``older`` an earlier state of a rewritten file, ``stand_in`` a session without its transcript.
    Where conversations share a file, ``rows`` are those of this one, ``part`` says what else is known
    of those of a guest, and ``guest_of`` is the node of the conversation whose file it is (see ``guests``).
    """

    id: str
    session: str
    provider: str
    native_id: str
    host: str
    source: str
    path: str
    src: str = ""
    records: int = 0
    first: str | None = None
    last: str | None = None
    first_record: str | None = None
    differs: str | None = None
    present: bool = True
    named: bool = False
    older: bool = False
    stand_in: bool = False
    cwds: tuple[str, ...] = ()
    links: dict[str, list[str]] = field(default_factory=dict)
    rows: Ranges | None = None
    guest_of: Node | None = None
    part: Part | None = None

    @property
    def order(self) -> tuple[str, str, str]:
        """By age: the first time, then the last, then the id."""
        return (self.first or "~", self.last or "~", self.id)

    @property
    def bucket(self) -> str:
        """The name of the folder that the file is in."""
        return PurePosixPath(self.path).parent.name


class Said:
    """The live facts of a fold by kind, each kind in order of id."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._of: dict[str, list[Fact]] = defaultdict(list)
        for one in facts:
            self._of[one.kind].append(one)
        for found in self._of.values():
            found.sort(key=lambda one: one.id)

    def of(self, kind: str) -> list[Fact]:
        """The facts of ``kind``."""
        return self._of.get(kind, [])

    def statements(self, *says: str) -> Iterator[Fact]:
        """The evidence facts that are statements of these sorts, in order of id."""
        return (one for one in self.of("evidence") if one.columns["data"].get("says") in says)


class Nodes:
    """All nodes by observation id, and the ways to find them."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.by_id = {node.id: node for node in sorted(nodes, key=lambda node: node.id)}
        self.of_session: dict[str, list[Node]] = defaultdict(list)
        self._at: dict[tuple[str, str], Node] = {}
        self._native: dict[tuple[str, str], str] = {}
        for node in self.by_id.values():
            self.of_session[node.session].append(node)
            self._native[node.provider, node.native_id] = node.session
            if not node.older:
                held = self._at.get((node.host, node.path))
                if held is None or (held.named, held.id) > (node.named, node.id):
                    self._at[node.host, node.path] = node

    def __iter__(self) -> Iterator[Node]:
        return iter(self.by_id.values())

    def at(self, host: str, path: str) -> Node | None:
        """The node of the file at ``path`` on ``host``."""
        return self._at.get((host, path))

    def linked(self, node: Node, value: str) -> Node | None:
        """The node that a provider's link ``value`` in ``node``, a path or a native id, means: of several files of one
        session the oldest."""
        if is_path(value):
            found = self.at(node.host, value)
            if found is not None:
                return found
            value = native_id_of_path(value)
        return next(iter(self.native(node.provider, value)), None)

    def native(self, provider: str, native_id: str) -> list[Node]:
        """The nodes of the session with this native id, current states only, oldest first."""
        found = self.of_session.get(self._native.get((provider, native_id), ""), [])
        return sorted((node for node in found if not node.older), key=lambda node: node.order)


def read_nodes(said: Said) -> Nodes:
    """The nodes of a fold."""
    seen = list(_observed(said))
    known = {(node.host, node.path) for node in seen}
    found = Nodes([*seen, *_named(said, known)])
    return Nodes([*found, *_linked(found)])


def is_path(value: str) -> bool:
    """Whether a provider's link is a path and no native id."""
    return "/" in value or "\\" in value


def native_id_of_path(path: str) -> str:
    """The native id that a transcript's file name states, else the name without its ending."""
    name = PurePosixPath(path.replace("\\", "/")).name
    found = _IN_NAME.search(name)
    return found.group(1) if found else name.rpartition(".")[0] or name


def _observed(said: Said) -> Iterator[Node]:
    sources = {one.id: one.columns for one in said.of("source")}
    sessions = {one.id: one.columns for one in said.of("session")}
    gone = {
        one.columns.get("target_id")
        for one in said.of("evidence")
        if one.columns["kind"] == FILE_EVIDENCE and one.columns["data"].get("state") == GONE
    }
    cwds = _cwds(said)
    transcripts: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    aside: dict[str, Fact] = {}
    with_transcript: set[str] = set()
    for one in said.of("observation"):
        columns = one.columns
        if columns.get("session_id") not in sessions or columns.get("source_id") not in sources:
            continue
        metadata = columns.get("metadata", {})
        if metadata.get("kind", "transcript") == "transcript" and metadata.get("stream", "main") == "main":
            transcripts[columns["source_id"], columns["path"]].append(one)
            with_transcript.add(columns["session_id"])
        else:
            aside.setdefault(columns["session_id"], one)
    for states in transcripts.values():
        current = max(states, key=_state)
        for one in states:
            yield _node(one, sources, sessions, gone, cwds, older=one is not current)
    for session, one in aside.items():
        if session not in with_transcript:
            yield _node(one, sources, sessions, gone, cwds, stand_in=True)


def _state(observation: Fact) -> tuple[bool, str, str]:
    """Which of several states of one file is the current one: what was read after a rewrite, the latest of those."""
    metadata = observation.columns.get("metadata", {})
    return ("differs" in metadata, observation.columns.get("file_mtime", ""), observation.id)


def _cwds(said: Said) -> dict[str, list[str]]:
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for one in said.of("label"):
        columns = one.columns
        if columns["label_type"] == "cwd" and columns["value"]:
            found[columns["target_id"]].append((columns.get("valid_from", "~"), columns["value"]))
    return {target: [value for _, value in sorted(values)] for target, values in found.items()}


def _node(
    one: Fact,
    sources: dict[str, dict[str, Any]],
    sessions: dict[str, dict[str, Any]],
    gone: set[Any],
    cwds: dict[str, list[str]],
    *,
    older: bool = False,
    stand_in: bool = False,
) -> Node:
    columns = one.columns
    metadata = columns.get("metadata", {})
    source, session = sources[columns["source_id"]], sessions[columns["session_id"]]
    return Node(
        id=one.id,
        session=columns["session_id"],
        provider=session["provider"],
        native_id=session["provider_session_id"],
        host=source["metadata"]["host"],
        source=columns["source_id"],
        path=whole_path(source["uri"], columns["path"]),
        src=metadata.get("src", ""),
        records=metadata.get("records", 0),
        first=columns.get("first_event_at"),
        last=columns.get("last_event_at"),
        first_record=metadata.get("first_record"),
        differs=metadata.get("differs"),
        present=one.id not in gone and not older,
        older=older,
        stand_in=stand_in,
        cwds=tuple(cwds.get(one.id, ())),
        links=metadata.get("links", {}),
    )


def whole_path(uri: str, path: str) -> str:
    """The path of a file from its source's uri and the path within."""
    if path.startswith("/") or path[1:3] == ":/":
        return path
    return uri.rstrip("/\\") + "/" + path


def _named(said: Said, known: set[tuple[str, str]]) -> Iterator[Node]:
    """Files that only a statement names. Of several statements about one file the smallest native id counts."""
    named: dict[tuple[str, str], str] = {}
    for one in said.statements("relocation", "edge", "root", "lineage-name", "session-label", "mark"):
        data = one.columns["data"]
        for name, native in _PATHS:
            path = data.get(name)
            if path is None or (data["host"], path) in known:
                continue
            stated = data.get(native) or native_id_of_path(path)
            held = named.get((data["host"], path))
            named[data["host"], path] = stated if held is None else min(held, stated)
    for (host, path), native_id in named.items():
        yield named_node("pi", native_id, host, path)


def _linked(nodes: Nodes) -> Iterator[Node]:
    """Origins that a provider names and that are nowhere to be seen: one for each session."""
    named: dict[tuple[str, str], Node] = {}
    for node in nodes:
        for link in ("base", "forked_from", "parent"):
            for value in node.links.get(link, ()):
                if nodes.linked(node, value) is None:
                    native_id = native_id_of_path(value) if is_path(value) else value
                    made = named_node(node.provider, native_id, node.host, value)
                    held = named.get((node.provider, native_id))
                    if held is None or made.id < held.id:
                        named[node.provider, native_id] = made
    return iter(named.values())


def named_node(provider: str, native_id: str, host: str, path: str) -> Node:
    """A node for a file that is only named; ``path`` is its native id where no path is known."""
    source = source_id(provider, "relocation_manifest", host, NAMED_URI)
    return Node(
        id=observation_id(source, path, None),
        session=session_id(provider, native_id),
        provider=provider,
        native_id=native_id,
        host=host,
        source=source,
        path=path,
        present=False,
        named=True,
    )
