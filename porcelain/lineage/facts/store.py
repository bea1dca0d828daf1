"""The facts of a store: the chain ``lineage/<store>`` that this store appends to, and the joined fold of all of them.

``fact/<id>`` in the derived index holds revision and key of the fact that counts, so that an import reads only the
facts it may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from objstore import kinds
from objstore.batch import Batch
from objstore.chain import RoundHead, append_round, round_head
from objstore.errors import NotFound
from objstore.fold import fold_chains
from objstore.snapshot import Snapshot
from objstore.store import Store, load
from porcelain.lineage.facts.kinds import Fact

CHAIN = "lineage"
_PREFIX = "lineage/"
INDEX = b"fact/"
_DECODER = msgspec.json.Decoder(Fact)


def chain_ref(store: Store) -> str:
    """The ref of the chain that this store writes."""
    return _PREFIX + store.store_id


class KnownFacts(Mapping[str, Fact]):
    """The joined fold by fact id, read on demand; what ``learn`` was given comes first."""

    def __init__(self, view: Snapshot, learned: dict[str, Fact] | None = None) -> None:
        self._view = view
        self._learned: dict[str, Fact] = {} if learned is None else learned

    def __getitem__(self, fact_id: str) -> Fact:
        found: Fact | None = self.get(fact_id)
        if found is None:
            raise KeyError(fact_id)
        return found

    def get(self, fact_id: str, default: Any = None) -> Any:
        """The fact; asked mostly for one that is not there."""
        found = self._learned.get(fact_id)
        if found is None:
            entry = self._view.derived(INDEX + fact_id.encode())
            found = load(self._view, entry[8:], "fact") if entry is not None else default
        return found

    def learn(self, facts: Iterable[Fact]) -> None:
        """Take facts that are not committed yet into account."""
        for one in facts:
            self._learned[one.id] = one

    def __iter__(self) -> Iterator[str]:
        indexed = (key[len(INDEX) :].decode() for key, _ in self._view.derived_items(INDEX))
        yield from self._learned.keys() | set(indexed)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def append_facts(batch: Batch, store: Store, head: RoundHead, facts: Iterable[Fact]) -> RoundHead:
    """Add one round of facts, whose revisions are above all that are known, to this store's chain."""
    ids: list[str] = []
    for one in facts:
        made = batch.put("fact", kinds.encode(one))
        ids.append(made)
        batch.set_derived(INDEX + one.id.encode(), one.revision.to_bytes(8, "big") + bytes.fromhex(made))
    return append_round(batch, CHAIN, chain_ref(store), head, ids) if ids else head


def facts_head(view: Snapshot, store: Store) -> RoundHead:
    """Where this store's chain stands."""
    return round_head(view, chain_ref(store))


def all_facts(view: Snapshot) -> Iterator[tuple[str, Fact]]:
    """The joined fold of every lineage chain in the store: object id and fact, in order of fact id."""
    fold = fold_chains(view, [key for _, key in view.refs(_PREFIX)])
    for _, key in fold.live():
        yield key.hex(), load(view, key, "fact")


def read_facts(view: Snapshot, keys: Sequence[bytes]) -> list[Fact]:
    """The facts with these keys, which were checked when they came into the store."""
    if not keys:
        return []
    found = view.get_many(keys)
    lines = [one.data for one in found if one is not None]
    if len(lines) != len(keys):
        raise NotFound("a fact that the chains name is not here", hint="run: objstore verify")
    return _DECODER.decode_lines(b"\n".join(lines))  # canonical bytes hold no line feed


def rebuild_index(batch: Batch, view: Snapshot) -> None:
    """Make the derived index of facts anew from the chains."""
    for key, _ in view.derived_items(INDEX):
        batch.set_derived(key, None)
    fold = fold_chains(view, [key for _, key in view.refs(_PREFIX)])
    for fact_id in fold.ids():
        claim = fold.get(fact_id)
        assert claim is not None
        batch.set_derived(INDEX + fact_id.encode(), claim.revision.to_bytes(8, "big") + claim.winner)
