"""What stands before every request: who may ask, how much at once, and how slowly; and one line of log for each.

Nothing is answered without a token. ``Host`` must be a name of this server (else a page could reach it under a name of
its own), and a request that a browser makes for a page of another origin is refused whatever it shows.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from objstore.store import Store
from porcelain.serve.tokens import Token, find_token

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

#: Bytes a second under which a client is too slow, once its grace is used up.
_LEAST_RATE = 8192
_LOGGED_PATH = 300
#: Sent with every answer: it is for the one who asked, and no page is made of it.
_HEADERS = [
    (b"cache-control", b"private, no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]


class Refused(Exception):
    """A request that is not answered: status, why, and headers to say so with."""

    def __init__(self, status: int, reason: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers


class Limits(Struct, frozen=True, kw_only=True):
    """What a server takes: bytes of a pack, and of any other body; requests at once, and of those exchanges of packs;
    seconds that a client may keep it waiting (and more as it sends or takes more)."""

    exchanges: int = 8
    pack: int = 4 * 1024**3
    question: int = 16 * 1024**2
    requests: int = 128
    seconds: float = 30.0


class Guard:
    """The ASGI application ``app`` behind its checks. ``hosts`` are the names (lower case, no port) that it goes by,
    ``tokens`` those beside the store's own, ``log`` takes each line of the log."""

    def __init__(
        self,
        app: App,
        store: Store,
        *,
        hosts: frozenset[str],
        tokens: Mapping[str, Token],
        writable: bool,
        limits: Limits,
        log: Callable[[str], None],
    ) -> None:
        self._app = app
        self._store = store
        self._hosts = hosts
        self._tokens = tokens
        self._writable = writable
        self._limits = limits
        self._log = log
        self._active = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _unknown(scope, receive, send)
            return
        request = _Request(scope, receive, send, self._limits)
        self._active += 1
        try:
            if self._active > self._limits.requests:
                raise Refused(503, "too many requests at once", ((b"retry-after", b"1"),))
            self._check(request)
            await self._app(scope, request.receive, request.send)
        except Refused as refused:
            await request.refuse(refused)
        except Exception as error:
            request.failure = type(error).__name__
            await request.refuse(Refused(500, "the server failed"))
        finally:
            self._active -= 1
            self._log(request.line())

    def _check(self, request: _Request) -> None:
        host = request.header(b"host")
        if host is None or _host_name(host) not in self._hosts:
            raise Refused(421, "this server does not go by that name")
        origin = request.header(b"origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise Refused(403, "pages of another origin may not ask")
        if request.header(b"sec-fetch-site") in ("cross-site", "same-site"):
            raise Refused(403, "pages of another origin may not ask")
        found = self._found(request.header(b"authorization"))
        if found is None:
            raise Refused(401, "a token is needed", ((b"www-authenticate", b'Basic realm="objstore"'),))
        request.token = found[0]
        request.check_body()
        if request.is_push:
            if not self._writable:
                raise Refused(403, "this server takes nothing in: it was started without --write")
            if found[1].scope != "write":
                raise Refused(403, "this token is good for reading only")

    def _found(self, shown: str | None) -> tuple[str, Token] | None:
        text = _token_of(shown or "")
        with self._store.snapshot() as view:
            return find_token(view, self._tokens, text)


class _Request:
    """One request and its answer on their way through, counted and timed."""

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send, limits: Limits) -> None:
        self.failure: str | None = None
        self.token = ""
        self.is_push = scope["path"] == PUSH and scope["method"] == "POST"
        self._scope = scope
        self._receive = receive
        self._send = send
        self._most = limits.pack if self.is_push else limits.question
        self._in = _Patience(limits.seconds)
        self._out = _Patience(limits.seconds)
        self._whole = False
        self._status = 0
        self._began = time.monotonic()

    def header(self, name: bytes) -> str | None:
        """The value of a header; one that is sent twice is refused, since others may take the other."""
        found = [value for key, value in self._scope["headers"] if key == name]
        if len(found) > 1:
            raise Refused(400, f"more than one header {name.decode()}")
        return found[0].decode("latin-1") if found else None

    def check_body(self) -> None:
        """Refuse at once a body that says that it is too long."""
        length = self.header(b"content-length")
        if length is not None and int(length) > self._most:
            raise self._too_long()

    def _too_long(self) -> Refused:
        return Refused(413, f"more than the {self._most} bytes that are taken", ((b"connection", b"close"),))

    async def receive(self) -> Message:
        """The next part of the body, in time."""
        if self._whole:
            return await self._receive()
        try:
            async with self._in:
                message = await self._receive()
        except TimeoutError:
            raise Refused(408, "the request came too slowly", ((b"connection", b"close"),)) from None
        self._in.count(len(message.get("body", b"")))
        self._whole = not message.get("more_body", False)
        if self._in.bytes > self._most:
            raise self._too_long()
        return message

    async def send(self, message: Message) -> None:
        """Send on a part of the answer; a client that does not take it in time is given up."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
        self._out.count(len(message.get("body", b"")))
        async with self._out:
            await self._send(message)

    async def refuse(self, refused: Refused) -> None:
        """Answer that nothing is answered; where something was already, the connection is all that can end."""
        if self._status:
            raise refused
        body = json.dumps({"error": refused.reason}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self.send(
            {
                "type": "http.response.start",
                "status": refused.status,
                "headers": [*headers, *refused.headers],
            }
        )
        await self.send({"type": "http.response.body", "body": body})

    def line(self) -> str:
        """The line of the log. What stands behind the path may be secret and is left out; so is what was shown."""
        return json.dumps(
            {
                "failure": self.failure,
                "ms": round((time.monotonic() - self._began) * 1000, 1),
                "method": self._scope["method"][:20],
                "path": self._scope["path"][:_LOGGED_PATH],
                "received": self._in.bytes,
                "sent": self._out.bytes,
                "status": self._status,
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "token": self.token,
            }
        )


class _Patience:
    """How long is waited for a client: some seconds in all, and more by the bytes that have come through."""

    def __init__(self, seconds: float) -> None:
        self.bytes = 0
        self._left = seconds
        self._since = 0.0
        self._timeout: asyncio.Timeout | None = None

    def count(self, size: int) -> None:
        self.bytes += size
        self._left += size / _LEAST_RATE

    async def __aenter__(self) -> None:
        self._since = time.monotonic()
        self._timeout = asyncio.timeout(max(self._left, 0.0))
        await self._timeout.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        self._left -= time.monotonic() - self._since
        assert self._timeout is not None
        await self._timeout.__aexit__(*error)


#: Where packs are pushed to: the one request that may change anything.
PUSH = "/exchange/push"


def _host_name(host: str) -> str:
    """The name in a ``Host`` header, without the port."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _token_of(shown: str) -> str:
    """The token in an ``Authorization`` header (``Bearer``, or the password of ``Basic``); "" where there is none."""
    kind, _, rest = shown.partition(" ")
    if kind.lower() == "bearer":
        return rest.strip()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(rest, validate=True).decode("ascii").partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


async def _unknown(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """What is no HTTP request: the server's own start and stop are acknowledged, anything else is closed."""
    if scope["type"] != "lifespan":
        await send({"type": "websocket.close"})
        return
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
