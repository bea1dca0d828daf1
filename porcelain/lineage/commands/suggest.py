"""``objstore lineage suggest``: proposals of models and tools, and what a person makes of them."""

from __future__ import annotations

from objstore.errors import UsageError
from objstore.store import Store
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, printable, say, table, terminal_width
from plumbing.interface.stores import open_store
from porcelain.lineage.commands.curating import BY, now
from porcelain.lineage.curation.stating import CURATOR, learn
from porcelain.lineage.curation.suggestions import find_suggestion, promoted, rejected, suggestion
from porcelain.lineage.derived.lineage import Lineage
from porcelain.lineage.derived.lookup import find_session
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.tables.columns import RELATIONS

SUMMARY = "proposals about related conversations, which count only when promoted"
USAGE = """lineage suggest add --suggester NAME [--relation R] [--model-confidence X] [--reason TEXT]... FROM TO
lineage suggest list [--json]
lineage suggest promote [--by NAME] [--json] ID
lineage suggest reject [--by NAME] [--json] ID"""
OPTIONS = (
    Option("--suggester", "suggester", "NAME", "the model or tool, and its version", "text"),
    Option(
        "--relation", "relation", "R", "what is proposed (default: continuation)", "choice", choices=RELATIONS
    ),
    Option("--model-confidence", "model_confidence", "X", "how sure the suggester is", "text"),
    Option("--reason", "reasons", "TEXT", "why", "text", many=True),
    BY,
    JSON,
)
EXAMPLES = (
    "objstore lineage suggest add --suggester 'matcher 2.1' --reason 'same file names' 3f2a 9c41",
    "objstore lineage suggest list",
    "objstore lineage suggest promote 5d1c",
)
ARGUMENTS = (1, 3)

_COUNTS = {"add": 3, "list": 1, "promote": 2, "reject": 2}


def run(arguments: Arguments, context: Context) -> int:
    """Add, list, promote or reject."""
    action = arguments.args[0]
    if action not in _COUNTS:
        raise UsageError(f"lineage suggest: {action}: not one of {', '.join(_COUNTS)}")
    if len(arguments.args) != _COUNTS[action]:
        raise UsageError(
            f"lineage suggest {action}: wrong number of arguments", hint="lineage suggest --help"
        )
    with open_store(context, write=action != "list") as store:
        with open_lineage(store) as indexed:
            found = indexed.around([*arguments.args[1:], *indexed.suggested()])
        if action == "list":
            return _list(found, arguments, context)
        if action == "add":
            made = _added(found, arguments, now(store))
        else:
            one = find_suggestion(found, arguments.args[1])
            decided = promoted if action == "promote" else rejected
            made = decided(found, one, arguments.curator or CURATOR)
        return _state(store, found, made, arguments, context)


def _added(found: Lineage, arguments: Arguments, when: str) -> list[Fact]:
    if not arguments.suggester:
        raise UsageError("lineage suggest add: say by whom: --suggester NAME")
    source, target = (find_session(found, name) for name in arguments.args[1:])
    made = suggestion(
        source,
        target,
        arguments.relation or "continuation",
        arguments.suggester,
        when,
        model_confidence=arguments.model_confidence,
        reasons=arguments.reasons,
    )
    held = [one for one in found.said.of("suggestion") if one.id == made.id]
    return held or [made]


def _state(store: Store, found: Lineage, made: list[Fact], arguments: Arguments, context: Context) -> int:
    done = learn(store, made)
    one = made[-1]
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json({"facts": [fact.id for fact in done], "id": one.id, "status": one.columns["status"]})
        else:
            word = "" if done else "known already: "
            out.line(f"{word}{one.id}: {one.columns['status']}")
    return 0


def _list(found: Lineage, arguments: Arguments, context: Context) -> int:
    names = {node.session: f"{node.provider} {node.native_id}" for node in found.nodes}
    rows = []
    with Writer(context.stdout) as out:
        for one in found.said.of("suggestion"):
            columns = one.columns
            source, target = columns["source_session_id"], columns["target_session_id"]
            if arguments.json:
                out.json({"id": one.id, **columns})
                continue
            rows.append(
                (
                    one.id.removeprefix("suggestion_")[:12],
                    columns["status"],
                    columns["proposed_relation"],
                    names.get(source, source)[:22],
                    names.get(target, target)[:22],
                    columns["suggester"],
                    columns.get("model_confidence", "-"),
                )
            )
        header = ("id", "status", "relation", "from", "to", "by", "its confidence")
        width = terminal_width(context.stdout, context.env)
        for line in table(rows, header, width=width) if rows else ():
            out.line(printable(line))
    if not found.said.of("suggestion"):
        say(context, "no suggestion")
    return 0
