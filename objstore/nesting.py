"""How deep JSON is nested, told from its bytes.

Parsers give up where their stack ends, which is at another depth in every version of Python. What is refused for its
depth must be refused everywhere, so the bound is ours and lies below all of theirs.
"""

from __future__ import annotations

import re

#: Lists and objects inside one another that foreign JSON may have; Python 3.11 cannot read a thousand.
MAX_NESTING = 512

_OTHERS = rb'[ \t\r\n,:]|"[^"\\]*+(?:\\.[^"\\]*+)*+"|[-+.0-9eE]|true|false|null'
_TOKEN = re.compile(b"(?:" + _OTHERS + b")*+([][{}])", re.DOTALL)


def is_too_deep(data: bytes, limit: int = MAX_NESTING) -> bool:
    """Whether the JSON text ``data`` has more than ``limit`` lists and objects inside one another.

    What is no JSON is looked at as far as its tokens could be those of JSON. Costs two counts of bytes for all but what
    has very many lists and objects, and nothing for what is short.
    """
    if len(data) <= limit or data.count(b"[") + data.count(b"{") <= limit:
        return False
    depth = at = 0
    while (token := _TOKEN.match(data, at)) is not None:
        at = token.end()
        if token[1] in b"[{":
            depth += 1
            if depth > limit:
                return True
        else:
            depth -= 1
    return False


def has_deep_line(data: bytes, limit: int = MAX_NESTING) -> bool:
    """Whether ``is_too_deep`` says so of one of the lines, where each is a JSON text: it then has two bytes for each
    list and object, so that short lines cost next to nothing."""
    lines = data.split(b"\n")
    if max(map(len, lines)) <= 2 * limit:
        return False
    return any(is_too_deep(line, limit) for line in lines)
