"""``objstore update-ref``: move, create or delete refs by compare-and-swap."""

from __future__ import annotations

import os

from objstore.digest import is_object_id
from objstore.errors import NotFound, UsageError
from objstore.refs import ANY, RefMove
from objstore.snapshot import resolve
from plumbing.interface.options import JSON, NUL, Option, parse
from plumbing.interface.output import Writer, read_batches
from plumbing.interface.stores import NO_ID, open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from objstore.snapshot import Snapshot
    from plumbing.interface.options import Arguments, Context

SUMMARY = "Move, create or delete refs, if they stand where they are expected."
USAGE = """update-ref [--why TEXT] [--json] NAME NEW [OLD]
update-ref [--why TEXT] [--json] -d NAME [OLD]
update-ref [--why TEXT] [--json] [-z] --stdin"""
OPTIONS = (
    Option(("-d", "--delete"), "delete", help="delete the ref"),
    Option(("-m", "--why"), "why", "TEXT", "say in the reflog why", "text"),
    Option("--stdin", help="read commands from standard input, one a line, and do all or none"),
    JSON,
    NUL,
)
EXAMPLES = (
    "objstore update-ref tag/start 5f3a77c2",
    "objstore update-ref --why 'start again' tag/start 9c1e 5f3a77c2",
    "objstore update-ref -d tag/start",
)
#: Words of a line of ``--stdin``: least and most after the command.
_COMMANDS = {"update": (2, 3), "create": (2, 2), "delete": (1, 2), "verify": (1, 2)}


def main(argv: Sequence[str], context: Context) -> int:
    """Make all changes in one transaction."""
    arguments = parse(argv, OPTIONS, USAGE)
    commands = list(_commands(arguments, context))
    why = arguments.why or ""
    if why and not why.isprintable():
        raise UsageError("update-ref: --why: takes one line of printable text")
    with open_store(context, write=True) as store:
        batch = store.batch()
        with store.snapshot() as view:
            seen: set[str] = set()
            for place, words in commands:
                move = _move(view, words, why, place)
                if move.name in seen:
                    raise UsageError(f"update-ref: {place}{move.name}: changed twice in one transaction")
                seen.add(move.name)
                batch.move_ref(*move)
        store.commit(batch)
    if arguments.json:
        with Writer(context.stdout) as out:
            for move in batch.moves:
                out.json({"id": move.new, "name": move.name})
    return 0


def _commands(arguments: Arguments, context: Context) -> Iterator[tuple[str, list[str]]]:
    """What is to be done, in the words of ``--stdin``, each with the place that an error names."""
    words: list[str] = arguments.args
    if not arguments.stdin:
        words = ["delete" if arguments.delete else "update", *words]
        _check_words(words, "")
        yield "", words
        return
    if words or arguments.delete:
        raise UsageError("update-ref: --stdin takes no arguments", hint="objstore update-ref --help")
    number = 0
    for lines in read_batches(context.stdin, null=arguments.null):
        for line in lines:
            number += 1
            place = f"line {number}: "
            words = os.fsdecode(line).split(" ")
            _check_words(words, place)
            yield place, words


def _check_words(words: list[str], place: str) -> None:
    bounds = _COMMANDS.get(words[0])
    if bounds is None:
        raise UsageError(
            f"update-ref: {place}{words[0][:40]!r}: no such command", hint="commands: " + " ".join(_COMMANDS)
        )
    if not bounds[0] <= len(words) - 1 <= bounds[1]:
        few = len(words) - 1 < bounds[0]
        raise UsageError(
            f"update-ref: {place}too {'few' if few else 'many'} words", hint="objstore update-ref --help"
        )


def _move(view: Snapshot, words: list[str], why: str, place: str) -> RefMove:
    """The move that one command asks for."""
    command, name, *ids = words
    keys = [_id(view, text) for text in ids]
    if command == "create":
        return RefMove(name, keys[0], None, why)
    if command == "verify":
        expected = keys[0] if keys else None
        return RefMove(name, expected, expected, why)
    if command == "delete":
        keys.insert(0, None)
    old = keys[1] if len(keys) > 1 else ANY
    if keys[0] is None and old == ANY and view.ref(name) is None:
        raise NotFound(f"{place}{name}: no such ref")
    return RefMove(name, keys[0], old, why)


def _id(view: Snapshot, text: str) -> str | None:
    """The id that ``text`` names; None, which is no ref, for zeros and an empty word. A whole id need not be stored
    here: whether it may be is for the commit to say."""
    if text in ("", NO_ID):
        return None
    return text if is_object_id(text) else resolve(view, text).hex()
