"""A server of a store in a thread, for tests, and raw requests to it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from objstore.store import Store
from porcelain.remotes.http_client import HttpTransport, Target
from porcelain.serve.app import make_app
from porcelain.serve.guard import Limits
from porcelain.serve.server import Server, listen, make_server
from porcelain.serve.tokens import Token, new_token

HOSTS = frozenset({"127.0.0.1", "localhost"})


class Served(NamedTuple):
    """A server that runs: its port, a token of each scope, the lines of its log."""

    port: int
    reader: str
    writer: str
    log: list[str]
    server: Server

    @property
    def url(self) -> str:
        return f"http://token:{self.writer}@127.0.0.1:{self.port}/"

    def transport(self, token: str | None = None) -> HttpTransport:
        """A client."""
        return HttpTransport(
            Target(False, "127.0.0.1", self.port, "", ""), self.writer if token is None else token
        )

    def ask(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One request; status, headers (lower case) and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            shown = self.writer if token is None else token
            if shown:
                sent.setdefault("Authorization", f"Bearer {shown}")
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()


@contextmanager
def served(
    store: Store,
    *,
    writable: bool = True,
    limits: Limits | None = None,
    certificate: str | None = None,
    key: str | None = None,
) -> Iterator[Served]:
    """Serve ``store`` on a free port of this machine."""
    tokens: dict[str, Token] = {}
    texts = []
    for scope in ("read", "write"):
        identity, text, token = new_token(scope, "test", "2026-03-04T05:06:07Z")  # type: ignore[arg-type]
        tokens[identity] = token
        texts.append(text)
    limits = limits or Limits()
    log: list[str] = []
    app = make_app(store, hosts=HOSTS, tokens=tokens, writable=writable, limits=limits, log=log.append)
    server = make_server(app, seconds=limits.seconds, certificate=certificate, key=key)
    with listen("127.0.0.1", 0) as where:
        thread = threading.Thread(target=server.serve_on, args=(where,), daemon=True)
        thread.start()
        try:
            yield Served(where.getsockname()[1], texts[0], texts[1], log, server)
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()
