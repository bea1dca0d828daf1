"""The objects of answers: an answer with the passages it was given and what the check of it found, and the fact that
an answer is no longer to be served.

An answer names its own cache key by the eight values that the key is made of. It needs the passages, so that it can be
checked again wherever it goes; the documents they come from are only named.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from objstore.core import ObjectId
from objstore.errors import CheckFailed
from objstore.kinds import MAX_SAFE_INTEGER, Kind, register
from porcelain.session.answering.cache_key import Dimensions, cache_key
from porcelain.session.answering.grounding import Method, Mode, Status

Count = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
State = Literal["live", "failed", "stale", "quarantined"]

#: Bytes of UTF-8 in one text of an answer.
MAX_TEXT = 64 * 1024
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


class AnswerClaim(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of an answer: the numbers of the passages it points at, and what its check found."""

    method: Method
    pointers: list[Count]
    status: Status
    text: str
    unverified: list[str] | UnsetType = UNSET


class AnswerSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A passage that the answerer was given as number ``number``: its chunk, the document it stands in, where in it
    (from 0), and the title."""

    chunk: ObjectId
    document: ObjectId
    document_root: ObjectId
    leaf_hash: ObjectId
    number: Count
    position: Count
    title: str


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer as it was given. ``text`` is what a person reads. ``answerer`` names what answered, as its profile
    says; ``limits`` why every claim is supported and the mode is HYBRID all the same."""

    answerer: dict[str, str]
    audit_mode: Mode
    cache_key: ObjectId
    claims: list[AnswerClaim]
    created_at: str
    dimensions: Dimensions
    limits: list[str] | UnsetType = UNSET
    question: str
    sources: list[AnswerSource]
    text: str
    type: Literal["answer"] = "answer"
    verifier_method: Method


class AnswerState(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frame of ``answers/<store>``: from here on the answer is in this state, and why."""

    answer: ObjectId
    cache_key: ObjectId
    id: str
    reason: str
    revision: Annotated[int, Meta(ge=1, le=MAX_SAFE_INTEGER)]
    state: State
    type: Literal["answer-state"] = "answer-state"


def _check_answer(answer: Answer) -> None:
    if cache_key(answer.dimensions) != answer.cache_key:
        raise CheckFailed(f"answer {answer.cache_key[:16]}: its dimensions give another cache key")
    if _TIME.fullmatch(answer.created_at) is None:
        raise CheckFailed(
            f"answer {answer.cache_key[:16]}: created_at is not of the form 2026-01-31T23:59:59Z"
        )
    if [source.number for source in answer.sources] != list(range(1, len(answer.sources) + 1)):
        raise CheckFailed(f"answer {answer.cache_key[:16]}: its sources are not numbered from 1")


def state_id(answer_id: str) -> str:
    """The id of the fact that says in which state an answer is."""
    return f"state/{answer_id}"


def _check_state(frame: AnswerState) -> None:
    if frame.id != state_id(frame.answer):
        raise CheckFailed(f"{frame.id[:80]}: stands under another answer's id")


ANSWER = register(
    Kind(
        name="answer",
        struct=Answer,
        needs=lambda answer: list(dict.fromkeys(source.chunk for source in answer.sources)),
        names=lambda answer: list(dict.fromkeys(source.document for source in answer.sources)),
        check=_check_answer,
    )
)
STATE = register(
    Kind(name="answer-state", struct=AnswerState, names=lambda frame: [frame.answer], check=_check_state)
)
