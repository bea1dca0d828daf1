"""A store that ``objstore serve`` serves, over HTTP or HTTPS.

The token stands in the URL (``https://token:TEXT@host/``), or in ``OBJSTORE_TOKEN``, or in the file that
``OBJSTORE_TOKEN_FILE`` names. Redirections are not followed, since the token would go along; and over plain HTTP
nothing is sent to another machine, unless ``OBJSTORE_PLAIN_HTTP`` says that the network is trusted.
"""

from __future__ import annotations

import http.client
import ipaddress
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from objstore.errors import NotFound, ObjstoreError, StorageError, UsageError
from objstore.sync import messages
from objstore.sync.manifest import Node, Scope
from objstore.sync.transport import Hello, PieceSource, Receipt, Traffic, Transport
from plumbing.interface.options import Context
from porcelain.remotes.config import Pusher, Remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from objstore.pack.reader import Source

#: Seconds without a byte after which the other side is given up.
_TIMEOUT = 120.0
#: Seconds after which an idle connection is not used again: the server may be about to close it.
_IDLE = 5.0
#: Tries where the server is too busy.
_TRIES = 5
#: How often an answer whose connection was cut is gone on with while nothing more comes.
RESUMES = 4
_PAUSE = 0.1
_MOST_ANSWER = 64 * 1024 * 1024
_MOST_ERROR = 64 * 1024


class Target(NamedTuple):
    """Where to go: whether over TLS, host, port, path before that of each request, and token ("" for none)."""

    tls: bool
    host: str
    port: int
    path: str
    token: str


class _Failure(msgspec.Struct):
    error: str
    code: int = 0
    hint: str | None = None


def parse_http(url: str) -> Target:
    """The parts of an HTTP URL; raises ``UsageError``, which does not show what may be a token."""
    try:
        found = urlsplit(url)
        port = found.port
    except ValueError:
        raise UsageError("not of the form https://host[:port]/[path]") from None
    tls = found.scheme.lower() == "https"
    host = found.hostname
    if not host or found.query or found.fragment or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError("not of the form https://host[:port]/[path]")
    token = unquote(found.password or found.username or "")
    if not token.isascii() or not token.isprintable():
        raise UsageError(f"{host}: the token in the URL is none")
    return Target(tls, host, port or (443 if tls else 80), found.path.rstrip("/"), token)


def token_for(target: Target, env: Mapping[str, str]) -> str:
    """The token to show; "" where there is none. Raises ``NotFound`` for a file that cannot be read."""
    if target.token or env.get("OBJSTORE_TOKEN"):
        return target.token or env["OBJSTORE_TOKEN"]
    path = env.get("OBJSTORE_TOKEN_FILE")
    if not path:
        return ""
    try:
        with open(path, encoding="ascii") as file:
            return file.read(4096).strip()
    except (OSError, UnicodeDecodeError):
        raise NotFound(f"{path}: no token can be read there (OBJSTORE_TOKEN_FILE)") from None


@contextmanager
def open_http(remote: Remote, context: Context, pusher: Pusher | None) -> Iterator[Transport]:
    """The store behind an ``http://`` or ``https://`` URL."""
    target = parse_http(remote.url)
    if not target.tls and not _is_loopback(target.host) and not context.env.get("OBJSTORE_PLAIN_HTTP"):
        raise UsageError(
            f"{target.host}: over http:// the token and all data would pass in clear",
            hint="use https://, or set OBJSTORE_PLAIN_HTTP=1 where the network is trusted",
        )
    transport = HttpTransport(target, token_for(target, context.env), context.env.get("SSL_CERT_FILE"))
    try:
        yield transport
    finally:
        transport.close()


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class HttpTransport:
    """The store at ``target``; one connection, kept. ``authorities`` is a file of certificates to trust, or None for
    the system's."""

    def __init__(self, target: Target, token: str, authorities: str | None = None) -> None:
        self.traffic = Traffic()
        self._target = target
        self._token = token
        self._authorities = authorities
        self._connection: http.client.HTTPConnection | None = None
        self._used = 0.0

    # -- requests -----------------------------------------------------------------------------------------------------

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
        source = _Answer(self, "fetch", msgspec.msgpack.encode((scope, names, have, most)))
        while (first := next(pieces := messages.read_pieces(source), None)) is not None:
            yield PieceSource(chain((first,), pieces))
            if next(pieces, None) is not None:
                raise StorageError("the other side sent more than a pack")
        self._end(source.answer)

    def push(self, pack: Iterable[bytes]) -> Receipt:
        answer = self._send("push", self._sent(pack), {})
        found: Receipt = messages.decode(self._read(answer, _MOST_ANSWER), Receipt)
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- the connection -----------------------------------------------------------------------------------------------

    def _ask(self, name: str, *arguments: Any) -> bytes:
        return self._read(self._open(name, msgspec.msgpack.encode(arguments)), _MOST_ANSWER)

    def _open(
        self, name: str, body: bytes, more: Mapping[str, str] | None = None
    ) -> http.client.HTTPResponse:
        """Ask what can be asked again: where the server is busy it is, after a while."""
        for left in range(_TRIES - 1, -1, -1):
            self.traffic.sent += len(body)
            try:
                return self._send(name, body, more or {})
            except _Busy as busy:
                if not left:
                    raise StorageError(busy.message, hint="try again later") from None
                time.sleep(busy.seconds)
        raise AssertionError("unreachable")

    def _send(
        self, name: str, body: bytes | Iterable[bytes], more: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        """The answer to a request, when it is one; raises what the other side says is wrong."""
        if self._connection is None or time.monotonic() - self._used > _IDLE:
            self.close()
            self._connection = self._connect()
        self.traffic.requests += 1
        headers = {"Content-Type": "application/octet-stream", "Accept-Encoding": "identity", **more}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            try:
                self._connection.request(
                    "POST",
                    f"{self._target.path}/exchange/{name}",
                    body=body,
                    headers=headers,
                    encode_chunked=not isinstance(body, bytes),
                )
            except (BrokenPipeError, ConnectionResetError):
                # The server may have answered before it read all.
                answer = self._connection.response_class(self._connection.sock, method="POST")
                answer.begin()
            else:
                answer = self._connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._unreachable(error) from None
        except BaseException:
            self.close()  # half of a request was sent
            raise
        if answer.status != 200:
            raise self._refusal(answer)
        return answer

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._target.host, self._target.port
        if not self._target.tls:
            return http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
        try:
            trusted = ssl.create_default_context(cafile=self._authorities)
        except (OSError, ssl.SSLError):
            raise StorageError(f"{self._authorities}: no certificates can be read there") from None
        trusted.minimum_version = ssl.TLSVersion.TLSv1_2
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT, context=trusted)

    def _sent(self, pack: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pack:
            self.traffic.sent += len(piece)
            yield piece

    def _read(self, answer: http.client.HTTPResponse, most: int) -> bytes:
        data = _Body(answer, self).read_all(most)
        self._end(answer)
        return data

    def _end(self, answer: http.client.HTTPResponse) -> None:
        """The connection can be used again once an answer was read to its end."""
        try:
            if answer.read(1):
                self.close()
        except (OSError, http.client.HTTPException):
            self.close()
        self._used = time.monotonic()

    def _refusal(self, answer: http.client.HTTPResponse) -> ObjstoreError:
        status, busy = answer.status, answer.getheader("retry-after")
        try:
            said = msgspec.json.decode(self._read(answer, _MOST_ERROR), type=_Failure)
        except (msgspec.DecodeError, msgspec.ValidationError, StorageError):
            self.close()
            said = _Failure(error=f"answered {status}, and is perhaps no objstore server")
        if status == 503 and busy is not None:
            return _Busy(f"{self._target.host}: {said.error}", float(busy) if busy.isdigit() else 1.0)
        if status == 401:
            return UsageError(
                f"{self._target.host}: {'the token is not one of its tokens' if self._token else said.error}",
                hint="put the token into the URL (https://token:TEXT@host/) or into OBJSTORE_TOKEN",
            )
        if said.code:
            return messages.failure(msgspec.msgpack.encode((said.code, said.error, said.hint)))
        if status in (403, 404, 413):
            return UsageError(f"{self._target.host}: {said.error[:2000]}")
        return StorageError(f"{self._target.host}: {said.error[:2000]}")

    def _unreachable(self, error: Exception) -> StorageError:
        host = f"{self._target.host}:{self._target.port}"
        if isinstance(error, ssl.SSLCertVerificationError):
            return StorageError(
                f"{host}: its certificate is not trusted: {error.verify_message}",
                hint="name the file of a certificate to trust in SSL_CERT_FILE",
            )
        if isinstance(error, ConnectionRefusedError):
            return StorageError(f"{host}: nothing answers there", hint="is objstore serve running?")
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        return StorageError(
            f"{host}: the connection was cut: {reason}", hint="try again: what was complete is kept"
        )


class _Busy(StorageError):
    """The server is too busy, and says in how many ``seconds`` to ask again."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message, hint="try again later")
        self.seconds = min(seconds, 30.0)


class _Body:
    """The body of an answer as a source; its bytes are counted, and its failure is that of the connection."""

    def __init__(self, answer: http.client.HTTPResponse, transport: HttpTransport) -> None:
        self.answer = answer
        self._transport = transport

    def read(self, size: int, /) -> bytes:
        try:
            data = self.answer.read1(size) if size > 0 else b""
        except (OSError, http.client.HTTPException) as error:
            self._transport.close()
            raise self._transport._unreachable(error) from None
        self._transport.traffic.received += len(data)
        return data

    def read_all(self, most: int) -> bytes:
        """All of it; raises ``StorageError`` for more than ``most`` bytes."""
        parts: list[bytes] = []
        size = 0
        while part := self.read(64 * 1024):
            parts.append(part)
            size += len(part)
            if size > most:
                self._transport.close()
                raise StorageError("the other side sent more than any answer has")
        return b"".join(parts)


class _Answer(_Body):
    """The body of an answer that is gone on with on another connection where one is cut, as long as the server can."""

    def __init__(self, transport: HttpTransport, name: str, body: bytes) -> None:
        self._name = name
        self._body = body
        self._came = 0
        self._left = RESUMES
        super().__init__(transport._open(name, body), transport)
        self._state = self.answer.getheader("objstore-state")

    def read(self, size: int, /) -> bytes:
        while True:
            try:
                data = super().read(size)
            except StorageError as cut:
                self._go_on(cut)
                continue
            if data:
                self._came += len(data)
                self._left = RESUMES
            return data

    def _go_on(self, cut: StorageError) -> None:
        """Have the rest come on another connection; raises ``cut`` where that cannot be."""
        while self._left and self._state is not None:
            time.sleep(_PAUSE * 2 ** (RESUMES - self._left))
            self._left -= 1
            again = {"objstore-from": str(self._came), "objstore-state": self._state}
            try:
                self.answer = self._transport._open(self._name, self._body, again)
            except StorageError:
                continue
            except ObjstoreError:  # the store was written to, or it is another server
                break
            if self.answer.getheader("objstore-state") == self._state:
                return
            self._transport.close()
            break
        raise cut
