"""The contract of transports, for hubs that are plain files: a store is pushed there first and fetched back at the end,
so that what the contract says of the other store can be said of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from objstore.store import Store
from objstore.sync.exchange import fetch, push
from objstore.sync.pipes import READ, WRITE
from objstore.sync.transport import Transport
from porcelain.remotes.config import Pusher, pusher
from porcelain.remotes.hub.files import Files
from porcelain.remotes.hub.transport import HubTransport
from tests.objstore.sync.building import EVERYTHING, add_fact, add_round, opened, sound, state


class HubWay:
    """The contract's way to a store: ``files`` opens the hub anew."""

    kind = "plain"

    def __init__(self, files: Callable[[], Files]) -> None:
        self._files = files

    @contextmanager
    def to(self, store: Store, allowed: frozenset[str] = READ | WRITE) -> Iterator[Transport]:
        push(store, HubTransport(self._files(), pusher(store)), EVERYTHING)
        yield HubTransport(self._files(), Pusher("c11e000000000000", store.algorithm))
        fetch(store, HubTransport(self._files(), None), EVERYTHING, keeps_content=False)


def exchange_there_and_back(files: Callable[[], Files], here: Store, there: Store) -> None:
    """Everything goes there and comes from there; afterwards there is nothing to do, and what is new goes alone."""
    result = push(there, HubTransport(files(), pusher(there)), EVERYTHING)
    assert result.added == result.objects > 0
    fetched = fetch(here, HubTransport(files(), None), EVERYTHING, keeps_content=False)
    assert state(here) == state(there) and fetched.added == result.added
    sound(here)
    for store in (here, there):
        transport = HubTransport(files(), pusher(store))
        assert push(store, transport, EVERYTHING).sent == 0
        again = fetch(store, transport, EVERYTHING, keeps_content=False, seen=fetched.root)
        assert again.differed == 0 and transport.traffic.requests <= 4
    add_round(here, f"flow/{here.store_id}/test/x", "more")
    result = push(here, HubTransport(files(), pusher(here)), EVERYTHING)
    assert (result.sent, result.objects) == (1, 3)
    assert fetch(there, HubTransport(files(), None), EVERYTHING, keeps_content=False).objects == 3
    assert state(here) == state(there)


def contend(files: Callable[[], Files], folder: Path, *, writers: int, pushes: int) -> None:
    """Let so many stores push to one hub at once, each fetching now and then; nothing may be lost."""
    stores = [opened(folder / f"writer {number}") for number in range(writers)]
    begin = threading.Barrier(writers)

    def work(number: int) -> None:
        store = stores[number]
        begin.wait(30)
        for turn in range(pushes):
            add_round(store, f"flow/{store.store_id}/test/{turn % 3}", f"{number} {turn} a")
            add_fact(store, f"/home/{number}/{turn}", revision=turn + 1)
            transport = HubTransport(files(), pusher(store))
            if turn % 3 == 2:
                fetch(store, transport, EVERYTHING, keeps_content=False)
            push(store, transport, EVERYTHING)

    try:
        with ThreadPoolExecutor(writers) as pool:
            for done in [pool.submit(work, number) for number in range(writers)]:
                done.result()
        with opened(folder / "reader") as reader:
            result = fetch(reader, HubTransport(files(), None), EVERYTHING, keeps_content=False)
            assert result.diverged == []
            for store in stores:
                own = {name: key for name, key in store.refs().items() if store.store_id in name}
                assert own and own.items() <= reader.refs().items()
            sound(reader)
            for store in stores:
                fetch(store, HubTransport(files(), None), EVERYTHING, keeps_content=False)
                assert state(store) == state(reader)
            again = fetch(reader, HubTransport(files(), None), EVERYTHING, keeps_content=False)
            assert (again.differed, again.objects) == (0, 0)
    finally:
        for store in stores:
            store.close()
