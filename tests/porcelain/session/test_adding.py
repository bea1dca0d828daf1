"""Documents in a store: adding, adding again, changing, removing, and uniting two stores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import porcelain  # noqa: F401  (declares the kinds)
from objstore.core import ListOf
from objstore.errors import CheckFailed, NotFound
from objstore.kinds import encode, lookup
from objstore.memory import MemoryDatabase
from objstore.store import Store, load
from porcelain.session.documents import adding
from porcelain.session.documents.adding import add_sources, remove_sources
from porcelain.session.documents.chunking import document_root, leaf
from porcelain.session.documents.documents import check_document, placed_chunks, put_document
from porcelain.session.documents.kinds import DocumentChunk
from porcelain.session.documents.sources import chain_ref, live_sources

DOCUMENTS = Path(__file__).resolve().parents[3] / "fixtures" / "documents"
SECRET = "ghp_" + "F4kE" * 9


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.init(tmp_path / "store") as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notes"
    (made / "deep" / "er").mkdir(parents=True)
    (made / "one.txt").write_text("The first note.\n")
    (made / "deep" / "two.md").write_text("# Second\n\nThe second note.\n")
    (made / "deep" / "er" / "three.html").write_text("<title>Third</title><p>The third note.")
    (made / ".hidden").mkdir()
    (made / ".hidden" / "four.txt").write_text("not wanted")
    (made / "picture.png").write_bytes(b"\x89PNG\0")
    return made


def titles(store: Store) -> set[str]:
    with store.snapshot() as view:
        return {source.title for source in live_sources(view)}


def text_of(store: Store, title: str) -> str:
    with store.snapshot() as view:
        (source,) = [source for source in live_sources(view) if source.title == title]
        return "".join(placed.text for placed in placed_chunks(view, source.document))


def test_a_folder_gives_its_documents_at_any_depth(store: Store, folder: Path) -> None:
    report = add_sources(store, [folder])
    assert sorted(report.new) == ["Second", "Third", "one"]
    assert not report.problems
    assert titles(store) == {"one", "Second", "Third"}
    assert text_of(store, "one") == "The first note.\n"
    assert store.verify().ok


def test_adding_again_reads_nothing(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_sources(store, [folder])
    before = store.refs()
    monkeypatch.setattr(adding, "extract", lambda *_: pytest.fail("a file was read again"))
    report = add_sources(store, [folder, folder / "one.txt"])
    assert (report.new, report.changed, report.unchanged) == ([], [], 3)
    assert store.refs() == before


def test_a_touched_file_of_the_same_text_is_no_news(store: Store, folder: Path) -> None:
    add_sources(store, [folder])
    before = store.refs()
    os.utime(folder / "one.txt", ns=(1, 1))
    assert add_sources(store, [folder]).unchanged == 3
    assert store.refs() == before


def test_a_changed_file_supersedes_what_it_was(store: Store, folder: Path) -> None:
    add_sources(store, [folder])
    (folder / "one.txt").write_text("Another text.\n")
    report = add_sources(store, [folder])
    assert (report.new, report.changed, report.unchanged) == ([], ["one"], 2)
    assert text_of(store, "one") == "Another text.\n"
    assert len(store.chain(chain_ref(store))) == 2


def test_a_vanished_file_stays_a_source_and_is_counted(store: Store, folder: Path) -> None:
    add_sources(store, [folder])
    (folder / "one.txt").unlink()
    assert add_sources(store, [folder]).missing == 1
    assert "one" in titles(store)


def test_removing_by_folder_title_and_path(store: Store, folder: Path) -> None:
    add_sources(store, [folder])
    assert [source.title for source in remove_sources(store, ["Second"])] == ["Second"]
    assert [source.title for source in remove_sources(store, [str(folder / "deep")])] == ["Third"]
    with pytest.raises(NotFound):
        remove_sources(store, [str(folder / "one.txt"), "no such title"])
    assert titles(store) == {"one"}
    assert sorted(add_sources(store, [folder]).new) == ["Second", "Third"]
    assert titles(store) == {"one", "Second", "Third"}
    assert store.verify().ok


def test_a_path_that_is_not_there_adds_nothing(store: Store, folder: Path) -> None:
    with pytest.raises(NotFound):
        add_sources(store, [folder, folder / "missing.txt"])
    assert not store.refs()


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_added(store: Store, folder: Path) -> None:
    (folder / "binary.txt").write_bytes(b"a\0b")
    (folder / "empty.md").write_bytes(b"")
    report = add_sources(store, [folder])
    assert sorted(Path(p.path).name for p in report.problems) == ["binary.txt", "empty.md"]
    assert len(report.new) == 3


def test_a_jsonl_file_that_was_not_imported_is_reported(store: Store, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("{}\n")
    report = add_sources(store, [tmp_path / "x.jsonl"])
    assert "no imported conversation" in report.problems[0].reason
    assert report.problems[0].hint


def test_secrets_are_replaced_in_text_title_and_place(store: Store, tmp_path: Path) -> None:
    place = tmp_path / f"note {SECRET}.txt"
    place.write_text("word " * 511 + f"token {SECRET} behind\n")
    add_sources(store, [place])
    with store.snapshot() as view:
        assert not any(SECRET.encode() in stored.data for _, stored in view.objects())
    (title,) = titles(store)
    assert "[redacted:github-token]" in title
    assert "[redacted:github-token] behind" in text_of(store, title)


def test_the_same_text_at_two_places_is_one_document(store: Store, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("The same words.")
    add_sources(store, [tmp_path / "a.txt", tmp_path / "b.txt"])
    with store.snapshot() as view:
        assert len({source.document_id for source in live_sources(view)}) == 1
        assert len(list(live_sources(view))) == 2


def test_a_document_has_nothing_of_the_machine_in_it(tmp_path: Path) -> None:
    made = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "n.txt").write_text("Words.")
        with Store.init(tmp_path / f"store-{name}") as store:
            add_sources(store, [tmp_path / name])
            with store.snapshot() as view:
                made.append([source.document_id for source in live_sources(view)])
    assert made[0] == made[1]


def test_a_long_document_lists_its_chunks_and_has_their_root(store: Store, tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {n} about the sea." for n in range(5000))
    (tmp_path / "long.txt").write_text(text)
    add_sources(store, [tmp_path / "long.txt"])
    with store.snapshot() as view:
        (source,) = live_sources(view)
        placed = list(placed_chunks(view, source.document))
        assert "".join(p.text for p in placed) == text
        assert source.document.document_root == document_root([leaf(p.text) for p in placed]).hex()
        assert source.document.count == len(placed) > 10
        check_document(view, source.document_id)


def test_a_document_whose_chunks_are_others_is_found_out() -> None:
    store = Store(MemoryDatabase())
    batch = store.batch()
    made = put_document(batch.put, "One text.", media_type="text/plain", extractor="text-1")
    other = batch.put("document-chunk", encode(DocumentChunk(text="Two text.")))
    listed = batch.put("list", encode(ListOf(items=[other])))
    fields = {name: getattr(made.document, name) for name in made.document.__struct_fields__}
    forged = batch.put("document", encode(type(made.document)(**{**fields, "chunks": [listed]})))
    store.commit(batch)
    with store.snapshot() as view:
        check_document(view, made.id)
        with pytest.raises(CheckFailed):
            check_document(view, forged)


def test_two_stores_unite_to_the_same_sources_whatever_the_order(tmp_path: Path, folder: Path) -> None:
    stores = []
    for name in ("a", "b"):
        store = Store.init(tmp_path / name)
        stores.append(store)
        add_sources(store, [folder / "one.txt", folder / "deep"] if name == "a" else [folder])
    remove_sources(stores[1], ["Second"])
    seen = []
    for ours, theirs in (stores, stores[::-1]):
        batch = ours.batch()
        with theirs.snapshot() as view, ours.snapshot() as mine:
            for _, stored in view.objects():
                batch.put(stored.kind, stored.data)
            for name, key in view.refs():
                if mine.ref(name) is None:
                    batch.move_ref(name, key.hex(), None, "joined")
        ours.commit(batch)
        with ours.snapshot() as view:
            seen.append([(s.id, s.title, s.document_id) for s in live_sources(view)])
    assert seen[0] == seen[1]
    assert len(seen[0]) == 5
    for store in stores:
        assert store.verify().ok
        store.close()


def test_a_source_of_another_store_can_be_removed_here(tmp_path: Path, folder: Path) -> None:
    with Store.init(tmp_path / "theirs") as theirs, Store.init(tmp_path / "ours") as ours:
        add_sources(theirs, [folder])
        batch = ours.batch()
        with theirs.snapshot() as view:
            for _, stored in view.objects():
                batch.put(stored.kind, stored.data)
            for name, key in view.refs():
                batch.move_ref(name, key.hex(), None, "joined")
        ours.commit(batch)
        remove_sources(ours, ["one"])
        assert titles(ours) == {"Second", "Third"}
        with ours.snapshot() as view:
            frame = load(view, next(view.refs(chain_ref(ours)))[1], "round")
            assert frame.round == 1


def test_a_commit_that_loses_to_another_process_is_made_again(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store.commit
    raced = []

    def commit(batch: object) -> int:
        if not raced:
            raced.append(True)
            other = folder.parent / "other.txt"
            other.write_text("From elsewhere.")
            add_sources(store, [other])
        return real(batch)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "commit", commit)
    add_sources(store, [folder])
    assert titles(store) == {"one", "Second", "Third", "other"}


def test_documents_are_reached_from_refs_also_when_removed(store: Store, folder: Path) -> None:
    add_sources(store, [folder])
    remove_sources(store, ["one"])
    with store.snapshot() as view:
        reached: set[bytes] = set()
        waiting = [key for _, key in view.refs()]
        while waiting:
            key = waiting.pop()
            if key not in reached:
                reached.add(key)
                kind = view.kind(key)
                assert kind is not None
                waiting += [bytes.fromhex(needed) for needed in lookup(kind).needs(load(view, key))]
        assert reached == {key for key, _ in view.objects()}


def test_fixture_documents_are_all_read(store: Store) -> None:
    pytest.importorskip("pypdf")
    report = add_sources(store, [DOCUMENTS])
    assert len(report.new) == 5
    assert not report.problems
