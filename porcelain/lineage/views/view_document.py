"""A view before it takes a form: headings, remarks, tables, lines, figures. Text, Markdown and HTML are made of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

#: By this a file is known as a view that may be replaced; it stands in the first bytes of every form.
MARK = "objstore lineage view"


class Grid(Struct, frozen=True, kw_only=True):
    """A table. ``right`` are the columns that are set flush right; ``links`` names for each row the section that its
    first cell leads to, "" for none."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    right: tuple[int, ...] = ()
    links: tuple[str, ...] = ()


class Section(Struct, frozen=True, kw_only=True):
    """A part of a view, under ``heading`` if it has one: a paragraph for each of ``says``, ``lines`` whose blanks
    count, a ``grid``, and a ``figure`` (an SVG element), which takes the place of ``lines`` in HTML. ``anchor`` is a
    name by which the page links to it."""

    heading: str = ""
    says: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    grid: Grid | None = None
    figure: str = ""
    anchor: str = ""


class Document(Struct, frozen=True, kw_only=True):
    """A view: what it is called, the fold that it was made from, what is to be said first, and its parts. ``kind`` is
    the word of its command."""

    kind: str
    title: str
    fold: str
    says: tuple[str, ...] = ()
    sections: list[Section]
