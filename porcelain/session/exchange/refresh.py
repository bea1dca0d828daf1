"""Keeping a page up to date: what changed since a root that a client holds, and the client that follows.

The server says "still current", or the new root and the subtree hashes along the changed paths; the client fetches only
the nodes whose own hash must differ, recomputes what it was told, and takes the new tree over only when it comes to the
new root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from objstore.core import ObjectId
from objstore.errors import CheckFailed, UsageError
from objstore.merkle import SiblingOrder
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.session.tree.change import Session
from porcelain.session.tree.events import KIND, Event, node_seq
from porcelain.session.tree.identity import MAX_SEQ, bates_of, seq_of, split_bates
from porcelain.session.tree.nodes import Node, check_node, node_hash, subtree_hash

Pair = tuple[str, ObjectId]


class Delta(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answer to "I hold this root". ``nodes`` are (bates, subtree hash) of what changed, parents before children; with
    ``replaced`` they are all nodes there are, since the root asked about was never on this session's chain."""

    nodes: Annotated[list[Pair], Meta(max_length=MAX_SEQ + 1)]
    session_root: ObjectId
    state: Literal["changed", "current", "replaced"]


class FetchedNode(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node as a client gets it: its seven keys, and the Bates id of its parent (None for the root)."""

    node: Node
    parent_bates: str | None


_DELTA = msgspec.json.Decoder(Delta)
_FETCHED = msgspec.json.Decoder(FetchedNode)


def changes_since(view: Snapshot, session: Session, have_root: str | None) -> Delta:
    """What a client that holds ``have_root`` (hex; None: nothing) lacks."""
    root = session.state.root
    if have_root == root:
        return Delta(nodes=[], session_root=root, state="current")
    if have_root is not None and (len(have_root) != 64 or have_root.strip("0123456789abcdef")):
        raise UsageError(f"{have_root[:80]!r}: not a root: expected 64 hexadecimal digits")
    index = session.index
    known = have_root is not None and index.event_number(bytes.fromhex(have_root)) is not None
    changed = _changed_since(view, session, have_root) if known and have_root is not None else index.seqs()
    return Delta(
        nodes=[(bates_of(session.sid, seq), index.subtree_hash(seq).hex()) for seq in sorted(changed)],
        session_root=root,
        state="changed" if known else "replaced",
    )


def _changed_since(view: Snapshot, session: Session, have_root: str) -> set[int]:
    """The nodes whose subtree hash moved since ``have_root`` was the root, which it was."""
    index = session.index
    found: set[int] = set()
    event: Event = load(view, bytes.fromhex(session.state.head), KIND)
    while event.body.session_root != have_root and event.previous:
        seq = node_seq(event.body)
        if event.body.event_type == "node_labelled":
            found.update(index.descendants(seq))
        at: int | None = seq
        while at is not None and (at not in found or at == seq):
            found.add(at)
            at = index.parent(at)
        event = load(view, bytes.fromhex(event.previous[0]), KIND)
    return found


def fetch_node(view: Snapshot, session: Session, bates: str) -> FetchedNode:
    """One node for a client; raises ``NotFound``, or ``CheckFailed`` for what is no Bates id of this session."""
    sid, seq = split_bates(bates)
    if sid != session.sid:
        raise UsageError(f"{bates}: is not of the session {session.sid}")
    node = session.node(view, seq)
    above = session.index.parent(seq)
    return FetchedNode(node=node, parent_bates=None if above is None else bates_of(sid, above))


def encode_delta(delta: Delta) -> bytes:
    """A delta as it goes over the wire (canonical JSON)."""
    return msgspec.json.encode(delta)


def decode_delta(data: bytes) -> Delta:
    """The delta in what came over the wire; raises ``CheckFailed``."""
    delta: Delta = _decoded(_DELTA, data)
    return delta


def encode_fetched(fetched: FetchedNode) -> bytes:
    """A node as it goes over the wire (canonical JSON)."""
    return msgspec.json.encode(fetched)


def decode_fetched(data: bytes) -> FetchedNode:
    """The node in what came over the wire; raises ``CheckFailed``."""
    fetched: FetchedNode = _decoded(_FETCHED, data)
    check_node(fetched.node)
    return fetched


def _decoded(decoder: msgspec.json.Decoder[Any], data: bytes) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise CheckFailed(f"not an answer to a refresh: {error}") from None


class Mirror:
    """A client's copy of one session's tree, which is at every moment the tree of a root that the server stated."""

    def __init__(self, sid: str) -> None:
        self.sid = sid
        self.root: str | None = None
        self.nodes: dict[int, Node] = {}
        self.parents: dict[int, int | None] = {}
        self.children: dict[int, frozenset[int]] = {}
        self.hashes: dict[int, bytes] = {}
        self.subtrees: dict[int, bytes] = {}

    def apply(self, delta: Delta, fetch: Callable[[str], FetchedNode]) -> list[str]:
        """Follow ``delta``; ``fetch`` gets a node by Bates id. The Bates ids that were fetched, ascending.

        Raises ``CheckFailed`` when what came does not add up to the root stated; the copy is then as it was.
        """
        if delta.state == "current":
            if delta.session_root != self.root:
                raise CheckFailed(f"{self.sid}: said to be current, but the root held is another")
            return []
        changing = _Changing(self, delta, fetch)
        changing.run()
        changing.take_over()
        return sorted(bates_of(self.sid, seq) for seq in changing.fetched)


class _Changing:
    """One delta on its way into a mirror: what changes is kept apart until all of it was checked."""

    def __init__(self, mirror: Mirror, delta: Delta, fetch: Callable[[str], FetchedNode]) -> None:
        self.mirror = mirror
        self.delta = delta
        self.fetch = fetch
        self.wanted: dict[int, bytes] = {}
        before = -1
        for bates, digest in delta.nodes:
            sid, seq = split_bates(bates)
            if sid != mirror.sid or seq <= before:
                raise CheckFailed(f"{bates}: out of order, named twice or of another session")
            self.wanted[seq] = bytes.fromhex(digest)
            before = seq
        self.dropped = mirror.nodes.keys() - self.wanted.keys() if delta.state == "replaced" else set()
        self.nodes: dict[int, Node] = {}
        self.parents: dict[int, int | None] = {}
        self.children: dict[int, set[int]] = {}
        self.hashes: dict[int, bytes] = {}
        self.subtrees: dict[int, bytes] = {}
        self.fetched: set[int] = set()

    def run(self) -> None:
        for seq in self.dropped:
            above = self.mirror.parents[seq]
            if above is not None:
                self._children(above).discard(seq)
        for seq in self.wanted:
            if seq not in self.mirror.nodes:
                self._get(seq)
        for seq in reversed(self.wanted):
            if not self._adds_up(seq):
                if seq not in self.fetched:
                    self._get(seq)
                if not self._adds_up(seq):
                    raise CheckFailed(
                        f"{bates_of(self.mirror.sid, seq)}: does not hash to the subtree hash stated"
                    )
            self.subtrees[seq] = self.wanted[seq]
        for seq in self.wanted:
            self._check_links(seq)
        root = self.subtrees.get(0, self.mirror.subtrees.get(0))
        if root is None or root.hex() != self.delta.session_root:
            raise CheckFailed(f"{self.mirror.sid}: what came does not add up to the root stated")

    def _children(self, seq: int) -> set[int]:
        found = self.children.get(seq)
        if found is None:
            found = self.children[seq] = set(self.mirror.children.get(seq, ()))
        return found

    def _get(self, seq: int) -> None:
        bates = bates_of(self.mirror.sid, seq)
        got = self.fetch(bates)
        check_node(got.node)
        above = None if got.parent_bates is None else seq_of(got.parent_bates)
        if got.node.bates != bates or (above is None) != (seq == 0) or (above is not None and above >= seq):
            raise CheckFailed(f"{bates}: another node came, or one that cannot stand where it is said to")
        if above is not None and got.parent_bates != bates_of(self.mirror.sid, above):
            raise CheckFailed(f"{bates}: its parent is of another session")
        old = self.mirror.parents.get(seq)
        if old is not None and old != above:
            self._children(old).discard(seq)
        if above is not None:
            self._children(above).add(seq)
        self.nodes[seq], self.parents[seq], self.hashes[seq] = got.node, above, node_hash(got.node)
        self.fetched.add(seq)

    def _adds_up(self, seq: int) -> bool:
        """Whether a node as it is held or fetched, with its children, has the subtree hash that was stated."""
        children = self.children.get(seq, self.mirror.children.get(seq, frozenset()))
        below = sorted(self.subtrees.get(one) or self.mirror.subtrees.get(one) or b"" for one in children)
        try:
            return subtree_hash(self._hash(seq), below) == self.wanted[seq]
        except (SiblingOrder, UsageError):
            return False

    def _hash(self, seq: int) -> bytes:
        return self.hashes[seq] if seq in self.hashes else self.mirror.hashes[seq]

    def _check_links(self, seq: int) -> None:
        """Each changed node names its parent's hash, and each child of one that was fetched names that one's."""
        children = self.children.get(seq, self.mirror.children.get(seq, frozenset()))
        for one in (seq, *(children if seq in self.fetched else ())):
            node = self.nodes.get(one) or self.mirror.nodes[one]
            above = self.parents[one] if one in self.parents else self.mirror.parents[one]
            if above is not None and (above not in self.nodes and above not in self.mirror.nodes):
                raise CheckFailed(f"{node.bates}: its parent never came")
            if node.parent_node_hash != (None if above is None else self._hash(above).hex()):
                raise CheckFailed(f"{node.bates}: does not name the node it stands under as its parent")

    def take_over(self) -> None:
        mirror = self.mirror
        for seq in self.dropped:
            del mirror.nodes[seq], mirror.parents[seq], mirror.hashes[seq], mirror.subtrees[seq]
            mirror.children.pop(seq, None)
        mirror.nodes |= self.nodes
        mirror.parents |= self.parents
        mirror.hashes |= self.hashes
        mirror.subtrees |= self.subtrees
        mirror.children |= {
            seq: frozenset(found) for seq, found in self.children.items() if seq not in self.dropped
        }
        mirror.root = self.delta.session_root
