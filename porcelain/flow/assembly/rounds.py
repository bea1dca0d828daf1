"""From assembly to rounds: what changed since the fold, cut into files of a bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from objstore.errors import CheckFailed
from porcelain.flow.assembly.build import Assembled, Totals, assemble
from porcelain.flow.assembly.entries import Entry, Landed
from porcelain.flow.assembly.sizes import furthest, reached
from porcelain.flow.chain.folding import Fold
from porcelain.flow.formats.sf import (
    SCHEMA,
    Round,
    SfHeader,
    SfNode,
    SfRelation,
    SfUnresolved,
    input_digest,
    write_round,
)
from porcelain.flow.formats.times import rfc3339nano

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


class Head(Struct, frozen=True):
    """Where a chain stands: its last round's number, commit digest and header; 0, empty and None before the first."""

    round: int = 0
    digest: str = ""
    header: SfHeader | None = None

    @property
    def through_seq(self) -> int:
        """The last landed file that the chain covers."""
        return self.header.through_seq if self.header is not None else 0


class Facts(Struct, frozen=True):
    """What a header says of the session as a whole. Times are as it writes them, empty for none."""

    title: str
    session_from: str
    session_through: str
    unresolved: int
    totals: Totals


def new_header(
    head: Head,
    facts: Facts,
    window: Sequence[Landed],
    *,
    conversation: str,
    session: str,
    policy: str = POLICY,
) -> SfHeader:
    """The header of the round after ``head`` that covers the files of ``window``."""
    times = [entry.time for landed in window for entry in landed.entries if entry.time]
    totals = facts.totals
    return SfHeader(
        schema=SCHEMA,
        conversation=conversation,
        session=session,
        round=head.round + 1,
        previous=head.digest or UNSET,
        from_seq=head.through_seq + 1,
        through_seq=head.through_seq + len(window),
        input_digest=input_digest(
            head.header.input_digest if head.header is not None else "", [landed.digest for landed in window]
        ),
        parser=PARSER,
        policy=policy,
        from_time=rfc3339nano(min(times)) if times else UNSET,
        through_time=rfc3339nano(max(times)) if times else UNSET,
        session_from_time=facts.session_from or UNSET,
        session_through_time=facts.session_through or UNSET,
        title=facts.title or UNSET,
        talks=totals.talks,
        steps=totals.steps,
        streams=totals.streams,
        segments=totals.segments,
        unresolved=facts.unresolved,
        changes=totals.changes,
        lines_added=totals.lines_added,
        lines_removed=totals.lines_removed,
        llm_calls=totals.llm_calls,
        subagents=totals.subagents,
        bash_runs=totals.bash_runs,
    )


def write(header: SfHeader, change: Delta) -> Written:
    """The round of a header and its frames."""
    data, digest = write_round(header, change.nodes, change.relations, change.unresolved)
    return Written(Round(header, change.nodes, change.relations, change.unresolved, digest), data)


def next_round(
    files: Sequence[Landed],
    fold: Fold,
    *,
    conversation: str,
    session: str,
    budget: int = ROUND_BYTES,
    policy: str = POLICY,
) -> Written | None:
    """The round that follows ``fold`` over all landed ``files`` (seq 1, 2, 3 ...), or None if there is nothing to say.

    All of them are assembled: ``growing.Chain`` goes on from where it stands. While the round is larger than ``budget``
    bytes and covers more than one new file, its window is halved. The fold is not changed: ``apply`` the round to go
    on. Raises ``CheckFailed`` when a file is missing or the chain is of another parser, policy, conversation or
    session.
    """
    head = Head(fold.round, fold.digest, fold.header)
    check_head(head, len(files), conversation, session, policy)
    terminal = {name for name, entry in fold.unresolved.items() if entry.state == "terminal"}

    def attempt(window: Sequence[Landed]) -> Written | None:
        through = head.through_seq + len(window)
        window = list(window)
        covered = in_order(chain(files[: head.through_seq], window), 1, conversation)
        rows: Iterator[Entry] = chain.from_iterable(landed.entries for landed in covered)
        assembled = assemble(
            rows, conversation=conversation, session_name=session, revision=fold.round + 1, through=through
        )
        change = delta(fold, assembled, fold.round + 1)
        if change.empty and not window:
            return None
        facts = Facts(
            assembled.title,
            assembled.session_from,
            assembled.session_through,
            sum(entry.id not in terminal for entry in assembled.unresolved),
            assembled.totals,
        )
        header = new_header(head, facts, window, conversation=conversation, session=session, policy=policy)
        return write(header, change)

    news = files[head.through_seq :]
    return fitting(news, lambda: furthest(news, reached(files, fold), budget), budget, attempt)


def fitting(
    news: Sequence[Landed],
    reach: Callable[[], int],
    budget: int,
    attempt: Callable[[Sequence[Landed]], Written | None],
) -> Written | None:
    """The first of ``news``, half of them, a quarter ... whose round ``attempt`` makes within ``budget`` bytes; more
    files than ``reach`` says cannot. A round of one file may be larger."""
    count = len(news)
    most = reach() if count > 1 else count
    while count > 1 and count > most:
        count = 1 + (count - 1) // 2
    while True:
        written = attempt(news[:count])
        if written is None or len(written.data) <= budget or count <= 1:
            return written
        count = 1 + (count - 1) // 2


def in_order(files: Iterable[Landed], first: int, conversation: str) -> Iterator[Landed]:
    """The files; raises ``CheckFailed`` at one that is not numbered as the next, from ``first`` on."""
    for expected, landed in enumerate(files, first):
        if landed.seq != expected:
            raise CheckFailed(
                f"{conversation}: landed file {expected} is missing: found {landed.seq} in its place"
            )
        yield landed


def check_head(head: Head, landed: int, conversation: str, session: str, policy: str = POLICY) -> None:
    """Raise ``CheckFailed`` unless a chain may go on here, with ``landed`` files there."""
    if head.through_seq > landed:
        raise CheckFailed(
            f"{conversation}: the chain covers landed file {head.through_seq}, but only {landed} are here"
        )
    header = head.header
    if header is None:
        return
    for name, new in (
        ("conversation", conversation),
        ("session", session),
        ("parser", PARSER),
        ("policy", policy),
    ):
        old = getattr(header, name)
        if old != new:
            raise CheckFailed(
                f"{conversation}: the chain's {name} is {old!r}, not {new!r}",
                hint="another interpretation is another chain",
            )
