"""``check_document`` agrees with ``check_object`` on every document, good or bad."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore import canonical
from objstore.errors import CheckFailed
from objstore.objects import check_object
from plumbing.documents import check_document

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


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"type":"text","type":"text","text":""}', b'{"text":"\xff","type":"text"}']
)
def test_it_refuses_what_is_not_on_the_domain(text: bytes) -> None:
    with pytest.raises(canonical.CanonicalError):
        check_document(text)
