"""Proofs about a session: that a node stands where it does under a root, and that one root became another by exactly
one insertion.

A proof is a plain JSON document that names the root it was made for; ``proof_checking`` checks it without a store.
Bodies of the ancestors are in it, since a root alone does not bind the shape of a tree: the parent that each body names
does. A proof made before a node on the path was labelled holds for the roots of that time only.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from objstore.errors import CheckFailed, NotFound
from objstore.merkle import prove, root_of_sorted
from objstore.snapshot import Snapshot
from porcelain.session.integrity.proof_checking import INCLUSION, INSERTION, RULES_DOCUMENT
from porcelain.session.tree.change import Session
from porcelain.session.tree.identity import bates_of
from porcelain.session.tree.index import TreeIndex
from porcelain.session.tree.nodes import Node
from porcelain.session.tree.replay import Tree, main_chain, replay


class _AsOf:
    """The tree as of a root that the session had, and how to get at its nodes."""

    def __init__(self, view: Snapshot, session: Session, number: int) -> None:
        chain = main_chain(view, bytes.fromhex(session.state.head))[:number]
        self.tree: Tree = replay(view, chain)
        self.index = TreeIndex.of_tree(session.sid, self.tree)
        self.event = chain[-1][1]


def prove_node(view: Snapshot, session: Session, seq: int, *, root: str | None = None) -> dict[str, Any]:
    """The proof that node ``seq`` is under ``root`` (hex; None: the root there is now), as a document.

    Raises ``NotFound`` when the session never had that root, or had no such node then.
    """
    if root is None or root == session.state.root:
        index = session.index
        if seq not in index:
            raise NotFound(f"{session.sid}: has no node {seq}")
        return _inclusion(index, seq, lambda at: session.node(view, at))
    as_of = _AsOf(view, session, _number(session, root))
    if seq not in as_of.tree.nodes:
        raise NotFound(f"{bates_of(session.sid, seq)}: was not yet there under the root {root}")
    return _inclusion(as_of.index, seq, as_of.tree.nodes.__getitem__)


def _number(session: Session, root: str) -> int:
    number = None
    if len(root) == 64 and not root.strip("0123456789abcdef"):
        number = session.index.event_number(bytes.fromhex(root))
    if number is None:
        raise NotFound(f"{root[:80]}: was never the root of {session.sid}")
    return number


def _inclusion(index: TreeIndex, seq: int, node: Any) -> dict[str, Any]:
    below = [digest for digest, _ in index.children(seq)]
    ancestors: list[dict[str, Any]] = []
    path = index.path(seq)
    for child, at in pairwise(path):
        siblings = [digest for digest, _ in index.children(at)]
        proof = prove(siblings, siblings.index(index.subtree_hash(child)))
        ancestors.append(
            {
                "node": _body(node(at)),
                "siblings": [{"hash": step.hash.hex(), "is_left": step.is_left} for step in proof.siblings],
            }
        )
    return {
        "ancestors": ancestors,
        "children_root": root_of_sorted(below).hex() if below else None,
        "node": _body(node(seq)),
        "proof": INCLUSION,
        "rules": dict(RULES_DOCUMENT),
        "session_root": index.subtree_hash(0).hex(),
    }


def prove_insertion(view: Snapshot, session: Session, seq: int) -> dict[str, Any]:
    """The proof that the event which brought node ``seq`` inserted that node and did nothing else, as a document.

    The siblings along the path are in it as whole lists. Raises ``NotFound``; ``CheckFailed`` for the root, which was
    not inserted into anything.
    """
    if seq not in session.index:
        raise NotFound(f"{session.sid}: has no node {seq}")
    if seq == 0:
        raise CheckFailed(f"{session.sid}: its root was not inserted")
    event = session.event(view, seq)
    as_of = _AsOf(view, session, event.seq)
    index, nodes = as_of.index, as_of.tree.nodes
    path = index.path(seq)
    ancestors = []
    for child, at in pairwise(path):
        others = [digest.hex() for digest, one in index.children(at) if one != child]
        ancestors.append({"node": _body(nodes[at]), "other_children": others})
    return {
        "ancestors": ancestors,
        "new_root": event.body.session_root,
        "node": _body(nodes[seq]),
        "old_root": event.body.prev_root,
        "proof": INSERTION,
        "rules": dict(RULES_DOCUMENT),
    }


def _body(node: Node) -> dict[str, Any]:
    return {name: getattr(node, name) for name in node.__struct_fields__}
