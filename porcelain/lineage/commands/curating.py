"""What the commands have in common by which people state something: writing it, or taking it back."""

from __future__ import annotations

from collections.abc import Sequence

from objstore.errors import NotFound
from objstore.store import Store
from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import Writer, printable
from porcelain.lineage.curation.stating import CURATOR, learn, withdraw
from porcelain.lineage.derived.lineage import Lineage
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.times import normal_time
from porcelain.lineage.index.opening import open_lineage

UNDO = Option("--undo", help="take back what the same words have stated")
BY = Option("--by", "curator", "NAME", f"who states it (default: {CURATOR})", "text")


def stated_lineage(store: Store, names: Sequence[str]) -> Lineage:
    """What follows from the facts about what these words name: enough to say what is meant."""
    with open_lineage(store) as indexed:
        return indexed.around(names)


def now(store: Store) -> str:
    """This moment in the form of lineage."""
    return normal_time(store.now()) or "1970-01-01T00:00:00.000Z"


def state(store: Store, facts: Sequence[Fact], arguments: Arguments, context: Context, what: str) -> int:
    """Write the facts, or with ``--undo`` take them back, and say so."""
    done = withdraw(store, facts) if arguments.undo else learn(store, facts)
    if arguments.undo and not done:
        raise NotFound(f"{what}: was not stated", hint="the same words and --by take back what they stated")
    word = "taken back" if arguments.undo else "stated" if done else "known already"
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json({"facts": [one.id for one in done], "what": what, "result": word})
        else:
            out.line(printable(f"{word}: {what}"))
    return 0
