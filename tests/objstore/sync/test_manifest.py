"""Comparing refs by a tree of hashes: what differs is found, and finding it costs little."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from objstore.sync.manifest import Manifest, Node, Scope, differences

REFS = st.dictionaries(st.integers(0, 300).map(lambda n: f"tag/{n}"), st.integers(0, 2), max_size=120)


def manifest(refs: dict[str, int]) -> Manifest:
    return Manifest((name, bytes([value]) * 32) for name, value in refs.items())


class Counted:
    """The other side, and what asking it costs."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.requests = self.bytes = 0

    def nodes(self, prefixes: Sequence[str]) -> list[Node]:
        found = [self.manifest.node(prefix) for prefix in prefixes]
        self.requests += 1
        self.bytes += len(msgspec.msgpack.encode(prefixes)) + len(msgspec.msgpack.encode(found))
        return found


@given(REFS, REFS)
def test_exactly_what_differs_is_found(one: dict[str, int], two: dict[str, int]) -> None:
    mine, other = manifest(one), Counted(manifest(two))
    ours, theirs = differences(mine, other.manifest.root, other.nodes)
    assert ours == {n: bytes([v]) * 32 for n, v in one.items() if two.get(n) != v}
    assert theirs == {n: bytes([v]) * 32 for n, v in two.items() if one.get(n) != v}


@given(REFS, REFS)
def test_looking_only_at_ones_own_finds_all_of_ones_own(one: dict[str, int], two: dict[str, int]) -> None:
    mine, other = manifest(one), Counted(manifest(two))
    ours, theirs = differences(mine, other.manifest.root, other.nodes, only_mine=True)
    assert ours == {n: bytes([v]) * 32 for n, v in one.items() if two.get(n) != v}
    assert theirs.items() >= {n: bytes([two[n]]) * 32 for n in ours if n in two}.items()


@given(REFS)
def test_the_root_is_that_of_the_refs_in_any_order(refs: dict[str, int]) -> None:
    backwards = dict(reversed(list(refs.items())))
    assert manifest(refs).root == manifest(backwards).root
    if refs:
        name = next(iter(refs))
        assert manifest(refs).root != manifest(refs | {name: 9}).root
        assert manifest(refs).root != manifest({n: v for n, v in refs.items() if n != name}).root


def test_a_hundred_thousand_refs_cost_no_more_than_what_differs() -> None:
    refs = [
        (f"landed/1111111111111111/claude/{sha256(b'%d' % n).hexdigest()[:32]}", bytes(32))
        for n in range(100_000)
    ]
    mine = Manifest(refs)
    same = Counted(Manifest(refs))
    assert differences(mine, same.manifest.root, same.nodes) == ({}, {})
    assert (same.requests, same.bytes) == (0, 0)
    changed = Counted(Manifest([*refs[:-1], (refs[-1][0], bytes([1]) * 32)]))
    _, theirs = differences(mine, changed.manifest.root, changed.nodes)
    assert theirs == {refs[-1][0]: bytes([1]) * 32}
    assert changed.requests <= 5 and changed.bytes < 8_000
    few = Manifest(refs[:10])
    differences(few, same.manifest.root, same.nodes, only_mine=True)
    assert same.requests <= 6 and same.bytes < 60_000


def test_patterns_match_as_a_shell_would_and_slashes_too() -> None:
    matches = Scope(patterns=("session/*", "tag/v?")).matcher()
    assert matches("session/a/heads/b") and matches("tag/v1")
    assert not matches("tag/v12") and not matches("flow/session/x")
    assert Scope().matcher()("anything/at all")
