"""``objstore flow glossary``: what each word of the model is called by an agent."""

from __future__ import annotations

from collections.abc import Iterator

from objstore.errors import NotFound
from plumbing.interface.options import Arguments, Context
from porcelain.flow.assembly.dialects import DIALECTS
from porcelain.flow.commands.output import OUTPUT, Json, columns, print_answer

SUMMARY = "what each word of the model is called by an agent"
USAGE = "flow glossary [--json|--yaml] [DIALECT]"
OPTIONS = OUTPUT
EXAMPLES = ("objstore flow glossary", "objstore flow glossary claude-code/1")
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Print the terms of DIALECT (or the beginning of its name), or of all."""
    wanted = arguments.args[0] if arguments.args else ""
    dialects = {name: terms for name, terms in DIALECTS.items() if name.startswith(wanted)}
    if not dialects:
        raise NotFound(f"{wanted}: no such dialect", hint="there are: " + " ".join(DIALECTS))
    rows = [
        {"dialect": name, "of": term.of, "name": term.name, "native": term.native, "where": term.where}
        for name, terms in dialects.items()
        for term in terms
    ]
    print_answer(arguments, context, rows, lambda rows: _lines(rows, context))
    return 0


def _lines(rows: list[Json], context: Context) -> Iterator[str]:
    cells = [
        (row["dialect"], row["of"], row["name"], row["native"] or "(derived)", row["where"]) for row in rows
    ]
    return columns(context, ("dialect", "of", "word", "agent's word", "where"), cells)
