from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore import merkle
from objstore.errors import CheckFailed, UsageError
from objstore.merkle import Proof, Sibling

ONES = b"\xff" * 32
HASHES = st.binary(min_size=32, max_size=32)
LEAF_LISTS = st.lists(HASHES, min_size=1, max_size=40)


def leaves(count: int) -> list[bytes]:
    return [merkle.leaf_hash(f"leaf-{i}".encode()) for i in range(count)]


# Known answers that anybody can look up, so that these tests mean something without the shared folder.


def test_leaf_known_answers() -> None:
    assert merkle.leaf_hash(b"").hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert (
        merkle.leaf_hash(b"hello world").hex()
        == "4eccf34608d31bac5c7becf6006df59005d828181056d092084e341e6bb005bd"
    )


def test_combine_known_answers() -> None:
    zero = merkle.ZERO_HASH
    both_zero = "dc48a742ae32cfd66352372d6120ed14d6629fc166246b05ff8b03e23804701f"
    assert merkle.hash_combine(zero, zero).hex() == both_zero
    zero_ones = "674b99bfbe803009322662e5f61881ebd9ae36484c440d9751011f915802aa1e"
    assert merkle.hash_combine(zero, ONES).hex() == zero_ones
    ones_zero = "1bc8272ae9ccdd814465a309a085b62f83dddf03d53588616215c5b5368d1b91"
    assert merkle.hash_combine(ONES, zero).hex() == ones_zero


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "00" * 32),
        (1, "305df59f9590c3c9ac63d2b2743c388e3792449078cebf7fb3dbe6471643b2b7"),
        (2, "c8fff977da3afb3b48d908a86b1485f72296cfd4aa8af4c4da1a6fb872e0ee9a"),
        (3, "c8cba83c8bf2cfb2ded462895f98915f8c4fbe96776a294457fca82106ec364c"),
        (17, "1799f330a944ef0a129bc793d1220326836f53f3baaa91d24531f27b6f534cc7"),
    ],
)
def test_root_known_answers(count: int, expected: str) -> None:
    assert merkle.root(leaves(count)).hex() == expected
    assert merkle.root_of_contents(f"leaf-{i}".encode() for i in range(count)).hex() == expected


# Every published vector.


@pytest.fixture(scope="module")
def vectors(shared: Path) -> dict[str, str]:
    """The vectors page: heading (its first two words) -> text of the section."""
    text = (shared / "vectors" / "merkle-v1.md").read_text(encoding="utf-8")
    sections = re.split(r"(?m)^## ", text)[1:]
    return {" ".join(section.split()[:2]): section for section in sections}


def table(section: str) -> list[list[str]]:
    """The cells of a section's table, without its two header lines."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def section(vectors: dict[str, str], start: str) -> str:
    return next(text for name, text in vectors.items() if name.startswith(start))


def content_named(name: str) -> bytes:
    """The bytes that a row of the leaf table describes in words."""
    fixed = {
        "empty": b"",
        "one NUL byte": b"\0",
        "32 zero bytes": bytes(32),
        "ASCII hello world": b"hello world",
    }
    if name in fixed:
        return fixed[name]
    if found := re.search(r"\bhex ([0-9a-f]+)$", name):
        return bytes.fromhex(found[1])
    if found := re.fullmatch(r"(\d+) x (\w)", name):
        return found[2].encode() * int(found[1])
    assert name.startswith("bytes 00..ff repeated 4 times")
    return bytes(range(256)) * 4


def test_published_leaves(vectors: dict[str, str]) -> None:
    rows = table(section(vectors, "leaf_hash"))
    assert len(rows) == 9
    for name, expected, _mark in rows:
        assert merkle.leaf_hash(content_named(name)).hex() == expected, name


def test_published_combines(vectors: dict[str, str]) -> None:
    rows = table(section(vectors, "hash_combine"))
    assert len(rows) == 5
    for left, right, expected, _mark in rows:
        assert merkle.hash_combine(bytes.fromhex(left), bytes.fromhex(right)).hex() == expected


def test_published_roots(vectors: dict[str, str]) -> None:
    text = section(vectors, "roots;")
    rows = table(text)
    assert len(rows) == 23
    for count, _widths, expected, _mark in rows:
        assert merkle.root(leaves(int(count))).hex() == expected, count
    listed = re.findall(r"(?m)^[0-9a-f]{64}$", text)
    assert listed == [leaf.hex() for leaf in leaves(17)]


def published_proofs(vectors: dict[str, str]) -> list[tuple[int, Proof]]:
    found = []
    for line in re.findall(r"(?m)^\{.*\}$", section(vectors, "inclusion")):
        row = json.loads(line)
        siblings = tuple(Sibling(bytes.fromhex(text), is_left) for text, is_left in row["siblings"])
        of = leaves(row["n"])
        index = row["index"]
        found.append(
            (row["n"], Proof(leaf=of[index], leaf_index=index, root=merkle.root(of), siblings=siblings))
        )
    assert len(found) == 16
    return found


def test_published_proofs(vectors: dict[str, str]) -> None:
    for count, proof in published_proofs(vectors):
        assert merkle.prove(leaves(count), proof.leaf_index) == proof
        assert merkle.verify_proof(proof, proof.root)
        assert merkle.verify_proof(proof, proof.root, size=count)


def with_first_flag_inverted(proof: Proof) -> Proof:
    first, *rest = proof.siblings
    return Proof(
        leaf=proof.leaf,
        leaf_index=proof.leaf_index,
        root=proof.root,
        siblings=(Sibling(first.hash, not first.is_left), *rest),
    )


def with_leaf(proof: Proof, leaf: bytes) -> Proof:
    return Proof(leaf=leaf, leaf_index=proof.leaf_index, root=proof.root, siblings=proof.siblings)


def test_published_negatives(vectors: dict[str, str]) -> None:
    checked = 0
    for _count, proof in published_proofs(vectors):
        if proof.leaf_index == 0:
            inverted = with_first_flag_inverted(proof)
            assert not merkle.verify_proof(inverted, proof.root)
            assert merkle.root_of_path(inverted.leaf, inverted.siblings) != proof.root
            flipped = with_leaf(proof, bytes([proof.leaf[0] ^ 1]) + proof.leaf[1:])
            assert not merkle.verify_proof(flipped, proof.root)
            checked += 1
    assert checked == 3


def test_published_roots_over_digests(vectors: dict[str, str]) -> None:
    text = section(vectors, "merkle-v1 over")
    digests = [bytes.fromhex(word) for word in re.findall(r"\b[0-9a-f]{64}\b", text.split("digests: ")[1])]
    rows = re.findall(r"digests\[0:(\d)\] -> ([0-9a-f]{64})", text)
    assert len(rows) == len(digests) == 4
    for count, expected in rows:
        assert merkle.root_of_contents(digests[: int(count)]).hex() == expected


# Malleability, as facts about the rules, and what stands against it.


def test_a_repeated_tail_keeps_the_root() -> None:
    a = leaves(6)
    assert merkle.root(a[:3]) == merkle.root([*a[:3], a[2]])
    assert merkle.root(a[:5]) == merkle.root([*a[:5], a[4]]) == merkle.root([*a[:5], a[4], a[4], a[4]])
    assert merkle.root(a) == merkle.root([*a, a[4], a[5]])


def test_size_refuses_the_second_index_of_a_leaf() -> None:
    a = leaves(3)
    forged = merkle.prove([*a, a[2]], 3)
    assert merkle.verify_proof(forged, merkle.root(a))
    assert not merkle.verify_proof(forged, merkle.root(a), size=3)


def test_size_refuses_a_tail_that_is_no_repetition() -> None:
    a = leaves(4)
    proof = merkle.prove(a, 2)
    assert not merkle.verify_proof(proof, merkle.root(a), size=3)
    assert not merkle.verify_proof(proof, merkle.root(a), size=5)
    assert merkle.verify_proof(proof, merkle.root(a), size=4)


@given(st.lists(HASHES, unique=True, max_size=20))
def test_sorted_root_is_the_root(hashes: list[bytes]) -> None:
    hashes.sort()
    assert merkle.root_of_sorted(hashes) == merkle.root(hashes)


@given(st.lists(HASHES, unique=True, min_size=2, max_size=20), st.data())
def test_sorted_root_refuses_equal_and_unsorted(hashes: list[bytes], data: st.DataObject) -> None:
    hashes.sort()
    at = data.draw(st.integers(1, len(hashes) - 1))
    twice = [*hashes[:at], hashes[at - 1], *hashes[at:]]
    with pytest.raises(merkle.SiblingOrder, match="repeats") as caught:
        merkle.root_of_sorted(twice)
    assert caught.value.index == at
    assert isinstance(caught.value, CheckFailed)
    hashes[at - 1], hashes[at] = hashes[at], hashes[at - 1]
    with pytest.raises(merkle.SiblingOrder, match="sorts before"):
        merkle.root_of_sorted(hashes)


# Properties.


def recursive_root(items: list[bytes]) -> bytes:
    """The definition, read another way: a tree of 2**k places whose missing right halves repeat the left
    ones."""
    size = 1 << (len(items) - 1).bit_length()

    def node(start: int, width: int) -> bytes:
        if width == 1:
            return items[start]
        left = node(start, width // 2)
        middle = start + width // 2
        return merkle.hash_combine(left, node(middle, width // 2) if middle < len(items) else left)

    return node(0, size)


@given(LEAF_LISTS)
def test_root_equals_the_recursive_definition(items: list[bytes]) -> None:
    assert merkle.root(items) == recursive_root(items)


@given(LEAF_LISTS, st.data())
def test_every_proof_verifies_and_changed_ones_do_not(items: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(items) - 1))
    root = merkle.root(items)
    proof = merkle.prove(items, index)
    assert merkle.verify_proof(proof, root)
    assert merkle.verify_proof(proof, root, size=len(items))
    assert merkle.root_of_path(proof.leaf, proof.siblings) == root
    assert merkle.proof_from_document(json.loads(json.dumps(merkle.proof_to_document(proof)))) == proof

    bit = data.draw(st.integers(0, 255))
    flip = (1 << bit).to_bytes(32, "big")
    changed = bytes(a ^ b for a, b in zip(proof.leaf, flip, strict=True))
    assert not merkle.verify_proof(with_leaf(proof, changed), root)
    assert not merkle.verify_proof(proof, bytes(a ^ b for a, b in zip(root, flip, strict=True)))
    for at, step in enumerate(proof.siblings):
        other = Sibling(bytes(a ^ b for a, b in zip(step.hash, flip, strict=True)), step.is_left)
        siblings = (*proof.siblings[:at], other, *proof.siblings[at + 1 :])
        assert not merkle.verify_proof(
            Proof(leaf=proof.leaf, leaf_index=index, root=root, siblings=siblings), root
        )


@given(LEAF_LISTS, st.data())
def test_the_index_is_bound_by_the_sides(items: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(items) - 1))
    proof = merkle.prove(items, index)
    other = data.draw(st.integers(-3, 2 * len(items)).filter(lambda i: i != index))
    moved = Proof(leaf=proof.leaf, leaf_index=other, root=proof.root, siblings=proof.siblings)
    assert not merkle.verify_proof(moved, proof.root)


# Bad input.


@pytest.mark.parametrize("bad", [b"", b"\0" * 31, b"\0" * 33, "00" * 16, ("ab" * 32).encode()])
def test_hashes_of_other_lengths_are_refused(bad: bytes) -> None:
    good = merkle.ZERO_HASH
    for call in (
        lambda: merkle.hash_combine(bad, good),
        lambda: merkle.hash_combine(good, bad),
        lambda: merkle.root([bad]),
        lambda: merkle.root([good, bad]),
        lambda: merkle.prove([good, bad], 0),
        lambda: merkle.root_of_sorted([bad]),
    ):
        with pytest.raises(UsageError, match="32 raw bytes"):
            call()
    assert not merkle.verify_proof(Proof(leaf=bad, leaf_index=0, root=bad, siblings=()), bad)
    beside = Proof(leaf=good, leaf_index=0, root=good, siblings=(Sibling(bad, False),))
    assert not merkle.verify_proof(beside, good)


@pytest.mark.parametrize("index", [-1, 3, 10**30])
def test_no_proof_for_an_index_outside(index: int) -> None:
    with pytest.raises(UsageError, match="in a tree of 3"):
        merkle.prove(leaves(3), index)


def test_a_path_longer_than_64_fails() -> None:
    value = leaf = merkle.leaf_hash(b"")
    steps = []
    for _ in range(65):
        steps.append(Sibling(value, False))
        value = merkle.hash_combine(value, value)
    proof = Proof(leaf=leaf, leaf_index=0, root=value, siblings=tuple(steps))
    assert merkle.root_of_path(leaf, steps) == value
    assert not merkle.verify_proof(proof, value)
    short = Proof(
        leaf=leaf, leaf_index=0, root=merkle.root_of_path(leaf, steps[:64]), siblings=tuple(steps[:64])
    )
    assert merkle.verify_proof(short, short.root)


def test_a_root_of_its_own_is_not_enough() -> None:
    proof = merkle.prove(leaves(4), 1)
    assert not merkle.verify_proof(proof, merkle.root(leaves(5)))
    claimed = Proof(leaf=proof.leaf, leaf_index=1, root=merkle.ZERO_HASH, siblings=proof.siblings)
    assert not merkle.verify_proof(claimed, merkle.root(leaves(4)))


def test_many_leaves_need_no_recursion() -> None:
    items = leaves(5000)
    assert merkle.verify_proof(merkle.prove(items, 4999), merkle.root(items), size=5000)


@pytest.mark.parametrize(
    "change",
    [
        {"leaf": "AB" * 32},
        {"leaf": "ab" * 31},
        {"root": "ab" * 32 + "\n"},
        {"leaf_index": -1},
        {"leaf_index": "0"},
        {"leaf_index": True},
        {"siblings": [{"hash": "ab" * 32}]},
        {"siblings": [{"hash": "ab" * 32, "is_left": 1}]},
        {"siblings": [["ab" * 32, True]]},
        {"siblings": [{"hash": "ab" * 32, "is_left": False}] * 65},
        {"version": "merkle-v2"},
        {"more": 1},
    ],
)
def test_bad_proof_documents(change: dict[str, object]) -> None:
    document = merkle.proof_to_document(merkle.prove(leaves(3), 1))
    assert merkle.proof_from_document(document)
    with pytest.raises(CheckFailed, match="proof"):
        merkle.proof_from_document({**document, **change})


def test_a_proof_document_is_plain_json() -> None:
    document = merkle.proof_to_document(merkle.prove([merkle.ZERO_HASH, ONES], 1))
    assert document == {
        "leaf": "ff" * 32,
        "leaf_index": 1,
        "root": "674b99bfbe803009322662e5f61881ebd9ae36484c440d9751011f915802aa1e",
        "siblings": [{"hash": "00" * 32, "is_left": True}],
        "version": "merkle-v1",
    }
