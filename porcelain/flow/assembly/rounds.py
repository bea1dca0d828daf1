"""From assembly to rounds: what changed since the fold, cut into files of a bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from objstore.errors import CheckFailed
from porcelain.flow.assembly.build import Assembled, assemble
from porcelain.flow.assembly.sizes import furthest
from porcelain.flow.entries import Entry, Landed
from porcelain.flow.folding import Fold, apply
from porcelain.flow.sf import (
    SCHEMA,
    Round,
    SfHeader,
    SfNode,
    SfRelation,
    SfUnresolved,
    input_digest,
    write_round,
)
from porcelain.flow.times import rfc3339nano

#: Versions of the interpretation that this module is: another one starts another chain.
PARSER = "v1"
POLICY = "v1+idle=10m0s"
#: Bytes of a round; one that covers a single landed file may be larger.
ROUND_BYTES = 2 * 1024 * 1024
_BY_ID = attrgetter("id")


class Delta(Struct, frozen=True):
    """The frames that lead from a fold to an assembled state, each group in order of id."""

    nodes: list[SfNode]
    relations: list[SfRelation]
    unresolved: list[SfUnresolved]

    @property
    def empty(self) -> bool:
        """Nothing changed."""
        return not (self.nodes or self.relations or self.unresolved)


class Written(Struct, frozen=True):
    """A round and its file's bytes."""

    round: Round
    data: bytes


def _raw(attrs: Raw | UnsetType) -> bytes:
    return bytes(attrs) if isinstance(attrs, Raw) else b""


def same_node(a: SfNode, b: SfNode) -> bool:
    """Whether two nodes say the same, their revisions aside."""
    return (
        a.kind == b.kind
        and a.parent == b.parent
        and a.stream == b.stream
        and a.ref == b.ref
        and a.refs == b.refs
        and _raw(a.attrs) == _raw(b.attrs)
    )


def same_relation(a: SfRelation, b: SfRelation) -> bool:
    """Whether two relations say the same, their revisions aside."""
    return (
        a.type == b.type
        and a.from_ == b.from_
        and a.to == b.to
        and a.quality == b.quality
        and a.via == b.via
        and a.evidence == b.evidence
    )


def same_unresolved(a: SfUnresolved, b: SfUnresolved) -> bool:
    """Whether two unresolved entries say the same, their revisions aside."""
    return a.kind == b.kind and a.ref == b.ref and a.reason == b.reason and a.state == b.state


def delta(previous: Fold, assembled: Assembled, round_number: int) -> Delta:
    """What round ``round_number`` has to say so that the fold becomes ``assembled`` (made with that revision).

    Nodes and relations that are no longer there get tombstones; an open unresolved entry that is no longer there is
    said to be resolved; a terminal one stays so.
    """
    nodes = [n for n in assembled.nodes if (old := previous.nodes.get(n.id)) is None or not same_node(old, n)]
    relations = [
        r
        for r in assembled.relations
        if (before := previous.relations.get(r.id)) is None or not same_relation(before, r)
    ]
    unresolved = [
        u
        for u in assembled.unresolved
        if (known := previous.unresolved.get(u.id)) is None
        or not (known.state == "terminal" or same_unresolved(known, u))
    ]
    if previous.nodes:
        there = {n.id for n in assembled.nodes}
        nodes += [SfNode(gone, round_number, True) for gone in previous.nodes if gone not in there]
    if previous.relations:
        there = {r.id for r in assembled.relations}
        relations += [
            SfRelation(gone, round_number, True) for gone in previous.relations if gone not in there
        ]
    if previous.unresolved:
        there = {u.id for u in assembled.unresolved}
        unresolved += [
            replace(old, revision=round_number, state="resolved")
            for old in previous.unresolved.values()
            if old.state == "open" and old.id not in there
        ]
    return Delta(sorted(nodes, key=_BY_ID), sorted(relations, key=_BY_ID), sorted(unresolved, key=_BY_ID))


def _header(
    fold: Fold,
    assembled: Assembled,
    window: Sequence[Landed],
    *,
    conversation: str,
    session: str,
    from_seq: int,
    through: int,
) -> SfHeader:
    times = [entry.time for landed in window for entry in landed.entries if entry.time]
    totals = assembled.totals
    terminal = {name for name, entry in fold.unresolved.items() if entry.state == "terminal"}
    return SfHeader(
        schema=SCHEMA,
        conversation=conversation,
        session=session,
        round=fold.round + 1,
        previous=fold.digest or UNSET,
        from_seq=from_seq,
        through_seq=through,
        input_digest=input_digest(fold.input_digest, [landed.digest for landed in window]),
        parser=PARSER,
        policy=POLICY,
        from_time=rfc3339nano(min(times)) if times else UNSET,
        through_time=rfc3339nano(max(times)) if times else UNSET,
        session_from_time=assembled.session_from or UNSET,
        session_through_time=assembled.session_through or UNSET,
        title=assembled.title or UNSET,
        talks=totals.talks,
        steps=totals.steps,
        streams=totals.streams,
        segments=totals.segments,
        unresolved=sum(entry.id not in terminal for entry in assembled.unresolved),
        changes=totals.changes,
        lines_added=totals.lines_added,
        lines_removed=totals.lines_removed,
        llm_calls=totals.llm_calls,
        subagents=totals.subagents,
        bash_runs=totals.bash_runs,
    )


def _written(header: SfHeader, change: Delta) -> Written:
    data, digest = write_round(header, change.nodes, change.relations, change.unresolved)
    return Written(Round(header, change.nodes, change.relations, change.unresolved, digest), data)


def next_round(
    files: Sequence[Landed], fold: Fold, *, conversation: str, session: str, budget: int = ROUND_BYTES
) -> Written | None:
    """The round that follows ``fold`` over all landed ``files`` (seq 1, 2, 3 ...), or None if there is nothing to say.

    While the round is larger than ``budget`` bytes and covers more than one new file, its window is halved. The fold is
    not changed: ``apply`` the round to go on. Raises ``CheckFailed`` when a file is missing or the chain is of another
    parser, policy, conversation or session.
    """
    _check(files, fold, conversation, session)
    first = fold.through_seq + 1
    through = max(len(files), fold.through_seq)
    reach = furthest(files, fold, budget)
    while through > first and through > reach:
        through = first + (through - first) // 2
    while True:
        rows: Iterator[Entry] = chain.from_iterable(landed.entries for landed in files[:through])
        assembled = assemble(
            rows, conversation=conversation, session_name=session, revision=fold.round + 1, through=through
        )
        change = delta(fold, assembled, fold.round + 1)
        if change.empty and through < first:
            return None
        header = _header(
            fold,
            assembled,
            files[first - 1 : through],
            conversation=conversation,
            session=session,
            from_seq=first,
            through=through,
        )
        written = _written(header, change)
        if len(written.data) <= budget or through <= first:
            return written
        through = first + (through - first) // 2


def rounds(
    files: Sequence[Landed], fold: Fold, *, conversation: str, session: str, budget: int = ROUND_BYTES
) -> Iterator[Written]:
    """All rounds that bring ``fold`` up to the last of ``files``; each is applied to ``fold`` before it is given."""
    while True:
        written = next_round(files, fold, conversation=conversation, session=session, budget=budget)
        if written is None:
            return
        apply(fold, written.round)
        yield written
        if fold.through_seq >= len(files):
            return


def _check(files: Sequence[Landed], fold: Fold, conversation: str, session: str) -> None:
    for expected, landed in enumerate(files, 1):
        if landed.seq != expected:
            raise CheckFailed(
                f"{conversation}: landed file {expected} is missing: found {landed.seq} in its place"
            )
    if fold.through_seq > len(files):
        raise CheckFailed(
            f"{conversation}: the chain covers landed file {fold.through_seq}, but only {len(files)} are here"
        )
    header = fold.header
    if header is None:
        return
    for name, new in (
        ("conversation", conversation),
        ("session", session),
        ("parser", PARSER),
        ("policy", POLICY),
    ):
        old = getattr(header, name)
        if old != new:
            raise CheckFailed(
                f"{conversation}: the chain's {name} is {old!r}, not {new!r}",
                hint="another interpretation is another chain",
            )
