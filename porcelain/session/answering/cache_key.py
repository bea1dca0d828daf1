"""The key under which an answer can be served again: SHA-256 of the canonical JSON of eight named values.

Whatever could change the answer is in one of the eight. How the passages were looked for is not: keywords and titles
that widened the search are seen only in which passages came out, never by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct

from objstore import merkle
from objstore.core import ObjectId
from objstore.fastcanonical import encode
from porcelain.session.documents.chunking import CHUNKING
from porcelain.session.documents.wording import CANONICALIZATION, question_form

#: Name of the shape of answers and their keys; a change of either needs another one.
SCHEMA = "objstore-answer-1"
#: What may stand in the options of a question without being part of its policy.
_NOT_POLICY = frozenset({"retrieval_keywords"})


class Dimensions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The eight values; hashes in hex."""

    canonicalization_version: str
    chunking_version: str
    conversation_hash: ObjectId
    governance_policy_hash: ObjectId
    model_profile_hash: ObjectId
    question_hash: ObjectId
    schema_version: str
    source_root: ObjectId


def cache_key(dimensions: Dimensions) -> str:
    """The key (64 hex) for these values."""
    return _hash({name: getattr(dimensions, name) for name in dimensions.__struct_fields__})


def dimensions(
    *,
    document_roots: Iterable[str],
    question: str,
    profile: Mapping[str, str],
    messages: Sequence[Mapping[str, str]],
    policy: Mapping[str, Any],
) -> Dimensions:
    """The eight values for a question: ``document_roots`` (hex) of the passages used, the profile of what answers, the
    messages that it gets, and the rules that the answer is held to (``retrieval_keywords`` among them is left out)."""
    return Dimensions(
        canonicalization_version=CANONICALIZATION,
        chunking_version=CHUNKING,
        conversation_hash=_hash([dict(message) for message in messages]),
        governance_policy_hash=_hash({k: v for k, v in policy.items() if k not in _NOT_POLICY}),
        model_profile_hash=_hash(dict(profile)),
        question_hash=sha256(question_form(question).encode()).hexdigest(),
        schema_version=SCHEMA,
        source_root=source_root(document_roots),
    )


def source_root(document_roots: Iterable[str]) -> str:
    """``merkle-v1`` root over the distinct document roots (hex), ascending; of one it is that one, of none zeros."""
    return merkle.root([bytes.fromhex(root) for root in sorted(set(document_roots))]).hex()


def _hash(value: Any) -> str:
    return sha256(encode(value)).hexdigest()
