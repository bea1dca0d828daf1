"""Fetching from another store and pushing to one, over any transport: which refs differ, what is missing, and the packs
that bring it. Interrupted anywhere, the next try goes on with what is not there yet.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing

from msgspec import Struct

from objstore.closure import Selection, select
from objstore.errors import Conflict, StorageError, UsageError
from objstore.pack.writer import pack_stream
from objstore.refs import is_declined
from objstore.snapshot import Snapshot
from objstore.store import Store
from objstore.sync.joining import maximal, place_of, place_of_name
from objstore.sync.ladder import known_entries
from objstore.sync.manifest import Scope, differences, manifest_of
from objstore.sync.transport import PROTOCOL, Hello, Transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from objstore.pack.reader import Source

#: Objects in one pack, about: what an interrupted exchange has to do again at most.
MOST = 100_000
#: Names that are asked for in one request.
_NAMES = 100_000

Ref = tuple[str, bytes]
Count = Callable[[int], None]


class Fetched(Struct, kw_only=True):
    """What a fetch came to: the other store's id; refs that differed; objects that came and how many were new; names of
    refs that moved and that have several heads now; the new id of this store, where it had to go on under one; and
    the root of the other's manifest, once all of it is here (None: some of it was removed here on purpose, and may be
    brought back)."""

    store: str
    root: bytes | None
    differed: int = 0
    objects: int = 0
    added: int = 0
    moved: list[str] = []
    diverged: list[str] = []
    renamed: str | None = None


class Pushed(Struct, kw_only=True):
    """What a push came to: the other store's id; refs that were sent; objects that went and how many were new there;
    names of refs that moved there and that have several heads there; names of refs that the other store has further,
    or that it alone may move."""

    store: str
    sent: int = 0
    objects: int = 0
    added: int = 0
    moved: list[str] = []
    diverged: list[str] = []
    behind: list[str] = []


def _nothing(_count: int) -> None:
    return


def fetch(
    store: Store,
    transport: Transport,
    scope: Scope,
    *,
    keeps_content: bool,
    seen: bytes | None = None,
    dry_run: bool = False,
    most: int = MOST,
    on_progress: Count = _nothing,
) -> Fetched:
    """Bring what the other side has in ``scope`` and this store has not.

    ``seen`` is the root that an earlier fetch of the same scope returned: where it is still the other's, there is
    nothing to do. With ``dry_run`` packs are read and checked, and nothing is stored. Raises what transports and
    ``receive`` raise.
    """
    from concurrent.futures import ThreadPoolExecutor, wait

    from objstore.sync.receiving import check_pack, join_present

    if scope.content and not keeps_content:
        raise UsageError(
            "content was asked for, and this store keeps none", hint="objstore config content.keep on"
        )
    hello = _greeted(store, transport, scope)
    result = Fetched(store=hello.store, root=hello.root)
    if hello.root == seen:
        return result
    with store.snapshot() as view:
        mine = manifest_of(view, scope)
        offered = differences(mine, hello.root, lambda prefixes: transport.nodes(scope, prefixes))[1]
        theirs = {name: key for name, key in offered.items() if not is_declined(view, name)}
        absent = {name: key for name, key in theirs.items() if key not in view}
        have = known_entries(view, absent)
    result.differed = len(theirs)
    if len(theirs) < len(offered):
        result.root = None
    present = [(name, key) for name, key in theirs.items() if name not in absent]
    why = f"fetch from {hello.store}"
    packs = _Packs(transport, scope, absent, have, most, dry_run=dry_run)
    with closing(packs), ThreadPoolExecutor(max_workers=1, thread_name_prefix="fetch") as ahead:
        source = packs.next()
        while source is not None:
            with check_pack(
                store,
                source,
                take_content=scope.content,
                wanted=scope.matcher(),
                why=why,
                on_progress=on_progress,
            ) as checked:
                received = checked.result
                packs.came(received.offered)
                coming = ahead.submit(packs.next)  # the other side prepares it while this one is stored
                try:
                    if not dry_run:
                        checked.keep()
                finally:
                    wait([coming])
            result.objects += received.objects
            result.added += received.added
            result.moved += received.moved
            result.diverged += received.diverged
            result.renamed = received.renamed or result.renamed
            source = coming.result()
    if present and not dry_run:
        received = join_present(store, present, why)
        result.moved += received.moved
        result.diverged += received.diverged
    result.moved = list(dict.fromkeys(result.moved))
    result.diverged = list(dict.fromkeys(result.diverged))
    return result


class _Packs:
    """The packs that bring ``refs``, one after the other, each to be read to its end before the next is asked for."""

    def __init__(
        self,
        transport: Transport,
        scope: Scope,
        refs: dict[str, bytes],
        have: list[bytes],
        most: int,
        *,
        dry_run: bool,
    ) -> None:
        self._transport = transport
        self._scope = scope
        self._refs = refs
        self._have = have
        self._most = most
        self._dry_run = dry_run
        self._waiting = sorted(refs)
        self._coming: Iterator[Source] = iter(())
        self._came = True

    def next(self) -> Source | None:
        """The next pack, or None when there are no more, or what is left is no longer there."""
        source = next(self._coming, None)
        while source is None and self._waiting and self._came:
            self._came = False
            self._coming = self._transport.fetch(self._scope, self._waiting[:_NAMES], self._have, self._most)
            source = next(self._coming, None)
        return source

    def came(self, names: Iterable[str]) -> None:
        """Take note of the names that a pack brings."""
        offered = self._refs.keys() & set(names)
        rest = [name for name in self._waiting if name not in offered]
        self._came = self._came or len(rest) < len(self._waiting)
        if not self._dry_run:
            self._have = [*self._have, *(self._refs[name] for name in self._waiting if name in offered)]
        self._waiting = rest

    def close(self) -> None:
        """Leave the rest where it is."""
        if isinstance(self._coming, Generator):
            self._coming.close()


def push(
    store: Store,
    transport: Transport,
    scope: Scope,
    *,
    dry_run: bool = False,
    most: int = MOST,
    on_progress: Count = _nothing,
) -> Pushed:
    """Bring what this store has in ``scope`` and the other side has not.

    With ``dry_run`` it is only worked out. Raises ``Conflict`` where the other side has, under this store's id, what
    this one has not: it was copied or restored, and must fetch first.
    """
    hello = _greeted(store, transport, scope)
    result = Pushed(store=hello.store)
    with store.snapshot() as view:
        mine = manifest_of(view, scope)
        if mine.root == hello.root:
            return result
        if hello.store == store.store_id:
            raise Conflict(
                f"both stores have the id {hello.store}: one is a copy of the other",
                hint="objstore fetch first: this one then goes on under a new id",
            )
        ours, theirs = differences(
            mine, hello.root, lambda prefixes: transport.nodes(scope, prefixes), only_mine=True
        )
        _check_own(view, store.store_id, theirs)
        ready = [
            (name, ours[name]) for name in sorted(ours) if _is_ahead(view, name, ours[name], theirs, hello)
        ]
        result.behind = sorted(ours.keys() - {name for name, _ in ready})
        have = _known_there(view, transport, ready, theirs, hello)
        while ready:
            selection = select(view, ready, have, content=scope.content, most=most)
            result.sent += len(selection.refs)
            result.objects += len(selection.order)
            if not dry_run:
                receipt = transport.push(_reported(view, selection, store.algorithm, on_progress))
                result.added += receipt.added
                result.moved += receipt.moved
                result.diverged += receipt.diverged
            ready = ready[len(selection.refs) :]
            have = [*have, *(key for _, key in selection.refs)]
    return result


def _greeted(store: Store, transport: Transport, scope: Scope) -> Hello:
    hello = transport.hello(scope)
    if hello.version != PROTOCOL:
        raise StorageError(
            f"the other side speaks version {hello.version} of the protocol, this one {PROTOCOL}",
            hint="upgrade the older of the two",
        )
    if hello.hash != store.algorithm:
        raise UsageError(
            f"the other store is keyed by {hello.hash}, this one by {store.algorithm}",
            hint="stores of different hashes exchange through export and import",
        )
    return hello


def _check_own(view: Snapshot, own: str, theirs: dict[str, bytes]) -> None:
    for name, key in theirs.items():
        if place_of_name(name).owner == own and key not in view:
            raise Conflict(
                f"{name}: the other side has what was written under this store's id and is not here: this store was "
                "copied, or restored from a backup",
                hint="objstore fetch first: this store then goes on under a new id, and nothing is lost",
            )


def _is_ahead(view: Snapshot, name: str, key: bytes, theirs: dict[str, bytes], hello: Hello) -> bool:
    """Whether pushing a ref can change anything: not where the other side has it further, or it is that store's own."""
    if place_of(name, key).owner == hello.store:
        return False
    there = theirs.get(name)
    return there is None or there not in view or maximal(view, (key, there)) != {there}


def _known_there(
    view: Snapshot, transport: Transport, ready: Sequence[Ref], theirs: dict[str, bytes], hello: Hello
) -> list[bytes]:
    """Entries that both sides have of the chains that are to be pushed."""
    found = [theirs[name] for name, _ in ready if name in theirs and theirs[name] in view]
    unknown = [name for name, _ in ready if name not in theirs or theirs[name] not in view]
    if unknown and hello.refs:
        found += [key for key in transport.entries(unknown) if key in view]
    return found


def _reported(view: Snapshot, selection: Selection, algorithm: str, on_progress: Count) -> Iterator[bytes]:
    """The pack; ``on_progress`` is told of its objects, about as they pass."""
    yield from pack_stream(view, selection, algorithm)
    on_progress(len(selection.order))
