"""A store in this process as the other side of an exchange: the transport of paths, and what serves the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from objstore.closure import select
from objstore.errors import UsageError
from objstore.pack.format import Limits
from objstore.pack.reader import Source
from objstore.pack.writer import pack_stream
from objstore.store import Store
from objstore.sync.joining import is_offered
from objstore.sync.ladder import known_entries
from objstore.sync.manifest import Manifest, Node, Scope, manifest_of
from objstore.sync.receiving import receive
from objstore.sync.transport import Hello, PieceSource, Receipt, Traffic


class StoreTransport:
    """``store`` (open) as a transport. ``keeps_content`` is its owner's setting: without it content neither leaves nor
    enters. It is not closed with the transport."""

    def __init__(self, store: Store, *, keeps_content: bool, limits: Limits | None = None) -> None:
        self.traffic = Traffic()
        self._store = store
        self._keeps_content = keeps_content
        self._limits = limits
        self._manifests: dict[Scope, Manifest] = {}

    def _manifest(self, scope: Scope) -> Manifest:
        found = self._manifests.get(scope)
        if found is None:
            with self._store.snapshot() as view:
                found = self._manifests[scope] = manifest_of(view, scope)
        return found

    def hello(self, scope: Scope) -> Hello:
        self.traffic.requests += 1
        if scope.content and not self._keeps_content:
            raise UsageError(
                "content was asked for, and the other store keeps none",
                hint="leave --content out, or there: objstore config content.keep on",
            )
        self._manifests.pop(scope, None)
        manifest = self._manifest(scope)
        return Hello(
            content=self._keeps_content,
            hash=self._store.algorithm,
            refs=len(manifest),
            root=manifest.root,
            store=self._store.store_id,
        )

    def nodes(self, scope: Scope, prefixes: Sequence[str]) -> Sequence[Node]:
        self.traffic.requests += 1
        manifest = self._manifest(scope)
        return [manifest.node(prefix) for prefix in prefixes]

    def entries(self, names: Sequence[str]) -> list[bytes]:
        self.traffic.requests += 1
        with self._store.snapshot() as view:
            return known_entries(view, names)

    def fetch(self, scope: Scope, names: Sequence[str], have: Sequence[bytes], most: int) -> Iterator[Source]:
        self.traffic.requests += 1
        matches = scope.matcher()
        content = scope.content and self._keeps_content
        with self._store.snapshot() as view:
            refs = [(name, key) for name in names if matches(name) and (key := view.ref(name)) is not None]
            offered = [ref for ref in refs if is_offered(*ref, view, content=content)]
            selection = select(view, offered, have, content=content, most=most)
            yield PieceSource(self._counted(pack_stream(view, selection, self._store.algorithm)))

    def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self.traffic.received += len(piece)
            yield piece

    def push(self, pack: Iterable[bytes]) -> Receipt:
        self.traffic.requests += 1
        result = receive(
            self._store,
            PieceSource(pack),
            take_content=self._keeps_content,
            pushed=True,
            why="push",
            limits=self._limits,
        )
        return Receipt(added=result.added, diverged=result.diverged, moved=result.moved)

    def close(self) -> None:
        self._manifests.clear()
