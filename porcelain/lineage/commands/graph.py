"""``objstore lineage graph``: which conversation came from which, as a tree, a picture or for other programs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import terminal_width
from plumbing.interface.stores import open_store
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.index.reading import only_session
from porcelain.lineage.views.dot import dot_graph
from porcelain.lineage.views.graph_model import Graph, make_graph
from porcelain.lineage.views.graph_text import graph_document
from porcelain.lineage.views.mermaid import mermaid_graph
from porcelain.lineage.views.options import (
    FORCE,
    GRAPH_FORMS,
    HTML,
    JSON_FORM,
    LABEL_OPTION,
    OUTPUT,
    document_lines,
    form_of,
    form_option,
    label_priority,
    write_view,
)
from porcelain.lineage.views.view_document import MARK

SUMMARY = "which conversation came from which"
USAGE = (
    "lineage graph [--topology] [--all] [--weak] [--hops N] [--format FORM] [-o FILE] [--labels TYPE,...] "
    "[CONVERSATION]"
)
OPTIONS = (
    Option("--topology", help="a node for each conversation instead of each file"),
    Option("--all", help="threads of one node too"),
    Option("--weak", help="neighbours in a folder too, which proves nothing"),
    Option("--hops", "hops", "N", "no further than N links from CONVERSATION", "integer"),
    form_option(GRAPH_FORMS),
    HTML,
    JSON_FORM,
    OUTPUT,
    FORCE,
    LABEL_OPTION,
)
EXAMPLES = (
    "objstore lineage graph",
    "objstore lineage graph --html -o lineage.html",
    "objstore lineage graph --hops 2 5c5fd944",
    "objstore lineage graph --topology --format dot | dot -Tsvg > lineage.svg",
)
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Print or write the graph of all threads, or of what is around one conversation."""
    form, priority = form_of(arguments, GRAPH_FORMS), label_priority(arguments)
    with open_store(context) as store, open_lineage(store) as indexed:
        around = only_session(indexed, arguments.args[0]) if arguments.args else None
        graph = make_graph(
            indexed.projection(),
            "topology" if arguments.topology else "focused",
            priority=priority,
            everything=arguments.all,
            around=around,
            hops=arguments.hops,
        )
    if not arguments.weak:
        graph = msgspec.structs.replace(graph, weak=[])
    write_view(_lines(graph, form, arguments, context), arguments, context)
    return 0


def _lines(graph: Graph, form: str, arguments: Arguments, context: Context) -> Iterator[str]:
    if form == "mermaid":
        return mermaid_graph(graph)
    if form == "dot":
        return dot_graph(graph)
    if form == "json":
        return iter([json_text(graph)])
    width = None if arguments.output else terminal_width(context.stdout, context.env)
    document = graph_document(graph, pictures=form == "html")
    return document_lines(document, form, width, mermaid_graph(graph))


def json_text(graph: Graph) -> str:
    """The graph as one JSON object: nodes in reading order, each link once, under the names of the JSON export."""
    links = [link for thread in graph.threads for p in thread.placed for link in (p.below, *p.also) if link]
    value = {
        "view": f"{MARK}: graph",
        "kind": graph.kind,
        "fold": graph.fold,
        "around": graph.around or None,
        "hiddenThreads": graph.single,
        "threads": [
            {
                "id": thread.id,
                "label": thread.label,
                "resume": thread.status,
                "cycles": thread.cycles,
                "nodes": [
                    {
                        **{_camel(key): item for key, item in msgspec.structs.asdict(placed.node).items()},
                        "marks": list(placed.node.marks),
                        "depth": placed.depth,
                        "parent": placed.below.source if placed.below is not None else None,
                    }
                    for placed in thread.placed
                ],
            }
            for thread in graph.threads
        ],
        "links": [msgspec.structs.asdict(link) for link in links],
        "weakLinks": [msgspec.structs.asdict(link) for link in graph.weak],
    }
    return msgspec.json.encode(value, order="sorted").decode()


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
