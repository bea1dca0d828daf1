"""How texts are compared: the canonical form ``norm-v1``, words, stems, sentences, and the form of a question.

Text is stored as it came; these forms are made for comparing only, and nothing here knows what a word means.
"""

# ruff: noqa: RUF001 - look-alike punctuation is what is told apart here
from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

#: Name of ``normalize``; a change of it needs another one.
CANONICALIZATION = "norm-v1"

#: Words of English that say how a sentence is built, not what it is about.
STOPWORDS = frozenset(
    """a about above after again against all also am an and any are as at be because been before being below between
    both but by can could did do does doing down during each either else even ever every few for from further had has
    have having he her here hers herself him himself his how i if in into is it its itself just least less let may me
    might mine more most much must my myself neither no nor not now of off often on once only onto or other others our
    ours ourselves out over own per rather same shall she should since so some still such than that the their theirs
    them themselves then there these they this those though through thus to too under until up upon us very was we
    were what whatever when where whether which while who whom whose why will with within without would yet you your
    yours yourself yourselves""".split()  # noqa: SIM905
    # What people say around a question.
    + """anything describe everything explain find give list know please say show something soon summarise summarize
    tell""".split()  # noqa: SIM905
)

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_BREAK = re.compile(
    r"""(?<=[.!?…])["'”’)\]]*\s+|(?<=[。！？])|\n[ \t]*\n\s*|\n(?=[ \t]*(?:[-*+#>|]|\d+[.)])[ \t])"""
)
_TRAILING = ".?!,;:？！。、…"
_ARTICLES = frozenset({"the", "a", "an"})


def normalize(text: str) -> str:
    """``norm-v1``: NFC, every run of white space one space, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def fold(text: str) -> str:
    """The form in which a quotation is looked for: ``norm-v1`` in lower case, with plain quotation marks."""
    return normalize(text).lower().translate(_PLAIN_QUOTES)


_PLAIN_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "‚": "'"})


def question_form(question: str) -> str:
    """The form of a question that its hash is taken over: equal for wordings that differ only in case, white space,
    articles and the punctuation at the end (mode *equivalence class*)."""
    plain = normalize(question)
    words = [word for word in plain.lower().rstrip(_TRAILING + " ").split(" ") if word not in _ARTICLES]
    return " ".join(words) or plain


def words(text: str) -> list[str]:
    """The words of ``text`` in lower case, in order."""
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


def telling_words(text: str) -> list[str]:
    """The distinct words of ``text`` that are no stop words, in order; all distinct words when that leaves none."""
    found = dict.fromkeys(words(text))
    return [word for word in found if word not in STOPWORDS] or list(found)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """``word`` (lower case) without the commonest English endings; other languages pass nearly unchanged."""
    word = word.replace("’", "'").removesuffix("'s")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "i"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] in "ey":
        word = word[:-1] + ("i" if word[-1] == "y" else "")
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls" else word


def stems(items: Iterable[str]) -> set[str]:
    """The distinct stems of some words."""
    return {stem(item) for item in items}


class Sentence(NamedTuple):
    """A sentence and where it stands: ``text`` is ``whole[start:end]``."""

    start: int
    end: int
    text: str


def sentences(whole: str) -> Iterator[Sentence]:
    """The sentences of ``whole`` in order: a text ends one at a full stop, an empty line or the next list item."""
    start = 0
    for found in _BREAK.finditer(whole):
        yield from _sentence(whole, start, found.end())
        start = found.end()
    yield from _sentence(whole, start, len(whole))


def _sentence(whole: str, start: int, end: int) -> Iterator[Sentence]:
    raw = whole[start:end]
    text = raw.strip()
    if text:
        start += len(raw) - len(raw.lstrip())
        yield Sentence(start, start + len(text), text)
