"""Checking claims: what is supported by which method, what is not, and what that makes of the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porcelain.session.answering.grounding import NO_SOURCES, REFUSAL, check, check_claim, is_refusal
from porcelain.session.answering.pointers import Claim, parse_claims

LIGHT = """Skarv Point Lighthouse stands on the northern tip of Holm Island. It was designed by the engineer Ottar
Brekke and first lit on 4 October 1874. The tower is 31 metres tall and built of grey granite. The tower is not open to
visitors in winter."""
FERRY = "The ferry sails three times a day in winter. A car costs 1,210 crowns. The captain said: “We never wait.”"
PASSAGES = {1: LIGHT, 2: FERRY}


@pytest.mark.parametrize(
    ("line", "method"),
    [
        ("The tower is 31 metres tall and built of grey granite. [E1]", "span"),
        ("the tower IS 31  metres tall [E1]", "span"),
        ('The engineer Ottar Brekke saw it "first lit on 4 October 1874". [E1]', "quote"),
        ("“We never wait” was what the captain said. [E2]", "quote"),
        ("Ottar Brekke designed Skarv Point Lighthouse on Holm Island. [E1]", "entity"),
        ("The engineer Ottar Brekke designed the lighthouse at the northern tip. [E1]", "paraphrase"),
        ("Visitors come mostly to climb the open tower during summer. [E1]", "none"),
        ("In winter the tower is not open to visitors, [E1]", "paraphrase"),
        ("In winter a ferry sails 3 times each day. [E2]", "paraphrase"),
        ("In winter a ferry sails 5 times each day. [E2]", "none"),
    ],
)
def test_methods(line: str, method: str) -> None:
    (claim,) = parse_claims(line)
    assert check_claim(claim, PASSAGES).method == method


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("The tower is 31 metres tall. [E1]", "EVIDENCE_LINKED"),
        ("The tower is 31 metres tall. [E9]", "UNKNOWN_EVIDENCE_ID"),
        ("The tower is 31 metres tall.", "NO_EVIDENCE_POINTER"),
        ("The tower is 31 metres tall. [E2]", "CITATION_MISMATCH"),
        ("The tower is 32 metres tall and built of grey granite. [E1]", "CITATION_MISMATCH"),
        ("The tower is 31 metres tall and built of grey granite by Ragna Sund. [E1]", "CITATION_MISMATCH"),
        ("The tower is open to visitors in winter. [E1]", "CITATION_MISMATCH"),
        (
            "It was never first lit by engineer Ottar Brekke who designed it in October 1874. [E1]",
            "CITATION_MISMATCH",
        ),
        ('The tower has "walls of red brick". [E1]', "CITATION_MISMATCH"),
        ("[E1]", "SCHEMA_INVALID"),
        ("... [E1]", "SCHEMA_INVALID"),
        (REFUSAL, "REFUSAL"),
        ("The sources do not say who painted it. [E1]", "REFUSAL"),
    ],
)
def test_statuses(line: str, status: str) -> None:
    (claim,) = parse_claims(line)
    assert check_claim(claim, PASSAGES).status == status


@pytest.mark.parametrize(
    ("claimed", "written"), [("3", "three"), ("12", "twelve"), ("1210", "1,210"), ("1,210", "1210")]
)
def test_numbers_in_words_and_digits_are_equal(claimed: str, written: str) -> None:
    passage = {1: f"The village keeps exactly {written} wooden boats ready there."}
    exact = Claim(f"In the village there are exactly {claimed} wooden boats ready.", (1,))
    assert check_claim(exact, passage).method == "paraphrase"


def test_quotations_that_are_not_there_are_kept() -> None:
    (claim,) = parse_claims('He wrote "walls of red brick" and "grey granite" and “We never sleep”. [E1,E2]')
    found = check_claim(claim, PASSAGES)
    assert found.unverified == ("walls of red brick", "We never sleep")
    verdict = check([claim], PASSAGES)
    assert verdict.unverified_quotes == found.unverified
    assert verdict.mode == "UNGROUNDED"


def test_words_scattered_over_a_passage_are_no_paraphrase() -> None:
    filler = "Nothing of note happened on that day at all. " * 5
    passage = {
        1: f"The miller bought barley. {filler} The keeper sold candles. {filler} The teacher measured tides."
    }
    assert (
        check_claim(Claim("The miller sold candles and measured barley tides.", (1,)), passage).method
        == "none"
    )


def test_two_passages_together_can_support_a_claim() -> None:
    claim = Claim(
        "The tower is built of grey granite while the ferry sails three times daily in winter.", (1, 2)
    )
    assert check_claim(Claim(claim.text, (1,)), PASSAGES).method == "none"
    two = Claim("The tower built of grey granite is tall, the ferry sails three times in winter.", (1, 2))
    assert check_claim(two, PASSAGES).method == "paraphrase"


GOOD = "The tower is 31 metres tall. [E1]"
BAD = "The tower was painted yellow by sailors. [E1]"


@pytest.mark.parametrize(
    ("raw", "mode", "method"),
    [
        (GOOD, "STRICT", "span"),
        (f"{GOOD}\n{BAD}", "HYBRID", "span"),
        (f"{GOOD}\nAn idle remark.", "HYBRID", "span"),
        (BAD, "UNGROUNDED", "none"),
        (REFUSAL, "UNGROUNDED", "none"),
        ("I do not know.", "UNGROUNDED", "none"),
        (NO_SOURCES, "UNGROUNDED", "none"),
        ("", "UNGROUNDED", "none"),
        ("\n".join([GOOD] * 13), "HYBRID", "span"),
        ("The tower is 31 metres tall. [E1,E1,E2,E1]", "STRICT", "span"),
        (
            f"{GOOD}\n{'The engineer Ottar Brekke designed the lighthouse at the northern tip. [E1]'}",
            "STRICT",
            "paraphrase",
        ),
    ],
)
def test_the_whole(raw: str, mode: str, method: str) -> None:
    verdict = check(parse_claims(raw), PASSAGES)
    assert (verdict.mode, verdict.method) == (mode, method)


def test_more_pointers_than_two_are_hybrid_at_best() -> None:
    verdict = check(parse_claims("The tower is 31 metres tall. [E1,E2,E3]"), {**PASSAGES, 3: "x"})
    assert (verdict.mode, verdict.limits) == ("HYBRID", ("many-pointers",))


def test_five_lines_without_pointers_are_a_collapse() -> None:
    verdict = check(parse_claims(GOOD + "\nAn idle remark." * 5), PASSAGES)
    assert verdict.limits == ("format-collapse",)
    assert (verdict.quotes, verdict.verified) == (6, 1)


@given(st.lists(st.tuples(st.text(max_size=80), st.lists(st.integers(0, 4), max_size=4)), max_size=6))
def test_any_claims_can_be_checked_and_the_mode_follows_from_them(
    claims: list[tuple[str, list[int]]],
) -> None:
    verdict = check([Claim(text, tuple(pointers)) for text, pointers in claims], PASSAGES)
    linked = [item for item in verdict.claims if item.status == "EVIDENCE_LINKED"]
    assert verdict.verified == len(linked)
    assert (verdict.mode == "UNGROUNDED") == (not linked)
    if verdict.mode == "STRICT":
        assert len(linked) == len(claims) and not verdict.limits
    assert all((item.method == "none") == (item.status != "EVIDENCE_LINKED") for item in verdict.claims)


@given(st.text(max_size=120), st.text(max_size=200))
def test_no_text_makes_the_check_fail(text: str, passage: str) -> None:
    check([Claim(text, (1,))], {1: passage})


@given(st.integers(0, 3))
def test_every_sentence_of_a_passage_supports_itself(at: int) -> None:
    from porcelain.session.documents.wording import sentences

    sentence = [item.text for item in sentences(LIGHT)][at]
    assert check_claim(Claim(sentence, (1,)), PASSAGES).method == "span"


@pytest.mark.parametrize(
    "text",
    [
        "I don't know.",
        "We cannot answer that.",
        "The passages do not mention it.",
        "There is not enough information.",
    ],
)
def test_refusals(text: str) -> None:
    assert is_refusal(text)


def test_a_plain_sentence_is_no_refusal() -> None:
    assert not is_refusal("The ferry does not sail in a storm.")
