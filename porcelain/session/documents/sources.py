"""Which documents a store has: the chain ``sources/<store>``, and the joined fold of all such chains.

A plain chain of facts, for the reasons for which lineage has one: one store writes it, so two stores unite without a
merge; what it names is reachable, so documents live through gc and sync; adding the same place again is a higher
revision of the same fact, and removing it a tombstone that travels too. A fact's id is made of the store that added it
first and of the place, since a path of one machine means nothing on another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from objstore import kinds
from objstore.batch import Batch
from objstore.chain import append_round, round_head
from objstore.errors import RefMoved
from objstore.fastcanonical import encode
from objstore.fold import Fold, fold_chains
from objstore.snapshot import Snapshot
from objstore.store import Store, load
from porcelain.session.documents.kinds import Document, SourceAdded

CHAIN = "sources"
_PREFIX = "sources/"
_TRIES = 20

T = TypeVar("T")


class Source(NamedTuple):
    """A place that is searched: fact id, URI, title, id of its document, and the document."""

    id: str
    uri: str
    title: str
    document_id: str
    document: Document


def chain_ref(store: Store) -> str:
    """The ref of the chain that this store writes."""
    return _PREFIX + store.store_id


def source_id(store: Store, uri: str) -> str:
    """The id of the fact that this store has added ``uri``."""
    return f"source_{sha256(encode([store.store_id, uri])).hexdigest()[:32]}"


def heads(view: Snapshot) -> list[bytes]:
    """The heads of all chains of sources, in order of their refs."""
    return [key for _, key in view.refs(_PREFIX)]


def fold_sources(view: Snapshot) -> Fold:
    """What all chains of sources say, joined."""
    return fold_chains(view, heads(view))


def live_sources(view: Snapshot) -> Iterator[Source]:
    """Every place that has been added and not removed, by any store, in order of fact id."""
    for fact_id, key in fold_sources(view).live():
        frame: SourceAdded = load(view, key, "source")
        if isinstance(frame.document, UnsetType):
            continue
        document = load(view, bytes.fromhex(frame.document), "document")
        yield Source(fact_id, frame.uri, frame.title, frame.document, document)


def added(fact_id: str, uri: str, title: str, document_id: str) -> SourceAdded:
    """The frame for a place with this document; ``KnownSources.append`` gives it its revision."""
    return SourceAdded(document=document_id, id=fact_id, revision=1, title=title, uri=uri)


def removed(source: Source) -> SourceAdded:
    """The frame that takes a place off the list."""
    return SourceAdded(id=source.id, revision=1, title=source.title, tombstone=True, uri=source.uri)


class KnownSources:
    """The newest frame of every source, by fact id; folded again only when a chain was moved by someone else."""

    def __init__(self) -> None:
        self._heads: list[bytes] = []
        self.frames: dict[str, SourceAdded] = {}

    def refresh(self, view: Snapshot) -> None:
        """Take in what ``view`` shows."""
        now = heads(view)
        if now != self._heads:
            fold = fold_chains(view, now)
            claims = ((fact_id, fold.get(fact_id)) for fact_id in fold.ids())
            self.frames = {fact_id: load(view, claim.winner, "source") for fact_id, claim in claims if claim}
            self._heads = now

    def append(
        self, batch: Batch, view: Snapshot, store: Store, frames: Sequence[SourceAdded]
    ) -> list[SourceAdded]:
        """Put a round of those ``frames`` that say something new into ``batch``, each with a revision above all that
        are known; those they were. ``view`` must be the one last refreshed from; after the commit say ``learn``."""
        news: list[SourceAdded] = []
        for frame in {frame.id: frame for frame in frames}.values():
            known = self.frames.get(frame.id)
            if known is None:
                if frame.tombstone is UNSET:
                    news.append(frame)
            elif _revised(frame, known.revision) != known:
                news.append(_revised(frame, known.revision + 1))
        if news:
            ids = [batch.put("source", kinds.encode(frame)) for frame in news]
            append_round(batch, CHAIN, chain_ref(store), round_head(view, chain_ref(store)), ids)
        return news

    def learn(self, view: Snapshot, news: Sequence[SourceAdded]) -> None:
        """Take in what was appended and committed; ``view`` shows the store after it."""
        if not news:
            return
        self.frames |= {frame.id: frame for frame in news}
        now = heads(view)
        # One new head is that of the round just written; any other is a chain that was brought in meanwhile.
        self._heads = now if len(set(now) - set(self._heads)) == 1 else []


def _revised(frame: SourceAdded, revision: int) -> SourceAdded:
    return msgspec.structs.replace(frame, revision=revision)


def until_unmoved(attempt: Callable[[], T]) -> T:
    """What ``attempt`` gives, made again while another process moves the same chain in between. Raises ``RefMoved``
    when that does not end."""
    for _ in range(_TRIES):
        try:
            return attempt()
        except RefMoved:
            continue
    return attempt()
