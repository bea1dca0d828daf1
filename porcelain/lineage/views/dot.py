"""The lineage graph in Graphviz's language."""

from __future__ import annotations

from collections.abc import Iterator

from plumbing.interface.output import printable
from porcelain.lineage.views.graph_model import Graph, Link, Node
from porcelain.lineage.views.graph_words import facts_of, link_words, state_of
from porcelain.lineage.views.view_document import MARK

_STYLES = {
    "continuation": 'color="#1565a8"',
    "fork": 'color="#7a3fb0"',
    "context_jump": 'color="#b0480f" style=dashed',
    "sibling": 'color="#6b7480" style=dotted dir=none',
    "unknown": 'color="#6b7480" style=dotted',
    "unrelated": 'color="#6b7480" style=dotted dir=none',
}


def dot_graph(graph: Graph) -> Iterator[str]:
    """The lines of a digraph: a cluster for each thread."""
    yield f"// {MARK}: graph, {graph.kind}, fold {graph.fold}"
    yield "digraph lineage {"
    yield "  rankdir=LR"
    yield '  node [shape=box style=rounded fontname="monospace" fontsize=11]'
    yield '  edge [fontname="monospace" fontsize=9]'
    names: dict[str, str] = {}
    links: list[Link] = []
    for number, thread in enumerate(graph.threads):
        yield f"  subgraph cluster_{number} {{"
        yield f"    label={quoted(thread.label)}"
        for placed in thread.placed:
            name = names[placed.node.id] = f"n{len(names)}"
            yield f"    {name} [{_attributes(placed.node)}]"
            links += [link for link in (placed.below, *placed.also) if link is not None]
        yield "  }"
    for link in (*links, *graph.weak):
        if link.source in names and link.target in names:
            label = quoted(link_words(link))
            style = _STYLES[link.relation]
            yield f"  {names[link.source]} -> {names[link.target]} [label={label} {style}]"
    yield "}"


def quoted(text: str) -> str:
    """``text`` as a quoted string of the language."""
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _attributes(node: Node) -> str:
    lines = [node.label, facts_of(node), *state_of(node)]
    label = "\\n".join(quoted(line)[1:-1] for line in lines)
    style = (
        ' penwidth=2 color="#1c7a3f"'
        if node.resume
        else ' style="rounded,dashed"'
        if not node.present
        else ""
    )
    return f'label="{label}"{style}'
