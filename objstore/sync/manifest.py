"""The ref manifest: all refs that a store offers, in a tree of hashes, so that two stores find where they differ by
comparing a few of them.

A ref is placed by the SHA-256 of its name, in hexadecimal. A node of the tree stands for all refs whose places begin
with its prefix; it is a leaf when they are few, else it has 16 children. Its hash follows from the refs alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from hashlib import sha256
from re import compile as compile_pattern
from typing import Annotated

from msgspec import Meta, Struct

from objstore.snapshot import Snapshot
from objstore.sync.joining import is_offered

#: Most refs in a leaf.
LEAF = 32
#: Nodes that are asked for in one request.
_ASKED = 256
DIGITS = "0123456789abcdef"

Ref = tuple[str, bytes]


class Scope(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What two stores exchange: refs that match one of ``patterns`` as a shell would (``*`` matches slashes too; none:
    all), and with ``content`` what was said in conversations."""

    content: bool = False
    patterns: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=400)], ...], Meta(max_length=64)
    ] = ()

    def matcher(self) -> Callable[[str], bool]:
        """Whether a name is in the scope."""
        if not self.patterns:
            return lambda name: True
        found = compile_pattern("|".join(translate(pattern) for pattern in self.patterns)).match
        return lambda name: found(name) is not None


class Node(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node: a leaf has ``refs``, any other the hashes of its 16 ``children``."""

    children: list[bytes] | None = None
    refs: list[Ref] | None = None


class Manifest:
    """The manifest of these refs (name and id)."""

    def __init__(self, refs: Iterable[Ref]) -> None:
        placed = sorted((sha256(name.encode()).hexdigest(), name, key) for name, key in refs)
        self._places = [place for place, _, _ in placed]
        self._refs = [(name, key) for _, name, key in placed]
        self._hashes: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._refs)

    @property
    def root(self) -> bytes:
        """The hash that stands for all refs."""
        return self.hash("")

    def _range(self, prefix: str) -> tuple[int, int]:
        return bisect_left(self._places, prefix), bisect_left(self._places, prefix + "g")

    def is_empty(self, prefix: str) -> bool:
        """Whether there is no ref below a node."""
        start, stop = self._range(prefix)
        return start == stop

    def refs(self, prefix: str = "") -> list[Ref]:
        """The refs below a node."""
        start, stop = self._range(prefix)
        return self._refs[start:stop]

    def hash(self, prefix: str) -> bytes:
        """The hash of a node."""
        known = self._hashes.get(prefix)
        if known is None:
            start, stop = self._range(prefix)
            if stop - start <= LEAF:
                parts = [
                    len(name.encode()).to_bytes(2, "big") + name.encode() + key
                    for name, key in self._refs[start:stop]
                ]
                known = sha256(b"\0" + b"".join(parts)).digest()
            else:
                known = sha256(b"\1" + b"".join([self.hash(prefix + digit) for digit in DIGITS])).digest()
            self._hashes[prefix] = known
        return known

    def node(self, prefix: str) -> Node:
        """What a node holds."""
        refs = self.refs(prefix)
        if len(refs) <= LEAF:
            return Node(refs=refs)
        return Node(children=[self.hash(prefix + digit) for digit in DIGITS])


def manifest_of(view: Snapshot, scope: Scope) -> Manifest:
    """The manifest of what a store offers in ``scope``."""
    matches = scope.matcher()
    return Manifest(
        (name, key)
        for name, key in view.refs()
        if matches(name) and is_offered(name, key, view, content=scope.content)
    )


def differences(
    mine: Manifest,
    root: bytes,
    nodes: Callable[[Sequence[str]], Sequence[Node]],
    *,
    only_mine: bool = False,
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The refs in which this store and another one differ: ``(mine, theirs)``, each by name.

    ``root`` is the hash of the other's manifest, ``nodes`` asks it for nodes by their prefixes. With ``only_mine``,
    parts of the tree where this store has no ref are not looked at.
    """
    ours: dict[str, bytes] = {}
    theirs: dict[str, bytes] = {}
    waiting = [""] if root != mine.root else []
    while waiting:
        group, waiting = waiting[:_ASKED], waiting[_ASKED:]
        for prefix, node in zip(group, nodes(group), strict=True):
            if node.children is not None and len(node.children) == len(DIGITS) and len(prefix) < 64:
                waiting += [
                    prefix + digit
                    for digit, found in zip(DIGITS, node.children, strict=True)
                    if found != mine.hash(prefix + digit)
                    and not (only_mine and mine.is_empty(prefix + digit))
                ]
            else:
                ours.update(mine.refs(prefix))
                theirs.update(node.refs or ())
    same = [name for name, key in ours.items() if theirs.get(name) == key]
    for name in same:
        del ours[name], theirs[name]
    return ours, theirs
