"""``objstore lineage label``: name a conversation, file, project, source or edge."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.stores import open_store
from porcelain.lineage.commands.curating import BY, UNDO, now, state, stated_lineage
from porcelain.lineage.curation.stating import CURATOR, label
from porcelain.lineage.derived.lookup import find_target
from porcelain.lineage.tables.columns import LABEL_TYPES

SUMMARY = "name a conversation, a file or a project"
USAGE = "lineage label [--type T] [--by NAME] [--undo] [--json] TARGET NAME"
OPTIONS = (
    Option("--type", "label_type", "T", "kind of name (default: lineage)", "choice", choices=LABEL_TYPES),
    BY,
    UNDO,
    JSON,
)
EXAMPLES = ("objstore lineage label 3f2a 'tide tables'", "objstore lineage label --undo 3f2a 'tide tables'")
ARGUMENTS = (2, 2)


def run(arguments: Arguments, context: Context) -> int:
    """Give a name; an empty NAME clears the one that holds."""
    name, value = arguments.args
    if len(value) > 1024:
        raise UsageError("lineage label: a name has at most 1,024 characters")
    with open_store(context, write=True) as store:
        target = find_target(stated_lineage(store, [name]), name)
        kind = arguments.label_type or "lineage"
        made = label(target, kind, value, now(store), arguments.curator or CURATOR)
        return state(
            store, [made], arguments, context, f"{kind} of {target[0]} {target[1]}: {value or '(none)'}"
        )
