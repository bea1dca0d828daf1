"""Finding passages: no question is an error or a command to the index, and follow-ups find what was cited."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import porcelain  # noqa: F401  (declares the kinds)
from objstore.store import Store
from porcelain.session.documents.adding import add_sources, remove_sources
from porcelain.session.documents.retrieval import Evidence, Limits, retrieve
from porcelain.session.documents.search_index import index_path, open_index, quoted, reindex

DOCUMENTS = Path(__file__).resolve().parents[3] / "fixtures" / "documents"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.init(tmp_path_factory.mktemp("retrieval") / "store") as made:
        add_sources(made, [path for path in DOCUMENTS.iterdir() if path.suffix != ".pdf"])
        yield made


def find(store: Store, question: str, **more: object) -> list[Evidence]:
    with open_index(store) as (index, _), store.snapshot() as view:
        return retrieve(index, view, question, **more)  # type: ignore[arg-type]


def found_titles(store: Store, question: str, **more: object) -> list[str]:
    return list(dict.fromkeys(item.title for item in find(store, question, **more)))


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("When was the lighthouse first lit?", "The Lighthouse at Skarv Point"),
        ("What does a car cost on the ferries?", "ferry-timetable"),
        ("Who built the tide mill at Lund Bay?", "The Tide Mill of Lund Bay | a short history"),
        ("Who calculated the tide tables of the island?", "Tide tables of Holm Island"),
    ],
)
def test_the_right_document_comes_first(store: Store, question: str, title: str) -> None:
    assert found_titles(store, question)[0] == title


def test_what_is_nowhere_is_not_found(store: Store) -> None:
    assert find(store, "What is the capital of Mars?") == []
    assert find(store, "") == []


def test_evidence_says_where_it_is(store: Store) -> None:
    first = find(store, "lighthouse keepers diary")[0]
    with store.snapshot() as view:
        from porcelain.session.documents.documents import check_document, chunk_ids, chunk_text

        document = check_document(view, first.document)
        assert document.document_root == first.document_root
        assert chunk_ids(view, document)[first.position] == first.chunk
        assert chunk_text(view, first.chunk) == first.text
    assert first.number == 1


def test_a_follow_up_with_a_pronoun_finds_the_source_above(store: Store) -> None:
    assert "The Lighthouse at Skarv Point" not in found_titles(store, "And what did they pay for it?")
    with_title = found_titles(
        store, "And what did they pay for it?", titles=["The Lighthouse at Skarv Point"]
    )
    assert with_title[0] == "The Lighthouse at Skarv Point"


def test_the_nearest_title_counts_most(store: Store) -> None:
    titles = ["Tide tables of Holm Island", "The Lighthouse at Skarv Point"]
    assert found_titles(store, "Cost, roughly?", titles=titles)[:2] == titles
    assert found_titles(store, "Cost, roughly?", titles=titles[::-1])[:2] == titles[::-1]


def test_keywords_widen_the_search(store: Store) -> None:
    assert found_titles(store, "what else?", keywords="dogs lead fare") == ["ferry-timetable"]
    assert found_titles(store, "what else?") == []


def test_a_word_in_many_forms_is_found(store: Store) -> None:
    assert found_titles(store, "sailing crossings")[0] == "ferry-timetable"


def test_documents_share_the_places(tmp_path: Path) -> None:
    for name, times in (("big", 4000), ("small", 3)):
        (tmp_path / f"{name}.txt").write_text("".join(f"The kelp harvest {name} {n}. " for n in range(times)))
    with Store.init(tmp_path / "store") as store:
        add_sources(store, [tmp_path / "big.txt", tmp_path / "small.txt"])
        shared = find(store, "kelp harvest", limits=Limits(top_k=4, per_source=3))
        assert sorted(item.title for item in shared) == ["big", "big", "big", "small"]
        alone = find(store, "kelp harvest big", limits=Limits(top_k=4, per_source=3))
        assert [item.title for item in alone] == ["big"] * 4
        assert [item.number for item in alone] == [1, 2, 3, 4]


ODD = """AND|OR|NOT|NEAR(|NEAR(a b, 3)|*|"|'|^|title:|{title}:|(|)|-|+|ferry|😀|;DROP TABLE words;|%|a*|""|\ufffd|ﬁ"""
HOSTILE = st.lists(
    st.sampled_from([*ODD.split("|"), "\0", "e\u0301", "x" * 80]) | st.text(max_size=8), max_size=12
).map(" ".join)


@settings(max_examples=300)
@given(HOSTILE, st.lists(HOSTILE, max_size=3), HOSTILE)
def test_no_question_is_an_error_or_a_command(
    store: Store, question: str, titles: list[str], keywords: str
) -> None:
    with open_index(store) as (index, changes), store.snapshot() as view:
        before = index.chunks()
        found = retrieve(index, view, question, titles=titles, keywords=keywords)
        assert index.chunks() == before
        assert changes == (0, 0, 0)
    assert all(item.text for item in found)


@pytest.mark.parametrize(
    "question", ["x" * 100_000, "ferry " * 20_000, "😀" * 100_000, '"' * 100_000, "\0" * 100_000]
)
def test_long_questions_are_no_trouble(store: Store, question: str) -> None:
    expected = ["ferry-timetable"] if "ferry" in question else []
    assert found_titles(store, question)[:1] == expected


def test_words_of_the_query_language_are_words(store: Store) -> None:
    # As an operator NOT would take the ferry out.
    assert found_titles(store, "ferry NOT ferry")[0] == "ferry-timetable"
    assert quoted(['a"b', "c"], "AND") == '"a""b" AND "c"'


def test_the_index_follows_the_sources(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("The heron stands in the reeds.")
    with Store.init(tmp_path / "store") as store:
        add_sources(store, [note])
        assert found_titles(store, "heron") == ["note"]
        note.write_text("The otter swims in the brook.")
        add_sources(store, [note])
        assert found_titles(store, "heron") == []
        assert found_titles(store, "otter") == ["note"]
        remove_sources(store, ["note"])
        assert found_titles(store, "otter") == []
        with open_index(store) as (index, _):
            assert index.chunks() == 0


def test_following_and_making_anew_give_the_same(tmp_path: Path) -> None:
    notes = [tmp_path / f"n{n}.txt" for n in range(6)]
    for n, note in enumerate(notes):
        note.write_text(f"Gulls and terns {n}. " * (n + 1))
    with Store.init(tmp_path / "store") as store:
        for note in notes:
            add_sources(store, [note])
            find(store, "gulls")
        notes[2].write_text("Only terns here.")
        add_sources(store, notes)
        remove_sources(store, ["n4"])
        followed = find(store, "gulls and terns")
        assert reindex(store).added == 5
        assert find(store, "gulls and terns") == followed


@pytest.mark.parametrize("damage", ["missing", "garbage", "cut", "version", "emptied"])
def test_an_index_that_is_no_good_is_made_anew(tmp_path: Path, damage: str) -> None:
    note = tmp_path / "note.txt"
    note.write_text("The heron stands in the reeds. " * 200)
    with Store.init(tmp_path / "store") as store:
        add_sources(store, [note])
        assert found_titles(store, "heron") == ["note"]
        path = Path(index_path(store) or "")
        assert path.stat().st_mode & 0o077 == 0
        match damage:
            case "missing":
                path.unlink()
            case "garbage":
                path.write_bytes(b"not a database at all " * 400)
            case "cut":
                path.write_bytes(path.read_bytes()[:5000])
            case "version":
                with sqlite3.connect(path) as connection:
                    connection.execute("PRAGMA user_version=99")
                connection.close()
            case "emptied":
                path.write_bytes(b"")
        assert found_titles(store, "heron") == ["note"]


def _ask_elsewhere(path: str) -> int:
    with Store.open(path) as store:
        return sum(len(find(store, "gulls and terns")) for _ in range(3))


def test_many_processes_share_one_index(tmp_path: Path) -> None:
    for n in range(30):
        (tmp_path / f"n{n}.txt").write_text(f"Gulls and terns number {n}. " * 200)
    with Store.init(tmp_path / "store") as store:
        add_sources(store, [tmp_path / f"n{n}.txt" for n in range(30)])
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(_ask_elsewhere, [str(tmp_path / "store")] * 4)) == [24] * 4


def test_the_index_holds_no_text(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("The heron stands quietly in the reeds.")
    with Store.init(tmp_path / "store") as store:
        add_sources(store, [note])
        find(store, "heron")
        data = Path(index_path(store) or "").read_bytes()
        assert b"stands quietly" not in data
