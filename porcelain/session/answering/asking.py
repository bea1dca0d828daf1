"""One question from beginning to end: find passages, look for an answer that is kept, ask, check, keep.

Nothing is written before the answer is whole and checked; then it is written at once. Who stops it before, or kills the
process, leaves nothing behind; who kills it right after leaves an answer that no turn uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct

from objstore.errors import CheckFailed, UsageError
from objstore.store import Store
from porcelain.providers.redaction import redact_text
from porcelain.session.answering import grounding
from porcelain.session.answering.answerers import PROMPT, Answerer, OnText, Request, hashed_messages
from porcelain.session.answering.answers import put_answer, serve, unverified_quotes
from porcelain.session.answering.cache_key import Dimensions, cache_key, dimensions
from porcelain.session.answering.event_stream import printable
from porcelain.session.answering.extract_answerer import ExtractAnswerer
from porcelain.session.answering.grounding import NO_SOURCES, Method, Mode, Verdict, check
from porcelain.session.answering.kinds import MAX_TEXT, Answer, AnswerClaim, AnswerSource
from porcelain.session.answering.pointers import cited_titles, parse_claims, render
from porcelain.session.documents.extractors import without_surrogates
from porcelain.session.documents.retrieval import Evidence, Limits, retrieve
from porcelain.session.documents.search_index import open_index

#: Lines of an answer that is kept; whoever writes more has not understood the task.
MAX_LINES = 200


class Options(Struct, frozen=True):
    """How a question is asked. ``retrieval_keywords`` are further words to look for; ``refresh`` asks again although an
    answer is kept; ``limits`` bound the passages."""

    retrieval_keywords: str = ""
    refresh: bool = False
    limits: Limits = Limits()


class Asked(Struct, frozen=True):
    """A question answered. ``question`` is what was kept of it: secrets replaced. ``from_cache`` says whether the
    answer was there already."""

    answer_id: str
    cache_key: str
    audit_mode: Mode
    verifier_method: Method
    question: str
    text: str
    sources: tuple[AnswerSource, ...]
    claims: tuple[AnswerClaim, ...]
    unverified_quotes: tuple[str, ...]
    created_at: str
    from_cache: bool


def policy(options: Options) -> dict[str, Any]:
    """The rules that an answer is held to, and the keywords, which the cache key leaves out."""
    return {
        "answer_mode": "pointer",
        "checker": grounding.CHECKER,
        "coverage_percent": grounding.COVERAGE_PERCENT,
        "entity_span": grounding.ENTITY_SPAN,
        "max_claims": grounding.MAX_CLAIMS,
        "max_pointers": grounding.MAX_POINTERS,
        "paraphrase_percent": grounding.PARAPHRASE_PERCENT,
        "prompt": PROMPT,
        "question_form": "equivalence-class-1",
        "retrieval_keywords": options.retrieval_keywords,
    }


def prepared_question(question: str) -> str:
    """A question as it is kept: secrets replaced, no blanks at the ends. Raises ``UsageError`` for one that is empty,
    too long, or holds NUL."""
    text = redact_text(without_surrogates(question)).strip()
    if not text:
        raise UsageError("the question is empty")
    if "\0" in text:
        raise UsageError("a question may not hold NUL")
    if len(text.encode()) > MAX_TEXT:
        raise UsageError(f"the question is longer than {MAX_TEXT} bytes")
    return text


def ask(
    store: Store,
    question: str,
    *,
    ancestors: Sequence[str] = (),
    answerer: Answerer | None = None,
    options: Options = Options(),  # noqa: B008
    on_text: OnText | None = None,
) -> Asked:
    """Answer ``question`` from the sources of ``store``, and keep the answer.

    ``ancestors`` are the texts of the answers above, nearest first: the titles they cite widen the search. ``answerer``
    is ``ExtractAnswerer`` unless given. ``on_text`` is given what an answerer writes while it writes; nothing when the
    answer is kept already. Raises ``UsageError`` for a question that is none, ``CheckFailed`` for an answer that is too
    long, ``StorageError``, and what the answerer raises; nothing is kept then.
    """
    question = prepared_question(question)
    answerer = answerer if answerer is not None else ExtractAnswerer()
    evidence = find_evidence(store, question, ancestors=ancestors, options=options)
    made_of = dimensions(
        document_roots=[item.document_root for item in evidence],
        question=question,
        profile=answerer.profile(),
        messages=hashed_messages(question, evidence),
        policy=policy(options),
    )
    kept = None if options.refresh else serve(store, cache_key(made_of))
    if kept is not None:
        return _asked(*kept, question=question, from_cache=True)
    raw = _raw(answerer, question, evidence, on_text)
    answer = _checked(raw, question, evidence, made_of, answerer.profile(), store.now())
    batch = store.batch()
    answer_id = put_answer(batch, answer)
    store.commit(batch)
    return _asked(answer_id, answer, question=question, from_cache=False)


def find_evidence(
    store: Store,
    question: str,
    *,
    ancestors: Sequence[str] = (),
    options: Options = Options(),  # noqa: B008
) -> list[Evidence]:
    """The passages that ``question`` would be answered from."""
    with open_index(store) as (index, _), store.snapshot() as view:
        return retrieve(
            index,
            view,
            question,
            titles=cited_titles(ancestors),
            keywords=options.retrieval_keywords,
            limits=options.limits,
        )


def _raw(answerer: Answerer, question: str, evidence: Sequence[Evidence], on_text: OnText | None) -> str:
    """What the answerer writes, made fit to be kept; nobody is asked where there is nothing to answer from."""
    if not evidence:
        return NO_SOURCES
    return redact_text(printable(answerer.answer(Request(question, tuple(evidence)), on_text)))


def _checked(
    raw: str,
    question: str,
    evidence: Sequence[Evidence],
    made_of: Dimensions,
    profile: Mapping[str, str],
    created_at: str,
) -> Answer:
    claims = parse_claims(raw)
    text = render(claims, evidence)
    if len(claims) > MAX_LINES or len(text.encode()) > MAX_TEXT:
        raise CheckFailed(f"the answer is too long to be kept: {len(claims)} lines")
    verdict = check(claims, {item.number: item.text for item in evidence})
    return Answer(
        answerer=dict(sorted(profile.items())),
        audit_mode=verdict.mode,
        cache_key=cache_key(made_of),
        claims=_claims(verdict),
        created_at=created_at,
        dimensions=made_of,
        limits=list(verdict.limits) or UNSET,
        question=question,
        sources=[_source(item) for item in evidence],
        text=text,
        verifier_method=verdict.method,
    )


def _claims(verdict: Verdict) -> list[AnswerClaim]:
    return [
        AnswerClaim(
            method=item.method,
            pointers=list(item.claim.pointers),
            status=item.status,
            text=item.claim.text,
            unverified=list(item.unverified) or UNSET,
        )
        for item in verdict.claims
    ]


def _source(item: Evidence) -> AnswerSource:
    return AnswerSource(
        chunk=item.chunk,
        document=item.document,
        document_root=item.document_root,
        leaf_hash=item.leaf_hash,
        number=item.number,
        position=item.position,
        title=item.title,
    )


def _asked(answer_id: str, answer: Answer, *, question: str, from_cache: bool) -> Asked:
    return Asked(
        answer_id=answer_id,
        cache_key=answer.cache_key,
        audit_mode=answer.audit_mode,
        verifier_method=answer.verifier_method,
        question=question,
        text=answer.text,
        sources=tuple(answer.sources),
        claims=tuple(answer.claims),
        unverified_quotes=tuple(unverified_quotes(answer)),
        created_at=answer.created_at,
        from_cache=from_cache,
    )
