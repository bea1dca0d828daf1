"""``objstore lineage classify``: judge what happened between two files, or what something is."""

from __future__ import annotations

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.stores import open_store
from porcelain.lineage.commands.curating import BY, UNDO, state, stated_lineage
from porcelain.lineage.curation.stating import CURATOR, classify, classify_pair
from porcelain.lineage.derived.lookup import find_node, find_target

SUMMARY = "judge what happened between two conversations"
USAGE = """lineage classify [--note TEXT] [--by NAME] [--undo] [--json] FROM TO WORD
lineage classify [--note TEXT] [--by NAME] [--undo] [--json] TARGET WORD"""
OPTIONS = (Option("--note", "note", "TEXT", "a remark", "text"), BY, UNDO, JSON)
EXAMPLES = (
    "objstore lineage classify 3f2a 9c41 continuation",
    "objstore lineage classify 3f2a 9c41 context-jump",
)
ARGUMENTS = (2, 3)


def run(arguments: Arguments, context: Context) -> int:
    """State the judgement: continuation, fork, context-jump, unrelated, sibling, unknown, or any other word."""
    *names, word = arguments.args
    curator = arguments.curator or CURATOR
    with open_store(context, write=True) as store:
        if len(names) == 2:
            found = stated_lineage(store, names)
            source, target = (find_node(found, name) for name in names)
            made = classify_pair(found, source, target, word, arguments.note, curator)
            what = f"{word}: from {source.path} to {target.path}"
        else:
            target_of = find_target(stated_lineage(store, names), names[0])
            made = [classify(target_of, word, arguments.note, curator)]
            what = f"{word}: {target_of[0]} {target_of[1]}"
        return state(store, made, arguments, context, what)
