"""The lineage graph and timelines as Mermaid source."""

from __future__ import annotations

from collections.abc import Iterator

from plumbing.interface.output import printable
from porcelain.lineage.views.graph_model import Graph, Link, Placed
from porcelain.lineage.views.graph_words import facts_of, link_words, state_of, when
from porcelain.lineage.views.view_document import MARK

_ARROWS = {
    "continuation": "-->",
    "fork": "==>",
    "context_jump": "-.->",
    "sibling": "-.-",
    "unknown": "-.-",
    "unrelated": "-.-",
}
_CLASSES = (
    "classDef resume stroke:#1c7a3f,stroke-width:3px",
    "classDef gone stroke:#b3261e,stroke-dasharray:4 3",
    "classDef superseded stroke:#a15c00",
)


def mermaid_graph(graph: Graph) -> Iterator[str]:
    """The lines of a flowchart: a subgraph for each thread."""
    yield f"%% {MARK}: graph, {graph.kind}, fold {graph.fold}"
    yield "flowchart LR"
    names: dict[str, str] = {}
    links: list[Link] = []
    for number, thread in enumerate(graph.threads):
        yield f'  subgraph t{number} ["{quoted(thread.label)}"]'
        for placed in thread.placed:
            name = names[placed.node.id] = f"n{len(names)}"
            yield f'    {name}["{_label(placed)}"]'
            links += [link for link in (placed.below, *placed.also) if link is not None]
        yield "  end"
    for link in (*links, *graph.weak):
        if link.source in names and link.target in names:
            words = quoted(link_words(link))
            yield f'  {names[link.source]} {_ARROWS[link.relation]}|"{words}"| {names[link.target]}'
    for line in _CLASSES:
        yield f"  {line}"
    for thread in graph.threads:
        for placed in thread.placed:
            kind = _class(placed)
            if kind:
                yield f"  class {names[placed.node.id]} {kind}"


def quoted(text: str) -> str:
    """``text`` between the quotation marks of a Mermaid label; what Mermaid would read is written by its number."""
    return "".join(
        f"#{ord(c)};" if c in '"#;<>&`\\|[]{}()*_~' else c for c in printable(text).replace("\n", " ")
    )


def _label(placed: Placed) -> str:
    node = placed.node
    said = [quoted(node.label), quoted(facts_of(node)), *map(quoted, state_of(node))]
    return "<br/>".join(said)


def _class(placed: Placed) -> str:
    node = placed.node
    if node.resume:
        return "resume"
    return "gone" if not node.present else "superseded" if "superseded" in node.marks else ""


def gantt(title: str, fold: str, rows: list[tuple[str, str, str, str]]) -> Iterator[str]:
    """The lines of a Gantt chart. ``rows`` are section, name, first and last time, in order of sections."""
    yield f"%% {MARK}: timeline, fold {fold}"
    yield "gantt"
    yield f"  title {_plain(title)}"
    yield "  dateFormat YYYY-MM-DDTHH:mm:ss"
    yield "  axisFormat %Y-%m-%d"
    section = None
    for number, (within, name, first, last) in enumerate(rows):
        if within != section:
            section = within
            yield f"  section {_plain(within)}"
        yield f"  {_plain(name)} :s{number}, {first[:19]}, {max(last, first)[:19]}"


def _plain(text: str) -> str:
    """``text`` in a chart, where colons, commas, semicolons and hashes part fields and cannot be quoted."""
    return "".join(" " if c in ":,;#\n" else c for c in printable(text)).strip() or when(None)
