"""YAML in the style in which the public tool prints its documents.

Nested collections stand at the next multiple of four columns, keys of a list's item two columns behind its dash, text
of several lines as a literal block, everything else on one line: plain where that reads back as the same text, else in
quotes. Whatever the value, PyYAML and Go's yaml read the same value back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_BASED = re.compile(r"[-+]?0(?:[xX][0-9a-fA-F]+|[oO]?[0-7]+|[bB][01]+)", re.ASCII)
_SIXTIES = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
_TIME = re.compile(
    r"\d{4}-\d\d?-\d\d?(?:[Tt ]\s*\d\d?:\d\d?:\d\d?(?:\.\d*)?(?:\s*(?:Z|[-+]\d\d?(?::?\d\d)?))?)?", re.ASCII
)
_WORDS = frozenset(
    word
    for base in ("true", "false", "null", "y", "n", "yes", "no", "on", "off")
    for word in (base, base.capitalize(), base.upper())
) | {
    "",
    "~",
    "<<",
    "=",
    *(s + w for s in ("", "+", "-") for w in (".inf", ".Inf", ".INF")),
    ".nan",
    ".NaN",
    ".NAN",
}
_STARTS = frozenset("#,[]{}&*!|>'\"%@`")
#: Characters that are not written as they are: controls, and what lies beyond the basic plane.
_SPECIAL = re.compile("[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
_ESCAPES = {
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    '"': '\\"',
    "\\": "\\\\",
    "\x85": "\\N",
    "\u2028": "\\L",
    "\u2029": "\\P",
}


def to_yaml(value: Any) -> str:
    """``value`` (dicts with text keys, lists, text, integers, booleans, None) as a document."""
    return "".join(f"{line}\n" for line in _node(value, 0))


def _node(value: Any, column: int) -> Iterator[str]:
    """The lines of a collection that stands at ``column``, or of a scalar that is the whole document."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _entry(f"{' ' * column}{_key(str(key))}:", item, (column // 4 + 1) * 4)
    elif _is_list(value) and value:
        for item in value:
            yield from _item(item, column)
    else:
        yield from _scalar(value, column + 4)


def _entry(head: str, value: Any, column: int) -> Iterator[str]:
    """A key and its value, which stands at ``column`` where it has lines of its own."""
    if (isinstance(value, Mapping) or _is_list(value)) and value:
        yield head
        yield from _node(value, column)
        return
    first, *rest = _scalar(value, column)
    yield f"{head} {first}"
    yield from rest


def _item(value: Any, column: int) -> Iterator[str]:
    """An item of a list whose dashes stand at ``column``."""
    dash = " " * column + "- "
    if (isinstance(value, Mapping) or _is_list(value)) and value:
        first, *rest = _node(value, column + 2)
        yield dash + first[column + 2 :]
        yield from rest
        return
    first, *rest = _scalar(value, column + 2)
    yield dash + first
    yield from rest


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _scalar(value: Any, column: int) -> list[str]:
    """The lines of a scalar or an empty collection; those after the first are indented to ``column``."""
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, Mapping):
        return ["{}"]
    if _is_list(value):
        return ["[]"]
    if not isinstance(value, str):
        return [str(value)]
    if "\n" in value and _is_block(value):
        return list(_block(value, column))
    return [_flat(value)]


def _key(text: str) -> str:
    return _flat(text)


def _is_block(text: str) -> bool:
    """Whether ``text`` can be a literal block: nothing special in it, nothing that indentation would swallow."""
    return (
        text[0] not in " \n\t"
        and not text.endswith(" ")
        and " \n" not in text
        and _SPECIAL.search(text.replace("\t", "")) is None
    )


def _block(text: str, column: int) -> Iterator[str]:
    ends = len(text) - len(text.rstrip("\n"))
    yield "|" + ("-" if ends == 0 else "" if ends == 1 else "+")
    for line in text.removesuffix("\n").split("\n"):
        yield " " * column + line if line else ""


def _flat(text: str) -> str:
    """``text`` on one line: plain, in single or in double quotes."""
    if _SPECIAL.search(text) or "\n" in text or resolves(text):
        return _double(text)
    return text if _is_plain(text) else "'" + text.replace("'", "''") + "'"


def resolves(text: str) -> bool:
    """Whether ``text``, written plain, would be read as something else than text: by YAML 1.1 or 1.2."""
    if text in _WORDS:
        return True
    if text[0] not in "+-.0123456789":
        return False
    digits = text.replace("_", "")
    if _NUMBER.fullmatch(digits):
        return "." in digits or abs(float(digits)) != float("inf")
    return bool(_BASED.fullmatch(digits) or _SIXTIES.fullmatch(text) or _TIME.fullmatch(text))


def _is_plain(text: str) -> bool:
    first = text[0]
    if first in _STARTS or first == " " or text[-1] == " " or text.startswith(("---", "...")):
        return False
    if first in "?:-" and (len(text) == 1 or text[1] == " "):
        return False
    return ": " not in text and " #" not in text and text[-1] != ":"


def _double(text: str) -> str:
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    if _SPECIAL.match(character) is None:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
