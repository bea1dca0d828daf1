"""Asking: what is answered, kept, served again, and what is left behind when it goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import porcelain  # noqa: F401  (declares the kinds)
from objstore.errors import CheckFailed, StorageError, UsageError
from objstore.store import Store, load
from porcelain.session.answering.answerers import OnText, Request
from porcelain.session.answering.answers import recheck
from porcelain.session.answering.asking import Options, ask, find_evidence, policy, prepared_question
from porcelain.session.answering.cache_key import cache_key, dimensions
from porcelain.session.answering.grounding import NO_SOURCES, REFUSAL
from porcelain.session.answering.kinds import Answer
from porcelain.session.answering.pointers import cited_titles
from porcelain.session.documents.adding import add_sources

DOCUMENTS = Path(__file__).resolve().parents[3] / "fixtures" / "documents"
LIT = "When was the lighthouse first lit?"
SECRET = "ghp_" + "F4kE" * 9


class Scripted:
    """Writes what it is told to, and remembers what it was asked."""

    def __init__(self, text: str | BaseException, model: str = "scripted") -> None:
        self.text = text
        self.model = model
        self.asked: list[Request] = []

    def profile(self) -> dict[str, str]:
        return {"model": self.model, "answerer": "scripted"}

    def answer(self, request: Request, on_text: OnText | None = None) -> str:
        self.asked.append(request)
        if isinstance(self.text, BaseException):
            if on_text is not None:
                on_text("half of it")
            raise self.text
        return self.text


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    times = iter(range(100))
    with Store.init(tmp_path / "store", now=lambda: f"2026-03-01T10:00:{next(times):02d}Z") as made:
        add_sources(made, [path for path in sorted(DOCUMENTS.iterdir()) if path.suffix != ".pdf"])
        yield made


def answer_refs(store: Store) -> list[str]:
    return [name for name in store.refs() if name.startswith("answer")]


def test_an_answer_is_cited_checked_and_kept(store: Store) -> None:
    asked = ask(store, LIT)
    assert asked.audit_mode == "STRICT"
    assert asked.verifier_method == "span"
    assert "first lit on 4 October 1874. [E1 | The Lighthouse at Skarv Point | " in asked.text
    assert answer_refs(store) == [f"answer/{asked.cache_key}/{asked.answer_id}"]
    with store.snapshot() as view:
        answer: Answer = load(view, bytes.fromhex(asked.answer_id), "answer")
        recheck(view, answer)
        assert answer.created_at == asked.created_at
        assert list(answer.sources) == list(asked.sources)
    assert store.verify().ok


def test_the_same_question_is_served_again(store: Store) -> None:
    first = ask(store, LIT)
    model = Scripted("never")
    again = ask(store, "  when was LIGHTHOUSE first lit")
    assert (again.answer_id, again.from_cache, first.from_cache) == (first.answer_id, True, False)
    assert not model.asked
    assert len(answer_refs(store)) == 1


def test_asking_anew_makes_a_second_answer_and_the_first_is_served(store: Store) -> None:
    first = ask(store, LIT)
    second = ask(store, LIT, options=Options(refresh=True))
    assert second.answer_id != first.answer_id
    assert ask(store, LIT).answer_id == first.answer_id
    assert len(answer_refs(store)) == 2


def test_extract_gives_the_same_answer_every_time(store: Store) -> None:
    first = ask(store, LIT)
    second = ask(store, LIT, options=Options(refresh=True))
    assert (first.text, first.claims, first.cache_key) == (second.text, second.claims, second.cache_key)


def test_without_a_source_nobody_is_asked(store: Store) -> None:
    model = Scripted("Mars has no capital. [E1]")
    asked = ask(store, "What is the capital of Mars?", answerer=model)
    assert not model.asked
    assert (asked.audit_mode, asked.verifier_method, asked.text) == ("UNGROUNDED", "none", NO_SOURCES)
    assert asked.sources == ()


def test_a_refusal_is_kept_as_ungrounded(store: Store) -> None:
    asked = ask(store, LIT, answerer=Scripted(REFUSAL))
    assert (asked.audit_mode, asked.verifier_method) == ("UNGROUNDED", "none")
    assert asked.claims[0].status == "REFUSAL"


def test_what_a_model_invents_is_not_supported(store: Store) -> None:
    model = Scripted(
        'It was first lit on 4 October 1874. [E1]\nIt burned "whale oil from Spain". [E1]\nIt is. [E77]'
    )
    asked = ask(store, LIT, answerer=model)
    assert asked.audit_mode == "HYBRID"
    assert asked.unverified_quotes == ("whale oil from Spain",)
    assert [claim.status for claim in asked.claims] == [
        "EVIDENCE_LINKED",
        "CITATION_MISMATCH",
        "UNKNOWN_EVIDENCE_ID",
    ]


def test_another_model_is_another_key(store: Store) -> None:
    one = ask(store, LIT, answerer=Scripted(REFUSAL, "one"))
    two = ask(store, LIT, answerer=Scripted(REFUSAL, "two"))
    assert one.cache_key != two.cache_key


def test_a_follow_up_with_a_pronoun_surfaces_the_source_above(store: Store) -> None:
    first = ask(store, LIT)
    alone = ask(store, "Who paid for it?")
    after = ask(store, "Who paid for it?", ancestors=[first.text])
    assert "The Lighthouse at Skarv Point" not in [source.title for source in alone.sources]
    assert after.sources[0].title == "The Lighthouse at Skarv Point"


def test_keywords_change_what_is_found_and_no_hash_by_themselves(store: Store) -> None:
    question = "Who paid for it?"
    found = find_evidence(store, question, options=Options(retrieval_keywords="granite tower"))
    assert found and not find_evidence(store, question)
    parts = {
        "document_roots": [],
        "question": question,
        "profile": {},
        "messages": [],
    }
    one = dimensions(**parts, policy=policy(Options()))  # type: ignore[arg-type]
    other = dimensions(**parts, policy=policy(Options(retrieval_keywords="granite tower")))  # type: ignore[arg-type]
    assert one == other


def test_keywords_that_change_nothing_found_serve_the_same_answer(store: Store) -> None:
    first = ask(store, "diary of every storm Ragna Sund")
    again = ask(
        store,
        "diary of every storm Ragna Sund",
        options=Options(retrieval_keywords="skarv lighthouse keepers"),
    )
    assert (again.answer_id, again.from_cache) == (first.answer_id, True)


def test_a_changed_source_is_another_key(store: Store, tmp_path: Path) -> None:
    note = tmp_path / "heron.txt"
    note.write_text("The heron stands in the reeds.")
    add_sources(store, [note])
    first = ask(store, "Where does the heron stand?")
    note.write_text("The heron stands in the brook.")
    add_sources(store, [note])
    second = ask(store, "Where does the heron stand?")
    assert second.cache_key != first.cache_key
    assert "brook" in second.text


@pytest.mark.parametrize("failure", [StorageError("broken"), KeyboardInterrupt(), RuntimeError("bug")])
def test_nothing_is_kept_of_a_question_that_fails(store: Store, failure: BaseException) -> None:
    before = store.refs()
    with store.snapshot() as view:
        count = view.count()
    heard: list[str] = []
    with pytest.raises(type(failure)):
        ask(store, LIT, answerer=Scripted(failure), on_text=heard.append)
    assert heard == ["half of it"]
    assert store.refs() == before
    with store.snapshot() as view:
        assert view.count() == count


@pytest.mark.parametrize("question", ["", "  \n", "a\0b", "x" * 70_000])
def test_what_is_no_question_is_refused(store: Store, question: str) -> None:
    with pytest.raises(UsageError):
        ask(store, question)


def test_secrets_in_question_and_answer_are_replaced(store: Store) -> None:
    assert "[redacted:github-token]" in ask(store, f"Is {SECRET} the lighthouse key?").question
    asked = ask(store, LIT, answerer=Scripted(f"The key is {SECRET}. [E1]"))
    assert "[redacted:github-token]" in asked.text
    with store.snapshot() as view:
        assert not any(SECRET.encode() in stored.data for _, stored in view.objects())


def test_control_characters_of_a_model_are_not_kept(store: Store) -> None:
    asked = ask(
        store, LIT, answerer=Scripted("\x1b[31mIt was first lit on 4 October 1874.\x07\u202e [E1]\ud800")
    )
    assert "\x1b" not in asked.text and "\u202e" not in asked.text
    assert "\ud800" not in asked.text


def test_half_a_surrogate_pair_in_a_question_is_replaced() -> None:
    assert prepared_question("who\ud800?") == "who\ufffd?"


@pytest.mark.parametrize("text", ["A claim. [E1]\n" * 201, "\u4e00" * 30_000])
def test_an_enormous_answer_is_refused(store: Store, text: str) -> None:
    before = store.refs()
    with pytest.raises(CheckFailed, match="too long"):
        ask(store, LIT, answerer=Scripted(text))
    assert store.refs() == before


def test_the_titles_cited_above_come_nearest_first(store: Store) -> None:
    texts = [ask(store, question).text for question in (LIT, "What does a car cost on the ferry?")]
    assert cited_titles(texts[::-1]) == ["ferry-timetable", "The Lighthouse at Skarv Point"]


def test_an_answer_knows_its_key(store: Store) -> None:
    asked = ask(store, LIT)
    with store.snapshot() as view:
        answer: Answer = load(view, bytes.fromhex(asked.answer_id), "answer")
    assert cache_key(answer.dimensions) == answer.cache_key
    assert msgspec.to_builtins(answer.dimensions)["source_root"] == asked.sources[0].document_root
