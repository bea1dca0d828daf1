"""Small stores with a bit of everything, made by a recipe, so that hypothesis can draw them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import porcelain  # noqa: F401  (declares the kinds of objects)
from objstore import kinds
from objstore.chain import append_round, round_head
from objstore.closure import select
from objstore.core import ListOf
from objstore.objects import check_object
from objstore.store import Store
from objstore.sync.exchange import Fetched, fetch
from objstore.sync.manifest import Scope
from objstore.sync.stores import StoreTransport
from porcelain.lineage.facts.making import fact
from porcelain.lineage.facts.store import append_facts, facts_head
from porcelain.session.tree.store import Turn, add_turn, new_session

TIME = "2026-03-04T05:06:07Z"
EVERYTHING = Scope()
#: The session that several stores ask in.
SHARED = "shared"

#: One step of a recipe: what to add, and a number that says which of few.
STEPS = st.lists(
    st.tuples(st.sampled_from(("fact", "round", "turn", "tag", "answer", "own-session")), st.integers(0, 3)),
    max_size=6,
)


def opened(path: Path) -> Store:
    """A new store whose clock stands still."""
    return Store.init(path, now=lambda: TIME)


def put_list(store: Store, *items: str) -> str:
    """An object that is nothing but a list of ids."""
    kind, data = check_object({"items": list(items), "type": "list"})
    batch = store.batch()
    made = batch.put(kind, data)
    store.commit(batch)
    return made


def put_node(store: Store, text: str) -> str:
    """An object that needs nothing and is no content."""
    return store.put({"text": text, "type": "document-chunk"})


def put_tags(store: Store, count: int) -> None:
    """So many tags, each on an object of its own, in one transaction."""
    batch = store.batch()
    for number in range(count):
        made = batch.put(*check_object({"text": str(number), "type": "document-chunk"}))
        batch.move_ref(f"tag/{number:04}", made, None, "")
    store.commit(batch)


def add_round(store: Store, ref: str, *texts: str) -> str:
    """A round on the plain chain under ``ref``, with frames of these texts, under ids of their last letter; its id."""
    batch = store.batch()
    with store.snapshot() as view:
        head = round_head(view, ref)
    frames = [
        batch.put(*check_object({"id": text[-1:], "kind": text, "revision": len(texts), "type": "flow-node"}))
        for text in texts
    ]
    made = append_round(batch, "x", ref, head, frames)
    store.commit(batch)
    assert made.id is not None
    return made.id


def add_fact(store: Store, value: str, revision: int = 1) -> None:
    """A fact on the store's own chain."""
    label = fact(
        "label",
        {"label_type": "cwd", "target_id": "obs_" + "0" * 32, "target_type": "observation", "value": value},
        provenance="reader:test",
        confidence="high",
        revision=revision,
    )
    batch = store.batch()
    with store.snapshot() as view:
        append_facts(batch, store, facts_head(view, store), [label])
    store.commit(batch)


def ask(store: Store, sid: str, question: str) -> None:
    """A turn in a session, its answer stored."""
    answer = put_node(store, f"answer to {question}")
    turn = Turn(answer=answer, audit_mode="STRICT", cache_key="1" * 64, question=question, parent=0)
    add_turn(store, sid, turn)


def follow(store: Store, name: str, steps: list[tuple[str, int]], sessions: list[str]) -> None:
    """Do what a recipe says in ``store``, which is called ``name``; ``sessions`` are those that all stores have."""
    for at, (what, number) in enumerate(steps):
        text = f"{name} {at} {number}"
        if what == "fact":
            add_fact(store, f"/home/{number}", revision=at + 1)
        elif what == "round":
            add_round(store, f"flow/{store.store_id}/test/{number}", text)
        elif what == "turn" and sessions:
            with store.snapshot() as view:
                heads = list(view.refs(f"session/{sessions[0]}/heads/"))
            if len(heads) == 1:
                ask(store, sessions[0], text)
        elif what == "tag":
            batch = store.batch()
            made = batch.put(
                "list", kinds.encode(ListOf(items=[])) if number else b'{"items":[],"type":"list"}'
            )
            if number > 1:
                made = batch.put(*check_object({"text": text, "type": "document-chunk"}))
            batch.move_ref(f"tag/{number % 2}", made, "*", "")
            store.commit(batch)
        elif what == "answer":
            made = put_node(store, f"answer {number}")
            store.update_ref(f"answer/{'ab' * 32}/{made}", made, "*")
        elif what == "own-session":
            ask(store, new_session(store, created_at=TIME)[0], text)


def state(store: Store) -> tuple[dict[str, str], set[bytes], dict[bytes, bytes]]:
    """What has to be the same in two stores that were united: refs, the objects they need, and the index of facts."""
    with store.snapshot() as view:
        objects = set(select(view, list(view.refs())).order)
        facts = dict(view.derived_items(b"fact/"))
    return store.refs(), objects, facts


def unite(into: Store, other: Store, scope: Scope = EVERYTHING, **options: Any) -> Fetched:
    """Fetch everything that ``other`` has."""
    options = {"keeps_content": False} | options
    transport = StoreTransport(other, keeps_content=options["keeps_content"])
    return fetch(into, transport, scope, **options)


def sound(store: Store) -> None:
    """Verify a store."""
    report = store.verify(processes=1)
    assert report.ok, report.problems[:3]
