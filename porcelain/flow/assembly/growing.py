"""A chain of rounds that grows: goes on from where it stands, and assembles the whole where it cannot.

Both ways give the same bytes. Going on costs what is new; the whole costs what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import attrgetter

from porcelain.flow.assembly.build import assemble
from porcelain.flow.assembly.entries import Landed
from porcelain.flow.assembly.going_on import go_on, totals
from porcelain.flow.assembly.intake import Disrupted, Irregular
from porcelain.flow.assembly.rounds import (
    POLICY,
    ROUND_BYTES,
    Delta,
    Facts,
    Head,
    Written,
    check_head,
    fitting,
    in_order,
    new_header,
    next_round,
    write,
)
from porcelain.flow.assembly.sizes import Reached, furthest
from porcelain.flow.assembly.standing import Standing
from porcelain.flow.assembly.tables import DamagedStanding
from porcelain.flow.chain.folding import Fold, apply, copied
from porcelain.flow.formats.times import rfc3339nano

#: Rows from which on a standing pays: fewer are assembled anew in no time.
STANDING_ROWS = 2048
_BY_ID = attrgetter("id")

#: Gives the fold of a chain and all landed files, for where the whole must be assembled.
Everything = Callable[[], tuple[Fold, Sequence[Landed]]]


class Chain:
    """The rounds of one conversation, as they are made. ``standing`` is where assembly stands after the last of them,
    None where it is not worth keeping or cannot be kept; ``anew`` counts the assemblies of the whole."""

    def __init__(
        self,
        conversation: str,
        session: str,
        head: Head,
        everything: Everything,
        *,
        standing: Standing | None = None,
        budget: int = ROUND_BYTES,
        least: int | None = None,
        policy: str = POLICY,
    ) -> None:
        self.head = head
        self.standing = standing
        self.anew = 0
        self._conversation = conversation
        self._session = session
        self._budget = budget
        self._least = STANDING_ROWS if least is None else least
        self._policy = policy
        self._load = everything
        self._fold: Fold | None = None
        self._files: Sequence[Landed] | None = None
        self._made = 0
        self._irregular = False

    def rounds(self, news: Sequence[Landed]) -> Iterator[Written]:
        """The rounds that bring the chain up to the last of ``news``, the landed files after those that it covers.

        Raises ``CheckFailed`` when a file is missing or the chain is of another parser, policy, conversation or
        session.
        """
        check_head(
            self.head, self.head.through_seq + len(news), self._conversation, self._session, self._policy
        )
        while True:
            written = self._next(news)
            if written is None:
                return
            header = written.round.header
            news = news[header.through_seq - self.head.through_seq :]
            self.head = Head(header.round, written.round.digest, header)
            self._made += 1
            if self.standing is None:
                self._stand()
            yield written
            if not news:
                return

    def _next(self, news: Sequence[Landed]) -> Written | None:
        if self.standing is not None and news:
            try:
                return self._on(self.standing, news)
            except (Disrupted, DamagedStanding):
                self.standing.rollback()
                self.standing = None
        return self._from_start()

    def _on(self, standing: Standing, news: Sequence[Landed]) -> Written:
        """The next round, from where assembly stands."""
        revision = self.head.round + 1

        def attempt(window: Sequence[Landed]) -> Written:
            standing.rollback()
            window = list(in_order(window, self.head.through_seq + 1, self._conversation))
            going = go_on(
                standing,
                window,
                conversation=self._conversation,
                session=self._session,
                revision=revision,
            )
            change = Delta(
                sorted(going.nodes, key=_BY_ID),
                sorted(going.relations, key=_BY_ID),
                sorted(going.unresolved, key=_BY_ID),
            )
            header = new_header(
                self.head,
                _facts(standing),
                window,
                conversation=self._conversation,
                session=self._session,
                policy=self._policy,
            )
            return write(header, change)

        written = fitting(
            news, lambda: furthest(news, _reached(standing), self._budget), self._budget, attempt
        )
        assert written is not None
        standing.commit()
        return written

    def _from_start(self) -> Written | None:
        """The next round, from an assembly of the whole."""
        fold, files = self._everything()
        self.anew += 1
        written = next_round(
            files,
            fold,
            conversation=self._conversation,
            session=self._session,
            budget=self._budget,
            policy=self._policy,
        )
        if written is not None:
            apply(fold, written.round)
        return written

    def _everything(self) -> tuple[Fold, Sequence[Landed]]:
        if self._files is None:
            fold, self._files = self._load()
            self._fold = fold if not self._made else None
        if self._fold is None:
            # Rounds were made without it: what they fold to is what there is up to the last of them.
            self._fold = _fold_of(self.head, self._files, self._conversation, self._session)
        return self._fold, self._files

    def _stand(self) -> None:
        """Take up a standing, if it is worth it."""
        if self._irregular or self._files is None:
            return
        rows = 0
        for file in self._files:
            rows += len(file.entries)
            if rows >= self._least:
                break
        else:
            return
        standing = Standing()
        try:
            go_on(
                standing,
                list(self._files[: self.head.through_seq]),
                conversation=self._conversation,
                session=self._session,
                revision=self.head.round,
            )
        except Irregular:
            self._irregular = True
            return
        standing.commit()
        self.standing, self._fold = standing, None


def _facts(standing: Standing) -> Facts:
    core = standing.core
    return Facts(
        core.title,
        rfc3339nano(core.first) if core.first else "",
        rfc3339nano(core.last) if core.last else "",
        core.unresolved,
        totals(core),
    )


def _reached(standing: Standing) -> Reached:
    def record(name: str) -> bool:
        known = standing.records.old(name)
        return known is not None and known.hops >= 0

    def tool(name: str) -> bool:
        known = standing.tools.old(name)
        return known is not None and known.request is not None

    return Reached(record, lambda name: standing.calls.old(name) is not None, tool)


def _fold_of(head: Head, files: Sequence[Landed], conversation: str, session: str) -> Fold:
    assembled = assemble(
        chain.from_iterable(landed.entries for landed in files[: head.through_seq]),
        conversation=conversation,
        session_name=session,
        revision=head.round,
        through=head.through_seq,
    )
    return Fold(
        head.round,
        head.digest,
        head.header,
        {node.id: node for node in assembled.nodes},
        {relation.id: relation for relation in assembled.relations},
        {entry.id: entry for entry in assembled.unresolved},
    )


def rounds(
    files: Sequence[Landed],
    fold: Fold,
    *,
    conversation: str,
    session: str,
    budget: int = ROUND_BYTES,
    policy: str = POLICY,
) -> Iterator[Written]:
    """All rounds that bring ``fold`` up to the last of ``files``; each is applied to ``fold`` before it is given."""
    head = Head(fold.round, fold.digest, fold.header)
    check_head(head, len(files), conversation, session, policy)
    # The chain has a fold of its own, as it goes on without one where it can.
    own = copied(fold)
    grown = Chain(conversation, session, head, lambda: (own, files), budget=budget, policy=policy)
    for written in grown.rounds(files[head.through_seq :]):
        apply(fold, written.round)
        yield written
