"""Trees as lines of text: nothing runs over the edge of a terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore.memory import MemoryDatabase
from objstore.store import Store
from plumbing.interface.output import display_width
from porcelain.session.commands.rendering import tree_lines
from porcelain.session.commands.style import Style
from porcelain.session.tree.change import open_session
from porcelain.session.tree.store import Turn, add_turns, new_session, set_label

Make = Callable[..., Turn]
WIDE = "日本語の塔はどのくらい高いですか 🦊 "
PLAIN = Style(colour=False)


def lines_of(parents: list[int], label: str | None, width: int | None) -> list[str]:
    store = Store(MemoryDatabase(), now=lambda: "2026-03-04T05:06:07Z")
    answer = store.put({"text": "yes", "type": "text"})
    sid, _ = new_session(store)
    turns = [
        Turn(answer=answer, audit_mode="UNGROUNDED", cache_key="1" * 64, parent=above, question=WIDE * 5)
        for above in parents
    ]
    add_turns(store, sid, turns)
    if label is not None:
        set_label(store, sid, len(parents), label)
    with store.snapshot() as view:
        return list(tree_lines(view, open_session(view, sid), PLAIN, width=width))


@given(
    st.lists(st.integers(0, 10), min_size=1, max_size=20),
    st.sampled_from([None, "x", "日本語のラベルです" * 5, "a long label " * 5 + "!"]),
    st.integers(40, 200),
)
def test_a_tree_fits_the_terminal(picks: list[int], label: str | None, width: int) -> None:
    lines = lines_of([pick % (at + 1) for at, pick in enumerate(picks)], label, width)
    assert len(lines) == len(picks)
    assert max(map(display_width, lines)) <= width


@pytest.mark.parametrize("width", [40, 80])
def test_deep_branches_fit_too(width: int) -> None:
    # Each node has a second child, which has two, and so on.
    parents = [at // 2 * 2 - 1 if at > 1 else 0 for at in range(1, 81)]
    lines = lines_of(parents, "a long label " * 5 + "!", width)
    assert len(lines) == 80
    assert max(map(display_width, lines)) <= width


def test_nothing_is_cut_where_there_is_no_terminal() -> None:
    (line,) = lines_of([0], "a long label " * 5 + "!", None)
    assert (WIDE * 5).strip() in line and "a long label " * 5 + "!" in line
