"""Checking proofs about sessions, with nothing but the document: no store, no network, no clock.

What a proof shows it shows about the root it names. Whether that root is one to be trusted, the reader must know from
elsewhere: ``expect`` compares it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from objstore.core import ObjectId
from objstore.errors import CheckFailed
from objstore.merkle import Sibling, SiblingOrder, hash_combine, leaf_hash, root_of_path
from porcelain.session.tree.events import RULES
from porcelain.session.tree.identity import MAX_SEQ, seq_of, split_bates
from porcelain.session.tree.nodes import Node, check_node, node_hash, subtree_hash

INCLUSION: Literal["session-inclusion-1"] = "session-inclusion-1"
INSERTION: Literal["session-insertion-1"] = "session-insertion-1"
RULES_DOCUMENT = {"canonical": RULES.canonical, "merkle": RULES.merkle}

#: Steps from a child to the hash over all children: a node has fewer than 2**20.
_MAX_STEPS = 20


class ProofRules(Struct, frozen=True, forbid_unknown_fields=True):
    """The rules by which the hashes of a proof are made."""

    canonical: str
    merkle: str


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """A hash beside the path, and whether it goes to the left."""

    hash: ObjectId
    is_left: bool


class Ancestor(Struct, frozen=True, forbid_unknown_fields=True):
    """A node above the one before, and how the hash of that one leads to the hash over its children."""

    node: Node
    siblings: Annotated[list[Step], Meta(max_length=_MAX_STEPS)]


class Inclusion(Struct, frozen=True, forbid_unknown_fields=True):
    """That ``node`` is under ``session_root``; ``ancestors`` go from its parent to node 0. ``children_root`` is the
    hash over its children, None where it has none."""

    ancestors: Annotated[list[Ancestor], Meta(max_length=MAX_SEQ)]
    children_root: ObjectId | None
    node: Node
    proof: Literal["session-inclusion-1"]
    rules: ProofRules
    session_root: ObjectId


class Widened(Struct, frozen=True, forbid_unknown_fields=True):
    """A node above an inserted one, and the subtree hashes of all children that are not on the path, ascending."""

    node: Node
    other_children: Annotated[list[ObjectId], Meta(max_length=MAX_SEQ)]


class Insertion(Struct, frozen=True, forbid_unknown_fields=True):
    """That ``node`` and nothing else was inserted between ``old_root`` and ``new_root``."""

    ancestors: Annotated[list[Widened], Meta(min_length=1, max_length=MAX_SEQ)]
    new_root: ObjectId
    node: Node
    old_root: ObjectId
    proof: Literal["session-insertion-1"]
    rules: ProofRules


class Proven(Struct, frozen=True, kw_only=True):
    """What a proof shows: ``bates`` stands under ``path`` (its ancestors, node 0 last) and ``root``; for an insertion
    ``old_root`` is the root before it."""

    kind: Literal["inclusion", "insertion"]
    bates: str
    question: str
    node_hash: str
    path: tuple[str, ...]
    root: str
    old_root: str | None = None


_KIND = msgspec.json.Decoder(dict[str, msgspec.Raw])
_INCLUSION = msgspec.json.Decoder(Inclusion)
_INSERTION = msgspec.json.Decoder(Insertion)


def check_proof(data: bytes, *, expect: str | None = None) -> Proven:
    """What the proof in ``data`` (JSON text) shows; with ``expect``, about that root (hex).

    Raises ``CheckFailed`` for one that shows nothing, with the reason.
    """
    try:
        kind = bytes(_KIND.decode(data).get("proof", b""))
        if kind == b'"session-inclusion-1"':
            proven = check_inclusion(_INCLUSION.decode(data))
        elif kind == b'"session-insertion-1"':
            proven = check_insertion(_INSERTION.decode(data))
        else:
            raise CheckFailed("not a proof about a session that this program knows")
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise CheckFailed(f"not a proof about a session: {error}") from None
    if expect is not None and proven.root != expect:
        raise CheckFailed(f"the proof is about the root {proven.root}, not about {expect[:80]}")
    return proven


def check_inclusion(proof: Inclusion) -> Proven:
    """What an inclusion proof shows. Raises ``CheckFailed``."""
    _check_rules(proof.rules)
    path = _check_path(proof.node, [one.node for one in proof.ancestors])
    value = leaf_hash(node_hash(proof.node))
    if proof.children_root is not None:
        value = hash_combine(value, bytes.fromhex(proof.children_root))
    for ancestor in proof.ancestors:
        for step in ancestor.siblings:
            sibling = Sibling(bytes.fromhex(step.hash), step.is_left)
            if sibling.is_left and sibling.hash == value:
                raise CheckFailed(
                    f"{ancestor.node.bates}: a hash is paired with itself on its right, not on its left"
                )
            value = root_of_path(value, (sibling,))
        value = hash_combine(leaf_hash(node_hash(ancestor.node)), value)
    if value.hex() != proof.session_root:
        raise CheckFailed(
            f"{proof.node.bates}: the path leads to the root {value.hex()}, not to the one stated"
        )
    return Proven(
        kind="inclusion",
        bates=proof.node.bates,
        question=proof.node.question,
        node_hash=node_hash(proof.node).hex(),
        path=path,
        root=proof.session_root,
    )


def check_insertion(proof: Insertion) -> Proven:
    """What an insertion proof shows. Raises ``CheckFailed``."""
    _check_rules(proof.rules)
    path = _check_path(proof.node, [one.node for one in proof.ancestors])
    before: bytes | None = None
    after = leaf_hash(node_hash(proof.node))
    for ancestor in proof.ancestors:
        digest = node_hash(ancestor.node)
        others = [bytes.fromhex(one) for one in ancestor.other_children]
        try:
            # The list as it was sent must ascend; only then may the hash on the path be put where it belongs.
            subtree_hash(digest, others)
            before = subtree_hash(digest, others if before is None else sorted([*others, before]))
            after = subtree_hash(digest, sorted([*others, after]))
        except SiblingOrder as error:
            raise CheckFailed(f"{ancestor.node.bates}: its children: {error.message}") from None
    for found, stated, which in ((before, proof.old_root, "old"), (after, proof.new_root, "new")):
        if found is None or found.hex() != stated:
            raise CheckFailed(f"{proof.node.bates}: the path does not lead to the {which} root stated")
    return Proven(
        kind="insertion",
        bates=proof.node.bates,
        question=proof.node.question,
        node_hash=node_hash(proof.node).hex(),
        path=path,
        root=proof.new_root,
        old_root=proof.old_root,
    )


def _check_rules(rules: ProofRules) -> None:
    if {"canonical": rules.canonical, "merkle": rules.merkle} != RULES_DOCUMENT:
        raise CheckFailed(
            "the proof was made by rules unknown here", hint=f"this program knows {RULES_DOCUMENT}"
        )


def _check_path(node: Node, ancestors: list[Node]) -> tuple[str, ...]:
    """The Bates ids above ``node``; raises ``CheckFailed`` unless each body names the next as its parent, up to 0."""
    below = node
    check_node(node)
    for one in ancestors:
        check_node(one)
        if split_bates(one.bates)[0] != split_bates(below.bates)[0] or seq_of(one.bates) >= seq_of(
            below.bates
        ):
            raise CheckFailed(f"{below.bates}: cannot stand under {one.bates}")
        if below.parent_node_hash != node_hash(one).hex():
            raise CheckFailed(f"{below.bates}: does not name {one.bates} as its parent")
        below = one
    if seq_of(below.bates) != 0:
        raise CheckFailed(f"{below.bates}: the path ends here, below the root of the session")
    return tuple(one.bates for one in ancestors)


def proof_bytes(document: dict[str, Any]) -> bytes:
    """A proof as text: canonical JSON and a line end."""
    return msgspec.json.encode(document, order="sorted") + b"\n"
