"""``objstore flow land``: bring what is new in agents' files into the store, without making rounds of it."""

from __future__ import annotations

from plumbing.interface.options import Arguments, Context
from porcelain.importing import command

SUMMARY = "land what is new in agents' files"
USAGE = "flow land [--provider P]... [--check] [--strict] [--processes N] [--json] [PATH...]"
OPTIONS = command.OPTIONS
EXAMPLES = ("objstore flow land", "objstore flow land --provider claude")
ARGUMENTS = command.ARGUMENTS


def run(arguments: Arguments, context: Context) -> int:
    """As ``objstore import``, without assembly."""
    return command.run(arguments, context, assemble=False)
