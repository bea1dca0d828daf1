"""``check_document`` agrees with ``check_object`` on every document, good or bad."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore import canonical
from objstore.errors import CheckFailed
from objstore.objects import check_object
from plumbing.interface.documents import check_document, check_documents

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
NEARLY_OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["text", "blob", "list", "unheard-of"]) | VALUES,
        "text": st.text(max_size=5) | VALUES,
        "items": st.lists(st.sampled_from(["0" * 64, "0" * 63]), max_size=2),
        "base64": st.just(""),
        "media_type": st.just("a/b"),
    },
)


def outcome(check, given) -> object:
    try:
        return check(given)
    except CheckFailed as error:
        return type(error), error.message


@given(VALUES | NEARLY_OBJECTS, st.booleans())
def test_it_gives_what_check_object_gives(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1).encode("utf-8", "surrogatepass")
    assert outcome(check_document, text) == outcome(lambda raw: check_object(canonical.parse(raw)), text)


def node(attrs: object) -> bytes:
    value = {"attrs": attrs, "id": "a", "kind": "b", "revision": 1, "type": "flow-node"}
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def nested(depth: int) -> dict[str, object]:
    return {"a": nested(depth - 1)} if depth else {}


GOOD = [
    b'{"text":"a","type":"text"}',
    b'{"items":["%s"],"type":"list"}' % (b"0" * 64),
    node({}),
    node({"a": [1, "b"]}),
    node({"e": "\u00e9"}),
    node(nested(62)),
]
BAD = [
    b"",
    b"{",
    b"\n",
    b"{}\n{}",
    b"1",
    b'{"type":"text"}',
    b'{"type":"unheard-of"}',
    b'{"text":"a", "type":"text"}',
    b'{"items":["%s"],"type":"list"}' % (b"0" * 63),
    b'{"items":["%s"],"type":"list"}' % (b"g" * 64),
    node(1),
    node({"a": 1.5}),
    node({"a": 2**53}),
    node({"\u00e9": 1}),
    node(nested(63)),
]


@given(st.lists(st.sampled_from(GOOD + BAD), max_size=6))
def test_many_at_once_are_what_each_is_alone(texts: list[bytes]) -> None:
    found = check_documents(texts)
    assert len(found) == len(texts)
    for text, one in zip(texts, found, strict=True):
        assert one is None or one == outcome(check_document, text)


@given(st.lists(st.sampled_from(GOOD), max_size=6))
def test_what_is_canonical_is_found_so_at_once(texts: list[bytes]) -> None:
    assert check_documents(texts) == [check_document(text) for text in texts]


@pytest.mark.parametrize("text", BAD)
def test_what_is_bad_or_of_another_form_is_left_to_be_looked_at_alone(text: bytes) -> None:
    assert check_documents([text]) == [None]
    assert outcome(check_document, text) == outcome(lambda raw: check_object(canonical.parse(raw)), text)


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"type":"text","type":"text","text":""}', b'{"text":"\xff","type":"text"}']
)
def test_it_refuses_what_is_not_on_the_domain(text: bytes) -> None:
    with pytest.raises(canonical.CanonicalError):
        check_document(text)
