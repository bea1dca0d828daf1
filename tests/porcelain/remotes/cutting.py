"""A TCP proxy that ends every connection once so many bytes have passed through it, in both directions together."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Cutting:
    """The proxy to ``port`` of this machine; it listens on ``port`` of its own. ``left`` are the bytes that may still
    pass. With ``once`` only the connection that used them up is cut, and later ones pass, after ``between``."""

    def __init__(
        self, port: int, left: int, *, once: bool = False, between: Callable[[], object] = lambda: None
    ) -> None:
        self.left = left
        self._once = once
        self._between = between
        self._to = port
        self._lock = threading.Lock()
        self._ends: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:  # nobody is there: so that is what is seen here too
                client.close()
                continue
            self._ends += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                with self._lock:
                    part = data[: self.left]
                    self.left -= len(part)
                other.sendall(part)
                if len(part) < len(data):
                    break
        with self._lock:
            if self._once and not self.left:
                self._between()
                self.left = 1 << 40
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it, and what passes through it."""
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def cutting(
    port: int, left: int, *, once: bool = False, between: Callable[[], object] = lambda: None
) -> Iterator[Cutting]:
    """The proxy while it is needed."""
    proxy = Cutting(port, left, once=once, between=between)
    try:
        yield proxy
    finally:
        proxy.close()
