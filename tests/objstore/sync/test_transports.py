"""The contract of transports: one suite for each of them. A new one is added to ``KINDS`` and has to pass it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from objstore.closure import select
from objstore.errors import CheckFailed, ObjstoreError, StorageError, UsageError
from objstore.pack.format import PackRefused
from objstore.pack.writer import pack_stream
from objstore.store import Store
from objstore.sync.bundles import BundleTransport, write_file
from objstore.sync.exchange import fetch, push
from objstore.sync.manifest import Scope
from objstore.sync.pipes import READ, WRITE, PipeTransport, serve
from objstore.sync.stores import StoreTransport
from objstore.sync.transport import Transport
from tests.objstore.sync.building import EVERYTHING, add_round, opened, put_node, put_tags, sound, state

KINDS = ("store", "pipe", "bundle")
WRITABLE = ("store", "pipe")
REF = "flow/1111111111111111/test/x"


class Way:
    """A transport of one kind to a store, opened as often as is wanted."""

    def __init__(self, kind: str, folder: Path, keeps_content: bool = False) -> None:
        self.kind = kind
        self.folder = folder
        self.keeps_content = keeps_content

    @contextmanager
    def to(self, store: Store, allowed: frozenset[str] = READ | WRITE) -> Iterator[Transport]:
        inner = StoreTransport(store, keeps_content=self.keeps_content)
        if self.kind == "store":
            yield inner
        elif self.kind == "bundle":
            path = str(self.folder / "b.objpack")
            with store.snapshot() as view:
                refs = list(view.refs())
                write_file(path, pack_stream(view, select(view, refs), store.algorithm))
            yield BundleTransport(path)
        else:
            with piped(inner, allowed) as transport:
                yield transport


@contextmanager
def piped(
    inner: Transport, allowed: frozenset[str], cut: Callable[[Any], Any] = lambda stream: stream
) -> Iterator[PipeTransport]:
    """A transport over two pipes to a thread that serves ``inner``; ``cut`` may wrap the streams."""
    to_server, from_client = os.pipe()
    to_client, from_server = os.pipe()
    server_in, server_out = os.fdopen(to_server, "rb"), cut(os.fdopen(from_server, "wb"))
    client_in, client_out = os.fdopen(to_client, "rb"), cut(os.fdopen(from_client, "wb"))

    def run() -> None:
        with suppress(OSError, ValueError):
            serve(inner, server_in, server_out, allowed)
        for stream in (server_out, server_in):
            with suppress(OSError, ValueError):
                stream.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    transport = PipeTransport(client_in, client_out)
    try:
        yield transport
    finally:
        for stream in (client_out, client_in):
            with suppress(OSError, ValueError):
                stream.close()
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(params=KINDS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Way:
    return Way(request.param, tmp_path)


@pytest.fixture(params=WRITABLE)
def writable(request: pytest.FixtureRequest, tmp_path: Path) -> Way:
    return Way(request.param, tmp_path)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "here") as store:
        yield store


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "there") as store:
        for number in range(4):
            add_round(store, REF, f"round {number}", "a")
        store.update_ref("tag/x", put_node(store, "tagged"), None)
        yield store


# -- fetching ----------------------------------------------------------------------------------------------------------


def test_a_fetch_brings_everything_and_the_next_one_nothing(way: Way, here: Store, there: Store) -> None:
    with way.to(there) as transport:
        result = fetch(here, transport, EVERYTHING, keeps_content=False)
    assert state(here) == state(there)
    assert sorted(result.moved) == [REF, "tag/x"] and result.added == result.objects > 0
    sound(here)
    with way.to(there) as transport:
        again = fetch(here, transport, EVERYTHING, keeps_content=False, seen=result.root)
        assert (again.differed, again.objects, transport.traffic.requests) == (0, 0, 1)
    with way.to(there) as transport:
        again = fetch(here, transport, EVERYTHING, keeps_content=False)
        assert (again.objects, again.moved) == (0, [])
        assert transport.traffic.requests <= 2


def test_only_what_is_new_travels(way: Way, here: Store, there: Store) -> None:
    with way.to(there) as transport:
        fetch(here, transport, EVERYTHING, keeps_content=False)
    add_round(there, REF, "more")
    with way.to(there) as transport:
        result = fetch(here, transport, EVERYTHING, keeps_content=False)
    assert result.added == 3
    if way.kind != "bundle":
        assert result.objects == 3
    assert state(here) == state(there)


def test_a_scope_is_kept_to(way: Way, here: Store, there: Store) -> None:
    with way.to(there) as transport:
        fetch(here, transport, Scope(patterns=("tag/*",)), keeps_content=False)
    assert list(here.refs()) == ["tag/x"]
    sound(here)


def test_a_dry_run_changes_nothing(way: Way, here: Store, there: Store) -> None:
    before = state(here)
    with way.to(there) as transport:
        result = fetch(here, transport, EVERYTHING, keeps_content=False, dry_run=True)
    assert result.differed == 2 and result.objects > 0 and result.added == 0
    assert state(here) == before


def test_an_empty_store_has_nothing(way: Way, here: Store, tmp_path: Path) -> None:
    with opened(tmp_path / "empty") as empty, way.to(empty) as transport:
        assert fetch(here, transport, EVERYTHING, keeps_content=False).differed == 0


def test_stores_of_different_hashes_say_so(way: Way, there: Store, tmp_path: Path) -> None:
    pytest.importorskip("blake3")
    with (
        Store.init(tmp_path / "other", algorithm="blake3") as other,
        way.to(there) as transport,
        pytest.raises(UsageError, match="sha256"),
    ):
        fetch(other, transport, EVERYTHING, keeps_content=False)


def test_several_packs_bring_the_same(here: Store, there: Store, tmp_path: Path) -> None:
    put_tags(there, 700)
    for kind in WRITABLE:
        with opened(tmp_path / f"into {kind}") as into, Way(kind, tmp_path).to(there) as transport:
            fetch(into, transport, EVERYTHING, keeps_content=False, most=200)
            assert state(into) == state(there)
            assert transport.traffic.requests > 4


def test_content_only_where_both_want_it(here: Store, there: Store, tmp_path: Path) -> None:
    there.update_ref("tag/said", there.put({"text": "said", "type": "text"}), None)
    for kind in WRITABLE:
        with Way(kind, tmp_path, keeps_content=True).to(there) as transport:
            fetch(here, transport, EVERYTHING, keeps_content=False)
            assert here.ref("tag/said") is None
            with pytest.raises(UsageError, match="this store keeps none"):
                fetch(here, transport, Scope(content=True), keeps_content=False)
        with (
            Way(kind, tmp_path).to(there) as transport,
            pytest.raises(UsageError, match="other store keeps none"),
        ):
            fetch(here, transport, Scope(content=True), keeps_content=True)
        with opened(tmp_path / kind) as into, Way(kind, tmp_path, keeps_content=True).to(there) as transport:
            fetch(into, transport, Scope(content=True), keeps_content=True)
            assert state(into) == state(there)


def test_nothing_to_do_costs_one_small_request_with_a_hundred_thousand_refs_too(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as a:
        put_tags(a, 1)
        (key,) = a.refs().values()
        batch = a.batch()
        for number in range(100_000):
            batch.move_ref(f"tag/n{number}", key, None, "")
        a.commit(batch)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with Store.open(tmp_path / "a") as a, Store.open(tmp_path / "b") as b:
        for exchange in (
            lambda transport: fetch(a, transport, EVERYTHING, keeps_content=False),
            lambda transport: push(a, transport, EVERYTHING),
        ):
            with piped(StoreTransport(b, keeps_content=False), READ | WRITE) as transport:
                exchange(transport)
                traffic = transport.traffic
                assert traffic.requests == 1 and traffic.sent + traffic.received < 400
        add_round(b, REF, "one")
        with piped(StoreTransport(b, keeps_content=False), READ) as transport:
            assert fetch(a, transport, EVERYTHING, keeps_content=False).added == 3
            traffic = transport.traffic
            assert traffic.requests <= 6 and traffic.sent + traffic.received < 10_000


# -- pushing -----------------------------------------------------------------------------------------------------------


def test_a_push_brings_everything_and_the_next_one_nothing(writable: Way, here: Store, there: Store) -> None:
    with writable.to(here) as transport:
        result = push(there, transport, EVERYTHING)
        assert result.added == result.objects > 0 and sorted(result.moved) == [REF, "tag/x"]
    assert state(here) == state(there)
    sound(here)
    with writable.to(here) as transport:
        assert push(there, transport, EVERYTHING).sent == 0
        assert transport.traffic.requests == 1
    add_round(there, REF, "more")
    with writable.to(here) as transport:
        result = push(there, transport, EVERYTHING)
        assert (result.sent, result.objects, result.added) == (1, 3, 3)
    assert state(here) == state(there)


def test_a_push_to_a_store_that_has_more_sends_only_what_it_lacks(
    writable: Way, here: Store, there: Store
) -> None:
    with writable.to(there) as transport:
        fetch(here, transport, EVERYTHING, keeps_content=False)
    add_round(there, REF, "further")
    add_round(here, "flow/2222222222222222/test/y", "mine")
    with writable.to(there) as transport:
        result = push(here, transport, EVERYTHING)
    assert result.moved == ["flow/2222222222222222/test/y"]
    assert result.objects == 3 + result.sent - 1 or result.objects == 3
    sound(there)


def test_what_is_refused_there_is_told_here_and_nothing_moved(
    writable: Way, here: Store, there: Store
) -> None:
    before = state(here)
    with there.snapshot() as view:
        pack = b"".join(pack_stream(view, select(view, list(view.refs())), "sha256"))
    with writable.to(here) as transport, pytest.raises((PackRefused, CheckFailed), match="pack refused"):
        transport.push([pack[:-1] + b"x"])
    assert state(here) == before
    with writable.to(here) as transport, pytest.raises(ObjstoreError):
        transport.push([pack[: len(pack) // 2]])
    assert state(here) == before


def test_a_push_in_several_packs(writable: Way, here: Store, there: Store) -> None:
    put_tags(there, 700)
    with writable.to(here) as transport:
        push(there, transport, EVERYTHING, most=200)
    assert state(here) == state(there)


# -- pipes -------------------------------------------------------------------------------------------------------------


def test_a_server_answers_only_what_it_is_there_for(here: Store, there: Store) -> None:
    with piped(StoreTransport(there, keeps_content=False), READ) as transport:
        transport.hello(EVERYTHING)
        with pytest.raises(UsageError, match="is not served here"):
            transport.push([b"x"])
    with (
        piped(StoreTransport(there, keeps_content=False), WRITE) as transport,
        pytest.raises(UsageError, match="is not served here"),
    ):
        list(transport.fetch(EVERYTHING, ["tag/x"], [], 1))


@pytest.mark.parametrize(
    "sent", [b"hello there", b"Q\xff\xff\xff\xff", b"Q\0\0\0\1\xc1", b"D\0\0\0\0", b"", b"Q\0\0"]
)
def test_a_server_survives_what_is_no_request(there: Store, sent: bytes) -> None:
    import io

    out = io.BytesIO()
    serve(StoreTransport(there, keeps_content=False), io.BytesIO(sent), out, READ)
    assert out.getvalue()[:1] in (b"", b"X")


@pytest.mark.parametrize(
    "sent", [b"", b"V\0", b"Welcome to example.org!\n", b"V\0\0\0\1\xc1", b"X\0\0\0\1\xc1"]
)
def test_a_client_survives_what_is_no_answer(here: Store, sent: bytes) -> None:
    import io

    transport = PipeTransport(io.BytesIO(sent), io.BytesIO())
    with pytest.raises(StorageError):
        fetch(here, transport, EVERYTHING, keeps_content=False)


class _Cut:
    """A stream that ends after so many bytes, as a connection does."""

    def __init__(self, stream: Any, left: list[int]) -> None:
        self._stream = stream
        self._left = left

    def write(self, data: bytes) -> None:
        if self._left[0] < len(data):
            with suppress(OSError, ValueError):
                self._stream.write(data[: self._left[0]])
                self._stream.flush()
                self._stream.close()
            self._left[0] = 0
            raise BrokenPipeError("cut")
        self._left[0] -= len(data)
        self._stream.write(data)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        with suppress(OSError):
            self._stream.close()


@pytest.mark.parametrize("direction", ["fetch", "push"])
def test_a_connection_that_is_cut_at_any_byte(there: Store, tmp_path: Path, direction: str) -> None:
    """Both stores hold, and the next try completes. Every byte of what both sides say together is tried, in steps."""
    whole = state(there)
    total = 0
    with opened(tmp_path / "reference") as store:
        counter = [10**9]
        with _cut_way(store, there, direction, counter) as transport:
            _exchange(transport, direction, store, there)
        total = 10**9 - counter[0]
    assert total > 500
    with opened(tmp_path / "into") as store:
        empty = state(store)
        for at in range(0, total, max(1, total // 250)):
            with pytest.raises(ObjstoreError), _cut_way(store, there, direction, [at]) as transport:
                _exchange(transport, direction, store, there)
            # Either nothing came, or, where only the last word was lost, everything.
            assert state(store) in (empty, whole)
            assert state(there) == whole
            if state(store) == whole:
                break
        sound(store)
        with _cut_way(store, there, direction, [10**9]) as transport:
            _exchange(transport, direction, store, there)
        assert state(store) == whole


def _cut_way(into: Store, there: Store, direction: str, left: list[int]) -> Any:
    server = there if direction == "fetch" else into
    return piped(
        StoreTransport(server, keeps_content=False), READ | WRITE, cut=lambda stream: _Cut(stream, left)
    )


def _exchange(transport: Transport, direction: str, store: Store, there: Store) -> None:
    if direction == "fetch":
        fetch(store, transport, EVERYTHING, keeps_content=False)
    else:
        push(there, transport, EVERYTHING)


# -- bundles -----------------------------------------------------------------------------------------------------------


def test_a_bundle_is_written_whole_or_not_at_all(there: Store, tmp_path: Path) -> None:
    path = tmp_path / "b.objpack"
    path.write_bytes(b"before")

    def pieces() -> Iterator[bytes]:
        yield b"x" * 1000
        raise StorageError("the disk broke")

    with pytest.raises(StorageError):
        write_file(str(path), pieces())
    assert path.read_bytes() == b"before"
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".objpack")] == []
    with pytest.raises(StorageError):
        write_file(str(tmp_path / "no folder" / "x"), [b"x"])


def test_nothing_is_pushed_to_a_bundle(here: Store, there: Store, tmp_path: Path) -> None:
    with Way("bundle", tmp_path).to(there) as transport, pytest.raises(UsageError):
        transport.push([b""])


def test_full_disk(there: Store, here: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The spool cannot be written: nothing is stored."""
    from objstore.sync import receiving

    class Full:
        def __init__(self, **_: object) -> None: ...

        def write(self, _data: bytes) -> None:
            raise OSError(28, "No space left on device")

        def close(self) -> None: ...

    before = state(here)
    with monkeypatch.context() as patch:
        patch.setattr(receiving, "TemporaryFile", Full)
        patch.setattr(receiving, "_HELD_BYTES", 0)
        with Way("store", Path()).to(there) as transport, pytest.raises(StorageError, match="No space left"):
            fetch(here, transport, EVERYTHING, keeps_content=False)
    assert state(here) == before
    with Way("store", Path()).to(there) as transport:
        fetch(here, transport, EVERYTHING, keeps_content=False)
    assert state(here) == state(there)
