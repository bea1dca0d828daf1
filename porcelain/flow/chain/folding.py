"""The fold of rounds: the conversation as of a round.

Rounds are applied in chain order. A tombstone takes an id out, any other frame replaces what had its id, absence means
unchanged; entries that are resolved or terminal stay. Conversation, session, parser and policy are those of round 1.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from copy import copy
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct, field

from porcelain.flow.formats.sf import Round, RoundError, SfHeader, SfNode, SfRelation, SfUnresolved
from porcelain.flow.formats.sf_reading import read_round

F = TypeVar("F", SfNode, SfRelation, SfUnresolved)
_ID, _TOMBSTONE = attrgetter("id"), attrgetter("tombstone")


class Fold(Struct):
    """State after ``round`` rounds: frames by id, the last header, the digest of the last commit (empty: none)."""

    round: int = 0
    digest: str = ""
    header: SfHeader | None = None
    nodes: MutableMapping[str, SfNode] = field(default_factory=dict)
    relations: MutableMapping[str, SfRelation] = field(default_factory=dict)
    unresolved: MutableMapping[str, SfUnresolved] = field(default_factory=dict)

    @property
    def through_seq(self) -> int:
        """The last landed file that the fold covers; 0 for an empty one."""
        return self.header.through_seq if self.header is not None else 0

    @property
    def input_digest(self) -> str:
        """The input digest of the last round; empty for an empty fold."""
        return self.header.input_digest if self.header is not None else ""


def copied(fold: Fold) -> Fold:
    """A fold of its own that says the same."""
    return Fold(
        fold.round,
        fold.digest,
        fold.header,
        copy(fold.nodes),
        copy(fold.relations),
        copy(fold.unresolved),
    )


def check_link(fold: Fold, header: SfHeader) -> None:
    """Raise ``RoundError`` unless a round with ``header`` may follow the fold."""
    if header.round != fold.round + 1:
        raise RoundError(
            "round-order",
            f"round {header.round} cannot follow round {fold.round}",
            expected=str(fold.round + 1),
            found=str(header.round),
        )
    before = fold.header
    if before is None:
        return
    if header.previous != fold.digest:
        raise RoundError(
            "previous",
            f"round {header.round} names previous {str(header.previous)[:12]}, the round before is {fold.digest[:12]}",
            expected=fold.digest,
            found=str(header.previous),
        )
    for name in ("conversation", "session", "parser", "policy"):
        old, new = getattr(before, name), getattr(header, name)
        if old != new:
            raise RoundError(
                f"frozen-{name}",
                f"round {header.round} has another {name} than the chain",
                expected=old,
                found=new,
            )


def apply(fold: Fold, round_: Round) -> None:
    """Take the next round into ``fold``, at a cost of its frames only; raises ``RoundError`` where it does not link."""
    check_link(fold, round_.header)
    _take(fold.nodes, round_.nodes)
    _take(fold.relations, round_.relations)
    _take(fold.unresolved, round_.unresolved)
    fold.round, fold.digest, fold.header = round_.header.round, round_.digest, round_.header


def _take(held: MutableMapping[str, F], frames: Sequence[F]) -> None:
    if any(map(_TOMBSTONE, frames)):
        for frame in frames:
            if frame.tombstone:
                held.pop(frame.id, None)
            else:
                held[frame.id] = frame
    else:
        held.update(zip(map(_ID, frames), frames, strict=True))


def fold_rounds(rounds: Iterable[Round]) -> Fold:
    """The fold of a whole chain, round 1 first; raises ``RoundError`` for the first that does not link."""
    fold = Fold()
    for round_ in rounds:
        apply(fold, round_)
    return fold


def fold_partial(files: Iterable[tuple[int, bytes]]) -> tuple[Fold, str | None]:
    """The fold as far as it goes, and why it stops (None where it does not).

    ``files`` gives round numbers and the bytes of their files, ascending. The fold stops before the first round that is
    missing, does not read or does not link.
    """
    fold = Fold()
    for number, data in files:
        if number != fold.round + 1:
            return fold, f"round {fold.round + 1} is missing; the chain stops at round {fold.round}"
        try:
            round_ = read_round(data)
        except RoundError as error:
            return fold, f"round {number} does not read: {error.message}"
        try:
            apply(fold, round_)
        except RoundError as error:
            return fold, f"round {number} does not fold: {error.message}"
    return fold, None
