"""``objstore flow land``: bring what is new in agents' files into the store.

Landing, lineage and assembly of a conversation are one pass over it, which reads every new byte once; so this is the
import of the agents' files under the name that it has among the stages of flow.
"""

from __future__ import annotations

from plumbing.options import Arguments, Context
from porcelain.importing import command

SUMMARY = "land what is new in agents' files"
USAGE = "flow land [--provider P]... [--strict] [--processes N] [--json] [PATH...]"
OPTIONS = command.OPTIONS
EXAMPLES = ("objstore flow land", "objstore flow land --provider claude")
ARGUMENTS = command.ARGUMENTS


def run(arguments: Arguments, context: Context) -> int:
    """As ``objstore import``."""
    return command.run(arguments, context)
