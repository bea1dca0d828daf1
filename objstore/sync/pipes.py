"""The transport over two streams of bytes: those of a program on another machine, or any others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from objstore.errors import ObjstoreError, StorageError, UsageError
from objstore.pack.reader import Source
from objstore.sync import messages
from objstore.sync.manifest import Node, Scope
from objstore.sync.messages import END, FAILURE, REQUEST, VALUE, Sink
from objstore.sync.transport import Hello, PieceSource, Receipt, Traffic, Transport

#: Arguments of each request, as tuples.
_ARGUMENTS: dict[str, Any] = {
    "hello": tuple[Scope],
    "nodes": tuple[Scope, list[str]],
    "entries": tuple[list[str]],
    "fetch": tuple[Scope, list[str], list[bytes], int],
    "push": tuple[()],
}
#: What the sides of a connection may ask for.
READ = frozenset({"hello", "nodes", "entries", "fetch"})
WRITE = frozenset({"hello", "nodes", "entries", "push"})


class PipeTransport:
    """The other side answers what is written to ``sink`` on ``source``; ``end`` is called when the transport is closed,
    and says why the connection ended where that is known."""

    def __init__(self, source: Source, sink: Sink, end: Callable[[], str | None] = lambda: None) -> None:
        self.traffic = Traffic()
        self._source = _Counted(source, self.traffic)
        self._sink = sink
        self._end = end

    def _ask(self, name: str, *arguments: Any, pack: Iterable[bytes] | None = None) -> Any:
        self.traffic.requests += 1
        try:
            body = msgspec.msgpack.encode((name, arguments))
            self.traffic.sent += messages.write_frame(self._sink, REQUEST, body)
            if pack is not None:
                self.traffic.sent += messages.write_pieces(self._sink, pack)
            self._sink.flush()
        except OSError:
            # The other side gave up; what it said last tells why.
            with suppress(StorageError):
                frame = messages.read_frame(self._source)
                if frame is not None and frame[0] == FAILURE:
                    raise messages.failure(frame[1]) from None
            raise self._cut() from None
        frame = messages.read_frame(self._source)
        if frame is None:
            raise self._cut()
        tag, body = frame
        if tag == FAILURE:
            raise messages.failure(body)
        if tag != VALUE:
            raise StorageError("the other side sent what is no objstore protocol")
        return body

    def _cut(self) -> StorageError:
        reason = self._end()
        return StorageError(
            f"the connection was cut{f': {reason}' if reason else ''}",
            hint="try again: what was complete is kept",
        )

    def hello(self, scope: Scope) -> Hello:
        found: Hello = messages.decode(self._ask("hello", scope), Hello)
        return found

    def nodes(self, scope: Scope, prefixes: Sequence[str]) -> Sequence[Node]:
        found: list[Node] = messages.decode(self._ask("nodes", scope, prefixes), list[Node])
        if len(found) != len(prefixes):
            raise StorageError("the other side answered another question")
        return found

    def entries(self, names: Sequence[str]) -> list[bytes]:
        found: list[bytes] = messages.decode(self._ask("entries", names), list[bytes])
        return found

    def fetch(self, scope: Scope, names: Sequence[str], have: Sequence[bytes], most: int) -> Iterator[Source]:
        self._ask("fetch", scope, names, have, most)
        while (first := next(pieces := messages.read_pieces(self._source), None)) is not None:
            yield PieceSource(chain((first,), pieces))
            _end_of(pieces)

    def push(self, pack: Iterable[bytes]) -> Receipt:
        found: Receipt = messages.decode(self._ask("push", pack=pack), Receipt)
        return found

    def close(self) -> None:
        with suppress(OSError, ValueError):  # it may have been closed when the connection was cut
            self._sink.flush()
        self._end()


class _Counted:
    """A source whose bytes are counted, and whose failure is that of the connection."""

    def __init__(self, source: Source, traffic: Traffic) -> None:
        self._source = source
        self._traffic = traffic

    def read(self, size: int, /) -> bytes:
        try:
            data = self._source.read(size)
        except OSError as error:
            raise StorageError(f"the connection was cut: {error.strerror}") from None
        self._traffic.received += len(data)
        return data


def serve(transport: Transport, source: Source, sink: Sink, allowed: frozenset[str]) -> None:
    """Answer requests on ``source`` out of ``transport`` until it ends. Raises nothing that is the other side's fault:
    it is told, and where the stream cannot go on, it ends."""
    with suppress(BrokenPipeError, ConnectionError):
        while True:
            try:
                frame = messages.read_frame(source)
            except StorageError:
                return
            if frame is None:
                return
            name = ""
            try:
                name, arguments = _request(*frame)
                if name not in allowed:
                    raise UsageError(f"{name}: is not served here")
                _answer(transport, name, arguments, source, sink)
            except ObjstoreError as error:
                messages.write_frame(sink, FAILURE, messages.failure_body(error))
                if name in ("", "push"):  # what is still to come cannot be told from requests
                    sink.flush()
                    return
            sink.flush()


def _request(tag: bytes, body: bytes) -> tuple[str, Any]:
    if tag != REQUEST:
        raise UsageError("expected a request")
    name, raw = messages.decode(body, tuple[str, msgspec.Raw])
    if name not in _ARGUMENTS:
        raise UsageError(f"{name[:40]}: no such request", hint="the other side has a newer objstore: upgrade")
    return name, messages.decode(raw, _ARGUMENTS[name])


def _answer(transport: Transport, name: str, arguments: Any, source: Source, sink: Sink) -> None:
    """Answer one request."""
    if name == "push":
        pieces = messages.read_pieces(source)
        receipt = transport.push(pieces)
        _end_of(pieces)
        messages.write_frame(sink, VALUE, msgspec.msgpack.encode(receipt))
    elif name == "fetch":
        messages.write_frame(sink, VALUE)
        for pack in transport.fetch(*arguments):
            messages.write_pieces(sink, iter(partial(pack.read, messages.PIECE_BYTES), b""))
        messages.write_frame(sink, END)
    else:
        value = getattr(transport, name)(*arguments)
        messages.write_frame(sink, VALUE, msgspec.msgpack.encode(value))


def _end_of(pieces: Iterator[bytes]) -> None:
    if next(pieces, None) is not None:
        raise StorageError("the other side sent more than a pack")
