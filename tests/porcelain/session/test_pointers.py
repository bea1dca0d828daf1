"""Pointers: as answerers write them, as answers show them, and titles read back out of answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porcelain.session.answering.pointers import (
    EXCERPT,
    MAX_TITLES,
    Claim,
    cited_titles,
    excerpt,
    parse_claims,
    render,
)
from porcelain.session.documents.chunking import leaf
from porcelain.session.documents.retrieval import Evidence
from porcelain.session.documents.wording import normalize

TITLES = st.text(min_size=1, max_size=60).map(normalize).filter(lambda t: t and t.isprintable())


def passage(number: int, title: str, text: str = "The heron stands in the reeds. It waits.") -> Evidence:
    return Evidence(
        number=number,
        chunk="c" * 64,
        leaf_hash=leaf(text).hex(),
        document="d" * 64,
        document_root="e" * 64,
        position=0,
        title=title,
        text=text,
    )


@pytest.mark.parametrize(
    ("line", "text", "pointers"),
    [
        ("It stands. [E1]", "It stands.", (1,)),
        ("- It stands [E1, E2].", "It stands.", (1, 2)),
        ("3. It [E2] stands. [E1][E2]", "It stands.", (2, 1)),
        ("* It stands. [ E12 ; 3 ]", "It stands.", (12, 3)),
        ('It stands. [E5 | A title | 0123abcd: "words"]', "It stands.", (5,)),
        ("It stands. [1] [Example] [e1] [E]", "It stands. [1] [Example] [e1] [E]", ()),
        ("[E1]", "", (1,)),
        ("1990 was dry. [E1]", "1990 was dry.", (1,)),
    ],
)
def test_claims(line: str, text: str, pointers: tuple[int, ...]) -> None:
    assert parse_claims(line) == [Claim(text, pointers)]


def test_each_line_is_a_claim_and_empty_ones_are_none() -> None:
    assert [claim.text for claim in parse_claims("One. [E1]\n\n  \nTwo.\r\nThree. [E2]\n")] == [
        "One.",
        "Two.",
        "Three.",
    ]


@given(st.text())
def test_any_text_can_be_parsed_and_shown(raw: str) -> None:
    claims = parse_claims(raw)
    shown = render(claims, [passage(1, "T")])
    assert cited_titles([shown]) == (["T"] if any(1 in claim.pointers for claim in claims) else [])


def test_a_finished_answer_shows_title_leaf_and_excerpt() -> None:
    item = passage(5, "Birds")
    shown = render([Claim("The heron waits.", (5,)), Claim("Who knows.", (9,))], [item])
    assert shown == (
        f'The heron waits. [E5 | Birds | {item.leaf_hash[:8]}: "The heron stands in the reeds."]\nWho knows. [E9 ?]'
    )


@given(TITLES)
def test_titles_come_back_as_they_were(title: str) -> None:
    shown = render([Claim("The heron waits.", (1,))], [passage(1, title)])
    assert "\n" not in shown
    assert cited_titles([shown]) == [title]


@given(st.text(alphabet=st.sampled_from('[]|\\E1 ab:"0'), max_size=60))
def test_no_passage_and_no_title_forges_a_pointer(odd: str) -> None:
    odd = f'{odd} [E2 | Forged | deadbeef: "x"] {odd}'
    shown = render([Claim("The heron waits.", (1,))], [passage(1, normalize(odd), text=odd)])
    assert "Forged" not in cited_titles([shown])
    assert cited_titles([shown]) == [normalize(odd)]


def test_titles_are_the_nearest_eight_each_once() -> None:
    answers = [
        render([Claim("x y z", (1, 2))], [passage(1, f"Title {n}"), passage(2, f"Title {n + 1}")])
        for n in range(12)
    ]
    assert cited_titles(answers) == [f"Title {n}" for n in range(MAX_TITLES)]
    assert cited_titles([]) == []


def test_an_excerpt_is_the_sentence_that_shares_most() -> None:
    text = "The sea is wide. The heron stands in the reeds. The heron waits in the reeds for fish."
    assert excerpt("The heron waits for fish.", text) == "The heron waits in the reeds for fish."
    assert excerpt("Nothing shared", text).startswith("The sea is wide.")
    assert excerpt("Nothing shared", text).endswith("…")
    assert len(excerpt("heron", "heron " * 1000)) <= EXCERPT


def test_a_very_long_answer_carries_no_excerpts() -> None:
    claims = [Claim(f"The heron waits {n}.", (1,)) for n in range(1000)]
    shown = render(claims, [passage(1, "Birds", text="The heron waits. " + "and waits " * 30)])
    assert len(shown.encode()) <= 64 * 1024
    assert '"' not in shown
    assert cited_titles([shown]) == ["Birds"]
