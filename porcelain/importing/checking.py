"""Checking what was imported of a file against what stands there now, byte range by byte range.

An import looks at size, times and the bytes before its cursor only: an agent that rewrote what is further up, at the
same size or by appending afterwards, would not be noticed. Pages keep a digest of each record's bytes, secrets
replaced; those are compared. What an agent rewrites in place by its own rules, and damaged stretches, are left out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from objstore.snapshot import Snapshot
from porcelain.flow.chain.landed import pages
from porcelain.providers.cursor import Cursor
from porcelain.providers.reader import Source
from porcelain.providers.records import Page
from porcelain.providers.redaction import RULES, redact
from porcelain.providers.unpacking import open_source


def is_checked(source: Source, cursor: Cursor) -> bool:
    """Whether the records of a source can be looked for in it: it is a log, and was read by the rules of today."""
    return source.shape == "log" and not source.stamp and cursor.rules == RULES and bool(cursor.offset)


def differs(view: Snapshot, landed: str, source: Source, cursor: Cursor) -> bool:
    """Whether a record that was landed from the source is not what stands at its place now. ``landed`` is the head
    (hex) of the conversation's landing chain. Raises ``OSError`` where the source cannot be read."""
    with open_source(source.path) as (file, _, size):
        if size < cursor.offset:
            return True
        for offset, length, digest in _places(pages(view, bytes.fromhex(landed)), cursor.src, source.slot):
            if _digest(file.fileno(), offset, length) != digest:
                return True
    return False


def _digest(descriptor: int, offset: int, length: int) -> str:
    return hashlib.sha256(redact(os.pread(descriptor, length, offset))).hexdigest()[:12]


def _places(landed: Iterator[Page], src: str, slot: int) -> list[tuple[int, int, str]]:
    """Offset, length and digest of every record of a file behind ``slot``, as it was last read from its beginning."""
    found: list[tuple[int, int, str]] = []
    for page in landed:
        if page.src != src:
            continue
        jumps = {row: offset for row, _, offset in page.jumps or ()}
        offset = page.offset
        mine: list[tuple[int, int, str]] = []
        for row, length in enumerate(page.lengths):
            offset = jumps.get(row, offset)
            if offset >= slot:
                mine.append((offset, length, page.digests[12 * row : 12 * row + 12]))
            offset += length + 1
        if mine and found and mine[0][0] <= found[-1][0]:
            found = []
        found += mine
    return found
