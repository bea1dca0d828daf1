"""Cutting a document into chunks, and the Merkle root over them.

The chunks of a text are a partition of it: run together they are the text again, byte for byte. A chunk has at most
512 tokens and 8,192 characters, a token being a run of up to 32 letters and digits or one other character that is no
white space. A cut goes behind the last empty line in the second half of that, else the last sentence end, line break
or blank there, else where the count is full.
"""

# ruff: noqa: RUF001 - look-alike punctuation is what is told apart here
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from objstore import merkle

#: Name of these rules; a change of any of them needs another one.
CHUNKING = "objstore-tok-512-1"
TOKENS = 512
CHARACTERS = 8192

_FULL = re.compile(rf"(?:\s*(?:\w{{1,32}}|[^\w\s])){{1,{TOKENS}}}\s*|\s+")
#: Where a cut may go, best first: each pattern ends where the next chunk begins.
_CUTS = tuple(
    re.compile(pattern) for pattern in (r"\n[ \t]*\r?\n\s*", r"(?<=[.!?…])\s+|(?<=[。！？])", r"\n", r"\s+")
)


def chunks(text: str) -> Iterator[str]:
    """The chunks of ``text`` in order; none for an empty one."""
    start = 0
    while start < len(text):
        end = _cut(text, start)
        yield text[start:end]
        start = end


def _cut(text: str, start: int) -> int:
    found = _FULL.match(text, start, start + CHARACTERS)
    assert found is not None  # one character is a token or white space
    end = found.end()
    if end >= len(text):
        return len(text)
    middle = start + (end - start) // 2
    for pattern in _CUTS:
        last = 0
        for cut in pattern.finditer(text, middle, end):
            last = cut.end()
        if last:
            return last
    return end


def leaf(text: str) -> bytes:
    """The leaf hash of a chunk: of its UTF-8 bytes."""
    return merkle.leaf_hash(text.encode())


def document_root(leaves: Iterable[bytes]) -> bytes:
    """``merkle-v1`` root over the leaf hashes of a document's chunks, in the order of the document."""
    return merkle.root(list(leaves))
