"""``objstore flow show``: the structure inside one conversation, as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from objstore.errors import NotFound, UsageError
from objstore.snapshot import Snapshot
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, printable, terminal_width
from plumbing.interface.stores import open_store
from porcelain.flow.chain.diff_frames import frame_value
from porcelain.flow.chain.fold_store import stored_fold
from porcelain.flow.chain.folding import Fold, apply
from porcelain.flow.chain.naming import different_records, find_conversation
from porcelain.flow.chain.store import stored_rounds
from porcelain.flow.commands.output import no_structure
from porcelain.flow.folders.export_chain import Chain, chains_of, pick_from
from porcelain.flow.views.said import reader, said_lines
from porcelain.flow.views.tree import Tree

SUMMARY = "the structure inside one conversation"
USAGE = "flow show [--at ROUND] [--talk N] [--depth N] [--text] [--origin ORIGIN] [--json] ID"
OPTIONS = (
    Option("--at", "at", "ROUND", "as of this round", "integer"),
    Option("--talk", "talk", "N", "only the talk with this number", "integer"),
    Option("--depth", "depth", "N", "at most this many levels (default: all)", "integer"),
    Option("--text", help="with what was said, as far as store or agent's files have it"),
    Option("--origin", "origin", "ORIGIN", "the telling of this store or origin, not the longest", "text"),
    JSON,
)
EXAMPLES = (
    "objstore flow show 3f2a",
    "objstore flow show 3f2a --talk 2 --text",
    "objstore flow show 3f2a --at 1 --json",
)
ARGUMENTS = (1, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Print the tree, or with ``--json`` every frame of the fold, one a line."""
    _check(arguments)
    with open_store(context) as store, store.snapshot() as view:
        provider, name = find_conversation(view, arguments.args[0])
        tellings = chains_of(view, provider, name)
        chain = pick_from(tellings, provider, name, arguments.origin)
        if chain.flow is None:
            raise no_structure(provider, name)
        fold = _fold(view, chain.flow, arguments.at)
        if arguments.at is not None and fold.round < arguments.at:
            raise NotFound(f"{provider}/{name}: has no round {arguments.at}: the last one is {fold.round}")
        with Writer(context.stdout) as out:
            if arguments.json:
                _print_json(out, fold)
                return 0
            tree = Tree(view, fold, chain.landed, text=arguments.text)
            width = terminal_width(context.stdout, context.env)
            lines = list(tree.lines(arguments.talk, arguments.depth))
            if arguments.talk is not None and not lines:
                raise NotFound(f"{provider}/{name}: has no talk {arguments.talk}")
            get = reader(view, chain, (part for line in lines for part in line.said), store.algorithm)
            for head in tree.header(provider, name):
                out.line(printable(head))
            for other in _other_tellings(view, chain, tellings):
                out.line(other)
            out.line("")
            for line in lines:
                text = "  " * line.depth + printable(line.text)
                out.line(text if width is None else text[: width - 1])
                for part in line.said:
                    for row in said_lines(part, get):
                        out.line("  " * (line.depth + 1) + printable(row))
    return 0


def _check(arguments: Arguments) -> None:
    help_ = "objstore flow show --help"
    if arguments.at == 0:
        raise UsageError("flow show: --at counts rounds from 1", hint=help_)
    if arguments.depth == 0:
        raise UsageError("flow show: --depth counts levels from 1", hint=help_)
    if arguments.json and (arguments.text or arguments.talk is not None or arguments.depth is not None):
        raise UsageError(
            "flow show: --json prints all frames of the fold, and takes none of --text, --talk, --depth",
            hint="objstore flow view --json ID has trees with text",
        )


def _fold(view: Snapshot, head: bytes, at: int | None) -> Fold:
    """The fold of a chain, as of round ``at`` if that is given and there is one."""
    if at is None:
        return stored_fold(view, head)
    fold = Fold()
    for _, _, round_ in stored_rounds(view, head):
        if round_.header.round > at:
            break
        apply(fold, round_)
    return fold


def _other_tellings(view: Snapshot, chain: Chain, tellings: Sequence[Chain]) -> Iterator[str]:
    """What other stores' chains of the conversation have that this one has not."""
    others = [
        one
        for one in tellings
        if one.flow not in (None, chain.flow) and one.landed not in (None, chain.landed)
    ]
    mine = different_records(view, chain.landed) if others and chain.landed is not None else set()
    for other in others:
        assert other.landed is not None
        if beside := len(different_records(view, other.landed) - mine):
            yield f"  {counted(beside, 'other record')} by {other.origin}: --origin {other.origin}"


def _print_json(out: Writer, fold: Fold) -> None:
    for group in (fold.nodes, fold.relations, fold.unresolved):
        for frame in group.values():
            out.json(frame_value(frame))
