"""Imported conversations as sources: there where content is kept, and nothing of them where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore.errors import NotFound
from objstore.store import Store
from porcelain.main import main
from porcelain.session.answering.asking import ask
from porcelain.session.documents.adding import add_conversations, add_sources, all_conversations
from porcelain.session.documents.documents import placed_chunks
from porcelain.session.documents.sources import live_sources

HOME = Path(__file__).resolve().parents[3] / "fixtures" / "home"
TIDEPOOL = "5c5fd944-d386-42dd-9b31-250b1a31a74a"


def imported(folder: Path, *, keep: bool) -> Store:
    place = ["--store", str(folder)]
    assert main([*place, "init"]) == 0
    if keep:
        assert main([*place, "config", "content.keep", "on"]) == 0
    assert main([*place, "--quiet", "import", "--processes", "1", str(HOME / ".claude")]) == 0
    return Store.open(folder)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with imported(tmp_path_factory.mktemp("kept") / "store", keep=True) as store:
        yield store


def text_of(store: Store, uri_end: str) -> str:
    with store.snapshot() as view:
        (source,) = [source for source in live_sources(view) if source.uri.endswith(uri_end)]
        return "".join(placed.text for placed in placed_chunks(view, source.document))


def test_what_was_said_is_a_source(kept: Store) -> None:
    report = add_conversations(kept, [TIDEPOOL[:13]])
    assert report.new == [f"Conversation claude/{TIDEPOOL}"]
    text = text_of(kept, TIDEPOOL)
    assert text.startswith("user: ")
    assert "\n\nassistant: " in text
    sentence = next(line for line in text.splitlines() if line.startswith("assistant: ") and len(line) > 60)
    asked = ask(kept, sentence.removeprefix("assistant: "))
    assert asked.sources[0].title == f"Conversation claude/{TIDEPOOL}"
    assert add_conversations(kept, [TIDEPOOL]).unchanged == 1


def test_the_file_of_a_conversation_names_it(kept: Store) -> None:
    (path,) = HOME.rglob(f"{TIDEPOOL}.jsonl")
    report = add_sources(kept, [path])
    assert not report.problems
    assert len(report.new) + report.unchanged == 1


def test_planted_secrets_do_not_come_in(kept: Store) -> None:
    add_conversations(kept, all_conversations(kept))
    with kept.snapshot() as view:
        for _, stored in view.objects():
            assert b"AKIA" not in stored.data and b"notARealSecret" not in stored.data
    assert kept.verify().ok


def test_a_name_that_is_none_is_refused(kept: Store) -> None:
    with pytest.raises(NotFound):
        add_conversations(kept, ["00000000"])


def test_a_private_store_says_what_to_do(tmp_path: Path) -> None:
    with imported(tmp_path / "store", keep=False) as store:
        report = add_conversations(store, [TIDEPOOL])
        assert report.new == []
        assert "not kept" in report.problems[0].reason
        assert "content.keep on" in (report.problems[0].hint or "")
        with store.snapshot() as view:
            assert not list(live_sources(view))
