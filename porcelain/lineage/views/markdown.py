"""A view as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plumbing.interface.output import printable
from porcelain.lineage.views.view_document import MARK, Document, Grid, Section

#: What means something to Markdown within a line.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&!])")


def markdown_lines(document: Document, diagram: str = "") -> Iterator[str]:
    """The lines of a view; ``diagram`` is Mermaid source to show first."""
    yield f"<!-- {MARK}: {document.kind} -->"
    yield f"# {escaped(document.title)}"
    yield ""
    yield f"Fold `{document.fold}`."
    for said in document.says:
        yield ""
        yield escaped(said)
    if diagram:
        yield ""
        yield "```mermaid"
        yield from diagram.splitlines()
        yield "```"
    for section in document.sections:
        yield ""
        yield from _section(section)


def escaped(text: str) -> str:
    """``text`` as Markdown that shows it as it is."""
    return _SPECIAL.sub(r"\\\1", printable(text))


def _section(section: Section) -> Iterator[str]:
    if section.heading:
        yield f"## {escaped(section.heading)}"
        yield ""
    for said in section.says:
        yield escaped(said)
        yield ""
    if section.lines:
        yield "```text"
        yield from (printable(line).replace("```", "'''") for line in section.lines)
        yield "```"
    if section.grid is not None and section.grid.rows:
        yield from _grid(section.grid)


def _grid(grid: Grid) -> Iterator[str]:
    yield _row(grid.header)
    yield _row("--:" if column in grid.right else "---" for column in range(len(grid.header)))
    for row in grid.rows:
        yield _row(escaped(cell) for cell in row)


def _row(cells: Iterator[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell or " " for cell in cells) + " |"
