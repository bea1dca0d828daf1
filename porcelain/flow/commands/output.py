"""How the commands of flow print their answers: as text, as JSON, one object a line, or as one YAML document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from objstore.errors import NotFound, UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, encode, table, terminal_width
from porcelain.flow.views.yaml import to_yaml

Json = dict[str, Any]
YAML = Option("--yaml", help="print YAML, one document")
#: The options of every command that prints an answer.
OUTPUT = (JSON, YAML)


def print_answer(
    arguments: Arguments, context: Context, rows: Iterable[Json], lines: Callable[[list[Json]], Iterable[str]]
) -> None:
    """Print ``rows`` as they were asked for; ``lines`` makes the text of them."""
    if arguments.json and arguments.yaml:
        raise UsageError("--json and --yaml exclude each other")
    with Writer(context.stdout) as out:
        if arguments.json:
            for row in rows:
                out.json(row)
        elif arguments.yaml:
            out.write(encode(to_yaml(list(rows))))
        else:
            for line in lines(list(rows)):
                out.line(line)


def columns(
    context: Context, header: Sequence[str], cells: Sequence[Sequence[str]], *, right: Sequence[int] = ()
) -> Iterator[str]:
    """The lines of a table, none for no cells."""
    if cells:
        yield from table(cells, header, width=terminal_width(context.stdout, context.env), right=right)


def no_structure(provider: str, name: str) -> NotFound:
    """What to say of a conversation that has no rounds."""
    return NotFound(
        f"{provider}/{name}: no structure was assembled of this conversation", hint="objstore flow assemble"
    )
