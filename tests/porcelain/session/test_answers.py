"""Answers as a set: which one is served, what takes one out of service, what comes from elsewhere, and the export."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import porcelain  # noqa: F401  (declares the kinds)
from objstore import merkle
from objstore.errors import CheckFailed, NotFound, StorageError, UsageError
from objstore.kinds import decode, encode
from objstore.store import Store, load
from porcelain.session.answering.answers import (
    all_answers,
    answer_ref,
    answer_state,
    answers_of,
    falsify,
    find_answers,
    mark_stale,
    serve,
    set_state,
)
from porcelain.session.answering.answers_export import export_answers
from porcelain.session.answering.asking import Asked, Options, ask
from porcelain.session.answering.grounding import check
from porcelain.session.answering.kinds import Answer, AnswerClaim, AnswerSource
from porcelain.session.answering.pointers import Claim, render
from porcelain.session.documents.adding import add_sources, remove_sources
from porcelain.session.documents.chunking import leaf
from porcelain.session.documents.documents import chunk_text
from porcelain.session.documents.retrieval import Evidence

DOCUMENTS = Path(__file__).resolve().parents[3] / "fixtures" / "documents"
LIT = "When was the lighthouse first lit?"


def make(path: Path, hour: int = 10) -> Store:
    times = iter(range(600))
    now = (f"2026-03-01T{hour:02d}:{n // 60:02d}:{n % 60:02d}Z" for n in times)
    store = Store.init(path, now=lambda: next(now))
    add_sources(store, [path for path in sorted(DOCUMENTS.iterdir()) if path.suffix != ".pdf"])
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with make(tmp_path / "store") as made:
        yield made


def join(ours: Store, theirs: Store) -> None:
    """Bring everything of another store in, as syncing does."""
    batch = ours.batch()
    with theirs.snapshot() as view, ours.snapshot() as mine:
        for _, stored in view.objects():
            batch.put(stored.kind, stored.data)
        for name, key in view.refs():
            if mine.ref(name) is None:
                batch.move_ref(name, key.hex(), None, "joined")
    ours.commit(batch)


def answer_of(store: Store, asked: Asked) -> Answer:
    with store.snapshot() as view:
        found: Answer = load(view, bytes.fromhex(asked.answer_id), "answer")
        return found


def plant(store: Store, answer: Answer) -> str:
    """An answer that another store wrote."""
    batch = store.batch()
    answer_id = batch.put("answer", encode(answer))
    batch.move_ref(answer_ref(answer, answer_id), answer_id, None, "joined")
    store.commit(batch)
    return answer_id


def state_of(store: Store, answer_id: str) -> str:
    with store.snapshot() as view:
        return answer_state(view, answer_id)[0]


def test_hits_are_counted_here_only(store: Store) -> None:
    asked = ask(store, LIT)
    refs = store.refs()
    for _ in range(3):
        ask(store, LIT)
    with store.snapshot() as view:
        (kept,) = answers_of(view, asked.cache_key)
        assert kept.hits == 3
        assert kept.last_hit is not None
    assert store.refs() == refs


def test_the_earliest_is_served_then_the_smallest_id(store: Store) -> None:
    first = ask(store, LIT)
    answer = answer_of(store, first)
    older = plant(store, msgspec.structs.replace(answer, created_at="2025-01-01T00:00:00Z"))
    assert ask(store, LIT).answer_id == older
    twin = plant(
        store, msgspec.structs.replace(answer, created_at="2025-01-01T00:00:00Z", question=LIT.upper())
    )
    assert ask(store, LIT).answer_id == min(older, twin)


@pytest.mark.parametrize("state", ["failed", "stale", "quarantined"])
def test_only_a_live_answer_is_served(store: Store, state: str) -> None:
    first = ask(store, LIT)
    assert falsify(store, first.answer_id[:12], "it is wrong", state=state) == [first.answer_id]  # type: ignore[arg-type]
    assert state_of(store, first.answer_id) == state
    assert serve(store, first.cache_key) is None
    second = ask(store, LIT)
    assert not second.from_cache
    assert second.answer_id != first.answer_id
    set_state(store, [first.answer_id], "live", "it was right after all")
    assert ask(store, LIT).answer_id == first.answer_id
    assert store.verify().ok


def test_a_state_that_is_so_already_is_no_news(store: Store) -> None:
    first = ask(store, LIT)
    assert set_state(store, [first.answer_id], "stale", "why") == 1
    before = store.refs()
    assert set_state(store, [first.answer_id], "stale", "why") == 0
    assert store.refs() == before
    for reason in ("", " ", "x" * 1001):
        with pytest.raises(UsageError):
            set_state(store, [first.answer_id], "live", reason)


def test_answers_whose_source_is_gone_are_stale(store: Store) -> None:
    first, other = ask(store, LIT), ask(store, "What does a car cost on the ferry?")
    assert mark_stale(store) == []
    remove_sources(store, ["The Lighthouse at Skarv Point"])
    assert mark_stale(store) == [first.answer_id]
    assert state_of(store, first.answer_id) == "stale"
    assert state_of(store, other.answer_id) == "live"


def test_finding_answers(store: Store) -> None:
    first = ask(store, LIT)
    second = ask(store, LIT, options=Options(refresh=True))
    with store.snapshot() as view:
        assert [k.id for k in find_answers(view, first.cache_key[:10])] == [first.answer_id, second.answer_id]
        assert [k.id for k in find_answers(view, second.answer_id)] == [second.answer_id]
        assert {k.id for k in all_answers(view)} == {first.answer_id, second.answer_id}
        with pytest.raises(NotFound):
            find_answers(view, "0" * 64)
        with pytest.raises(UsageError):
            find_answers(view, first.cache_key[:4])


def test_an_answer_from_elsewhere_is_served_once_it_was_checked(tmp_path: Path) -> None:
    with make(tmp_path / "theirs", 9) as theirs, make(tmp_path / "ours") as ours:
        made = ask(theirs, LIT)
        join(ours, theirs)
        served = ask(ours, LIT)
        assert (served.answer_id, served.from_cache) == (made.answer_id, True)
        assert state_of(ours, made.answer_id) == "live"


@pytest.mark.parametrize("forgery", ["text", "claim", "mode", "method", "leaf"])
def test_a_forged_answer_from_elsewhere_is_not_served(store: Store, forgery: str) -> None:
    first = ask(store, LIT)
    answer = msgspec.structs.replace(answer_of(store, first), created_at="2025-01-01T00:00:00Z")
    claim, source = answer.claims[0], answer.sources[0]
    lie = msgspec.structs.replace(claim, text="It was first lit on 5 May 1900.")
    forged = {
        "text": msgspec.structs.replace(answer, text="It was never lit."),
        "claim": msgspec.structs.replace(answer, claims=[lie, *answer.claims[1:]]),
        "mode": msgspec.structs.replace(answer, audit_mode="HYBRID"),
        "method": msgspec.structs.replace(answer, verifier_method="quote"),
        "leaf": msgspec.structs.replace(
            answer, sources=[msgspec.structs.replace(source, leaf_hash="0" * 64), *answer.sources[1:]]
        ),
    }[forgery]
    planted = plant(store, forged)
    assert ask(store, LIT).answer_id == first.answer_id
    assert state_of(store, planted) == "failed"
    assert state_of(store, first.answer_id) == "live"


@pytest.mark.parametrize("forgery", ["passages", "question", "answerer", "title", "document"])
def test_an_answer_over_other_passages_than_those_of_its_key_is_not_served(
    store: Store, forgery: str
) -> None:
    first = ask(store, LIT)
    answer = msgspec.structs.replace(answer_of(store, first), created_at="2025-01-01T00:00:00Z")
    source = answer.sources[0]
    lie = "It was first lit on 5 May 1900 by Nobody At All."
    chunk = store.put({"text": lie, "type": "document-chunk"})
    invented = msgspec.structs.replace(source, chunk=chunk, leaf_hash=leaf(lie).hex(), title="Annals")
    claims = [Claim(lie, (1,))]
    others = answer.sources[1:]

    def cited(sources: list[AnswerSource], claims: list[Claim]) -> Answer:
        # Everything in it is true to its passages: only the key says that they are not those that were found.
        with store.snapshot() as view:
            evidence = [
                Evidence(text=chunk_text(view, one.chunk), **msgspec.to_builtins(one)) for one in sources
            ]
        verdict = check(claims, {item.number: item.text for item in evidence})
        return msgspec.structs.replace(
            answer,
            audit_mode=verdict.mode,
            claims=[
                AnswerClaim(
                    method=item.method,
                    pointers=list(item.claim.pointers),
                    status=item.status,
                    text=item.claim.text,
                )
                for item in verdict.claims
            ],
            sources=sources,
            text=render(claims, evidence),
            verifier_method=verdict.method,
        )

    own = [Claim(claim.text, tuple(claim.pointers)) for claim in answer.claims]
    forged = {
        "passages": lambda: cited([invented, *others], claims),
        "question": lambda: msgspec.structs.replace(answer, question="Was it ever lit?"),
        "answerer": lambda: msgspec.structs.replace(answer, answerer={"answerer": "openai", "model": "best"}),
        "title": lambda: cited([msgspec.structs.replace(source, title="Annals"), *others], own),
        "document": lambda: msgspec.structs.replace(
            answer, sources=[msgspec.structs.replace(source, document_root="0" * 64), *others]
        ),
    }[forgery]()
    if forgery == "passages":
        assert forged.audit_mode == "STRICT"
    planted = plant(store, forged)
    assert ask(store, LIT).answer_id == first.answer_id
    assert state_of(store, planted) == "failed"
    with store.snapshot() as view:
        assert "not those of its cache key" in answer_state(view, planted)[1]


def test_states_of_two_stores_unite_whatever_the_order(tmp_path: Path) -> None:
    with make(tmp_path / "a") as a, make(tmp_path / "b", 11) as b:
        first = ask(a, LIT)
        join(b, a)
        set_state(a, [first.answer_id], "stale", "old")
        set_state(b, [first.answer_id], "quarantined", "wrong")
        join(a, b)
        join(b, a)
        assert state_of(a, first.answer_id) == state_of(b, first.answer_id)
        set_state(b, [first.answer_id], "live", "fine")
        assert state_of(b, first.answer_id) == "live"
        assert a.verify().ok and b.verify().ok


def test_an_answer_under_a_wrong_key_is_refused(store: Store) -> None:
    answer = answer_of(store, ask(store, LIT))
    forged = msgspec.structs.replace(answer, cache_key="0" * 64)
    with pytest.raises(CheckFailed):
        decode("answer", encode(forged))
    with pytest.raises(CheckFailed):
        decode("answer", encode(msgspec.structs.replace(answer, created_at="yesterday")))


# -- the export -------------------------------------------------------------------------------------------------------


def table(path: Path) -> list[sqlite3.Row]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute("SELECT * FROM providence_cache ORDER BY cache_key").fetchall()


def test_the_export_has_a_row_for_each_key_and_proofs_that_hold(store: Store, tmp_path: Path) -> None:
    first = ask(store, LIT)
    ask(store, LIT)
    ask(store, LIT, options=Options(refresh=True))
    nowhere = ask(store, "What is the capital of Mars?")
    path = tmp_path / "qa.db"
    with store.snapshot() as view:
        assert export_answers(view, path) == 2
    rows = {row["cache_key"]: row for row in table(path)}
    row = rows[first.cache_key]
    assert (row["answer_text"], row["audit_mode"], row["hit_count"]) == (first.text, "STRICT", 1)
    assert (row["n_quotes"], row["n_verified"]) == (len(first.claims), len(first.claims))
    assert rows[nowhere.cache_key]["source_root"] == "0" * 64
    proof = json.loads(row["merkle_proof"])
    assert proof["context_root"] == row["source_root"]
    for source in proof["sources"]:
        shown = {
            "leaf": source["leaf_hash"],
            "leaf_index": source["leaf_index"],
            "root": source["document_root"],
        }
        checked = merkle.proof_from_document(
            {**shown, "siblings": source["siblings"], "version": "merkle-v1"}
        )
        assert merkle.verify_proof(checked, bytes.fromhex(source["document_root"]))


def test_the_export_shows_states_and_prefers_what_is_live(store: Store, tmp_path: Path) -> None:
    first = ask(store, LIT)
    falsify(store, first.answer_id, "wrong")
    path = tmp_path / "qa.db"
    with store.snapshot() as view:
        export_answers(view, path)
    assert [row["falsification_state"] for row in table(path)] == ["quarantined"]
    second = ask(store, LIT)
    with store.snapshot() as view:
        export_answers(view, path)
    (row,) = table(path)
    assert (row["falsification_state"], row["created_at"]) == ("live", second.created_at)


def test_the_export_is_the_same_bytes_again_and_spares_other_files(store: Store, tmp_path: Path) -> None:
    ask(store, LIT)
    path = tmp_path / "qa.db"
    with store.snapshot() as view:
        export_answers(view, path)
        data = path.read_bytes()
        export_answers(view, path)
        assert path.read_bytes() == data
        other = tmp_path / "mine.txt"
        other.write_text("precious")
        with pytest.raises(StorageError):
            export_answers(view, other)
    assert other.read_text() == "precious"
