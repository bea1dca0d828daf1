"""What a person names on the command line: a session, a file, an edge, by id, path or the beginning of a native id."""

from __future__ import annotations

from objstore.errors import NotFound, UsageError
from porcelain.lineage.derived.lineage import Lineage
from porcelain.lineage.relations.nodes import Node


def find_session(found: Lineage, text: str) -> str:
    """The id of the session that ``text`` names: its fact id, native id or the beginning of it, or a file of it."""
    nodes = found.nodes
    if text in nodes.of_session:
        return text
    if text in nodes.by_id:
        return nodes.by_id[text].session
    by_path = {node.session for node in nodes if text in (node.path, node.src) and node.guest_of is None}
    sessions = by_path or {node.session for node in nodes if node.native_id == text}
    sessions = sessions or {node.session for node in nodes if node.native_id.startswith(text)}
    if not sessions:
        raise NotFound(f"{text}: no such conversation", hint="list them with: objstore lineage sessions")
    if len(sessions) > 1:
        names = sorted({node.native_id for node in nodes if node.session in sessions})
        raise UsageError(
            f"{text}: names {len(sessions)} conversations", hint="type more of the id: " + " ".join(names[:3])
        )
    return sessions.pop()


def find_node(found: Lineage, text: str) -> Node:
    """The one transcript that ``text`` names; raises ``UsageError`` where a session has several."""
    nodes = found.nodes
    if text in nodes.by_id:
        return nodes.by_id[text]
    at_path = [node for node in nodes if node.path == text and not node.older and node.guest_of is None]
    if len(at_path) == 1:
        return at_path[0]
    session = find_session(found, text)
    current = [node for node in nodes.of_session[session] if not node.older]
    there = [node for node in current if node.present] or current
    if len(there) > 1:
        raise UsageError(
            f"{text}: the conversation has {len(there)} files",
            hint="name one by its path or id: " + " ".join(sorted(node.path for node in there)[:3]),
        )
    return there[0]


def find_target(found: Lineage, text: str) -> tuple[str, str]:
    """Type and id of what a label or classification may be given to: an edge, source, project, observation or session.

    A path means that file, anything else that names a conversation the session.
    """
    for claim in found.claims.all:
        if claim.id == text or claim.stored == text:
            return "edge", text
    for kind, name in (("source", "source"), ("repo_identity", "project")):
        for one in found.said.of(kind):
            if text in (one.id, one.columns.get("stable_name")):
                return name, one.id
    if text in found.nodes.by_id or any(node.path == text for node in found.nodes):
        return "observation", find_node(found, text).id
    return "session", find_session(found, text)


def shown(node: Node) -> str:
    """How a node is shown in a line of text: agent, native id and file."""
    return f"{node.provider} {node.native_id[:13]} {node.path}"
