"""``objstore flow log``: the rounds of a conversation, or the history of one entity in them."""

from __future__ import annotations

from collections.abc import Iterator

from objstore.errors import NotFound, UsageError
from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import printable
from plumbing.interface.stores import open_store
from porcelain.flow.chain.diff_frames import Frame, Json, change_lines, change_value, compare
from porcelain.flow.chain.naming import find_conversation
from porcelain.flow.chain.store import stored_rounds
from porcelain.flow.commands.output import OUTPUT, columns, no_structure, print_answer
from porcelain.flow.folders.export_chain import pick_chain
from porcelain.flow.formats.sf import Round

SUMMARY = "the rounds of a conversation, or the history of one entity"
USAGE = "flow log [--origin ORIGIN] [--json|--yaml] ID [ENTITY]"
OPTIONS = (
    Option("--origin", "origin", "ORIGIN", "the telling of this store or origin, not the longest", "text"),
    *OUTPUT,
)
EXAMPLES = ("objstore flow log 3f2a", "objstore flow log 3f2a tool/toolu_01")
ARGUMENTS = (1, 2)


def run(arguments: Arguments, context: Context) -> int:
    """List rounds, oldest first; with ENTITY what each round that speaks of it says."""
    with open_store(context) as store, store.snapshot() as view:
        provider, name = find_conversation(view, arguments.args[0])
        head = pick_chain(view, provider, name, arguments.origin).flow
        if head is None:
            raise no_structure(provider, name)
        rounds = [round_ for _, _, round_ in stored_rounds(view, head)]
    if len(arguments.args) == 1:
        print_answer(
            arguments, context, [_row(round_) for round_ in rounds], lambda rows: _table(rows, context)
        )
        return 0
    entity = _entity(rounds, arguments.args[1])
    print_answer(arguments, context, _history(rounds, entity), _lines)
    return 0


def _row(round_: Round) -> Json:
    header = round_.header
    return {
        "round": header.round,
        "digest": round_.digest,
        "fromSeq": header.from_seq,
        "throughSeq": header.through_seq,
        "fromTime": header.from_time or None,
        "throughTime": header.through_time or None,
        "nodes": len(round_.nodes),
        "relations": len(round_.relations),
        "unresolved": len(round_.unresolved),
        "open": header.unresolved if isinstance(header.unresolved, int) else None,
    }


def _table(rows: list[Json], context: Context) -> Iterator[str]:
    cells = [
        (
            str(row["round"]),
            row["digest"][:12],
            f"{row['fromSeq']}-{row['throughSeq']}",
            row["throughTime"] or "-",
            *(f"{row[name]:,}" for name in ("nodes", "relations", "unresolved")),
            "-" if row["open"] is None else f"{row['open']:,}",
        )
        for row in rows
    ]
    header = ("round", "digest", "seq", "through", "nodes", "relations", "unresolved", "open")
    return columns(context, header, cells, right=(0, 4, 5, 6, 7))


def _frames(round_: Round) -> Iterator[Frame]:
    yield from round_.nodes
    yield from round_.relations
    yield from round_.unresolved


def _entity(rounds: list[Round], text: str) -> str:
    """The id of the one entity that ``text`` names: the id, or what it ends with after a ``/``."""
    names = {frame.id for round_ in rounds for frame in _frames(round_)}
    if text in names:
        return text
    near = sorted(name for name in names if name.endswith("/" + text))
    if not near:
        raise NotFound(f"{text}: no such entity in this conversation", hint="objstore flow show ID --json")
    if len(near) > 1:
        raise UsageError(f"{text}: names {len(near)} entities", hint="type one of: " + " ".join(near[:3]))
    return near[0]


def _history(rounds: list[Round], entity: str) -> Iterator[Json]:
    before: Frame | None = None
    for round_ in rounds:
        for frame in _frames(round_):
            if frame.id != entity:
                continue
            change = compare(before, frame)
            if change is not None:
                yield {"round": round_.header.round, "digest": round_.digest, **change_value(change)}
            before = frame


def _lines(rows: list[Json]) -> Iterator[str]:
    for row in rows:
        yield f"round {row['round']}  {row['digest'][:12]}"
        yield from (printable(f"  {line}") for line in change_lines(row))
