"""``objstore lineage alias``: say that a path, project, repository or lineage is called otherwise now."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.stores import open_store
from porcelain.lineage.commands.curating import BY, UNDO, state
from porcelain.lineage.curation.stating import CURATOR, alias
from porcelain.lineage.tables.columns import ALIAS_TYPES

SUMMARY = "say that a path or project is called otherwise now"
USAGE = "lineage alias [--type T] [--note TEXT] [--by NAME] [--undo] [--json] FROM TO"
OPTIONS = (
    Option("--type", "alias_type", "T", "what is renamed (default: path)", "choice", choices=ALIAS_TYPES),
    Option("--note", "note", "TEXT", "a remark", "text"),
    BY,
    UNDO,
    JSON,
)
EXAMPLES = ("objstore lineage alias ~/src/tidepool ~/src/tide-tables",)
ARGUMENTS = (2, 2)


def run(arguments: Arguments, context: Context) -> int:
    """State that FROM became TO."""
    before, after = arguments.args
    kind = arguments.alias_type or "path"
    made = alias(kind, before, after, arguments.note, arguments.curator or CURATOR)
    with open_store(context, write=True) as store:
        return state(store, [made], arguments, context, f"{kind} {before} is now {after}")
