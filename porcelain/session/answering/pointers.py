"""Pointers from claims to passages: as an answerer writes them, and as they stand in a finished answer.

An answerer ends a claim with ``[E1]`` or ``[E1, E2]``. In a finished answer that becomes
``[E1 | <title> | <first 8 hex of the chunk's leaf hash>: "<excerpt>"]``. In titles and excerpts a backslash stands
before every backslash, bar and bracket, so that no document can forge a pointer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from porcelain.session.documents.retrieval import Evidence
from porcelain.session.documents.wording import Sentence, sentences, stems, telling_words

#: Titles of earlier answers that widen a search.
MAX_TITLES = 8
#: Characters of an excerpt.
EXCERPT = 240
#: An answer that would be longer than this, in characters, carries no excerpts.
_LONG_ANSWER = 48 * 1024

_POINTER = re.compile(r"\[\s*E\d{1,4}\b(?:\s*[,;]\s*E?\d{1,4}\b)*(?:\s*\|[^\]\n]{0,400})?\s*\]")
_NUMBER = re.compile(r"\d+")
_RENDERED = re.compile(r"(?<!\\)\[E\d{1,4} \| ((?:\\.|[^\\|\[\]\n])+?) \| [0-9a-f]{8}[:\]]")
_ESCAPED = re.compile(r"\\(.)")
_SPECIAL = re.compile(r"[\\|\[\]]")


class Claim(Struct, frozen=True):
    """A line of an answer: its words without pointers, and the numbers that it points at, in order."""

    text: str
    pointers: tuple[int, ...]


_BULLET = re.compile(r"^\s*(?:[-*•]\s+|\d{1,3}[.)]\s+)")


def parse_claims(raw: str) -> list[Claim]:
    """The claims that an answerer wrote, one for each line that is not empty. Bullets in front are dropped."""
    found: list[Claim] = []
    for line in raw.splitlines():
        line = _BULLET.sub("", line).strip()
        if not line:
            continue
        numbers = dict.fromkeys(
            int(number)
            for pointer in _POINTER.findall(line)
            for number in _NUMBER.findall(pointer.partition("|")[0])
        )
        text = " ".join(_POINTER.sub(" ", line).split())
        found.append(Claim(re.sub(r"\s+([.,;:!?])", r"\1", text), tuple(numbers)))
    return found


def escape(text: str) -> str:
    """``text`` on one line, with a backslash before what has a meaning in a pointer."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))


def render(claims: Sequence[Claim], evidence: Sequence[Evidence]) -> str:
    """The finished answer: a line for each claim, with its pointers written out. Pointers that lead nowhere are shown
    as ``[E9 ?]``."""
    known = {item.number: item for item in evidence}
    text = _render(claims, known, excerpts=True)
    return text if len(text) <= _LONG_ANSWER else _render(claims, known, excerpts=False)


def _render(claims: Sequence[Claim], known: dict[int, Evidence], *, excerpts: bool) -> str:
    lines: list[str] = []
    for claim in claims:
        parts = [claim.text]
        for number in claim.pointers:
            item = known.get(number)
            if item is None:
                parts.append(f"[E{number} ?]")
                continue
            quoted = f': "{escape(excerpt(claim.text, item.text))}"' if excerpts else ""
            parts.append(f"[E{number} | {escape(item.title)} | {item.leaf_hash[:8]}{quoted}]")
        lines.append(" ".join(part for part in parts if part))
    return "\n".join(lines)


def excerpt(claim: str, passage: str) -> str:
    """The sentence of ``passage`` that shares most words with ``claim``, the first of equals, cut to ``EXCERPT``
    characters; the beginning of the passage where none shares any."""
    wanted = stems(telling_words(claim))
    best: Sentence | None = None
    most = 0
    for sentence in sentences(passage):
        shared = len(wanted & stems(telling_words(sentence.text)))
        if shared > most:
            best, most = sentence, shared
    text = " ".join((best.text if best else passage[: 2 * EXCERPT]).split())
    if len(text) > EXCERPT or best is None:
        text = text[: EXCERPT - 1].rstrip() + "…"
    return text


def cited_titles(answers: Iterable[str]) -> list[str]:
    """The distinct titles that finished answers cite, in the order given (nearest first), at most ``MAX_TITLES``."""
    found: dict[str, None] = {}
    for text in answers:
        for title in _RENDERED.findall(text):
            found.setdefault(_ESCAPED.sub(r"\1", title))
            if len(found) == MAX_TITLES:
                return list(found)
    return list(found)
