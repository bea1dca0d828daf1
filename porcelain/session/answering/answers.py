"""Answers in a store: kept as a set under their cache key, served again, counted, and taken out of service.

``answer/<cache_key>/<answer id>`` is a set of refs, so that two stores unite without a choice: of several answers the
earliest is served, of equally early ones that with the smallest id. One that another store made is served only after
its passages were found to be those of its cache key, and its claims checked against them here. Which state an answer is
in are facts on ``answers/<store>``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UnsetType

from objstore import kinds
from objstore.batch import Batch
from objstore.chain import append_round, round_head
from objstore.errors import CheckFailed, NotFound, UsageError
from objstore.fold import Fold, fold_chains
from objstore.refs import ANY
from objstore.snapshot import Snapshot
from objstore.store import Store, load
from porcelain.session.answering.answerers import hashed_messages
from porcelain.session.answering.cache_key import dimensions
from porcelain.session.answering.grounding import check
from porcelain.session.answering.kinds import Answer, AnswerState, State, state_id
from porcelain.session.answering.pointers import Claim, render
from porcelain.session.documents.chunking import leaf
from porcelain.session.documents.documents import chunk_text
from porcelain.session.documents.retrieval import Evidence
from porcelain.session.documents.sources import live_sources, until_unmoved

CHAIN = "answers"
_STATES = "answers/"
_REFS = "answer/"
_HITS = b"answer-hits/"
_CHECKED = b"answer-checked/"
#: The dimensions that an answer's own content must come to, and what is wrong where it does not. The others are in its
#: key alone, which is the key of whoever asks.
_CHECKED_DIMENSIONS = {
    "question_hash": "the words of its question are",
    "source_root": "its documents are",
    "conversation_hash": "its passages are",
    "model_profile_hash": "the words for what answered are",
}


class Kept(NamedTuple):
    """An answer in a store: its id, the answer, its state and why, and how often and when it was last served here."""

    id: str
    answer: Answer
    state: State
    reason: str
    hits: int
    last_hit: str | None


def answer_ref(answer: Answer, answer_id: str) -> str:
    """The ref that keeps an answer."""
    return f"{_REFS}{answer.cache_key}/{answer_id}"


def put_answer(batch: Batch, answer: Answer) -> str:
    """Put an answer that was made and checked here, and the ref that keeps it; its id."""
    answer_id = batch.put("answer", kinds.encode(answer))
    batch.move_ref(answer_ref(answer, answer_id), answer_id, ANY, "answered")
    batch.set_local(_CHECKED + bytes.fromhex(answer_id), b"1")
    return answer_id


# -- states -----------------------------------------------------------------------------------------------------------


def _fold_states(view: Snapshot) -> Fold:
    return fold_chains(view, [key for _, key in view.refs(_STATES)])


def _state(view: Snapshot, fold: Fold, answer_id: str) -> tuple[State, str]:
    claim = fold.get(state_id(answer_id))
    if claim is None:
        return "live", ""
    frame: AnswerState = load(view, claim.winner, "answer-state")
    return frame.state, frame.reason


def answer_state(view: Snapshot, answer_id: str) -> tuple[State, str]:
    """The state of an answer and why it is in it."""
    return _state(view, _fold_states(view), answer_id)


def out_of_service(view: Snapshot) -> dict[str, tuple[State, str]]:
    """The ids of all answers that are not live, each with its state and why."""
    frames: list[AnswerState] = [load(view, key, "answer-state") for _, key in _fold_states(view).live()]
    return {frame.answer: (frame.state, frame.reason) for frame in frames if frame.state != "live"}


def set_state(store: Store, answer_ids: list[str], state: State, reason: str) -> int:
    """Say that answers are in ``state``, and why; how many were not before. Raises ``UsageError`` for a reason that is
    empty or over 1,000 characters."""
    if not reason.strip() or len(reason) > 1000:
        raise UsageError("a change of state needs a reason of up to 1,000 characters")
    return until_unmoved(lambda: _set_state(store, answer_ids, state, reason))


def _set_state(store: Store, answer_ids: list[str], state: State, reason: str) -> int:
    batch = store.batch()
    with store.snapshot() as view:
        fold = _fold_states(view)
        ids: list[str] = []
        for answer_id in dict.fromkeys(answer_ids):
            answer: Answer = load(view, bytes.fromhex(answer_id), "answer")
            if _state(view, fold, answer_id)[0] == state:
                continue
            claim = fold.get(state_id(answer_id))
            frame = AnswerState(
                answer=answer_id,
                cache_key=answer.cache_key,
                id=state_id(answer_id),
                reason=reason,
                revision=1 if claim is None else claim.revision + 1,
                state=state,
            )
            ids.append(batch.put("answer-state", kinds.encode(frame)))
        if ids:
            ref = _STATES + store.store_id
            append_round(batch, CHAIN, ref, round_head(view, ref), ids)
    store.commit(batch)
    return len(ids)


def falsify(store: Store, name: str, reason: str, *, state: State = "quarantined") -> list[str]:
    """Take answers out of service: all of a cache key, or one by its id (abbreviated or not). Their ids."""
    with store.snapshot() as view:
        found = [kept.id for kept in find_answers(view, name)]
    set_state(store, found, state, reason)
    return found


def mark_stale(store: Store, reason: str = "a source has changed or was removed") -> list[str]:
    """Mark as stale every live answer that rests on a document that is no source any more; their ids."""
    with store.snapshot() as view:
        live = {source.document.document_root for source in live_sources(view)}
        found = [
            kept.id
            for kept in all_answers(view)
            if kept.state == "live" and any(item.document_root not in live for item in kept.answer.sources)
        ]
    if found:
        set_state(store, found, "stale", reason)
    return found


# -- finding ----------------------------------------------------------------------------------------------------------


def _kept(view: Snapshot, prefix: str) -> Iterator[Kept]:
    fold = _fold_states(view)
    for _, key in view.refs(prefix):
        answer_id = key.hex()
        hits, last = _hits(view, answer_id)
        yield Kept(answer_id, load(view, key, "answer"), *_state(view, fold, answer_id), hits, last)


def all_answers(view: Snapshot) -> Iterator[Kept]:
    """Every answer in the store, by cache key and id."""
    yield from _kept(view, _REFS)


def answers_of(view: Snapshot, cache_key: str) -> list[Kept]:
    """The answers under a cache key, in the order in which they would be served."""
    return sorted(_kept(view, f"{_REFS}{cache_key}/"), key=lambda kept: (kept.answer.created_at, kept.id))


def find_answers(view: Snapshot, name: str) -> list[Kept]:
    """The answers that ``name`` means: a cache key, an answer's id, or the first digits (8 or more) of either. Raises
    ``NotFound``, or ``UsageError`` for digits that several cache keys or ids begin with."""
    digits = name.lower()
    if len(digits) < 8:
        raise UsageError(f"{name}: too short: type at least 8 digits of an answer's id or cache key")
    refs = [(ref.split("/")[1], key.hex()) for ref, key in view.refs(_REFS)]
    keys = {cache_key for cache_key, _ in refs if cache_key.startswith(digits)}
    ids = {answer_id: cache_key for cache_key, answer_id in refs if answer_id.startswith(digits)}
    if len(keys) + len(ids) > 1:
        raise UsageError(f"{name}: names several answers", hint="type more digits")
    if not keys and not ids:
        raise NotFound(f"{name[:80]}: no such answer", hint="list them with: objstore session answers list")
    found = answers_of(view, next(iter(keys or ids.values())))
    return [kept for kept in found if keys or kept.id in ids]


# -- serving ----------------------------------------------------------------------------------------------------------


def serve(store: Store, cache_key: str) -> tuple[str, Answer] | None:
    """The answer to be served for a cache key, counted, or None. One that was made elsewhere is checked first; where
    the check does not find what the answer says, it is marked as failed."""
    with store.snapshot() as view:
        live = [kept for kept in answers_of(view, cache_key) if kept.state == "live"]
        failed: dict[str, str] = {}
        served: Kept | None = None
        for kept in live:
            try:
                if view.local(_CHECKED + bytes.fromhex(kept.id)) is None:
                    recheck(view, kept.answer)
            except CheckFailed as error:
                failed[kept.id] = error.message
            except NotFound:
                continue  # a passage may still come
            else:
                served = kept
                break
    for answer_id, reason in failed.items():
        set_state(store, [answer_id], "failed", f"checked here: {reason}"[:1000])
    if served is None:
        return None
    batch = store.batch()
    batch.set_local(_CHECKED + bytes.fromhex(served.id), b"1")
    _count_hit(store, batch, served)
    store.commit(batch)
    return served.id, served.answer


def recheck(view: Snapshot, answer: Answer) -> None:
    """Check the claims of an answer again, against the passages that it names, and that those are the ones that its
    cache key stands for. Raises ``CheckFailed`` where they are not what the answer says, ``NotFound`` where a passage
    is not here."""
    evidence: list[Evidence] = []
    for source in answer.sources:
        text = chunk_text(view, source.chunk)
        if leaf(text).hex() != source.leaf_hash:
            raise CheckFailed(f"passage E{source.number} does not have the leaf hash that the answer states")
        evidence.append(
            Evidence(
                number=source.number,
                chunk=source.chunk,
                leaf_hash=source.leaf_hash,
                document=source.document,
                document_root=source.document_root,
                position=source.position,
                title=source.title,
                text=text,
            )
        )
    _check_dimensions(answer, evidence)
    claims = [Claim(claim.text, tuple(claim.pointers)) for claim in answer.claims]
    verdict = check(claims, {item.number: item.text for item in evidence})
    stated = [(claim.status, claim.method) for claim in answer.claims]
    if stated != [(claim.status, claim.method) for claim in verdict.claims]:
        raise CheckFailed("a claim is not supported as the answer states")
    if (verdict.mode, verdict.method) != (answer.audit_mode, answer.verifier_method):
        raise CheckFailed(f"the claims make it {verdict.mode}, and the answer states {answer.audit_mode}")
    if render(claims, evidence) != answer.text:
        raise CheckFailed("the text is not that of the claims")


def _check_dimensions(answer: Answer, evidence: list[Evidence]) -> None:
    """Raise ``CheckFailed`` unless question, passages and answerer are those of the cache key. Who asks made that key
    from passages found here; claims about others could all be true to them, and be no answer to what was asked."""
    stated = answer.dimensions
    made_of = dimensions(
        document_roots=[item.document_root for item in evidence],
        question=answer.question,
        profile=answer.answerer,
        messages=hashed_messages(answer.question, evidence),
        policy={},
    )
    for name, what in _CHECKED_DIMENSIONS.items():
        if getattr(made_of, name) != getattr(stated, name):
            raise CheckFailed(f"{what} not those of its cache key")


# -- counting ---------------------------------------------------------------------------------------------------------


def _hits(view: Snapshot, answer_id: str) -> tuple[int, str | None]:
    found = view.local(_HITS + bytes.fromhex(answer_id))
    if found is None:
        return 0, None
    value = json.loads(found)
    return value["count"], value["last"]


def _count_hit(store: Store, batch: Batch, kept: Kept) -> None:
    """Count that an answer was served again; on this machine only, and two processes at once may count as one."""
    value = {"count": kept.hits + 1, "last": store.now()}
    batch.set_local(_HITS + bytes.fromhex(kept.id), json.dumps(value, sort_keys=True).encode())


def unverified_quotes(answer: Answer) -> list[str]:
    """The quotations in an answer that do not stand where it says, in order, each once."""
    found: dict[str, None] = {}
    for claim in answer.claims:
        if not isinstance(claim.unverified, UnsetType):
            found |= dict.fromkeys(claim.unverified)
    return list(found)
