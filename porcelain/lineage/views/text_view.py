"""A view as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from plumbing.interface.output import printable, table
from porcelain.lineage.views.view_document import MARK, Document, Section


def text_lines(document: Document, width: int | None = None) -> Iterator[str]:
    """The lines of a view; tables are cut to ``width`` columns where it is given."""
    yield f"{document.title}   ({MARK})"
    yield f"fold {document.fold}"
    for said in document.says:
        yield printable(said)
    for section in document.sections:
        yield ""
        yield from _section(section, width)


def _section(section: Section, width: int | None) -> Iterator[str]:
    if section.heading:
        yield printable(section.heading)
    for said in section.says:
        yield printable(said)
    for line in section.lines:
        yield printable(line)
    if section.grid is not None and section.grid.rows:
        yield from table(section.grid.rows, section.grid.header, width=width, right=section.grid.right)
