"""A chain that goes on from where it stands writes, byte for byte, what assembly of the whole writes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from objstore.memory import MemoryDatabase, MemorySnapshot
from objstore.store import Store
from porcelain.flow.assembly import ROUND_BYTES, Chain, Head, next_round
from porcelain.flow.assembly import going_on as going_on_module
from porcelain.flow.assembly.entries import Landed
from porcelain.flow.assembly.standing import Standing
from porcelain.flow.chain.folding import Fold, apply, copied
from porcelain.flow.chain.naming import best_heads
from porcelain.flow.chain.standing_store import load_standing, saved_standing, standing_prefix
from porcelain.flow.chain.store import landed_files
from porcelain.providers.records import Record
from tests.porcelain.flow.lively import lively
from tests.porcelain.flow.sample import (
    SESSION,
    asked,
    came,
    conversation,
    landed,
    result,
    said,
    sessions,
    text,
    use,
)
from tests.porcelain.importing.driving import objstore, opened

REF = "flow/0123456789abcdef/claude/5e55-1"


def whole(files: Sequence[Landed], cuts: Sequence[int], budget: int = ROUND_BYTES) -> list[bytes]:
    """The rounds of an assembly of the whole at every one of ``cuts``."""
    fold, made = Fold(), []
    for cut in cuts:
        while fold.through_seq < cut:
            written = next_round(files[:cut], fold, conversation=SESSION, session=SESSION, budget=budget)
            assert written is not None
            apply(fold, written.round)
            made.append(written.data)
    return made


class Growing:
    """A chain that is brought up to date in one go after the other; between two, its standing is saved and loaded."""

    def __init__(self, budget: int = ROUND_BYTES) -> None:
        self.fold = Fold()
        self.made: list[bytes] = []
        self.anew = 0
        self.store = Store(MemoryDatabase("sha256"))
        self._budget = budget

    def reach(self, files: Sequence[Landed]) -> None:
        head = Head(self.fold.round, self.fold.digest, self.fold.header)
        stored = copied(self.fold)
        with self.store.snapshot() as view:
            standing = load_standing(view, REF, head.digest) if head.round else None
            chain = Chain(
                SESSION,
                SESSION,
                head,
                lambda: (stored, files),
                standing=standing,
                budget=self._budget,
                least=0,
            )
            for written in chain.rounds(files[head.through_seq :]):
                apply(self.fold, written.round)
                self.made.append(written.data)
            batch = self.store.batch()
            # The commit digest names the head as well as the id of its object does.
            for key, value in saved_standing(view, REF, chain.head.digest, chain.standing).items():
                batch.set_derived(key, value)
        self.store.commit(batch)
        self.anew += chain.anew

    def damage(self, draw: Any) -> None:
        """Delete, shorten, change or swap one saved value."""
        with self.store.snapshot() as view:
            values = dict(view.derived_items(standing_prefix(REF)))
        if not values:
            return
        key = draw(st.sampled_from(sorted(values)))
        value = values[key]
        place = draw(st.integers(0, len(value) - 1))
        bad = {
            "deleted": None,
            "shortened": value[:place],
            "changed": value[:place]
            + bytes((value[place] ^ 1 << draw(st.integers(0, 7)),))
            + value[place + 1 :],
        }[draw(st.sampled_from(["deleted", "shortened", "changed"]))]
        batch = self.store.batch()
        batch.set_derived(key, bad)
        self.store.commit(batch)


def cuts_of(draw: Any, files: Sequence[Landed]) -> list[int]:
    return sorted(draw(st.sets(st.integers(1, len(files)))) | {len(files)})


SORTS = {"odd": sessions(clashing=False), "clashing": sessions(), "lively": lively()}


@pytest.mark.parametrize("sort", SORTS)
@given(data=st.data(), budget=st.sampled_from([1, 3000, ROUND_BYTES]))
@settings(max_examples=100)
def test_going_on_writes_what_the_whole_writes(data: st.DataObject, budget: int, sort: str) -> None:
    files = data.draw(SORTS[sort])
    cuts = cuts_of(data.draw, files)
    growing = Growing(budget)
    for cut in cuts:
        growing.reach(files[:cut])
        if data.draw(st.integers(0, 3)) == 0:
            growing.damage(data.draw)
    assert growing.made == whole(files, cuts, budget)


@given(lively())
@settings(max_examples=150)
def test_going_on_file_by_file_writes_what_the_whole_writes(files: list[Landed]) -> None:
    growing = Growing()
    for cut in range(1, len(files) + 1):
        growing.reach(files[:cut])
    assert growing.made == whole(files, range(1, len(files) + 1))


def recut(files: Sequence[Landed], chance: random.Random) -> list[Landed]:
    """The same rows in files of a few rows each, as if a live conversation had been landed bit by bit."""
    made: list[Landed] = []
    for file in files:
        rows = list(file.entries)
        while rows:
            count = chance.choice((1, 2, 3, 5, 8, 40))
            seq = len(made) + 1
            entries = [replace(entry, seq=seq, row=row) for row, entry in enumerate(rows[:count], 1)]
            made.append(Landed(seq, f"{seq:064x}", entries))
            rows = rows[count:]
    return made


@pytest.mark.parametrize("agent", ["claude", "codex", "factory", "oh-my-pi", "opencode", "pi"])
def test_every_sample_grows_as_it_is_assembled_whole(tmp_path: Path, shared: Path, agent: str) -> None:
    store = tmp_path / "store"
    assert objstore(store, "flow", "land", (shared / "samples" / agent).absolute()).code == 0
    chance = random.Random(20261130)
    found: Counter[str] = Counter()
    with opened(store) as (_, view):
        for head in best_heads(view, "landed").values():
            files = recut(landed_files(view, head), chance)
            if not files:
                continue
            cuts = sorted({len(files), *chance.sample(range(1, len(files) + 1), min(12, len(files)))})
            growing = Growing(chance.choice((2000, 20_000, ROUND_BYTES)))
            for cut in cuts:
                growing.reach(files[:cut])
            assert growing.made == whole(files, cuts, growing._budget)
            found["conversations"] += 1
            found["rounds"] += len(growing.made)
            found["anew"] += growing.anew
    assert found["conversations"] > 5
    # Each begins with one; live conversations disrupt now and then, and most rounds must do without.
    assert found["anew"] - found["conversations"] < found["rounds"] / 4, found


def test_another_round_version_or_ref_is_no_standing() -> None:
    growing = Growing()
    growing.reach(conversation())
    with growing.store.snapshot() as view:
        assert isinstance(load_standing(view, REF, growing.fold.digest), Standing)
        assert load_standing(view, REF, "0" * 64) is None
        assert load_standing(view, REF + "x", growing.fold.digest) is None


def turn(number: int) -> list[Record]:
    """A talk of two calls and a tool use."""
    second = number * 40.0
    return [
        asked(f"u{number}", f"run-{number}", second),
        said(f"a{number}", f"call-{number}", f"u{number}", second + 1, text(), use(f"tool-{number}")),
        came(f"r{number}", f"run-{number}", second + 2, result(f"tool-{number}"), parent=f"a{number}"),
        said(f"b{number}", f"call-b{number}", f"r{number}", second + 3, text()),
    ]


@pytest.mark.parametrize("turns", [50, 400])
def test_a_turn_costs_the_same_however_long_the_conversation(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [landed(1, [record for number in range(turns) for record in turn(number)])]
    growing = Growing()
    growing.reach(files)
    frames = 0
    loads: list[bytes] = []
    compare, derived = going_on_module.Going.compare, MemorySnapshot.derived

    def counted(self: Any, old: Any, new: Any) -> None:
        nonlocal frames
        before, after = list(old), list(new)
        frames += len(before) + len(after)
        compare(self, before, after)

    monkeypatch.setattr(going_on_module.Going, "compare", counted)
    monkeypatch.setattr(
        MemorySnapshot,
        "derived",
        lambda self, key: (loads.append(key), derived(self, key))[1],
    )
    growing.reach([*files, landed(2, turn(turns))])
    # Session, stream and epoch before and after; talk, segment of the talk, run, two calls, tool use.
    assert (growing.anew, frames) == (1, 12)
    # The core, and a bucket for each name at most: records, calls, tool use, stream, run, talks.
    assert len(loads) <= 20
