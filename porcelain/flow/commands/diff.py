"""``objstore flow diff``: what changed in a conversation between two rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from objstore.errors import NotFound, UsageError
from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import counted, printable, say
from plumbing.interface.stores import open_store
from porcelain.flow.chain.diff_frames import Json, change_lines, change_value, compare_folds
from porcelain.flow.chain.folding import Fold, apply, copied
from porcelain.flow.chain.naming import find_conversation
from porcelain.flow.chain.store import stored_rounds
from porcelain.flow.commands.output import OUTPUT, no_structure, print_answer
from porcelain.flow.folders.export_chain import pick_chain

SUMMARY = "what changed in a conversation between two rounds"
USAGE = "flow diff [--origin ORIGIN] [--json|--yaml] ID A [B]"
OPTIONS = (
    Option("--origin", "origin", "ORIGIN", "the telling of this store or origin, not the longest", "text"),
    *OUTPUT,
)
EXAMPLES = ("objstore flow diff 3f2a 1 2", "objstore flow diff 3f2a 0 --json")
ARGUMENTS = (2, 3)


def run(arguments: Arguments, context: Context) -> int:
    """Compare the folds as of rounds A and B (0: before the first; no B: the last)."""
    numbers = [_number(text) for text in arguments.args[1:]]
    with open_store(context) as store, store.snapshot() as view:
        provider, name = find_conversation(view, arguments.args[0])
        head = pick_chain(view, provider, name, arguments.origin).flow
        if head is None:
            raise no_structure(provider, name)
        folds = {0: Fold()}
        fold = Fold()
        for _, _, round_ in stored_rounds(view, head):
            apply(fold, round_)
            if fold.round in numbers:
                folds[fold.round] = copied(fold)
        if len(numbers) == 1:
            numbers.append(fold.round)
            folds[fold.round] = fold
    for number in numbers:
        if number not in folds:
            raise NotFound(f"{provider}/{name}: has no round {number}: the last one is {fold.round}")
    rows = [change_value(change) for change in compare_folds(folds[numbers[0]], folds[numbers[1]])]
    print_answer(arguments, context, rows, _lines)
    kinds = Counter(row["change"] for row in rows)
    say(
        context,
        f"round {numbers[0]} to {numbers[1]}: "
        + (", ".join(f"{kinds[one]:,} {one}" for one in ("added", "changed", "removed") if kinds[one]))
        if rows
        else f"round {numbers[0]} to {numbers[1]}: {counted(0, 'change')}",
    )
    return 0


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"{text[:40]!r}: not the number of a round", hint="objstore flow diff --help")
    return int(text)


def _lines(rows: list[Json]) -> Iterator[str]:
    for row in rows:
        yield from map(printable, change_lines(row))
