"""The answerer behind an OpenAI-compatible endpoint: a hosted one, Ollama, llama.cpp, vLLM.

Requests go through ``http.client`` of the standard library, which lets every wait be bounded: connecting, each read,
and the whole. The key comes from the environment and goes out only over TLS or to this machine; redirects are not
followed. A request that was refused for the time being, or broke before any text came, is made again a few times. Once
text has come, a failure is the end of it: nothing half is ever taken for an answer.
"""

from __future__ import annotations

import email.utils
import http.client
import ipaddress
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from msgspec import Struct

from objstore.errors import ObjstoreError, UsageError
from porcelain.session.answering.answerers import MAX_OUTPUT, OnText, Request, messages
from porcelain.session.answering.event_stream import BadReply, CutOff, printable, said, streamed, whole

DEFAULT_URL = "https://api.openai.com/v1"
#: Where the key is looked for, first found first.
KEY_NAMES = ("OBJSTORE_API_KEY", "OPENAI_API_KEY")
_PIECE = 16 * 1024
_ERROR_BODY = 8 * 1024
#: Bytes of a whole reply: events are many times as long as the text in them.
_MAX_REPLY = 256 * MAX_OUTPUT
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class EndpointFailed(ObjstoreError):
    """The endpoint gave no answer; ``status`` is its HTTP status, or None where it did not come to that."""

    exit_code = 5

    def __init__(self, message: str, *, status: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class Waits(Struct, frozen=True):
    """Seconds to wait for a connection, for each read, and for all tries together; how often to try; the first pause
    between tries, which doubles, and the longest pause that a server may ask for."""

    connect: float = 10.0
    read: float = 60.0
    total: float = 300.0
    tries: int = 4
    pause: float = 1.0
    longest_pause: float = 60.0


class _TryAgain(Exception):
    """A try failed in a way that may pass; ``after`` is what the server asked to wait, in seconds."""

    def __init__(self, error: ObjstoreError, after: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.after = after


class OpenAIAnswerer:
    """Asks ``model`` at ``url`` (the address that ``/chat/completions`` is put behind).

    ``revision`` and ``quantization`` go into the profile where they are known, so that answers of one are not served
    for another. ``sleep`` and ``clock`` (monotonic, seconds) are injected for tests. Raises ``UsageError`` for an
    address that is none, or to which the key must not be sent.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str = DEFAULT_URL,
        key: str | None = None,
        revision: str = "",
        quantization: str = "",
        max_tokens: int = 2048,
        waits: Waits = Waits(),  # noqa: B008
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not model.strip() or not model.isprintable():
            raise UsageError("openai: a model must be named", hint="name one: --model NAME")
        self._model = model
        self._address = _address(url)
        self._key = key
        self._revision = revision
        self._quantization = quantization
        self._max_tokens = max_tokens
        self._waits = waits
        self._sleep = sleep
        self._clock = clock
        if key is not None:
            _check_key(key, self._address)

    def profile(self) -> dict[str, str]:
        return {
            "answerer": "openai",
            "max_tokens": str(self._max_tokens),
            "model": self._model,
            "quantization": self._quantization,
            "revision": self._revision,
            "temperature": "0",
        }

    def answer(self, request: Request, on_text: OnText | None = None) -> str:
        """The model's text. Raises ``EndpointFailed``, ``BadReply`` or ``ReplyError``."""
        body = json.dumps(
            {
                "max_tokens": self._max_tokens,
                "messages": messages(request.question, request.evidence),
                "model": self._model,
                "stream": True,
                "temperature": 0,
            },
            ensure_ascii=False,
        ).encode("utf-8")
        deadline = self._clock() + self._waits.total
        pause = self._waits.pause
        for tries_left in range(self._waits.tries - 1, -1, -1):
            try:
                return self._try(body, deadline, on_text)
            except _TryAgain as again:
                wait = max(pause, again.after or 0.0)
                pause *= 2
                if not tries_left:
                    raise again.error from None
                if wait > self._waits.longest_pause or self._clock() + wait >= deadline:
                    raise EndpointFailed(
                        f"{again.error.message}; it asks to wait {wait:.0f} seconds",
                        status=getattr(again.error, "status", None),
                        hint="ask again later",
                    ) from None
                self._sleep(wait)
        raise EndpointFailed(f"{self._address.shown}: no try was allowed")

    def _try(self, body: bytes, deadline: float, on_text: OnText | None) -> str:
        shown = self._address.shown
        text: list[str] = []
        size = 0
        try:
            with self._posted(body, deadline) as response:
                self._check_status(response)
                pieces = self._pieces(response, deadline)
                kind = response.headers.get_content_type()
                for part in [whole(pieces)] if kind == "application/json" else streamed(pieces):
                    clean = printable(part)
                    size += len(clean)
                    if size > MAX_OUTPUT:
                        raise BadReply(f"{shown}: the answer is longer than {MAX_OUTPUT} characters")
                    text.append(clean)
                    if on_text is not None and clean:
                        on_text(clean)
        except (OSError, http.client.HTTPException) as error:
            failure = EndpointFailed(f"{shown}: {self._reason(error, deadline)}")
            if text or self._clock() >= deadline or isinstance(error, ssl.SSLCertVerificationError):
                raise failure from None
            raise _TryAgain(failure) from None
        except CutOff as error:
            if text:
                raise
            raise _TryAgain(error) from None
        if not "".join(text).strip():
            raise BadReply(f"{shown}: the answer is empty")
        return "".join(text)

    def _reason(self, error: Exception, deadline: float) -> str:
        if self._clock() >= deadline:
            return f"no whole answer within {self._waits.total:g} seconds"
        if isinstance(error, TimeoutError):
            return f"nothing came for {self._waits.read:g} seconds"
        if isinstance(error, ConnectionRefusedError):
            return "cannot be reached: nothing listens there"
        if isinstance(error, socket.gaierror):
            return "cannot be reached: there is no such host"
        if isinstance(error, ssl.SSLCertVerificationError):
            return "its certificate does not check out"
        if isinstance(error, http.client.HTTPException | ConnectionError):
            return "the connection was closed in the middle of the answer"
        return f"cannot be reached: {getattr(error, 'strerror', None) or type(error).__name__}"

    @contextmanager
    def _posted(self, body: bytes, deadline: float) -> Iterator[http.client.HTTPResponse]:
        """A request that was sent, and its response; the connection is cut off when the time is over."""
        address = self._address
        left = max(0.01, deadline - self._clock())
        timeout = min(self._waits.connect, left)
        connection: http.client.HTTPConnection
        if address.secure:
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                address.host, address.port, timeout=timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
        # Reads are bounded one by one; a server that sends a byte now and then would get round that.
        # The socket is kept here, since the connection lets go of it once the head of the response is read.
        sockets: list[socket.socket] = []
        watch = threading.Timer(left, _cut, (sockets,))
        watch.daemon = True
        watch.start()
        try:
            connection.connect()
            sockets.append(connection.sock)
            connection.sock.settimeout(min(self._waits.read, left))
            headers = {"Accept": "text/event-stream, application/json", "Content-Type": "application/json"}
            if self._key is not None:
                headers["Authorization"] = f"Bearer {self._key}"
            connection.request("POST", f"{address.path}/chat/completions", body, headers)
            with connection.getresponse() as response:
                yield response
        finally:
            watch.cancel()
            connection.close()

    def _check_status(self, response: http.client.HTTPResponse) -> None:
        status, shown = response.status, self._address.shown
        if status == 200:
            return
        try:
            reason = said(json.loads(response.read(_ERROR_BODY).decode("utf-8", "replace")))
        except (ValueError, RecursionError):
            reason = said(response.reason)
        if self._key is not None:
            reason = reason.replace(self._key, "[key]")
        hint = None
        if status in (401, 403):
            hint = "put the key into the environment variable " + KEY_NAMES[0]
        elif status == 404:
            hint = "check the address and the name of the model"
        elif 300 <= status < 400:
            reason = "it redirects, and redirects are not followed"
        error = EndpointFailed(f"{shown}: answered {status}: {reason}", status=status, hint=hint)
        if status in _AGAIN:
            raise _TryAgain(error, _retry_after(response.headers.get("Retry-After")))
        raise error

    def _pieces(self, response: http.client.HTTPResponse, deadline: float) -> Iterator[bytes]:
        size = 0
        while piece := response.read1(_PIECE):
            size += len(piece)
            if size > _MAX_REPLY:
                raise BadReply(f"{self._address.shown}: the reply is longer than {_MAX_REPLY} bytes")
            yield piece
        if self._clock() >= deadline:
            raise TimeoutError
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)


def _cut(sockets: Sequence[socket.socket]) -> None:
    for one in sockets:
        with suppress(OSError):  # closed already
            one.shutdown(socket.SHUT_RDWR)


def _retry_after(text: str | None) -> float | None:
    """Seconds that a ``Retry-After`` header asks for: it states them, or a date."""
    if text is None:
        return None
    if text.strip().isdecimal() and text.isascii() and len(text) < 10:
        return float(text)
    try:
        when = email.utils.parsedate_to_datetime(text)
        return max(0.0, when.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


# -- addresses and keys -----------------------------------------------------------------------------------------------


class _Address(Struct, frozen=True):
    secure: bool
    host: str
    port: int
    path: str

    @property
    def shown(self) -> str:
        return f"{self.host}:{self.port}"


def _address(url: str) -> _Address:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UsageError("openai: the address is no URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or " " in url:
        raise UsageError(
            "openai: the address must begin with https:// or http://", hint=f"such as {DEFAULT_URL}"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise UsageError("openai: the address may not hold a password, query or fragment")
    secure = parts.scheme == "https"
    return _Address(secure, parts.hostname, port or (443 if secure else 80), parts.path.rstrip("/"))


def _check_key(key: str, address: _Address) -> None:
    if not key.isascii() or not key.isprintable() or not key.strip():
        raise UsageError("openai: the key in the environment holds characters that no key has")
    if not address.secure and not _is_this_machine(address.host):
        raise UsageError(
            f"openai: {address.shown}: the key is not sent over an open connection",
            hint="use an https:// address, or unset the key where the endpoint needs none",
        )


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def key_from_environment(environment: Mapping[str, str] = os.environ) -> str | None:
    """The key for endpoints, or None; it is never stored and never shown."""
    return next((environment[name] for name in KEY_NAMES if environment.get(name)), None)
