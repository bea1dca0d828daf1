"""Checking an answer against the passages it cites, by words alone: no model judges another.

A claim is supported when its pointers lead to passages in which one of four things is found, tried in this order:

- ``quote``: every text that the claim puts between double quotation marks stands there word for word;
- ``span``: the whole claim stands there word for word;
- ``entity``: at least three names of several words each stand there, close together, and no name of the claim is
  missing;
- ``paraphrase``: at least 85 of 100 of its telling words and numbers, four at least, stand in one run of three
  sentences.

For all of them the numbers and names of the claim must stand in what it cites, and for the last two it must say *not*
where the passage does. This shows that the words are there. It does not show that the claim follows from them.
"""

# ruff: noqa: RUF001 - look-alike punctuation is what is told apart here
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from porcelain.session.answering.pointers import Claim
from porcelain.session.documents.wording import STOPWORDS, fold, normalize, sentences, stem, stems, words

#: Name of these rules; a change of any of them needs another one.
CHECKER = "lexical-1"
#: More claims than this, or more pointers in one, and the whole is HYBRID at best.
MAX_CLAIMS = 12
MAX_POINTERS = 2
COVERAGE_PERCENT = 30
PARAPHRASE_PERCENT = 85
PARAPHRASE_WORDS = 4
ENTITIES = 3
ENTITY_SPAN = 300
_WINDOW = 3
_COLLAPSE = 5

Mode = Literal["STRICT", "HYBRID", "UNGROUNDED"]
Method = Literal["quote", "span", "entity", "paraphrase", "none"]
Status = Literal[
    "EVIDENCE_LINKED",
    "UNKNOWN_EVIDENCE_ID",
    "CITATION_MISMATCH",
    "NO_EVIDENCE_POINTER",
    "SCHEMA_INVALID",
    "REFUSAL",
]
#: From what binds a claim most closely to its passage to what binds it least.
_STRENGTH: tuple[Method, ...] = ("quote", "span", "entity", "paraphrase", "none")


class Checked(Struct, frozen=True):
    """A claim with what was found: its status, by which method, and quotations of it that are not where it points."""

    claim: Claim
    status: Status
    method: Method
    unverified: tuple[str, ...] = ()


class Verdict(Struct, frozen=True):
    """What the check of a whole answer found. ``method`` is the weakest that a supported claim needed; ``quotes`` and
    ``verified`` count claims; ``limits`` says why it is HYBRID though every claim is supported."""

    mode: Mode
    method: Method
    claims: tuple[Checked, ...]
    quotes: int
    verified: int
    unverified_quotes: tuple[str, ...]
    limits: tuple[str, ...]


def check(claims: Sequence[Claim], passages: Mapping[int, str]) -> Verdict:
    """Check ``claims`` against ``passages``, the texts by number that they may cite."""
    found = tuple(check_claim(claim, passages) for claim in claims)
    verified = [item for item in found if item.status == "EVIDENCE_LINKED"]
    limits = _limits(claims, found)
    if not verified or all(item.status in ("REFUSAL", "SCHEMA_INVALID") for item in found):
        mode: Mode = "UNGROUNDED"
    elif len(verified) == len(found) and not limits:
        mode = "STRICT"
    else:
        mode = "HYBRID"
    method: Method = max((item.method for item in verified), key=_STRENGTH.index, default="none")
    unverified = dict.fromkeys(quote for item in found for quote in item.unverified)
    return Verdict(mode, method, found, len(found), len(verified), tuple(unverified), tuple(limits))


def _limits(claims: Sequence[Claim], found: Sequence[Checked]) -> list[str]:
    limits: list[str] = []
    if len(claims) > MAX_CLAIMS:
        limits.append("many-claims")
    if any(len(claim.pointers) > MAX_POINTERS for claim in claims):
        limits.append("many-pointers")
    if sum(item.status == "NO_EVIDENCE_POINTER" for item in found) >= _COLLAPSE:
        limits.append("format-collapse")
    return limits


def check_claim(claim: Claim, passages: Mapping[int, str]) -> Checked:
    """Check one claim; of more than two pointers only the first two count."""
    if not words(claim.text):
        return Checked(claim, "SCHEMA_INVALID", "none")
    cited = [passages[number] for number in claim.pointers[:MAX_POINTERS] if number in passages]
    if len(cited) < len(claim.pointers[:MAX_POINTERS]):
        return Checked(claim, "UNKNOWN_EVIDENCE_ID", "none", tuple(_quotes(claim.text)))
    if not cited:
        status: Status = "REFUSAL" if is_refusal(claim.text) else "NO_EVIDENCE_POINTER"
        return Checked(claim, status, "none", tuple(_quotes(claim.text)))
    folded = [fold(text) for text in cited]
    missing = tuple(quote for quote in _quotes(claim.text) if not _stands(quote, folded))
    method = "none" if missing else _method(claim.text, cited, folded)
    if method == "none":
        refused = is_refusal(claim.text)
        return Checked(claim, "REFUSAL" if refused else "CITATION_MISMATCH", "none", missing)
    return Checked(claim, "EVIDENCE_LINKED", method)


def _method(text: str, cited: Sequence[str], folded: Sequence[str]) -> Method:
    together = set().union(*(_anchor_words(passage) for passage in cited))
    if not _has_span(text, folded):
        if not _anchors(text) <= together or not _covers(text, cited):
            return "none"
        if _quotes(text):
            return "quote"
        if is_refusal(text):
            return "none"
        if _has_entities(text, folded) and _negations_agree(text, cited):
            return "entity"
        return "paraphrase" if _is_paraphrase(text, cited) else "none"
    return "quote" if _quotes(text) else "span"


# -- word for word ----------------------------------------------------------------------------------------------------

_QUOTED = re.compile(r'"([^"]+)"')
_EDGES = ".,;:!?…\"' "


def _quotes(text: str) -> list[str]:
    """What stands between double quotation marks, first and second, third and fourth, and so on; single words are no
    quotations."""
    return [quote for found in _QUOTED.findall(_straight(text)) if len(words(quote := normalize(found))) >= 2]


def _straight(text: str) -> str:
    return text.replace("“", '"').replace("”", '"').replace("„", '"')


def _stands(part: str, folded: Sequence[str]) -> bool:
    """Whether ``part`` stands word for word in one of the passages (given folded), from word to word."""
    wanted = fold(part).strip(_EDGES)
    if not wanted:
        return False
    pattern = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
    return any(pattern.search(passage) for passage in folded)


def _has_span(text: str, folded: Sequence[str]) -> bool:
    return len(words(text)) >= 3 and (
        _stands(text, folded) or _stands(_straight(text).replace('"', ""), folded)
    )


# -- numbers and names ------------------------------------------------------------------------------------------------

_NUMERAL = re.compile(r"(?<![\w.,])\d[\d.,]*")
_NUMBER_WORDS = {
    name: str(value)
    for value, name in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen twenty""".split()  # noqa: SIM905
    )
} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "seventy": "70",
    "eighty": "80",
    "ninety": "90",
}
_NAME = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def _numbers(text: str) -> set[str]:
    return {found.rstrip(".,").replace(",", "") for found in _NUMERAL.findall(normalize(text))}


def _anchors(text: str) -> set[str]:
    """What a claim cannot do without: its numbers, and the words that it writes with a capital letter although they do
    not begin a sentence."""
    found = _numbers(text)
    for sentence in sentences(normalize(text)):
        for place, name in enumerate(_NAME.findall(sentence.text)):
            if place and name[0].isupper() and name.lower() not in STOPWORDS:
                found.add(stem(name.lower()))
    return found


def _anchor_words(passage: str) -> set[str]:
    plain = words(passage)
    return (
        _numbers(passage)
        | {_NUMBER_WORDS[word] for word in plain if word in _NUMBER_WORDS}
        | stems([*plain, *(name.lower() for name in _NAME.findall(normalize(passage)))])
    )


def _entities(text: str) -> list[str]:
    """The names of several capitalised words, in order."""
    found: list[str] = []
    run: list[str] = []
    for name in [*normalize(text).split(" "), ""]:
        bare = name.strip(".,;:!?…\"'()[]“”’")
        if bare and bare[0].isupper():
            run.append(bare)
        if not bare or not bare[0].isupper() or name != bare:
            if run and run[0].lower() in STOPWORDS:
                del run[0]
            if len(run) > 1:
                found.append(" ".join(run))
            run = []
    return list(dict.fromkeys(found))


def _has_entities(text: str, folded: Sequence[str]) -> bool:
    names = [fold(name) for name in _entities(text)]
    if len(names) < ENTITIES:
        return False
    for passage in folded:
        places = sorted(
            (found.start(), name)
            for name in names
            for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", passage)
        )
        for index, (start, _) in enumerate(places):
            near = {name for at, name in places[index:] if at - start <= ENTITY_SPAN}
            if len(near) == len(names):
                return True
    return False


# -- words ------------------------------------------------------------------------------------------------------------


def _content(text: str) -> set[str]:
    # Numbers are looked for by themselves, in whatever form they are written.
    return {
        stem(word)
        for word in words(text)
        if len(word) >= 4 and word not in STOPWORDS and not word[0].isdigit()
    }


def _covers(text: str, cited: Sequence[str]) -> bool:
    """Whether at least 30 of 100 of the claim's words stand anywhere in what it cites; of three or fewer, one."""
    wanted = _content(text) or stems(words(text))
    present = wanted & set().union(*(stems(words(passage)) for passage in cited))
    if len(wanted) <= 3:
        return bool(present)
    return 100 * len(present) >= COVERAGE_PERCENT * len(wanted)


_NEGATIONS = frozenset(
    {"no", "not", "never", "none", "neither", "nor", "without", "cannot", "nobody", "nothing"}
)


class _Part(NamedTuple):
    """A sentence of a passage: its stems, and whether it denies something."""

    stems: set[str]
    negative: bool


def _is_negative(text: str) -> bool:
    return any(word in _NEGATIONS or word.replace("’", "'").endswith("n't") for word in words(text))


def _parts(passage: str) -> list[_Part]:
    return [
        _Part(stems(words(item.text)) | _marked_numbers(item.text), _is_negative(item.text))
        for item in sentences(passage)
    ]


def _marked_numbers(text: str) -> set[str]:
    """The numbers of a text, in digits, so marked that no word is one."""
    named = {_NUMBER_WORDS[word] for word in words(text) if word in _NUMBER_WORDS}
    return {f"#{number}" for number in _numbers(text) | named}


def _agrees(run: Sequence[_Part], wanted: set[str], negative: bool) -> bool:
    """Whether the sentences of ``run`` that share most with the claim deny something if, and only if, it does."""
    most = max((len(part.stems & wanted) for part in run), default=0)
    return most > 0 and all(part.negative is negative for part in run if len(part.stems & wanted) == most)


def _negations_agree(text: str, cited: Sequence[str]) -> bool:
    wanted, negative = _content(text), _is_negative(text)
    return any(_agrees(_parts(passage), wanted, negative) for passage in cited)


def _is_paraphrase(text: str, cited: Sequence[str]) -> bool:
    """Whether the claim's telling words stand together in the passages: in the best run of sentences of each."""
    wanted, negative = _content(text) | _marked_numbers(text), _is_negative(text)
    if len(wanted) < PARAPHRASE_WORDS:
        return False
    found: set[str] = set()
    for passage in cited:
        parts = _parts(passage)
        runs = [parts[at : at + size] for at in range(len(parts)) for size in range(1, _WINDOW + 1)]
        shared = (
            wanted & set().union(*(part.stems for part in run))
            for run in runs
            if _agrees(run, wanted, negative)
        )
        found |= max(shared, key=len, default=set())
    return 100 * len(found) >= PARAPHRASE_PERCENT * len(wanted)


# -- refusals ---------------------------------------------------------------------------------------------------------

#: What an answerer is told to write when the passages do not answer the question.
REFUSAL = "NO ANSWER IN THE SOURCES"
#: What stands as the answer where no passage was found to ask with.
NO_SOURCES = "No source was found for this question."
_REFUSAL = re.compile(
    r"""
    ^\W*no\ (?:answer|source\ was\ found)\b
    | \b(?:i|we)\ (?:do\ not|don't|cannot|can't|could\ not|couldn't|am\ (?:not\ able|unable)\ to)
      \ (?:know|answer|find|say|tell|determine)
    | \b(?:is|are|was|were)\ (?:not|n't)\ (?:mentioned|stated|specified|given|provided|answered|found)\b
    | \b(?:sources?|passages?|evidence|documents?|texts?|context)\b.{0,40}
      \b(?:do(?:es)?|did)\ (?:not|n't)\ (?:say|mention|state|contain|answer|provide|include|specify|tell|give)
    | \b(?:insufficient|not\ enough|no\ (?:relevant\ )?)\ ?(?:information|evidence|source)
    """,
    re.VERBOSE,
)


def is_refusal(text: str) -> bool:
    """Whether a line says that it has no answer."""
    return _REFUSAL.search(fold(text)) is not None
