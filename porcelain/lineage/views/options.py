"""What the commands that show views have in common: the form and place of the output, and how labels are chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from objstore.errors import StorageError, UsageError
from objstore.store import Store
from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import Writer, encode, say
from plumbing.interface.stores import open_store
from porcelain.lineage.views.html_view import html_lines
from porcelain.lineage.views.listing import LABEL_PRIORITY
from porcelain.lineage.views.markdown import markdown_lines
from porcelain.lineage.views.names import LABELS
from porcelain.lineage.views.text_view import text_lines
from porcelain.lineage.views.view_document import MARK, Document
from porcelain.output_file import replacing

#: Forms by the end of a file's name.
_BY_SUFFIX = {
    ".dot": "dot",
    ".gv": "dot",
    ".htm": "html",
    ".html": "html",
    ".json": "json",
    ".markdown": "markdown",
    ".md": "markdown",
    ".mmd": "mermaid",
}
DOCUMENT_FORMS = ("text", "json", "markdown", "html")
GRAPH_FORMS = (*DOCUMENT_FORMS, "mermaid", "dot")
OUTPUT = Option(("-o", "--output"), "output", "FILE", "write to FILE", "file")
HTML = Option("--html", help="the same as --format html")
JSON_FORM = Option("--json", help="the same as --format json")
FORCE = Option("--force", help="replace FILE even if it is no view")
LABEL_OPTION = Option(
    "--labels",
    "labels",
    "TYPE,...",
    f"what conversations are called, best first: {' '.join(LABELS)}",
    "text",
)


def form_option(forms: tuple[str, ...]) -> Option:
    """The option ``--format`` of a view that has these forms."""
    return Option(
        "--format", "format", "FORM", f"{', '.join(forms)} (default: by FILE's name)", "choice", choices=forms
    )


def form_of(arguments: Arguments, forms: tuple[str, ...]) -> str:
    """The form that is asked for. Raises ``UsageError`` for one that the view does not have."""
    if arguments.html:
        return "html"
    if arguments.json:
        return "json"
    if arguments.format:
        return str(arguments.format)
    form = _BY_SUFFIX.get(Path(arguments.output).suffix.lower(), "text") if arguments.output else "text"
    if form not in forms:
        raise UsageError(f"{arguments.output}: this view has no such form", hint=f"one of {' '.join(forms)}")
    return form


def label_priority(arguments: Arguments) -> tuple[str, ...]:
    """The order of labels that is asked for. Raises ``UsageError`` for an unknown word."""
    if not arguments.labels:
        return LABEL_PRIORITY
    words = tuple(word.strip() for word in arguments.labels.split(","))
    for word in words:
        if word not in LABELS:
            raise UsageError(f"{word}: no such type of label", hint=f"some of {' '.join(LABELS)}")
    return words


def open_indexed(context: Context) -> Store:
    """The store of ``context``, for writing where that can be, so that what is worked out for an index is kept."""
    try:
        return open_store(context, write=True)
    except StorageError:
        return open_store(context)


def document_lines(
    document: Document, form: str, width: int | None, diagram: Iterable[str] = ()
) -> Iterator[str]:
    """The lines of a document as text, Markdown (with ``diagram``, Mermaid source) or HTML."""
    if form == "markdown":
        return markdown_lines(document, "\n".join(diagram))
    return html_lines(document) if form == "html" else text_lines(document, width)


def write_view(lines: Iterable[str], arguments: Arguments, context: Context) -> None:
    """Print ``lines``, or write them to the file that is asked for: whole or not at all, and never over another file
    than a view, unless forced."""
    if not arguments.output or arguments.output == "-":
        with Writer(context.stdout) as out:
            for line in lines:
                out.line(line)
        return
    path = Path(arguments.output)
    with (
        replacing(path, lambda head: MARK.encode() in head, overwrite=arguments.force) as partial,
        partial.open("wb") as file,
    ):
        file.writelines(chain.from_iterable((encode(line), b"\n") for line in lines))
    say(context, f"wrote {path}")
