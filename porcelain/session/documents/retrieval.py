"""From a question to the passages that may answer it.

The words of the question are looked for all together first, and where that finds nothing the rarest of them one by
one. Titles that earlier answers cited, and keywords a person gave, add candidates and move them up; they are never part
of any hash. What comes out depends only on the store's sources and on what was asked.
"""

# ruff: noqa: RUF001 - look-alike punctuation is what is told apart here
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import sqrt

from msgspec import Struct

from objstore.snapshot import Snapshot
from porcelain.session.documents.chunking import leaf
from porcelain.session.documents.documents import chunk_text
from porcelain.session.documents.search_index import Hit, SearchIndex, quoted
from porcelain.session.documents.wording import STOPWORDS, stem, stems, telling_words, words

#: Passages that an answerer is given.
TOP_K = 8
#: Passages of one document among them, as long as others have any.
PER_SOURCE = 4
#: Candidates that a look-up of the question, and one of a title or of keywords, brings.
_CANDIDATES = 48
_FURTHER = 16
#: Words of a question that are looked for, longest words of it first when there are more.
_WORDS = 24
_WORD_LENGTH = 64
_FALLBACK_WORDS = 5
_COUNT_LIMIT = 20_000
_TITLE_WORDS = 12
#: Passages of a cited title that are taken although no word of the question stands in them: it may be a pronoun.
_UNASKED = 2
_TITLE_POINTS = 10.0
_BODY_POINTS = 0.6


class Evidence(Struct, frozen=True):
    """A passage as an answerer sees it: number from 1 (``E1``), ids of chunk and document, the chunk's leaf hash, the
    document's root (all hex), the chunk's number in the document from 0, title and text."""

    number: int
    chunk: str
    leaf_hash: str
    document: str
    document_root: str
    position: int
    title: str
    text: str


class Limits(Struct, frozen=True):
    """How many passages come out in all, and of one document."""

    top_k: int = TOP_K
    per_source: int = PER_SOURCE


class _Candidate:
    def __init__(self, hit: Hit) -> None:
        self.hit = hit
        self.whole = False
        self.bonus = 0.0
        self.score = 0.0
        self.text = ""


def retrieve(
    index: SearchIndex,
    view: Snapshot,
    question: str,
    *,
    titles: Sequence[str] = (),
    keywords: str = "",
    limits: Limits = Limits(),  # noqa: B008
) -> list[Evidence]:
    """The passages for ``question``, best first; none when nothing fits.

    ``titles`` are those that earlier answers cited, nearest first, ``keywords`` further words.
    """
    wanted = _searchable(telling_words(question))
    found: dict[str, _Candidate] = {}
    _search_question(index, wanted, found)
    for place, title in enumerate(titles):
        _search_title(index, title, wanted, _TITLE_POINTS - place, found)
    _search_keywords(index, _searchable(telling_words(keywords)), found)
    ranked = _rank(view, found.values(), wanted)
    return _number(_share(ranked, limits))


def _searchable(found: Iterable[str]) -> list[str]:
    """Those words that FTS5 may be asked for: no apostrophes, none of absurd length, and not too many."""
    parts = dict.fromkeys(part for word in found for part in words(word.replace("'", " ").replace("’", " ")))
    usable = [part for part in parts if len(part) <= _WORD_LENGTH and (len(part) > 1 or not part.isascii())]
    return sorted(usable, key=lambda part: -len(part))[:_WORDS] if len(usable) > _WORDS else usable


def _search_question(index: SearchIndex, wanted: list[str], found: dict[str, _Candidate]) -> None:
    if not wanted:
        return
    for hit in index.search(quoted(wanted, "AND"), _CANDIDATES):
        found.setdefault(hit.chunk, _Candidate(hit)).whole = True
    if found or len(wanted) < 3:
        return
    counted = sorted((index.count(quoted([word], "OR"), _COUNT_LIMIT), word) for word in wanted)
    rarest = [word for count, word in counted if count][:_FALLBACK_WORDS]
    if rarest:
        for hit in index.search(quoted(rarest, "OR"), _CANDIDATES):
            found.setdefault(hit.chunk, _Candidate(hit))


def _search_title(
    index: SearchIndex, title: str, wanted: list[str], points: float, found: dict[str, _Candidate]
) -> None:
    parts = _searchable(dict.fromkeys(words(title)))[:_TITLE_WORDS]
    if not parts:
        return
    named = f"title : ({quoted(parts, 'AND')})"
    hits = index.search(f"{named} AND ({quoted(wanted, 'OR')})", _FURTHER) if wanted else []
    if not hits:
        # Nothing was asked for that stands there: only how near the title is counts.
        hits = [hit._replace(rank=0.0) for hit in index.search(named, _UNASKED)]
    for hit in hits:
        candidate = found.setdefault(hit.chunk, _Candidate(hit))
        candidate.whole = True
        candidate.bonus = max(candidate.bonus, points)


def _search_keywords(index: SearchIndex, keywords: list[str], found: dict[str, _Candidate]) -> None:
    if not keywords:
        return
    hits = index.search(quoted(keywords, "AND"), _FURTHER)
    for hit in hits or index.search(quoted(keywords, "OR"), _FURTHER):
        candidate = found.setdefault(hit.chunk, _Candidate(hit))
        candidate.whole = True
        matching = stems(keywords) & stems(words(hit.title))
        candidate.bonus = max(candidate.bonus, min(_TITLE_POINTS, 5.0 * len(matching)) + 1.0)


def _rank(view: Snapshot, candidates: Iterable[_Candidate], wanted: Sequence[str]) -> list[_Candidate]:
    """Those candidates in which enough of the question stands, best first."""
    asked = stems(wanted)
    enough = len(asked) if len(asked) <= 2 else -(-2 * len(asked) // 3)
    kept: list[_Candidate] = []
    for candidate in candidates:
        candidate.text = chunk_text(view, candidate.hit.chunk)
        body = _counted(candidate.text)
        in_title = asked & stems(word for word in words(candidate.hit.title) if word not in STOPWORDS)
        present = {word for word in asked if body[word]} | in_title
        if not candidate.whole and len(present) < enough:
            continue
        candidate.score = (
            _TITLE_POINTS * len(in_title)
            + candidate.bonus
            + _BODY_POINTS * sum(sqrt(body[word]) for word in sorted(asked))
            - candidate.hit.rank
        )
        kept.append(candidate)
    return sorted(kept, key=lambda c: (-c.score, c.hit.document_root, c.hit.position))


def _counted(text: str) -> Counter[str]:
    body: Counter[str] = Counter()
    for word, times in Counter(words(text)).items():
        body[stem(word)] += times
    return body


def _share(ranked: Sequence[_Candidate], limits: Limits) -> list[_Candidate]:
    """The best ``top_k``, no document having more than its share while others have passages left."""
    taken: list[_Candidate] = []
    over: list[_Candidate] = []
    count: Counter[str] = Counter()
    for candidate in ranked:
        count[candidate.hit.document_root] += 1
        (taken if count[candidate.hit.document_root] <= limits.per_source else over).append(candidate)
    return (taken + over)[: limits.top_k]


def _number(candidates: Sequence[_Candidate]) -> list[Evidence]:
    return [
        Evidence(
            number=number,
            chunk=candidate.hit.chunk,
            leaf_hash=leaf(candidate.text).hex(),
            document=candidate.hit.document,
            document_root=candidate.hit.document_root,
            position=candidate.hit.position,
            title=candidate.hit.title,
            text=candidate.text,
        )
        for number, candidate in enumerate(candidates, 1)
    ]
