from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from objstore.errors import CheckFailed
from porcelain.flow.assembly import ROUND_BYTES, delta, next_round, rounds
from porcelain.flow.assembly.entries import Landed
from porcelain.flow.chain.folding import Fold, apply, fold_rounds
from porcelain.flow.formats.sf import SfUnresolved, input_digest, write_round
from porcelain.flow.formats.sf_reading import read_round
from porcelain.providers.records import Record
from tests.porcelain.flow.sample import (
    SESSION,
    asked,
    build,
    came,
    content,
    conversation,
    landed,
    result,
    said,
    sessions,
    state,
    use,
)


def chain(
    files: list[Landed], fold: Fold | None = None, budget: int = ROUND_BYTES
) -> tuple[list[bytes], Fold]:
    state_ = Fold() if fold is None else fold
    written = list(rounds(files, state_, conversation=SESSION, session=SESSION, budget=budget))
    return [w.data for w in written], state_


@given(sessions(), st.integers(1, 20_000))
def test_any_budget_folds_to_the_same_state(files: list[Landed], budget: int) -> None:
    whole, once = chain(files)
    assert len(whole) == 1
    parts, folded = chain(files, budget=budget)
    assert state(folded) == state(once)
    assert once.header is not None and folded.header is not None
    same = {
        "round": 0,
        "previous": UNSET,
        "from_seq": 0,
        "input_digest": "",
        "from_time": UNSET,
        "through_time": UNSET,
    }
    assert msgspec.structs.replace(folded.header, **same) == msgspec.structs.replace(once.header, **same)
    # Read back from the bytes, the chain folds to the same frames, revisions included.
    again = fold_rounds(read_round(data, exact=True) for data in parts)
    assert state(again) == state(folded)
    assert again.digest == folded.digest
    for data in parts:
        header = read_round(data).header
        assert len(data) <= budget or header.from_seq == header.through_seq


@given(sessions(), st.data())
def test_landing_bit_by_bit_folds_to_the_same_state(files: list[Landed], data: st.DataObject) -> None:
    fold = Fold()
    previous = ""
    for cut in sorted(data.draw(st.sets(st.integers(0, len(files)))) | {len(files)}):
        start = fold.through_seq
        before = Fold(
            fold.round,
            fold.digest,
            fold.header,
            dict(fold.nodes),
            dict(fold.relations),
            dict(fold.unresolved),
        )
        written = next_round(files[:cut], fold, conversation=SESSION, session=SESSION)
        if written is None:
            assert cut == start
            continue
        round_ = read_round(written.data, exact=True)
        assert (round_.header.from_seq, round_.header.through_seq) == (start + 1, cut)
        previous = input_digest(previous, [f.digest for f in files[start:cut]])
        assert round_.header.input_digest == previous
        for node in written.round.nodes:
            old = before.nodes.get(node.id)
            assert (old is not None) if node.tombstone else (old is None or content(old) != content(node))
        apply(fold, written.round)
    assert state(fold) == state(chain(files)[1])
    assert next_round(files, fold, conversation=SESSION, session=SESSION) is None


@given(sessions())
def test_rounds_as_written_are_in_order(files: list[Landed]) -> None:
    written = next_round(files, Fold(), conversation=SESSION, session=SESSION)
    assert written is not None
    round_ = written.round
    shuffled = write_round(round_.header, round_.nodes[::-1], round_.relations[::-1], round_.unresolved[::-1])
    assert shuffled == (written.data, round_.digest)


def test_a_chain_of_an_own_conversation() -> None:
    files = conversation()
    data, fold = chain(files, budget=1)
    assert [read_round(d).header.through_seq for d in data] == [1, 2, 3, 4]
    first, second, *_ = (read_round(d) for d in data)
    assert {u.id for u in first.unresolved} == {"unres/child_stream/kid"}
    assert [(u.id, u.state, u.revision) for u in second.unresolved] == [
        ("unres/child_stream/kid", "resolved", 2)
    ]
    assert fold.nodes["tool/tool-2"].revision == 2  # a plain tool until its child landed
    assert fold.nodes["tool/tool-1"].revision == 1
    assert "msg/1/4:0" not in {n.id for n in second.nodes}


def test_what_is_no_longer_so_gets_a_tombstone() -> None:
    """A run that says what triggered it only later turns out to be a part of the talk before it."""
    first = landed(1, [asked("u1", "r1", 1), came("n1", "r2", 2)])
    second = landed(2, [came("n2", "r2", 3, trigger="notification")])
    fold = Fold()
    (one,) = rounds([first], fold, conversation=SESSION, session=SESSION)
    assert "talk/main/r2" in {n.id for n in one.round.nodes}
    (two,) = rounds([first, second], fold, conversation=SESSION, session=SESSION)
    gone = {n.id for n in two.round.nodes if n.tombstone}
    assert gone == {"talk/main/r2", "run/talk_main_r2/r2"}
    assert b'{"t":"node","id":"talk/main/r2","revision":2,"tombstone":true,"kind":""}\n' in two.data
    assert b'"revision":2,"tombstone":true,"type":"","from":"","to":"","quality":""}\n' in two.data
    assert "talk/main/r2" not in fold.nodes


def test_a_late_result_resolves() -> None:
    files = [
        landed(1, [asked("u1", "r", 1), said("a1", "c", "u1", 2, use("t"))]),
        landed(2, [came("r1", "r", 3, result("t"))]),
    ]
    _, fold = chain(files, budget=1)
    assert fold.unresolved["unres/tool_result/t"].state == "resolved"
    assert fold.header is not None and fold.header.unresolved == 0
    assert fold.nodes["tool/t"].revision == 2


def test_what_is_terminal_stays_so() -> None:
    files = [landed(1, [asked("u1", "r", 1), said("a1", "c", "u1", 2, use("t"))])]
    _, fold = chain(files)
    name = "unres/tool_result/t"
    fold.unresolved[name] = SfUnresolved(name, 1, UNSET, "tool_result", "t", "the source is gone", "terminal")
    assert delta(fold, build(*files), 2).empty
    (written,) = rounds([*files, landed(2, [Record(id="x")])], fold, conversation=SESSION, session=SESSION)
    assert written.round.header.unresolved == 0
    assert written.round.unresolved == []


def test_a_file_that_changes_nothing_moves_the_mark() -> None:
    files = [landed(1, [asked("u1", "r", 1)]), landed(2, [asked("u1", "r", 1)])]
    data, fold = chain(files, budget=1)
    assert fold.through_seq == 2
    assert read_round(data[1], exact=True).nodes == []


def test_another_interpretation_is_another_chain() -> None:
    files = conversation()
    _, fold = chain(files)
    for wrong in ({"conversation": "x", "session": SESSION}, {"conversation": SESSION, "session": "x"}):
        with pytest.raises(CheckFailed, match="the chain's"):
            next_round(files, fold, **wrong)
    assert fold.header is not None
    fold.header = msgspec.structs.replace(fold.header, parser="v0")
    with pytest.raises(CheckFailed, match="parser is 'v0', not 'v1'"):
        next_round(files, fold, conversation=SESSION, session=SESSION)


def test_missing_files_are_refused() -> None:
    files = conversation()
    _, fold = chain(files)
    with pytest.raises(CheckFailed, match="landed file 2 is missing"):
        next_round([files[0], files[2]], Fold(), conversation=SESSION, session=SESSION)
    with pytest.raises(CheckFailed, match="covers landed file 4, but only 3"):
        next_round(files[:3], fold, conversation=SESSION, session=SESSION)


_PROGRAM = """
import hashlib
from porcelain.flow.assembly import rounds
from porcelain.flow.chain.folding import Fold
from tests.porcelain.flow.sample import SESSION, conversation
data = b"".join(w.data for w in rounds(conversation(), Fold(), conversation=SESSION, session=SESSION, budget=5000))
print(hashlib.sha256(data).hexdigest())
"""


@pytest.mark.parametrize(
    "surroundings",
    [
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "4242", "TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
        {"PYTHONHASHSEED": "7", "TZ": "America/St_Johns", "LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"},
        {"PYTHONHASHSEED": "7", "TZ": ":nowhere", "LC_ALL": "POSIX", "PYTHONOPTIMIZE": "2"},
    ],
)
def test_another_process_elsewhere_writes_the_same_bytes(surroundings: dict[str, str]) -> None:
    """Another hash seed, time zone and locale make no difference."""
    data, _ = chain(conversation(), budget=5000)
    expected = hashlib.sha256(b"".join(data)).hexdigest()
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, **surroundings, "PYTHONPATH": str(root)},
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == expected


@settings(max_examples=30)
@given(st.integers(1_000, 60_000))
def test_skipping_windows_that_cannot_fit_changes_no_round(budget: int) -> None:
    """The window is the first of through, half of it, ... that fits: as if each had been assembled."""
    files = [
        landed(
            seq,
            [
                said(f"a{seq}.{n}", f"call-{seq}.{n}", "", seq * 10, use(f"tool-{seq}.{n}", "Read"))
                for n in range(1 + seq % 7)
            ],
        )
        for seq in range(1, 25)
    ]
    written = next_round(files, Fold(), conversation=SESSION, session=SESSION, budget=budget)
    assert written is not None
    through = len(files)
    while through > 1:
        alone = next_round(files[:through], Fold(), conversation=SESSION, session=SESSION, budget=1 << 40)
        assert alone is not None
        if len(alone.data) <= budget:
            break
        through = 1 + (through - 1) // 2
    assert written.round.header.through_seq == through
