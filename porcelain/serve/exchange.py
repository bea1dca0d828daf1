"""The exchange of packs over HTTP: the five requests of a transport, each a POST.

========  =====================================  ====================================================
path      body                                   answer
========  =====================================  ====================================================
hello     MessagePack of the arguments           MessagePack of the value
nodes     the same                               the same
entries   the same                               the same
fetch     the same                               packs, in the frames of ``objstore.sync.messages``
push      a pack                                 MessagePack of the receipt
========  =====================================  ====================================================

The answer to ``fetch`` has a header ``objstore-state``. Asked the same again with that and ``objstore-from``, a number
of bytes, the server leaves out those, as long as nothing was written to the store since.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec
import zstandard
from anyio import from_thread, to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from objstore.errors import Conflict, ObjstoreError, UsageError
from objstore.pack.format import Limits as PackLimits
from objstore.store import Store
from objstore.sync import messages
from objstore.sync.manifest import Manifest, Scope
from objstore.sync.messages import END, FAILURE, HEAD, PIECE, PIECE_BYTES
from objstore.sync.stores import StoreTransport
from plumbing.interface.settings import keeps_content
from porcelain.commands import VERSION
from porcelain.serve.guard import Limits, Refused

BINARY = "application/octet-stream"
_ARGUMENTS: dict[str, Any] = {
    "hello": tuple[Scope],
    "nodes": tuple[Scope, list[str]],
    "entries": tuple[list[str]],
    "fetch": tuple[Scope, list[str], list[bytes], int],
}
#: Headers by which an answer that was cut is gone on with.
FROM, STATE = "objstore-from", "objstore-state"
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)
#: Manifests that are kept while nothing changes.
_MANIFESTS = 16
#: Ids and names in one question.
_MOST_NAMES = 200_000
#: What is read on of a pack that was refused, so that its sender hears why.
_DRAINED = 64 * 1024 * 1024


class Exchange:
    """Answers the requests of transports out of ``store``. Few packs pass at once; the rest wait, then are refused."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._manifests: OrderedDict[tuple[Scope, int], Manifest] = OrderedDict()
        self._slots = asyncio.Semaphore(limits.exchanges)

    def routes(self) -> list[Route]:
        """The routes of the five requests."""
        questions = [
            Route(f"/exchange/{name}", partial(self._question, name), methods=["POST"])
            for name in ("hello", "nodes", "entries")
        ]
        return [
            *questions,
            Route("/exchange/fetch", self._fetch, methods=["POST"]),
            Route("/exchange/push", self._push, methods=["POST"]),
        ]

    def _transport(self) -> StoreTransport:
        with self._store.snapshot() as view:
            content = keeps_content(view)
        return _Shared(
            self._store,
            self._manifests,
            keeps_content=content,
            limits=PackLimits(bytes=min(PackLimits().bytes, self._limits.pack * 64)),
        )

    async def _question(self, name: str, request: Request) -> Response:
        arguments = _arguments(name, await request.body())

        def answer() -> bytes:
            return msgspec.msgpack.encode(getattr(self._transport(), name)(*arguments))

        return Response(await to_thread.run_sync(answer), media_type=BINARY)

    async def _fetch(self, request: Request) -> Response:
        body = await request.body()
        arguments = _arguments("fetch", body)
        state = self._state(body)
        start = request.headers.get(FROM, "0")
        if _NUMBER.fullmatch(start) is None:
            raise UsageError(f"{FROM}: not a number of bytes")
        if int(start) and request.headers.get(STATE) != state:
            raise Conflict("the store was written to meanwhile", hint="try again: what was complete is kept")
        packs = self._packs(arguments, int(start))
        first = await anext(packs, b"")  # before the answer begins, so that it can still be another
        return _Packs(first, packs, state)

    def _state(self, body: bytes) -> str:
        """What the bytes of an answer follow from, beside what was asked: all that was committed, and the programs."""
        committed = self._store.database.env.info()["last_txnid"]  # type: ignore[union-attr]
        parts = (self._store.store_id, committed, VERSION, zstandard.ZSTD_VERSION)
        return sha256(repr(parts).encode() + body).hexdigest()[:32]

    async def _packs(self, arguments: Any, start: int) -> AsyncGenerator[bytes, None]:
        """The frames of the answer, without the first ``start`` bytes."""
        async with self._slot():
            frames = _frames(self._transport(), arguments)
            try:
                while (frame := await to_thread.run_sync(next, frames, None)) is not None:
                    if start < len(frame):
                        yield frame[start:]
                    start = max(start - len(frame), 0)
            finally:
                frames.close()

    async def _push(self, request: Request) -> Response:
        parts = request.stream()
        async with self._slot():
            try:
                receipt = await to_thread.run_sync(self._receive, partial(anext, parts, b""))
            except ObjstoreError:
                await _drain(parts)
                raise
        return Response(msgspec.msgpack.encode(receipt), media_type=BINARY)

    def _receive(self, part: Callable[[], Any]) -> Any:
        """Take the pack in, in a thread; its parts come from the loop."""
        # An empty part is the end, but the last one of a body may be empty as well: both mean that nothing follows.
        return self._transport().push(iter(lambda: from_thread.run(part), b""))

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._limits.seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise Refused(503, "too many exchanges at once", ((b"retry-after", b"5"),)) from None
        try:
            yield
        finally:
            self._slots.release()


class _Packs(StreamingResponse):
    """The answer to ``fetch``; whatever becomes of it, ``packs`` is closed."""

    def __init__(self, first: bytes, packs: AsyncGenerator[bytes, None], state: str) -> None:
        super().__init__(self._parts(first, packs), media_type=BINARY, headers={STATE: state})
        self._packs = packs

    async def _parts(self, first: bytes, packs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        yield first
        async for part in packs:
            yield part

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._packs.aclose()


class _Shared(StoreTransport):
    """A transport for one request, whose manifests are shared with the others as long as nothing was committed."""

    def __init__(
        self, store: Store, shared: OrderedDict[tuple[Scope, int], Manifest], **options: Any
    ) -> None:
        super().__init__(store, **options)
        self._shared = shared

    def _manifest(self, scope: Scope) -> Manifest:
        state = int(self._store.database.env.info()["last_txnid"])  # type: ignore[union-attr]
        found = self._shared.get((scope, state))
        if found is None:
            found = self._shared[scope, state] = super()._manifest(scope)
            while len(self._shared) > _MANIFESTS:
                self._shared.popitem(last=False)
        return found


def _arguments(name: str, body: bytes) -> Any:
    try:
        arguments = msgspec.msgpack.decode(body, type=_ARGUMENTS[name])
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}: not the arguments of this request: {error}") from None
    if any(isinstance(one, list) and len(one) > _MOST_NAMES for one in arguments):
        raise UsageError(f"{name}: more than {_MOST_NAMES} names at once")
    return arguments


def _frames(transport: StoreTransport, arguments: Any) -> Generator[bytes, None, None]:
    """The packs that were asked for; where one fails, why, as the last frame."""
    try:
        for pack in transport.fetch(*arguments):
            while piece := pack.read(PIECE_BYTES):
                yield HEAD.pack(PIECE, len(piece)) + piece
            yield HEAD.pack(END, 0)
        yield HEAD.pack(END, 0)
    except ObjstoreError as error:
        body = messages.failure_body(error)
        yield HEAD.pack(FAILURE, len(body)) + body


async def _drain(parts: AsyncIterator[bytes]) -> None:
    size = 0
    async for part in parts:
        size += len(part)
        if size > _DRAINED:
            return
