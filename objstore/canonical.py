"""Canonical JSON (``canon-json-1``): one value, one text, so that a digest is a fact about the content.

The canonical text has sorted keys, no white space, no escapes but the needed ones, and is UTF-8. The domain
is kept so narrow that every common JSON library writes the same bytes on it, and that they equal RFC 8785:
null, booleans, integers within +-(2**53 - 1), strings of Unicode scalar values, lists, objects with printable
ASCII keys. Everything else is refused, never turned into something near it.

This module is the reference and needs the standard library only; ``objstore.fastcanonical`` has the same
functions for work on many objects.
"""

from __future__ import annotations

import json
import re

from objstore.errors import CheckFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    #: The way from the top to a value: the way to its parent and its key or index; None at the top.
    _Path = tuple[Any, str | int] | None

#: Lists and objects that may stand inside one another; a scalar by itself has depth 0.
MAX_DEPTH = 64
#: Bytes of canonical text.
MAX_SIZE = 1024 * 1024
#: Bytes of JSON text that ``parse`` reads: escapes alone can make a text six times its canonical length.
MAX_TEXT = 8 * MAX_SIZE
#: Largest integer, of either sign, that every JSON library keeps exactly (RFC 7493).
MAX_INTEGER = 2**53 - 1

_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_WHITE_SPACE = " \t\n\r"
_QUOTED = 24
_WHERE = 48


class CanonicalError(CheckFailed):
    """A value or text off the domain. ``where`` is a path such as ``$.parts[3].size``, or a position."""

    def __init__(self, where: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{where}: {reason}", hint=hint)
        self.where = where


class FloatRefused(CanonicalError):
    """A number with a fraction or an exponent."""


class NonFiniteRefused(CanonicalError):
    """NaN or an infinity."""


class NegativeZero(CanonicalError):
    """The integer ``-0``."""


class IntegerRange(CanonicalError):
    """An integer outside +-(2**53 - 1)."""


class LoneSurrogate(CanonicalError):
    """A string with half of a surrogate pair, which is no Unicode text."""


class KeyTypeRefused(CanonicalError):
    """An object key that is not exactly a string."""


class KeyCharacters(CanonicalError):
    """An object key with a character outside printable ASCII."""


class DuplicateKey(CanonicalError):
    """An object that names one key twice."""


class TypeRefused(CanonicalError):
    """A Python value of any other type, subclasses of the allowed ones included."""


class TooDeep(CanonicalError):
    """More than ``MAX_DEPTH`` lists and objects inside one another (a value that holds itself, too)."""


class TooLarge(CanonicalError):
    """More than ``MAX_SIZE`` bytes of canonical text, or ``MAX_TEXT`` of any text."""


class NotUtf8(CanonicalError):
    """Bytes that are not UTF-8."""


class ByteOrderMark(CanonicalError):
    """A text that starts with a byte order mark."""


class NotJson(CanonicalError):
    """A text that is not JSON."""


class TrailingData(CanonicalError):
    """Something after the end of the JSON value."""


class NotCanonical(CanonicalError):
    """Good JSON, but not in its canonical form."""


class _Unfit:
    """Stands in a parsed value for what the walk must refuse, so that the error can name the path to it."""

    __slots__ = ("error", "hint", "reason")

    def __init__(self, error: type[CanonicalError], reason: str, hint: str | None = None) -> None:
        self.error = error
        self.reason = reason
        self.hint = hint


_FLOAT_HINT = "write a decimal string, or an integer in a smaller unit"
_RANGE_REASON = "the integer lies outside -(2^53-1) .. 2^53-1"
_RANGE_HINT = "write it as a string"


def _clip(text: str) -> str:
    """``text`` as a quoted ASCII string, short enough for an error that must not spill content."""
    return json.dumps(text if len(text) <= _QUOTED else text[:_QUOTED] + "...")


def _show(path: _Path) -> str:
    steps = []
    while path is not None:
        path, step = path
        if isinstance(step, int):
            steps.append(f"[{step}]")
        elif len(step) <= _QUOTED and _PLAIN_KEY.fullmatch(step):
            steps.append(f".{step}")
        else:
            steps.append(f"[{_clip(step)}]")
    text = "$" + "".join(reversed(steps))
    return text if len(text) <= _WHERE else f"{text[:16]}...{text[19 - _WHERE :]}"


def _check(value: object, path: _Path, depth: int, room: int) -> int:
    """Raise for the first thing in ``value`` that canonical JSON refuses.

    ``room`` counts down the items seen: each takes a byte of text at least, so a small web of lists that hold
    one another many times over is refused before it is unrolled. Returns what is left of it.
    """
    if type(value) is str:
        if not value.isascii() and _SURROGATE.search(value):
            raise LoneSurrogate(
                _show(path), "the string holds a lone surrogate", hint="replace it by U+FFFD before storing"
            )
    elif type(value) is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise IntegerRange(_show(path), _RANGE_REASON, hint=_RANGE_HINT)
    elif type(value) is dict:
        room = _enter(value, path, depth, room)
        for key, item in value.items():
            if type(key) is not str:
                raise KeyTypeRefused(_show(path), f"a key of type {type(key).__name__[:40]}, not str")
            if not (key.isascii() and key.isprintable()):
                raise KeyCharacters(_show(path), f"key {_clip(key)} holds characters outside printable ASCII")
            room = _check(item, (path, key), depth + 1, room)
    elif type(value) is list:
        room = _enter(value, path, depth, room)
        for index, item in enumerate(value):
            room = _check(item, (path, index), depth + 1, room)
    elif value is not None and type(value) is not bool:
        raise _refusal(value, path)
    return room


def _enter(container: list[Any] | dict[Any, Any], path: _Path, depth: int, room: int) -> int:
    if depth == MAX_DEPTH:
        raise TooDeep(_show(path), f"nested deeper than {MAX_DEPTH} levels")
    if len(container) > room:
        raise TooLarge(_show(path), f"more than {MAX_SIZE} bytes of canonical JSON")
    return room - len(container)


def _refusal(value: object, path: _Path) -> CanonicalError:
    """The error for a value of none of the allowed types."""
    if type(value) is _Unfit:
        return value.error(_show(path), value.reason, hint=value.hint)
    if type(value) is float:
        if value - value != 0:
            return NonFiniteRefused(_show(path), "NaN and infinities are not JSON", hint=_FLOAT_HINT)
        return FloatRefused(_show(path), f"the number {value!r} is a float", hint=_FLOAT_HINT)
    return TypeRefused(_show(path), f"a value of type {type(value).__name__[:40]} is not JSON")


def check(value: object) -> None:
    """Raise the ``CanonicalError`` for the first thing in ``value`` that is outside the domain."""
    _check(value, None, 0, MAX_SIZE)


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def encode(value: object) -> bytes:
    """Canonical bytes of ``value``; raises a ``CanonicalError`` for what is outside the domain."""
    check(value)
    data = _ENCODER.encode(value).encode()
    if len(data) > MAX_SIZE:
        raise TooLarge("$", f"{len(data)} bytes of canonical JSON; at most {MAX_SIZE} are allowed")
    return data


def _integer(text: str) -> int | _Unfit:
    if text == "-0":
        return _Unfit(NegativeZero, "-0 is not an integer that every JSON library keeps", "write 0")
    if len(text) > 17 or not -MAX_INTEGER <= (number := int(text)) <= MAX_INTEGER:
        return _Unfit(IntegerRange, _RANGE_REASON, _RANGE_HINT)
    return number


def _fraction(text: str) -> _Unfit:
    return _Unfit(FloatRefused, f"the number {_clip(text)[1:-1]} is a float", _FLOAT_HINT)


def _constant(text: str) -> _Unfit:
    return _Unfit(NonFiniteRefused, f"{text} is not JSON", _FLOAT_HINT)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Unfit:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                return _Unfit(DuplicateKey, f"key {_clip(key)} stands twice in one object")
            seen.add(key)
    return members


_DECODER = json.JSONDecoder(
    parse_int=_integer, parse_float=_fraction, parse_constant=_constant, object_pairs_hook=_object
)


def _load(data: bytes) -> Any:
    """The value that the JSON text ``data`` holds, with an ``_Unfit`` where a number or object is refused."""
    if len(data) > MAX_TEXT:
        raise TooLarge("$", f"{len(data)} bytes of JSON text; at most {MAX_TEXT} are read")
    if data.startswith(b"\xef\xbb\xbf"):
        raise ByteOrderMark("byte 0", "the text starts with a byte order mark", hint="store it without")
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise NotUtf8(f"byte {error.start}", "the text is not UTF-8") from None
    start = len(text) - len(text.lstrip(_WHITE_SPACE))
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at")
        raise NotJson(f"line {error.lineno} column {error.colno}", f"not JSON: {reason}") from None
    except RecursionError:
        if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
            raise  # the caller's own stack is full
        raise TooDeep("$", f"nested deeper than {MAX_DEPTH} levels") from None
    rest = text[end:].lstrip(_WHITE_SPACE)
    if rest:
        raise TrailingData(f"character {len(text) - len(rest)}", "more text after the end of the value")
    return value


def canonicalize(data: bytes) -> bytes:
    """Canonical bytes of the JSON text ``data``: ``encode(parse(data))``."""
    return encode(_load(data))


def parse(data: bytes) -> Any:
    """The value of a JSON text on the domain, in whatever form it is written.

    White space, any order of keys and any escapes are allowed; ``encode`` accepts what comes back. Raises a
    ``CanonicalError``: one of the position where the text is no JSON, or of the path to what is refused.
    """
    value = _load(data)
    if len(data) > MAX_SIZE:
        encode(value)
    else:
        check(value)
    return value


def decode(data: bytes) -> Any:
    """The value of a canonical text; raises as ``parse`` does, and ``NotCanonical`` for any other form of
    it."""
    value = _load(data)
    canonical = encode(value)
    if canonical != data:
        pairs = enumerate(zip(canonical, data, strict=False))
        at = next((i for i, (a, b) in pairs if a != b), len(canonical))
        raise NotCanonical(
            f"byte {at}",
            "not the canonical form: sorted keys, no white space, no needless escapes",
        )
    return value
