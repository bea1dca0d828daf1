"""``objstore flow verify``: recompute every digest, link, range and input digest of conversations."""

from __future__ import annotations

from msgspec.structs import asdict

from objstore.errors import UsageError
from plumbing.options import JSON, Arguments, Context
from plumbing.output import Progress, Writer, say
from plumbing.stores import open_store
from porcelain.flow.checking import ConversationCheck, check_conversation
from porcelain.flow.store import all_chains, find_conversation

SUMMARY = "check the rounds of conversations"
USAGE = "flow verify [--json] [ID...]"
OPTIONS = (JSON,)
EXAMPLES = ("objstore flow verify", "objstore flow verify 3f2a --json")
ARGUMENTS = (0, None)


def run(arguments: Arguments, context: Context) -> int:
    """One line a problem; 1 if there is any."""
    checks: list[ConversationCheck] = []
    with open_store(context) as store, store.snapshot() as view, Writer(context.stdout) as out:
        chains = all_chains(view)
        if arguments.args:
            wanted = {find_conversation(view, text) for text in arguments.args}
            chains = {key: heads for key, heads in chains.items() if key[1:] in wanted}
        with Progress(context, "flow verify", total=len(chains)) as progress:
            for (_, provider, name), heads in sorted(chains.items()):
                check = check_conversation(view, provider, name, heads.get("landed"), heads.get("flow"))
                checks.append(check)
                progress.advance()
                if not arguments.json:
                    for problem in check.problems:
                        compared = (
                            f": expected {problem.expected}, found {problem.found}"
                            if problem.expected
                            else ""
                        )
                        out.line(
                            f"{provider}/{name}: {problem.place}: {problem.rule}: {problem.what}{compared}"
                        )
        if arguments.json:
            for check in checks:
                out.json(
                    {
                        "conversation": check.conversation,
                        "pages": check.pages,
                        "problems": [asdict(problem) for problem in check.problems],
                        "provider": check.provider,
                        "records": check.records,
                        "rounds": check.rounds,
                    }
                )
    if not checks and not arguments.args:
        raise UsageError("the store holds no conversation yet", hint="objstore import")
    problems = sum(len(check.problems) for check in checks)
    say(
        context,
        f"checked {len(checks):,} conversations, {sum(c.pages for c in checks):,} pages, "
        f"{sum(c.records for c in checks):,} records, {sum(c.rounds for c in checks):,} rounds: "
        + (f"{problems:,} problems" if problems else "all digests match"),
    )
    return 1 if problems else 0
