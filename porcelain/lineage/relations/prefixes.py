"""Whether one transcript begins as another does, when a move has replaced one working directory by the other in it.

A tool that moves a conversation copies its file and replaces the old folder's path by the new one wherever it stands,
so that lines which only mention the folder differ. Here both folders' paths are taken for the same placeholder before
lines are compared. What comes of it is forensic: alone it never says more than ``medium``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256

import msgspec
from msgspec import Struct

from porcelain.lineage.facts.kinds import Confidence

#: Lines that two transcripts share at least, for the prefix to mean anything.
LEAST = 20
_WHOLE = 0.95
_MOST = 0.80
_PLACEHOLDER = b"<cwd>"
_ENCODER = msgspec.json.Encoder(order="sorted")

#: A line's hash with its own side's folder replaced, and with both folders replaced.
Key = tuple[bytes, bytes]


class Prefix(Struct, frozen=True, kw_only=True):
    """How far two transcripts agree from their beginnings, in non-blank lines or records."""

    shared: int
    source: int
    target: int

    @property
    def source_coverage(self) -> float:
        return self.shared / self.source if self.source else 0.0

    @property
    def target_coverage(self) -> float:
        return self.shared / self.target if self.target else 0.0

    @property
    def is_whole_source(self) -> bool:
        """Whether the target has all that the source has."""
        return 0 < self.source == self.shared

    @property
    def is_whole_target(self) -> bool:
        """Whether the target holds nothing of its own."""
        return 0 < self.target == self.shared


def graded(prefix: Prefix, *, backed: bool = False) -> Confidence | None:
    """What a common prefix is worth: ``high`` when a manifest or provider link names the pair, else ``medium``, None
    for one that says nothing: under 20 lines, or too small a part of both sides."""
    if prefix.shared < LEAST:
        return None
    if backed:
        return "high"
    coverage = sorted((prefix.source_coverage, prefix.target_coverage))
    return "medium" if coverage[1] >= _WHOLE or coverage[0] >= _MOST else None


def compare_lines(
    source: Iterable[bytes], target: Iterable[bytes], source_cwd: str | None, target_cwd: str | None
) -> Prefix:
    """The common prefix of two files given by their lines; both are read to their ends, one line at a time."""
    both = [cwd for cwd in (source_cwd, target_cwd) if cwd]
    left = line_keys(source, source_cwd, both)
    right = line_keys(target, target_cwd, both)
    shared = totals = 0
    for mine in left:
        totals += 1
        if shared == totals - 1:
            other = next(right, None)
            if other is None:
                break
            if mine[0] == other[0] or mine[1] == other[1]:
                shared += 1
            else:
                return Prefix(shared=shared, source=totals + _count(left), target=totals + _count(right))
    else:
        return Prefix(shared=shared, source=totals, target=shared + _count(right))
    return Prefix(shared=shared, source=totals + _count(left), target=shared)


def line_keys(lines: Iterable[bytes], own: str | None, both: list[str]) -> Iterator[Key]:
    """The keys of the lines that are not blank."""
    mine = _forms([own] if own else [])
    all_forms = _forms(both)
    for line in lines:
        text = line.strip()
        if text:
            key = _hash(text, mine)
            yield key, key if all_forms == mine else _hash(text, all_forms)


def _count(rest: Iterable[object]) -> int:
    return sum(1 for _ in rest)


def _forms(cwds: list[str]) -> list[bytes]:
    """The ways in which JSON text writes the paths, the longest first."""
    found = set()
    for cwd in cwds:
        for ascii_only in (True, False):
            form = json.dumps(cwd, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "surrogatepass")
            found |= {form, form.replace(b"/", b"\\/")}
    return sorted(found, key=lambda form: (-len(form), form))


def _hash(line: bytes, forms: list[bytes]) -> bytes:
    for form in forms:
        line = line.replace(form, _PLACEHOLDER)
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # no JSON: compared as it is
        line = _ENCODER.encode(msgspec.json.decode(line))
    return sha256(line).digest()[:16]
