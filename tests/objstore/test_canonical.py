"""Canonical JSON: one set of tests for both modules, and properties that hold them equal."""

from __future__ import annotations

import enum
import json
import sys
from collections import OrderedDict
from decimal import Decimal
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import pytest
import rfc8785
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from objstore import canonical as reference
from objstore import fastcanonical
from objstore.errors import CheckFailed, ObjstoreError

BOTH = pytest.mark.parametrize("module", [reference, fastcanonical], ids=["reference", "fast"])
MODULES = (reference, fastcanonical)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
KEYS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=8)
INTEGERS = st.integers(-reference.MAX_INTEGER, reference.MAX_INTEGER)
SCALARS = st.none() | st.booleans() | INTEGERS | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


def nested(depth: int, leaf: Any = 1) -> Any:
    """``leaf`` inside ``depth`` lists and objects."""
    value = leaf
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


def same(left: Any, right: Any) -> bool:
    """Equal in value and in every type (``1 == True`` in Python)."""
    return repr(left) == repr(right)


def outcome(function: Any, argument: Any) -> tuple[type[ObjstoreError], str] | str:
    """What a call comes to: the class and text of its error, or its result as text."""
    try:
        return repr(function(argument))
    except ObjstoreError as error:
        return type(error), str(error)


def label(part: Any) -> str:
    """What to call a case in the list of tests."""
    return part.__name__ if isinstance(part, type) else ascii(part)[:20] if isinstance(part, bytes) else ""


# The domain.


@given(VALUES)
def test_every_json_library_writes_the_same_bytes(value: Any) -> None:
    expected = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert msgspec.json.encode(value, order="sorted") == expected
    assert rfc8785.dumps(value) == expected
    for module in MODULES:
        assert module.encode(value) == expected


@given(VALUES)
def test_reading_gives_back_what_was_written(value: Any) -> None:
    for module in MODULES:
        data = module.encode(value)
        assert module.decode(data) == value
        assert same(module.decode(data), module.parse(data))
        assert module.canonicalize(data) == data
        assert module.encode(module.decode(data)) == data


@given(VALUES, st.booleans(), st.sampled_from([None, 1, "\t"]), st.randoms(use_true_random=False))
def test_any_writing_of_a_value_has_one_canonical_form(
    value: Any, ascii_only: bool, indent: Any, random: Any
) -> None:
    def shuffled(item: Any) -> Any:
        if isinstance(item, dict):
            keys = list(item)
            random.shuffle(keys)
            return {key: shuffled(item[key]) for key in keys}
        return [shuffled(each) for each in item] if isinstance(item, list) else item

    text = json.dumps(shuffled(value), ensure_ascii=ascii_only, indent=indent)
    data = f" \r\n\t{text}\n".encode()
    for module in MODULES:
        assert module.parse(data) == value
        assert module.canonicalize(data) == reference.encode(value)
        with pytest.raises(reference.NotCanonical):
            module.decode(data)


@BOTH
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, b"null"),
        (True, b"true"),
        ({}, b"{}"),
        ([], b"[]"),
        ("", b'""'),
        ({"": 0}, b'{"":0}'),
        ({"b": 1, "a": [True, None, -7], "B": {}}, b'{"B":{},"a":[true,null,-7],"b":1}'),
        ({"a b": 1, "a!": 2, "a~": 3, "a": 4}, b'{"a":4,"a b":1,"a!":2,"a~":3}'),
        (2**53 - 1, b"9007199254740991"),
        (-(2**53) + 1, b"-9007199254740991"),
        ('\x00\x08\t\n\x0b\x0c\r\x1f"\\/', rb'"\u0000\b\t\n\u000b\f\r\u001f\"\\/"'),
        ("\x7f\x80\u2028\ufeff<>&", '"\x7f\x80\u2028\ufeff<>&"'.encode()),
        ("e\u0301 \u00e9 \U0001f600 \U0010ffff", '"e\u0301 \u00e9 \U0001f600 \U0010ffff"'.encode()),
    ],
)
def test_known_bytes(module: Any, value: Any, expected: bytes) -> None:
    assert module.encode(value) == expected
    assert same(module.decode(expected), module.parse(expected))
    assert module.decode(expected) == value


@BOTH
def test_a_surrogate_pair_in_escapes_is_one_character(module: Any) -> None:
    assert module.parse(rb'"\uD83D\uDE00"') == "\U0001f600"
    assert module.canonicalize(rb'["\uD83D\uDE00\/\u0041"]') == '["\U0001f600/A"]'.encode()


# What is refused, each kind by an error of its own. (JSON text, class, start of the message)

REFUSED_TEXTS = [
    (b"1.5", reference.FloatRefused, "$: the number 1.5 is a float"),
    (b'{"a":[0,1,2,1.0]}', reference.FloatRefused, "$.a[3]: "),
    (b'{"a b":{"c-d":1E2}}', reference.FloatRefused, '$["a b"]["c-d"]: '),
    (b"-0.0", reference.FloatRefused, "$: "),
    (b"-0e1", reference.FloatRefused, "$: "),
    (b"1e400", reference.FloatRefused, "$: "),
    (b"[1." + b"5" * 9000 + b"]", reference.FloatRefused, "$[0]: "),
    (b"[NaN]", reference.NonFiniteRefused, "$[0]: NaN"),
    (b"Infinity", reference.NonFiniteRefused, "$: Infinity"),
    (b'{"x":-Infinity}', reference.NonFiniteRefused, "$.x: -Infinity"),
    (b"-0", reference.NegativeZero, "$: -0"),
    (b"[-0]", reference.NegativeZero, "$[0]: -0"),
    (b"[1,\n-0\n]", reference.NegativeZero, "$[1]: -0"),
    (b"9007199254740992", reference.IntegerRange, "$: the integer"),
    (b"[-9007199254740992]", reference.IntegerRange, "$[0]: "),
    (b"[18446744073709551616]", reference.IntegerRange, "$[0]: "),
    (b"[" + b"9" * 10_000 + b"]", reference.IntegerRange, "$[0]: "),
    (rb'{"t":"\ud800"}', reference.LoneSurrogate, "$.t: "),
    (rb'["\udc00\ud800"]', reference.LoneSurrogate, "$[0]: "),
    (rb'["\ud83dx\ude00"]', reference.LoneSurrogate, "$[0]: "),
    (rb'{"\ud800":1}', reference.KeyCharacters, "$: key"),
    ('{"a":{"é":1}}'.encode(), reference.KeyCharacters, '$.a: key "\\u00e9"'),
    (rb'{"a\n":1}', reference.KeyCharacters, "$: key"),
    (b'{"\x7f":1}', reference.KeyCharacters, "$: key"),
    (rb'{"\u0000":1}', reference.KeyCharacters, "$: key"),
    (b'{"a":1,"a":1}', reference.DuplicateKey, '$: key "a"'),
    (b'[{"b":{"a":1,"c":":","a":2}}]', reference.DuplicateKey, '$[0].b: key "a"'),
    (rb'{"a":"\u003a\u003A","\u0061":1}', reference.DuplicateKey, "$: key"),
    (rb'{"a":":","\u0061":"\u003a","b":"\u003A"}', reference.DuplicateKey, "$: key"),
    (b'{"a":[' + reference.encode(nested(64)) + b"]}", reference.TooDeep, "$.a[0][0].k[0].k"),
    (b"[" * 65 + b"]" * 65, reference.TooDeep, "$[0][0]"),
    (b"[" * 100_000 + b"]" * 100_000, reference.TooDeep, "$: nested deeper than 64 levels"),
    (b"[" * 100_000, reference.TooDeep, "$: "),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, reference.TooDeep, "$: "),
    (b'"' + b"a" * (1 << 20) + b'"', reference.TooLarge, "$: 1048578 bytes"),
    (b" " * (1 << 24), reference.TooLarge, "$: 16777216 bytes"),
    (b'"\xff"', reference.NotUtf8, "byte 1: "),
    (b'["ab\xed\xa0\x80"]', reference.NotUtf8, "byte 4: "),
    (b'"\xc0\x80"', reference.NotUtf8, "byte 1: "),
    ('"a"'.encode("utf-16"), reference.NotUtf8, "byte 0: "),
    (b"\xef\xbb\xbf1", reference.ByteOrderMark, "byte 0: "),
    (b"", reference.NotJson, "line 1 column 1: not JSON"),
    (b" \n ", reference.NotJson, "line 2 column 2: "),
    (b"[1,]", reference.NotJson, "line 1 column "),
    (b"{'a':1}", reference.NotJson, "line 1 column 2: "),
    (b'{"a":1,}', reference.NotJson, "line 1 column "),
    (b'{"a"}', reference.NotJson, "line 1 column "),
    (b"tru", reference.NotJson, "line 1 column 1: "),
    (b"[1\x0b]", reference.NotJson, "line 1 column "),
    (b"+1", reference.NotJson, "line 1 column 1: "),
    (b".5", reference.NotJson, "line 1 column 1: "),
    (b"[-]", reference.NotJson, "line 1 column 2: "),
    (b'"a\nb"', reference.NotJson, "line 1 column 3: "),
    (b'"\x01"', reference.NotJson, "line 1 column 2: "),
    (rb'"\x41"', reference.NotJson, "line 1 column 2: "),
    (rb'"\u12g4"', reference.NotJson, "line 1 column "),
    (b'"a', reference.NotJson, "line 1 column 1: "),
    (b"/* a */ 1", reference.NotJson, "line 1 column 1: "),
    (b"1 2", reference.TrailingData, "character 2: "),
    (b"{}\n{}", reference.TrailingData, "character 3: "),
    (b"01", reference.TrailingData, "character 1: "),
    (b"1\x0c", reference.TrailingData, "character 1: "),
    (b"null\x00", reference.TrailingData, "character 4: "),
    ("1\u00a0".encode(), reference.TrailingData, "character 1: "),
]


@BOTH
@pytest.mark.parametrize(("data", "error", "start"), REFUSED_TEXTS, ids=label)
def test_refused_text(module: Any, data: bytes, error: type[ObjstoreError], start: str) -> None:
    for function in (module.parse, module.decode, module.canonicalize):
        with pytest.raises(reference.CanonicalError) as caught:
            function(data)
        assert type(caught.value) is error
        assert str(caught.value).startswith(start)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 160


class Colour(enum.IntEnum):
    RED = 1


class Name(str):
    __slots__ = ()


class Pair(NamedTuple):
    a: int


class Shape(msgspec.Struct):
    a: int


HOLDS_ITSELF: list[Any] = []
HOLDS_ITSELF.append(HOLDS_ITSELF)

REFUSED_VALUES = [
    (1.0, reference.FloatRefused, "$: the number 1.0"),
    ({"a": [-0.0]}, reference.FloatRefused, "$.a[0]: "),
    (float("nan"), reference.NonFiniteRefused, "$: "),
    ([float("inf")], reference.NonFiniteRefused, "$[0]: "),
    ([-float("inf")], reference.NonFiniteRefused, "$[0]: "),
    (2**53, reference.IntegerRange, "$: "),
    (-(2**53), reference.IntegerRange, "$: "),
    ([10**5000], reference.IntegerRange, "$[0]: "),
    ({"a": ["\ud800"]}, reference.LoneSurrogate, "$.a[0]: "),
    ("\ud83d\ude00", reference.LoneSurrogate, "$: "),
    ({1: 2}, reference.KeyTypeRefused, "$: a key of type int"),
    ([{None: 2}], reference.KeyTypeRefused, "$[0]: a key of type NoneType"),
    ({Name("a"): 2}, reference.KeyTypeRefused, "$: a key of type Name"),
    ({"é": 2}, reference.KeyCharacters, "$: key"),
    ({"a\n": 2}, reference.KeyCharacters, "$: key"),
    ({"\ud800": 2}, reference.KeyCharacters, "$: key"),
    ((1, 2), reference.TypeRefused, "$: a value of type tuple"),
    ([Pair(1)], reference.TypeRefused, "$[0]: a value of type Pair"),
    (Colour.RED, reference.TypeRefused, "$: a value of type Colour"),
    (Name("a"), reference.TypeRefused, "$: a value of type Name"),
    (OrderedDict(a=1), reference.TypeRefused, "$: a value of type OrderedDict"),
    (b"a", reference.TypeRefused, "$: a value of type bytes"),
    ({1}, reference.TypeRefused, "$: a value of type set"),
    (Decimal(1), reference.TypeRefused, "$: a value of type Decimal"),
    (Shape(1), reference.TypeRefused, "$: a value of type Shape"),
    (nested(65), reference.TooDeep, "$"),
    (HOLDS_ITSELF, reference.TooDeep, "$[0][0]"),
    (nested(5000), reference.TooDeep, "$"),
    ("é" * (1 << 19), reference.TooLarge, "$: 1048578 bytes"),
    ([1] * (1 << 20), reference.TooLarge, "$: 2097153 bytes"),
]


@BOTH
@pytest.mark.parametrize(("value", "error", "start"), REFUSED_VALUES, ids=label)
def test_refused_value(module: Any, value: Any, error: type[ObjstoreError], start: str) -> None:
    with pytest.raises(reference.CanonicalError) as caught:
        module.encode(value)
    assert type(caught.value) is error
    assert str(caught.value).startswith(start)
    assert len(str(caught.value)) < 160


def test_every_error_is_tested_and_is_a_failed_check() -> None:
    classes = set(reference.CanonicalError.__subclasses__())
    tested = {error for _, error, _ in [*REFUSED_TEXTS, *REFUSED_VALUES]} | {reference.NotCanonical}
    assert classes == tested
    assert issubclass(reference.CanonicalError, CheckFailed)
    assert reference.CanonicalError("$", "why").exit_code == 1


@BOTH
@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b'{"b":1,"a":2}', 2),
        (b"[1, 2]", 3),
        (b"1\n", 1),
        (b" 1", 0),
        (rb'"\/"', 1),
        (rb'"\u000a"', 2),
        (rb'"\u00e9"', 1),
        (rb'"\u001F"', 6),
    ],
)
def test_good_json_of_another_form(module: Any, data: bytes, at: int) -> None:
    module.parse(data)
    with pytest.raises(reference.NotCanonical, match=f"^byte {at}: not the canonical form") as caught:
        module.decode(data)
    assert caught.value.where == f"byte {at}"


@BOTH
def test_the_limits_themselves_are_allowed(module: Any) -> None:
    deepest = nested(reference.MAX_DEPTH)
    assert module.decode(module.encode(deepest)) == deepest
    longest = "é" * (reference.MAX_SIZE // 2 - 1)
    data = module.encode(longest)
    assert len(data) == reference.MAX_SIZE
    assert module.decode(data) == longest
    escaped = json.dumps(longest).encode()
    assert len(escaped) > 3 * reference.MAX_SIZE - 10
    assert module.parse(escaped) == longest


@BOTH
def test_a_small_web_of_shared_lists_is_refused_before_it_is_unrolled(module: Any) -> None:
    web: list[Any] = [1]
    for _ in range(60):
        web = [web, web]
    with pytest.raises(reference.TooLarge):
        module.encode(web)


@BOTH
def test_an_error_spills_no_content(module: Any) -> None:
    secret = "correct horse battery staple " * 40
    for value in (
        {secret: 1.5},
        {secret: {secret: {secret: 2**60}}},
        {secret + "é": 1},
        {"a": secret + "\ud800"},
    ):
        with pytest.raises(reference.CanonicalError) as caught:
            module.encode(value)
        assert secret[:40] not in str(caught.value)
        assert len(str(caught.value)) < 130
    for text in ('{"a":"%s"x}', '["%s"', '"%s" 1', '{"%s":1,"%s":2}', '{"a":["%s",1.%s]}', '["%s",-0]'):
        with pytest.raises(reference.CanonicalError) as caught:
            module.parse(text.replace("%s", secret.strip() if "1.%s" not in text else "5" * 900).encode())
        assert secret[:40] not in str(caught.value)
        assert len(str(caught.value)) < 130


@BOTH
def test_the_path_in_a_long_error_keeps_both_ends(module: Any) -> None:
    value: Any = 1.5
    for at in range(30):
        value = {f"level{at}": value}
    with pytest.raises(reference.FloatRefused, match=r"^\$\.level29\.level2\.\.\..*\.level1\.level0: "):
        module.encode(value)


@BOTH
def test_a_full_stack_of_the_caller_is_not_blamed_on_the_text(module: ModuleType) -> None:
    def deeper() -> None:
        try:
            deeper()
        except RecursionError:
            for _ in range(3):
                try:
                    module.parse(b'{"a":[[1]]}')
                except RecursionError:
                    continue
            raise

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        with pytest.raises(RecursionError):
            deeper()
    finally:
        sys.setrecursionlimit(limit)


# The fast module is the reference, in result, class and text of the error.

SHORT_NUMBERS = st.sampled_from(["0", "-0", "1.5", "1e5", "-0.0", "1e400", "00", "-01", "1.", ".5", "-"])
LONG_NUMBERS = st.sampled_from(
    [str(number) for number in (2**53 - 1, 2**53, -(2**53), 1234567890123456, 2**64, -(2**63) - 1)]
)
NUMBERS = SHORT_NUMBERS | LONG_NUMBERS | st.sampled_from(["NaN", "Infinity", "-Infinity"])
ESCAPES = [r"\u003a", r"\u003A", r"\\u003a", r"\n", r"\/", r"\ud800", r"\udc00", r"\ud83d\ude00", r"\u0000"]
ODD_PIECES = ["2026-09-01", "1" * 16, "é", "\U0001f600", "\x7f", "\x01", "\t", r"\x", "\\", "\u2028"]
PIECES = st.sampled_from([*"abz:,[]{}-0/ ", *ESCAPES, *ODD_PIECES])
STRINGS = st.lists(PIECES, max_size=4).map(lambda parts: '"' + "".join(parts) + '"')
SPACES = st.sampled_from(["", "", "", " ", "\n", "\t\r", "\x0b", "\u00a0", "\x00"])
PLAIN = st.sampled_from(["1", "true", "null", '"a"', '"b:"', "[]", "{}"])


def _array(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(SPACES, st.lists(items, max_size=3), SPACES).map(
        lambda t: f"[{t[0]}{','.join(t[1])}{t[2]}]"
    )


def _object(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    keys = st.sampled_from(['"a"', '"\\u0061"', '"b"', '"c"']) | STRINGS
    members = st.lists(st.tuples(keys, SPACES, items).map(lambda t: f"{t[0]}{t[1]}:{t[2]}"), max_size=3)
    return st.tuples(SPACES, members).map(lambda t: f"{{{t[0]}{','.join(t[1])}}}")


JSON_LIKE = st.recursive(
    PLAIN | NUMBERS | STRINGS, lambda inner: _array(inner) | _object(inner), max_leaves=6
)


def assert_alike(data: bytes) -> None:
    for name in ("parse", "decode", "canonicalize"):
        assert outcome(getattr(fastcanonical, name), data) == outcome(getattr(reference, name), data)


@settings(max_examples=500)
@given(SPACES, JSON_LIKE, SPACES)
@example("", '{"a":"\\u003a","\\u0061":1,"b":"\\u003a"}', "")
@example("", '{"a":1234567890123456}', "")
@example("\ufeff", "1", "")
def test_fast_equals_reference_on_texts_near_the_domain(before: str, text: str, after: str) -> None:
    assert_alike((before + text + after).encode())


@settings(max_examples=200)
@given(VALUES, st.data())
def test_fast_equals_reference_on_damaged_bytes(value: Any, data: st.DataObject) -> None:
    text = bytearray(reference.encode(value))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
        assume(text)
    assert_alike(bytes(text))


def takes(data: bytes) -> bool:
    """Whether the reference takes it."""
    return not isinstance(outcome(reference.decode, data), tuple)


CANONICAL = VALUES.map(reference.encode)
LINES = st.sampled_from(
    [b"", b"\n", b"1\n2", b"1\n", b" 1", b"1.5", b"[" * 64 + b"]" * 64, b"[" * 65 + b"]" * 65]
)


@settings(max_examples=300)
@given(st.lists(CANONICAL | LINES | JSON_LIKE.map(str.encode), max_size=4))
@example([b"1\n2", b""])
@example([b"1", b"2\n3"])
def test_many_texts_are_canonical_where_each_is(texts: list[bytes]) -> None:
    assert fastcanonical.are_canonical(texts) == all(map(takes, texts))


@given(st.lists(CANONICAL, max_size=6))
def test_many_canonical_texts_are_taken(texts: list[bytes]) -> None:
    assert fastcanonical.are_canonical(texts)


ODD_SCALARS = st.sampled_from(
    [1.5, float("nan"), 2**53, 10**4000, "\ud800", b"a", (1,), Colour.RED, Name("x"), {1}]
)
ODD_KEYS = KEYS | st.sampled_from([1, None, "é", "\n", "\x7f", Name("x")])
ODD_VALUES = st.recursive(
    SCALARS | ODD_SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ODD_KEYS, inner, max_size=4),
    max_leaves=10,
)


@given(ODD_VALUES)
def test_fast_encode_equals_reference(value: Any) -> None:
    assert outcome(fastcanonical.encode, value) == outcome(reference.encode, value)


@given(st.integers(62, 67), st.booleans(), st.sampled_from(["", " "]))
def test_fast_equals_reference_around_the_depth_limit(depth: int, objects: bool, space: str) -> None:
    opening, closing = ('{"a":' + space, "}") if objects else ("[" + space, "]")
    assert_alike((opening * depth + "1" + closing * depth).encode())
