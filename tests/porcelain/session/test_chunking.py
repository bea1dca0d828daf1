"""Chunks are a partition of the text, and the document root is over them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from objstore import merkle
from porcelain.session.documents.chunking import CHARACTERS, TOKENS, chunks, document_root, leaf

TOKEN = re.compile(r"\w{1,32}|[^\w\s]")


@given(
    st.lists(st.text(alphabet=st.sampled_from("aé .\n\t-。x"), max_size=400), max_size=40).map("\n\n".join)
)
def test_chunks_are_the_text_again_and_none_is_too_large(text: str) -> None:
    found = list(chunks(text))
    assert "".join(found) == text
    assert all(found)
    assert all(len(chunk) <= CHARACTERS and len(TOKEN.findall(chunk)) <= TOKENS for chunk in found)


@given(st.text(max_size=200), st.integers(1, 300))
def test_any_text_repeated_is_cut_without_loss(text: str, times: int) -> None:
    whole = text * times
    assert "".join(chunks(whole)) == whole


def test_a_long_run_without_blanks_is_cut() -> None:
    found = list(chunks("x" * 100_000))
    assert "".join(found) == "x" * 100_000
    assert max(map(len, found)) <= CHARACTERS


def test_a_long_run_of_blanks_is_cut() -> None:
    assert "".join(chunks(" " * 50_000 + "end")) == " " * 50_000 + "end"


def test_cuts_go_between_paragraphs_where_they_can() -> None:
    text = "\n\n".join(f"Paragraph {n} says one thing and then another." for n in range(300))
    found = list(chunks(text))
    assert len(found) > 3
    assert all(chunk.startswith("Paragraph") and chunk.endswith(".\n\n") for chunk in found[:-1])


def test_cuts_go_between_sentences_where_there_are_no_paragraphs() -> None:
    found = list(chunks("This is a sentence of words. " * 400))
    assert all(chunk.startswith("This") and chunk.endswith(". ") for chunk in found)


def test_root_is_over_the_chunks_in_order() -> None:
    leaves = [leaf(text) for text in ("one", "two", "three")]
    assert leaves[0] == merkle.leaf_hash(b"one")
    assert document_root(leaves) == merkle.root_of_contents([b"one", b"two", b"three"])
    assert document_root(leaves) != document_root(leaves[::-1])
    assert document_root(leaves[:1]) == leaves[0]
