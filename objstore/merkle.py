"""Merkle trees and inclusion proofs by the published ``merkle-v1`` rules.

A leaf is ``sha256(0x00 || content)``, a node ``sha256(0x03 || left || right)`` over the raw 32-byte digests
of its children, never over their hex text. Layers are paired from left to right; the last element of an odd
layer is paired with itself, at every layer. The root of no leaves is 32 zero bytes, and of one leaf that
leaf.

Pairing with itself has a price: ``[a, b, c]`` and ``[a, b, c, c]`` have the same root. So whoever takes a
list from elsewhere must know its length, or that its elements are distinct: ``root_of_sorted`` refuses equal
or unsorted ones, and ``verify_proof`` checks the shape of the tree where it is told the number of leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from operator import lt
from typing import Annotated

import msgspec

from objstore.digest import DIGEST_SIZE
from objstore.errors import CheckFailed, UsageError

#: Label of these rules; any change of them needs another one.
VERSION = "merkle-v1"
#: Root of a tree without leaves.
ZERO_HASH = bytes(DIGEST_SIZE)
#: Siblings in a proof: 2**64 leaves are more than any tree has.
MAX_PROOF_DEPTH = 64


class SiblingOrder(CheckFailed):
    """Hashes that must ascend strictly do not; ``index`` is that of the first not above the one before."""

    def __init__(self, index: int, *, equal: bool) -> None:
        super().__init__(
            f"hash {index} of the list {'repeats' if equal else 'sorts before'} the one in front of it"
        )
        self.index = index


class Sibling(msgspec.Struct, frozen=True):
    """One step of a proof: the hash (32 bytes) beside the path, and whether it goes to the left."""

    hash: bytes
    is_left: bool


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """That ``leaf`` is number ``leaf_index`` under ``root`` (32 bytes each); ``siblings`` go upwards."""

    leaf: bytes
    leaf_index: int
    root: bytes
    siblings: tuple[Sibling, ...]


def leaf_hash(content: bytes) -> bytes:
    """The 32-byte leaf for ``content``."""
    return sha256(b"\x00" + content).digest()


def hash_combine(left: bytes, right: bytes) -> bytes:
    """The 32-byte parent of two 32-byte hashes; raises ``UsageError`` for other lengths."""
    _require_digests((left, right))
    return _combine(left, right)


def _combine(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x03" + left + right).digest()


def _require_digests(hashes: Iterable[bytes]) -> None:
    for value in hashes:
        if not isinstance(value, bytes):
            raise UsageError(f"a hash must be {DIGEST_SIZE} raw bytes, not a {type(value).__name__}")
        if len(value) != DIGEST_SIZE:
            raise UsageError(f"a hash must be {DIGEST_SIZE} raw bytes, not {len(value)}")


def _parents(layer: Sequence[bytes]) -> list[bytes]:
    pairs = zip(layer[::2], layer[1::2], strict=False)
    parents = [sha256(b"\x03" + left + right).digest() for left, right in pairs]
    if len(layer) % 2:
        parents.append(_combine(layer[-1], layer[-1]))
    return parents


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over ``leaves``, which are hashes already (32 bytes each), in the order given."""
    _require_digests(leaves)
    if not leaves:
        return ZERO_HASH
    layer = leaves
    while len(layer) > 1:
        layer = _parents(layer)
    return layer[0]


def root_of_contents(contents: Iterable[bytes]) -> bytes:
    """The root over the leaf hashes of ``contents``, in the order given."""
    return root([leaf_hash(content) for content in contents])


def root_of_sorted(hashes: Sequence[bytes]) -> bytes:
    """The root over ``hashes`` (32 bytes each); raises ``SiblingOrder`` unless they ascend strictly."""
    if not all(map(lt, hashes, hashes[1:])):
        index = next(at for at in range(1, len(hashes)) if hashes[at - 1] >= hashes[at])
        raise SiblingOrder(index, equal=hashes[index - 1] == hashes[index])
    return root(hashes)


def prove(leaves: Sequence[bytes], index: int) -> Proof:
    """The proof that ``leaves[index]`` is under ``root(leaves)``; ``UsageError`` for an index outside."""
    _require_digests(leaves)
    if not 0 <= index < len(leaves):
        raise UsageError(f"no leaf {index} in a tree of {len(leaves)}")
    siblings = []
    layer, at = leaves, index
    while len(layer) > 1:
        beside = at ^ 1
        siblings.append(Sibling(layer[beside] if beside < len(layer) else layer[at], at % 2 == 1))
        layer, at = _parents(layer), at // 2
    return Proof(leaf=leaves[index], leaf_index=index, root=layer[0], siblings=tuple(siblings))


def root_of_path(leaf: bytes, siblings: Iterable[Sibling]) -> bytes:
    """The hash that ``siblings`` lead to from ``leaf``; raises ``UsageError`` for hashes of other lengths."""
    value = leaf
    for sibling in siblings:
        value = hash_combine(sibling.hash, value) if sibling.is_left else hash_combine(value, sibling.hash)
    return value


def verify_proof(proof: Proof, expected_root: bytes, *, size: int | None = None) -> bool:
    """Whether ``proof`` shows that its leaf is number ``leaf_index`` under ``expected_root``.

    ``expected_root`` must come from somewhere the caller trusts: the root inside the proof only has to agree.
    With ``size``, the number of leaves, the path must also have the shape of a tree that large, which leaves
    no room for the second index that a leaf paired with itself would have. Never raises: a malformed proof is
    a false one.
    """
    depth = len(proof.siblings)
    if depth > MAX_PROOF_DEPTH or proof.leaf_index < 0 or proof.leaf_index >> depth:
        return False
    if any(sibling.is_left != bool(proof.leaf_index >> at & 1) for at, sibling in enumerate(proof.siblings)):
        return False
    hashes = (proof.leaf, proof.root, *(sibling.hash for sibling in proof.siblings))
    if any(not isinstance(value, bytes) or len(value) != DIGEST_SIZE for value in hashes):
        return False
    if size is not None and not _has_shape(proof, size):
        return False
    return proof.root == expected_root and root_of_path(proof.leaf, proof.siblings) == expected_root


def _has_shape(proof: Proof, size: int) -> bool:
    """Whether the path of ``proof`` fits a tree of ``size`` leaves: its length, and its pairs of equals."""
    if not proof.leaf_index < size or len(proof.siblings) != (size - 1).bit_length():
        return False
    value, at, width = proof.leaf, proof.leaf_index, size
    for sibling in proof.siblings:
        if at ^ 1 >= width and sibling.hash != value:
            return False
        value = root_of_path(value, (sibling,))
        at, width = at // 2, (width + 1) // 2
    return True


_Hex = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class _SiblingDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hash: _Hex
    is_left: bool


class _ProofDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    leaf: _Hex
    leaf_index: Annotated[int, msgspec.Meta(ge=0)]
    root: _Hex
    siblings: Annotated[list[_SiblingDocument], msgspec.Meta(max_length=MAX_PROOF_DEPTH)]
    version: str


def proof_to_document(proof: Proof) -> dict[str, object]:
    """``proof`` as plain JSON values, hashes in lower-case hex, under the published names and ``version``."""
    return {
        "leaf": proof.leaf.hex(),
        "leaf_index": proof.leaf_index,
        "root": proof.root.hex(),
        "siblings": [{"hash": step.hash.hex(), "is_left": step.is_left} for step in proof.siblings],
        "version": VERSION,
    }


def proof_from_document(document: object) -> Proof:
    """The proof that ``proof_to_document`` wrote; raises ``CheckFailed`` for anything else."""
    try:
        read = msgspec.convert(document, _ProofDocument)
    except msgspec.ValidationError as error:
        raise CheckFailed(f"not an inclusion proof: {error}") from None
    if read.version != VERSION:
        raise CheckFailed(
            f"inclusion proof of unknown rules {read.version[:40]!r}", hint=f"this program knows {VERSION}"
        )
    return Proof(
        leaf=bytes.fromhex(read.leaf),
        leaf_index=read.leaf_index,
        root=bytes.fromhex(read.root),
        siblings=tuple(Sibling(bytes.fromhex(step.hash), step.is_left) for step in read.siblings),
    )
