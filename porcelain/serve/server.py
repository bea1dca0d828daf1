"""Running the application: the socket, TLS, connections that say nothing, and stopping with what was begun finished."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from objstore.errors import StorageError, UsageError

#: Longest head of a request, in bytes; objstore's own are below 1 KB.
_MOST_HEAD = 16 * 1024
#: Connections that are taken and not yet accepted.
_BACKLOG = 128


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one. Raises ``StorageError``."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        where = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise StorageError(
            f"{host}:{port}: cannot be listened on: {error.strerror}", hint="take another: --port N"
        ) from None
    # An answer's head and its body go out apart. What is accepted has this from the one that listens; without it the
    # body waits for the other side to acknowledge the head, which takes that some 40 ms. asyncio would set it where it
    # made the socket.
    where.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return where


def make_server(
    app: Any,
    *,
    seconds: float = 30.0,
    connections: int = 512,
    certificate: str | None = None,
    key: str | None = None,
) -> Server:
    """A server of ``app``. ``seconds`` is how long a connection may say nothing, and how long a stop waits for what was
    begun; ``connections`` how many there may be. Raises ``UsageError`` for a certificate that cannot be used."""
    config = uvicorn.Config(
        app,
        http=_protocol(seconds),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections,
        timeout_keep_alive=int(max(seconds, 1)),
        timeout_graceful_shutdown=int(max(seconds, 1)),
        h11_max_incomplete_event_size=_MOST_HEAD,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    # What it would say, with a traceback, stands in the log of the application as one line.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{certificate}: cannot be used: {error.strerror or error}") from None
    if config.ssl is not None:
        config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
    return Server(config)


class Server(uvicorn.Server):
    """uvicorn's server; a signal to stop ends it with what was begun finished, and the program goes on."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGINT and SIGTERM; a second one does not wait."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: object) -> None:
            self.force_exit = self.should_exit
            self.should_exit = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def serve_on(self, where: socket.socket) -> None:
        """Serve on a socket that listens, until it is stopped."""
        if sys.version_info >= (3, 12):
            asyncio.run(self.serve(sockets=[where]), loop_factory=asyncio.SelectorEventLoop)
        else:
            asyncio.run(self.serve(sockets=[where]))


def _protocol(seconds: float) -> type[asyncio.Protocol]:
    """HTTP/1.1, where a connection that does not finish the head of a request in time is closed."""

    class Protocol(H11Protocol):
        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expect_head()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            cycle = self.cycle
            super().handle_events()
            if self.cycle is not cycle:
                self._stop_waiting()

        def _expect_head(self) -> None:
            self._stop_waiting()
            self._head = self.loop.call_later(seconds, self.transport.abort)

        def _stop_waiting(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

    return Protocol
