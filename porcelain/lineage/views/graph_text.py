"""The lineage graph as a document: a tree of lines for each thread, and a picture of the same."""

from __future__ import annotations

from collections.abc import Iterator

from plumbing.interface.output import counted
from porcelain.lineage.views.graph_lanes import Lanes, lanes_of
from porcelain.lineage.views.graph_model import Graph, Placed, Thread
from porcelain.lineage.views.graph_picture import thread_picture
from porcelain.lineage.views.graph_words import also_words, facts_of, link_words, state_of, when
from porcelain.lineage.views.view_document import Document, Grid, Section

#: Above this many threads a page begins with a list of them.
_LISTED_FROM = 3
TITLES = {"focused": "Lineage graph", "topology": "Thread topology"}


def graph_document(graph: Graph, *, pictures: bool = False) -> Document:
    """The document of a graph, with ``pictures`` where they are to be shown."""
    nodes = [placed.node for thread in graph.threads for placed in thread.placed]
    noun = "file" if graph.kind == "focused" else "conversation"
    says = [f"{counted(len(graph.threads), 'thread')}, {counted(len(nodes), noun)}."]
    if graph.single:
        says.append(f"{counted(graph.single, 'thread')} of one {noun} not shown.")
    sections = []
    if len(graph.threads) >= _LISTED_FROM:
        sections.append(Section(heading="Threads", grid=_list(graph)))
    sections += [_section(thread, pictures) for thread in graph.threads]
    if graph.weak:
        labels = {node.id: node.label for node in nodes}
        sections.append(
            Section(heading="Neighbours in a folder, which proves nothing", grid=_weak(graph, labels))
        )
    return Document(
        kind="graph", title=TITLES[graph.kind], fold=graph.fold, says=tuple(says), sections=sections
    )


def _list(graph: Graph) -> Grid:
    rows = [
        (
            thread.label,
            str(len(thread.placed)),
            thread.status,
            when(min((p.node.first or "~" for p in thread.placed), default=None)),
            when(max((p.node.last or "" for p in thread.placed), default=None)),
        )
        for thread in graph.threads
    ]
    links = tuple(thread.id for thread in graph.threads)
    return Grid(header=("thread", "nodes", "resume", "first", "last"), rows=rows, right=(1,), links=links)


def _weak(graph: Graph, labels: dict[str, str]) -> Grid:
    rows = [
        (labels.get(link.source, link.source), labels.get(link.target, link.target), when(link.time))
        for link in graph.weak
    ]
    return Grid(header=("earlier", "later", "time"), rows=rows)


def _section(thread: Thread, pictures: bool) -> Section:
    root = thread.placed[0].node
    says = [f"{root.provider} {root.native_id[:13]}", f"resume: {thread.status}"]
    if thread.cycles:
        says.append(f"{counted(thread.cycles, 'circle')} among the claims, not followed")
    return Section(
        heading=thread.label,
        says=(", ".join(says),),
        lines=tuple(thread_lines(thread)),
        figure=thread_picture(thread) if pictures else "",
        anchor=thread.id,
    )


def thread_lines(thread: Thread) -> Iterator[str]:
    """A thread as lines of text: one for each node."""
    for placed, lanes in zip(thread.placed, lanes_of(thread.placed), strict=True):
        yield f"{_branch(placed, lanes, thread)}{_node(placed)}"


def _branch(placed: Placed, lanes: Lanes, thread: Thread) -> str:
    """What stands before a node: the lines that pass it, and its own."""
    before = ""
    for lane in range(placed.depth):
        own = lanes.parent is not None and thread.placed[lanes.parent].depth == lane
        if own and lane == placed.depth - 1:
            before += "├─" if lane in lanes.through else "└─"
        else:
            before += "│ " if lane in lanes.through else "  "
    return before + ("◆ " if placed.node.resume else "● " if placed.node.present else "○ ")


def _node(placed: Placed) -> str:
    node = placed.node
    said = [node.label, f"({facts_of(node)})"]
    if placed.below is not None:
        said.append(f"[{link_words(placed.below)}]")
    said += [f"[{words}]" for words in also_words(placed)]
    return "  ".join([*said, *state_of(node)])
