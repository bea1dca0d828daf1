"""The node of a session tree: the object whose id is its ``node_hash``, and the hash of a node with what is below it.

The body of a node is exactly the seven keys that the published hash covers; it carries no ``type``.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Literal

from msgspec import Meta, Struct

from objstore import kinds
from objstore.core import ObjectId
from objstore.digest import DIGEST_SIZE
from objstore.errors import CheckFailed, UsageError
from objstore.merkle import hash_combine, leaf_hash, root_of_sorted
from objstore.objects import SESSION_NODE
from porcelain.session.tree.identity import is_bates, is_number, is_time

AuditMode = Literal["", "HYBRID", "STRICT", "UNGROUNDED"]
#: What an answer can be; the empty mode is the root's alone.
AUDIT_MODES = ("STRICT", "HYBRID", "UNGROUNDED")
#: Bytes of UTF-8 in a question, and in a label.
MAX_QUESTION = 64 * 1024
MAX_LABEL = 1024
_HEX = b"0123456789abcdef"


class Node(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One turn: a question, the key under which its answer was found, and the node it was asked under.

    ``label`` is a name that a person gave, or None. The root has no parent, and its question, ``cache_key`` and
    ``audit_mode`` are empty.
    """

    audit_mode: AuditMode
    bates: str
    cache_key: Annotated[str, Meta(max_length=64)]
    created_at: str
    label: str | None
    parent_node_hash: ObjectId | None
    question: str


def check_node(node: Node) -> None:
    """Raise ``CheckFailed`` for what the types of a node cannot say."""
    if not is_bates(node.bates):
        raise CheckFailed(f"{node.bates[:60]!r}: not a Bates id")
    if not is_time(node.created_at):
        raise CheckFailed(f"{node.bates}: created_at is not a time of the form 2026-01-31T23:59:59Z")
    if "\x00" in node.question or (node.label is not None and "\x00" in node.label):
        raise CheckFailed(f"{node.bates}: question or label holds NUL, at which text ends in SQLite")
    if node.bates.endswith("-000000"):
        if node.parent_node_hash is not None or node.question or node.cache_key or node.audit_mode:
            raise CheckFailed(f"{node.bates}: a root has no parent, question, cache_key or audit_mode")
    elif node.parent_node_hash is None or not node.audit_mode or not _is_key(node.cache_key):
        raise CheckFailed(
            f"{node.bates}: a turn has a parent, a cache_key of 64 hex digits and an audit_mode"
        )


def _is_key(text: str) -> bool:
    return len(text) == 64 and are_hex_digits(text)


def are_hex_digits(text: str) -> bool:
    """Whether nothing but lower-case hexadecimal digits is in ``text``; the quickest way to ask there is."""
    return text.isascii() and not text.encode().translate(None, _HEX)


def root_node(sid: str, created_at: str) -> Node:
    """Node 0 of a session."""
    return Node(
        audit_mode="",
        bates=f"{sid}-{0:06d}",
        cache_key="",
        created_at=created_at,
        label=None,
        parent_node_hash=None,
        question="",
    )


def node_hash(node: Node) -> bytes:
    """The 32-byte ``node_hash``: SHA-256 of the node's canonical bytes."""
    return sha256(kinds.encode(node)).digest()


def subtree_hash(node_digest: bytes, children: Sequence[bytes]) -> bytes:
    """The hash of a node and what is below it.

    ``node_digest`` is its ``node_hash``, ``children`` the subtree hashes of its children (32 raw bytes each) in
    ascending order; raises ``merkle.SiblingOrder`` when two are equal or out of order.
    """
    return hash_over(leaf_hash(node_digest), children)


def hash_over(leaf: bytes, children: Sequence[bytes]) -> bytes:
    """``subtree_hash`` of a node whose leaf hash is at hand."""
    if not children:
        return leaf
    if len(children) == 1 and len(leaf) == len(children[0]) == DIGEST_SIZE:
        # The common case; the general way spends most of its time on checking what was just checked.
        return sha256(b"\x03" + leaf + children[0]).digest()
    return hash_combine(leaf, root_of_sorted(children))


def same_turn(one: Node, other: Node) -> bool:
    """Whether two nodes are one turn: labels, and what the parent's label changes, do not count."""
    return turn_of(one) == turn_of(other)


def turn_of(node: Node) -> tuple[str, str, str, str, str]:
    """What makes a turn itself, whatever label it or a node above it bears."""
    return node.bates, node.question, node.cache_key, node.audit_mode, node.created_at


def check_text(what: str, text: str, limit: int) -> str:
    """``text`` (a question or label, ``what`` says which), or ``UsageError`` when no node may hold it."""
    if "\x00" in text:
        raise UsageError(f"a {what} may not hold NUL")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise UsageError(f"a {what} may not hold half of a surrogate pair") from None
    if size > limit:
        raise UsageError(f"a {what} may have {limit} bytes, this one has {size}")
    return text


def check_label(label: str) -> str:
    """``label``, or ``UsageError`` for one that could not be told from a number or a Bates id."""
    check_text("label", label, MAX_LABEL)
    if not label.strip() or label != label.strip() or not label.isprintable():
        raise UsageError("a label is printable text without blanks at its ends")
    if is_bates(label) or is_number(label):
        raise UsageError(f"{label!r}: not a label: it reads as the number of a node")
    return label


SESSION_NODE_KIND = kinds.register(
    kinds.Kind(
        name=SESSION_NODE,
        struct=Node,
        needs=lambda node: () if node.parent_node_hash is None else (node.parent_node_hash,),
        check=check_node,
    )
)
