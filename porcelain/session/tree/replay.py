"""The tree that a chain of events stands for, made again from its objects.

A node's ``seq`` is above its parent's, always: so ascending order is top down and descending order bottom up, and
nothing here needs to recurse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, structs

from objstore import kinds
from objstore.errors import CheckFailed, NotFound, StorageError
from objstore.merkle import leaf_hash
from objstore.objects import SESSION_NODE
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.session.tree.events import KIND, RULES, Body, Event, node_seq
from porcelain.session.tree.identity import seq_of
from porcelain.session.tree.nodes import Node, hash_over, node_hash

#: Objects that are read together: few enough for what is made of them to stay in the processor's cache.
GROUP = 128

Reason = Literal["hash_mismatch", "prev_mismatch", "root_mismatch", "unparseable", "unknown_rules"]


class Broken(CheckFailed):
    """Where a session stops to be what it says: ``index`` is that of the event (from 0; None: not at one event),
    ``place`` the object, node or column."""

    def __init__(self, reason: Reason, place: str, what: str, index: int | None = None) -> None:
        super().__init__(f"{place}: {reason}: {what}")
        self.reason: Reason = reason
        self.place = place
        self.what = what
        self.index = index


class Run(Struct, frozen=True, kw_only=True):
    """Events that stand one after the other in a chain, each of which added a node, and what was found in them.

    ``keys`` are the ids of the events, ``last_seq``, ``last_hash`` and ``root`` the number, ``event_hash`` and
    ``session_root`` of the last one. ``previous``, ``prev_root``, ``body`` and ``first_hash`` are what the first states
    of the event before it, its body and its ``event_hash``. Of the nodes: ``seqs`` (ascending), those of their parents,
    their hashes and leaf hashes, and the ``parent_node_hash`` that each states. Digests are raw, roots hex.
    """

    keys: list[bytes]
    last_seq: int
    last_hash: bytes
    root: str
    previous: str
    prev_root: str
    body: bytes
    first_hash: bytes
    seqs: list[int]
    parents: list[int]
    hashes: list[bytes]
    leaves: list[bytes]
    above: list[bytes]


class Tree:
    """Nodes by ``seq``, with their hashes, parents and children; kept so that every link holds.

    ``minted`` are nodes that a label made and that no event names: canonical bytes by digest. ``load`` gives the node
    for a hash, where ``add_run`` left it out of ``nodes``. ``leaves`` are those leaf hashes that it brought.
    """

    def __init__(self, load: Callable[[bytes], Node] | None = None) -> None:
        self._load = load
        self.nodes: dict[int, Node] = {}
        self.hashes: dict[int, bytes] = {}
        self.parents: dict[int, int | None] = {}
        self.children: dict[int, list[int]] = {}
        self.events: dict[int, str] = {}
        self.minted: dict[bytes, bytes] = {}
        self.leaves: dict[int, bytes] = {}
        self.last = -1

    def add(self, node: Node, digest: bytes, parent: int | None) -> int:
        """Add a node with the next higher ``seq``; raises ``Broken`` when it does not belong under ``parent``."""
        seq = seq_of(node.bates)
        if seq <= self.last or (parent is None) != (seq == 0):
            raise Broken("prev_mismatch", node.bates, f"cannot follow node {self.last}")
        above = None if parent is None else self.hashes.get(parent)
        if node.parent_node_hash != (above.hex() if above is not None else None) or (
            parent is not None and above is None
        ):
            raise Broken(
                "prev_mismatch", node.bates, "its parent_node_hash is not that of the node it stands under"
            )
        self.nodes[seq], self.hashes[seq], self.parents[seq] = node, digest, parent
        if parent is not None:
            self.children.setdefault(parent, []).append(seq)
        self.last = seq
        return seq

    def add_run(self, run: Run) -> bool:
        """Add the nodes of a run, or none of them, and say so, where any does not belong there."""
        hashes = self.hashes
        if run.seqs[0] <= self.last:
            return False
        # What comes after a node cannot be its parent: the seqs of a run ascend, and each is above its parent's.
        hashes.update(zip(run.seqs, run.hashes, strict=True))
        if [hashes.get(seq) for seq in run.parents] != run.above:
            for seq in run.seqs:
                del hashes[seq]
            return False
        self.parents.update(zip(run.seqs, run.parents, strict=True))
        self.leaves.update(zip(run.seqs, run.leaves, strict=True))
        children = self.children
        for seq, parent in zip(run.seqs, run.parents, strict=True):
            if parent in children:
                children[parent].append(seq)
            else:
                children[parent] = [seq]
        self.last = run.seqs[-1]
        return True

    def node(self, seq: int) -> Node | None:
        """The node, or None where there is none."""
        found = self.nodes.get(seq)
        if found is None and self._load is not None and seq in self.hashes:
            found = self.nodes[seq] = self._load(self.hashes[seq])
        return found

    def descendants(self, seq: int) -> list[int]:
        """``seq`` and everything below it, parents before children."""
        found = [seq]
        for at in found:
            found += self.children.get(at, ())
        return found

    def relabel(self, seq: int, label: str | None) -> list[int]:
        """Give a node another label: it and what is below it get new hashes. The nodes that changed, top down."""
        changed = self.descendants(seq)
        for at in changed:
            above = self.parents[at]
            node = self.node(at)
            assert node is not None
            if at == seq:
                node = structs.replace(node, label=label)
            if above is not None:
                node = structs.replace(node, parent_node_hash=self.hashes[above].hex())
            digest = node_hash(node)
            if digest != self.hashes[at]:
                self.minted[digest] = kinds.encode(node)
            self.nodes[at], self.hashes[at] = node, digest
            self.leaves.pop(at, None)
        return changed

    def path(self, seq: int) -> list[int]:
        """``seq`` and its ancestors, the root last."""
        found = [seq]
        while (above := self.parents[found[-1]]) is not None:
            found.append(above)
        return found

    def subtree_hashes(self) -> dict[int, bytes]:
        """The subtree hash of every node; raises ``merkle.SiblingOrder`` for equal siblings."""
        others = self.hashes.keys() - self.leaves.keys()
        return _bottom_up(self.leaves | {seq: leaf_hash(self.hashes[seq]) for seq in others}, self.children)


def subtree_hashes(hashes: Mapping[int, bytes], children: Mapping[int, Iterable[int]]) -> dict[int, bytes]:
    """Subtree hashes by ``seq`` from node hashes and children by ``seq``, bottom up."""
    return _bottom_up(dict(zip(hashes, map(leaf_hash, hashes.values()), strict=True)), children)


def _bottom_up(found: dict[int, bytes], children: Mapping[int, Iterable[int]]) -> dict[int, bytes]:
    """``found``, which has the leaf hash of every node, with those of nodes that have children replaced."""
    for seq in sorted(children, reverse=True):
        found[seq] = hash_over(found[seq], sorted([found[one] for one in children[seq]]))
    return found


def main_chain(view: Snapshot, head: bytes, likely: Sequence[bytes] = ()) -> list[tuple[str, Event]]:
    """Ids and events that the head's hash goes back over, oldest first (grafted chains are not entered).

    ``likely`` are keys of events that may be among them, which are read many at a time. Raises ``Broken`` for what is
    missing or unreadable, with the ``seq`` it should have had.
    """
    ready: dict[str, Event] = {}
    for group in in_groups(likely):
        ready.update(zip([key.hex() for key in group], load_all(view, group, KIND) or (), strict=False))
    found: list[tuple[str, Event]] = []
    key = head.hex()
    expected: int | None = None
    while True:
        event = ready.get(key)
        if event is None or event.seq != expected:
            event = read_event(view, key, expected)
        found.append((key, event))
        if not event.previous:
            return found[::-1]
        key, expected = event.previous[0], event.seq - 1


def read_event(view: Snapshot, key: str, expected: int | None) -> Event:
    """The event ``key``, which must be number ``expected`` of its chain (None: any); raises ``Broken``."""
    index = None if expected is None else expected - 1
    event: Event = load_checked(view, key, KIND, index)
    if expected is not None and event.seq != expected:
        raise Broken("prev_mismatch", key, f"is event {event.seq}, not {expected}", index)
    return event


def in_groups(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """``keys`` in pieces that are read together."""
    return (keys[at : at + GROUP] for at in range(0, len(keys), GROUP))


def load_all(view: Snapshot, keys: Sequence[bytes], kind: str) -> list[Any] | None:
    """The objects of one kind, in order; None where any of them cannot be had: ``load_checked`` says why."""
    try:
        stored = view.get_many(keys)
    except StorageError:
        return None
    datas = [found.data for found in stored if found is not None and found.kind == kind]
    return kinds.decode_all(kind, datas) if len(datas) == len(keys) else None


def load_checked(view: Snapshot, key: str, kind: str, index: int | None = None) -> Any:
    """The object ``key`` of ``kind``; raises ``Broken`` where it cannot be had."""
    try:
        return load(view, bytes.fromhex(key), kind)
    except (CheckFailed, NotFound, StorageError) as error:
        raise Broken("unparseable", key, error.message, index) from None


def apply(tree: Tree, event_id: str, body: Body, node_of: Callable[[Body], Node]) -> list[int]:
    """Do to ``tree`` what an event says; the nodes whose hashes are new, top down.

    ``node_of`` gives the node that a ``session_init`` or ``node_added`` brings. Raises ``Broken``.
    """
    seq = node_seq(body)
    if body.event_type == "node_labelled":
        before = tree.node(seq)
        if before is None or tree.hashes[seq].hex() != body.old_node_hash or before.label != body.old_label:
            raise Broken("prev_mismatch", body.bates, "the label does not replace the node that was there")
        changed = tree.relabel(seq, body.label if isinstance(body.label, str) else None)
        if tree.hashes[seq].hex() != body.node_hash:
            raise Broken(
                "hash_mismatch", body.bates, "the labelled node does not hash to the node_hash stated"
            )
        return changed
    if body.event_type == "session_init" and body.rules != RULES:
        raise Broken("unknown_rules", body.bates, "the session was made by rules unknown here")
    node = node_of(body)
    digest = node_hash(node)
    if digest.hex() != body.node_hash:
        raise Broken("hash_mismatch", body.bates, "the node does not hash to the node_hash stated")
    if node.bates != body.bates:
        raise Broken("hash_mismatch", body.bates, f"the event names the node {node.bates}")
    parent = seq_of(body.parent_bates) if isinstance(body.parent_bates, str) else None
    tree.events[tree.add(node, digest, parent)] = event_id
    return [seq]


def replay(view: Snapshot, chain: Iterable[tuple[str, Event]]) -> Tree:
    """The tree after the events of a main chain; raises ``Broken``."""
    tree = Tree()
    for _ in replaying(view, chain, tree):
        pass
    return tree


def replaying(
    view: Snapshot, chain: Iterable[tuple[str, Event]], tree: Tree
) -> Iterator[tuple[Event, list[int]]]:
    """As ``replay``, into ``tree``, giving each event and the nodes it changed when it has been applied."""

    chain = list(chain)
    ready: dict[str, Node] = {}

    def node_of(body: Body) -> Node:
        node: Node = ready.get(body.node_hash) or load_checked(view, body.node_hash, SESSION_NODE)
        return node

    for number, (key, event) in enumerate(chain):
        if number % GROUP == 0:
            bodies = [one.body for _, one in chain[number : number + GROUP]]
            wanted = [body.node_hash for body in bodies if body.event_type != "node_labelled"]
            nodes = load_all(view, [bytes.fromhex(one) for one in wanted], SESSION_NODE)
            ready = dict(zip(wanted, nodes, strict=True)) if nodes is not None else {}
        try:
            changed = apply(tree, key, event.body, node_of)
        except Broken as broken:
            raise Broken(broken.reason, broken.place, broken.what, event.seq - 1) from None
        yield event, changed
