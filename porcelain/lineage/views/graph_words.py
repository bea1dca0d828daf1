"""What is said about a node and a link of the lineage graph, in a few words."""

from __future__ import annotations

from plumbing.interface.output import counted
from porcelain.lineage.views.graph_model import Link, Node, Placed


def facts_of(node: Node) -> str:
    """The facts of a node in a few words."""
    said = [node.provider, node.native_id[:13], counted(node.records, "record")]
    if node.files > 1:
        said.append(counted(node.files, "file"))
    return f"{', '.join(said)}, {when(node.first)} to {when(node.last)}"


def state_of(node: Node) -> list[str]:
    """What is remarkable about a node."""
    said = [mark.replace("_", " ") for mark in node.marks]
    if not node.present:
        said.append("gone")
    if node.resume:
        said.append("resume here")
    elif node.active:
        said.append("can be resumed")
    return said


def link_words(link: Link) -> str:
    """A relation with its confidence."""
    word = "subagent" if link.subagent else link.relation.replace("_", " ")
    return f"{word}, {link.confidence}"


def also_words(placed: Placed) -> list[str]:
    """Where a node comes from beside what it hangs below."""
    word = "also " if placed.below is not None else ""
    return [f"{word}{link_words(link)} from {link.origin or link.source}" for link in placed.also]


def when(time: str | None) -> str:
    """A time to the minute."""
    return time[:16].replace("T", " ") if time and time != "~" else "-"
