"""The answerer that needs no model and no network: it quotes the sentences that hold most of the question's words.

The same question over the same passages gives the same answer. It understands nothing: it finds.
"""

# ruff: noqa: RUF001 - look-alike punctuation is what is told apart here
from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from porcelain.session.answering.answerers import OnText, Request
from porcelain.session.answering.grounding import REFUSAL, is_refusal
from porcelain.session.documents.wording import (
    fold,
    question_form,
    sentences,
    stem,
    stems,
    telling_words,
    words,
)

#: Sentences in an answer.
MAX_SENTENCES = 3
#: Longest sentence that is quoted, in characters; a longer one is passed over.
MAX_SENTENCE = 1200


_UNIT = 1000
_MARKS = "#>*-+ "
_ENDS = tuple(".!?…。！？")


class _Found(NamedTuple):
    points: int
    number: int
    start: int
    text: str
    shared: frozenset[str]


class ExtractAnswerer:
    """Quotes the best sentences of the passages, each with its pointer."""

    def profile(self) -> dict[str, str]:
        return {"answerer": "extract", "revision": "1"}

    def answer(self, request: Request, on_text: OnText | None = None) -> str:
        """The one to three sentences that share most words with the question, best first, or the refusal."""
        wanted = stems(telling_words(question_form(request.question)))
        found = [item for item in _candidates(request, wanted) if item.points]
        chosen: list[_Found] = []
        seen: set[str] = set()
        found.sort(key=lambda item: (-item.points, item.number, item.start))
        for item in found:
            # After the best one, only sentences that say nearly as much, or that say what the others do not.
            new = not any(item.shared <= other.shared for other in chosen)
            if fold(item.text) in seen or (chosen and not new and item.points < chosen[0].points):
                continue
            seen.add(fold(item.text))
            chosen.append(item)
            if len(chosen) == MAX_SENTENCES:
                break
        text = "\n".join(f"{item.text} [E{item.number}]" for item in chosen) or REFUSAL
        if on_text is not None:
            on_text(text)
        return text


def _candidates(request: Request, wanted: set[str]) -> list[_Found]:
    said = [
        (item, sentence, {stem(word) for word in words(sentence.text)})
        for item in request.evidence
        for sentence in sentences(item.text)
    ]
    held = Counter(word for _, _, stems_said in said for word in stems_said & wanted)
    found: list[_Found] = []
    for item, sentence, stems_said in said:
        shared = stems_said & wanted
        if not shared or len(stems_said) < 3 or not _is_prose(sentence.text):
            continue
        # A word is worth the more, the fewer sentences hold it; one that only the title holds, a quarter.
        title = stems(words(item.title)) & wanted - shared
        points = sum(_UNIT // held[word] for word in shared)
        points += sum(_UNIT // (4 * max(1, held[word])) for word in title)
        points //= 1 if _is_ended(sentence.text) else 2  # a heading says what comes, not what is
        text = " ".join(sentence.text.split()).lstrip(_MARKS)
        found.append(_Found(points, item.number, sentence.start, text, frozenset(shared)))
    return found


def _is_ended(text: str) -> bool:
    return text.rstrip("\"'”’)]*_ ")[-1:] in _ENDS


def _is_prose(text: str) -> bool:
    """Whether a sentence can be quoted: no heading, not too long, no pointer, and no refusal, which would be taken for
    one of ours."""
    return (
        (_is_ended(text) or not text.startswith("#"))
        and len(text) <= MAX_SENTENCE
        and "[E" not in text
        and not is_refusal(text)
    )
