from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from porcelain.flow.formats import gojson

TEXT = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from('<>&\u2028\u2029"\\\x00\b\f\x7f/')))


class Pair(Struct):
    key: str
    values: list[str]


def marshal(value: object, *, html: bool) -> bytes:
    """Go's rules, said in another way: the standard library's compact form and the escapes, one by one."""
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029" if html else "\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written.encode()


@given(TEXT, st.lists(TEXT))
def test_bytes_of_go(key: str, values: list[str]) -> None:
    pair = Pair(key, values)
    plain = gojson.encode(pair)
    expected = {"key": key, "values": values}
    assert gojson.escape_html(plain) == marshal(expected, html=True)
    assert gojson.escape_separators(plain) == marshal(expected, html=False)
    assert gojson.has_separators(plain) == (gojson.escape_separators(plain) != plain)
    assert gojson.string(key) == json.dumps(key, ensure_ascii=False)
