"""Forms of text for comparing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porcelain.session.documents.wording import (
    fold,
    normalize,
    question_form,
    sentences,
    stem,
    telling_words,
    words,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Who built the mill?", "who  built mill"),
        ("A mill?!", "the MILL"),
        ("caf\u00e9", "cafe\u0301"),
        ("Was ist das。", "was ist das"),
    ],
)
def test_wordings_that_are_one_question(one: str, other: str) -> None:
    assert question_form(one) == question_form(other)


@pytest.mark.parametrize(
    ("one", "other"), [("thesis", "sis"), ("Who?", "Whom?"), ('say "x"', "say x"), ("the?", "?")]
)
def test_wordings_that_are_two_questions(one: str, other: str) -> None:
    assert question_form(one) != question_form(other)


def test_a_question_of_nothing_but_articles_is_not_empty() -> None:
    assert question_form(" the ? ") == "the ?"


@given(st.text())
def test_forms_are_stable(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)
    assert fold(fold(text)) == fold(fold(fold(text)))


@given(st.text(alphabet=st.sampled_from("ab .!?\n-*\"'…。")))
def test_sentences_stand_where_they_say_and_leave_out_only_blanks(text: str) -> None:
    end = 0
    for sentence in sentences(text):
        assert text[sentence.start : sentence.end] == sentence.text == sentence.text.strip()
        assert not text[end : sentence.start].strip()
        end = sentence.end
    assert not text[end:].strip()


def test_sentences_end_at_stops_empty_lines_and_list_items() -> None:
    text = 'One. "Two?" Three 3.5 metres!\n\nFour\n- five\n- six'
    assert [s.text for s in sentences(text)] == [
        "One.",
        '"Two?"',
        "Three 3.5 metres!",
        "Four",
        "- five",
        "- six",
    ]


@pytest.mark.parametrize(
    "group",
    [
        "create creates created creating",
        "city cities",
        "run runs running",
        "ferry ferries",
        "keeper keeper's",
    ],
)
def test_stems_that_are_one(group: str) -> None:
    assert len({stem(word) for word in group.split()}) == 1


def test_telling_words_leave_out_stop_words_unless_there_is_nothing_else() -> None:
    assert telling_words("Who was the keeper of the light?") == ["keeper", "light"]
    assert telling_words("Who is it?") == ["who", "is", "it"]
    assert words("Don't stop, 3 times") == ["don't", "stop", "3", "times"]
