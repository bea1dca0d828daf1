"""The derived indexes of lineage: whether they say what the chains say, and making them anew."""

from __future__ import annotations

from objstore.fold import fold_chains
from objstore.snapshot import Snapshot
from objstore.store import Store
from porcelain.lineage.facts.store import CHAIN, rebuild_index
from porcelain.lineage.index import opening
from porcelain.lineage.usage.measuring import PREFIX, measured

_FACTS = b"fact/"


def fact_index_faults(view: Snapshot) -> int:
    """How many entries of the index of facts differ from the joined fold of the chains, are missing or too many."""
    fold = fold_chains(view, [key for _, key in view.refs(f"{CHAIN}/")])
    faults, seen = 0, 0
    for fact in fold.ids():
        claim = fold.get(fact)
        if claim is None:
            continue
        entry = view.derived(_FACTS + fact.encode())
        seen += entry is not None
        faults += entry != claim.revision.to_bytes(8, "big") + claim.winner
    return faults + sum(1 for _ in view.derived_items(_FACTS)) - seen


def rebuild_indexes(store: Store) -> None:
    """Make the indexes of facts, of activity and of the view anew."""
    batch = store.batch()
    with store.snapshot() as view:
        rebuild_index(batch, view)
        for key, _ in view.derived_items(PREFIX):
            batch.set_derived(key, None)
    store.commit(batch)
    for _ in measured(store):
        pass
    opening.remove(store)
    opening.bring_up(store)
