"""The cache key: eight values, each of which changes it, and nothing else."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore import merkle
from porcelain.session.answering.cache_key import Dimensions, cache_key, dimensions, source_root

ROOTS = ["aa" * 32, "bb" * 32]
BASE: dict[str, Any] = {
    "document_roots": ROOTS,
    "question": "Who built the mill?",
    "profile": {"answerer": "extract"},
    "messages": [{"role": "user", "content": "x"}],
    "policy": {"checker": "lexical-1", "retrieval_keywords": ""},
}


def test_the_key_is_the_hash_of_one_json_object() -> None:
    made = dimensions(**BASE)
    text = json.dumps(msgspec.to_builtins(made), sort_keys=True, separators=(",", ":"))
    assert cache_key(made) == sha256(text.encode()).hexdigest()
    assert list(msgspec.to_builtins(made)) == sorted(msgspec.to_builtins(made))
    assert len(msgspec.to_builtins(made)) == 8


@pytest.mark.parametrize("name", Dimensions.__struct_fields__)
def test_every_dimension_counts(name: str) -> None:
    made = dimensions(**BASE)
    other = msgspec.structs.replace(made, **{name: "0" * 64})
    assert cache_key(other) != cache_key(made)


@pytest.mark.parametrize(
    ("change", "dimension"),
    [
        ({"document_roots": ROOTS[:1]}, "source_root"),
        ({"question": "Who owned the mill?"}, "question_hash"),
        ({"profile": {"answerer": "openai"}}, "model_profile_hash"),
        ({"messages": []}, "conversation_hash"),
        ({"policy": {"checker": "lexical-2"}}, "governance_policy_hash"),
    ],
)
def test_each_part_is_one_dimension(change: dict[str, Any], dimension: str) -> None:
    one, other = msgspec.to_builtins(dimensions(**BASE)), msgspec.to_builtins(dimensions(**BASE | change))
    assert [name for name in one if one[name] != other[name]] == [dimension]


@given(st.text())
def test_keywords_are_in_no_hash(keywords: str) -> None:
    policy = {**BASE["policy"], "retrieval_keywords": keywords}
    without = {k: v for k, v in policy.items() if k != "retrieval_keywords"}
    assert (
        dimensions(**BASE | {"policy": policy})
        == dimensions(**BASE | {"policy": without})
        == dimensions(**BASE)
    )


def test_wordings_of_one_question_share_a_hash() -> None:
    other = dimensions(**BASE | {"question": "  WHO built mill"})
    assert other.question_hash == dimensions(**BASE).question_hash


def test_the_source_root_is_over_the_distinct_roots_sorted() -> None:
    raw = [bytes.fromhex(root) for root in ROOTS]
    assert source_root(ROOTS) == source_root([*ROOTS[::-1], ROOTS[0]]) == merkle.root(raw).hex()
    assert source_root(ROOTS[:1]) == ROOTS[0]
    assert source_root([]) == "0" * 64
