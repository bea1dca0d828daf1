from __future__ import annotations

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from porcelain.flow.assembly import rounds
from porcelain.flow.chain.folding import Fold, apply, fold_partial, fold_rounds
from porcelain.flow.formats.sf import Round, RoundError, write_round
from porcelain.flow.formats.sf_reading import read_round
from tests.porcelain.flow.sample import SESSION, conversation, state


def chain() -> list[bytes]:
    return [w.data for w in rounds(conversation(), Fold(), conversation=SESSION, session=SESSION, budget=1)]


def resealed(data: bytes, **changed: object) -> bytes:
    round_ = read_round(data)
    header = replace(round_.header, **changed)
    return write_round(header, round_.nodes, round_.relations, round_.unresolved)[0]


def test_the_fold_is_that_of_one_round_over_all() -> None:
    (whole,) = rounds(conversation(), Fold(), conversation=SESSION, session=SESSION)
    assert state(fold_rounds(map(read_round, chain()))) == state(fold_rounds([whole.round]))


def test_an_empty_fold() -> None:
    fold = fold_rounds([])
    assert (fold.round, fold.through_seq, fold.input_digest, fold.digest) == (0, 0, "", "")


@pytest.mark.parametrize("key", ["conversation", "session", "parser", "policy"])
def test_what_may_not_change_in_a_chain(key: str) -> None:
    one, two, *_ = chain()
    with pytest.raises(RoundError) as caught:
        fold_rounds([read_round(one), read_round(resealed(two, **{key: "other"}))])
    assert caught.value.rule == f"frozen-{key}"


def test_links() -> None:
    one, two, three, _ = map(read_round, chain())
    for rule, wrong in (
        ("round-order", [two]),
        ("round-order", [one, three]),
        ("round-order", [one, one]),
        ("previous", [one, Round(replace(two.header, previous="ff" * 32), [], [], [], "")]),
    ):
        with pytest.raises(RoundError) as caught:
            fold_rounds(wrong)
        assert caught.value.rule == rule


def test_a_round_that_does_not_link_leaves_the_fold_alone() -> None:
    one, two, three, _ = map(read_round, chain())
    fold = fold_rounds([one])
    before = state(fold)
    with pytest.raises(RoundError):
        apply(fold, three)
    assert (state(fold), fold.round) == (before, 1)
    apply(fold, two)
    assert fold.round == 2


def test_resolved_entries_stay_and_tombstones_take_away() -> None:
    fold = fold_rounds(map(read_round, chain()))
    entry = fold.unresolved["unres/child_stream/kid"]
    assert entry.state == "resolved"
    header = replace(read_round(chain()[3]).header, round=5, previous=fold.digest)
    relation = next(iter(fold.relations.values()))
    apply(
        fold,
        Round(
            header,
            [replace(fold.nodes["tool/tool-1"], tombstone=True)],
            [replace(relation, tombstone=True)],
            [replace(entry, tombstone=True), replace(entry, id="new", tombstone=UNSET)],
            "00" * 32,
        ),
    )
    assert "tool/tool-1" not in fold.nodes
    assert relation.id not in fold.relations
    assert entry.id not in fold.unresolved and "new" in fold.unresolved


def test_as_far_as_it_goes() -> None:
    one, two, three, four = chain()
    whole, problem = fold_partial([(1, one), (2, two), (3, three), (4, four)])
    assert (whole.round, problem) == (4, None)
    short, problem = fold_partial([(1, one), (2, two), (4, four)])
    assert (short.round, problem) == (2, "round 3 is missing; the chain stops at round 2")
    short, problem = fold_partial([(1, one), (2, two.replace(b"kid", b"cat", 1)), (3, three)])
    assert short.round == 1
    assert problem is not None and problem.startswith("round 2 does not read: ")
    short, problem = fold_partial([(1, one), (2, resealed(two, previous="0" * 64))])
    assert short.round == 1
    assert problem is not None and problem.startswith("round 2 does not fold: ")
    assert fold_partial([]) == (Fold(), None)
