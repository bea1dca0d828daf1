"""The answerer behind an endpoint, against servers on this machine that stream, stall, drop, refuse and babble."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import porcelain  # noqa: F401  (declares the kinds)
from objstore.errors import ObjstoreError, UsageError
from objstore.store import Store
from porcelain.session.answering.answerers import MAX_OUTPUT
from porcelain.session.answering.asking import ask
from porcelain.session.answering.event_stream import (
    MAX_LINE,
    BadReply,
    ReplyError,
    lines,
    printable,
    streamed,
)
from porcelain.session.answering.openai_answerer import (
    EndpointFailed,
    OpenAIAnswerer,
    Waits,
    key_from_environment,
)
from porcelain.session.documents.adding import add_sources

DOCUMENTS = Path(__file__).resolve().parents[3] / "fixtures" / "documents"
LIT = "When was the lighthouse first lit?"
GOOD = "It was first lit on 4 October 1874. [E1]\nThe tower is 31 metres tall. [E1]"
KEY = "test-key-0123456789"
Reply = Callable[[socket.socket], None]


class Server:
    """Answers the first connection with the first reply, and so on; the last one again and again."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = replies
        self.requests: list[tuple[bytes, bytes]] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection, suppress(OSError):
                    connection.settimeout(5)
                    self.requests.append(_request(connection))
                    self.replies[min(len(self.requests), len(self.replies)) - 1](connection)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


def _request(connection: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    (length,) = [
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    ]
    while len(body) < length:
        body += connection.recv(65536)
    return head, body


def event(text: str | None = None, reason: str | None = None) -> bytes:
    choice = {"delta": {} if text is None else {"content": text}, "finish_reason": reason, "index": 0}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def head(status: str = "200 OK", kind: str = "text/event-stream", *more: str) -> bytes:
    return "\r\n".join(
        [f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close", *more, "", ""]
    ).encode()


def sending(*pieces: bytes, pause: float = 0.0) -> Reply:
    def reply(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)

    return reply


def streaming(text: str, *, end: bytes | None = None) -> Reply:
    pieces = [event(text[at : at + 7]) for at in range(0, len(text), 7)]
    return sending(
        head(), b": hello\n\n", *pieces, end if end is not None else event(None, "stop") + b"data: [DONE]\n\n"
    )


def refusing(status: str, body: bytes = b'{"error": {"message": "not now"}}', *more: str) -> Reply:
    return sending(head(status, "application/json", f"Content-Length: {len(body)}", *more) + body)


def chunked(*pieces: bytes) -> Reply:
    return sending(
        head("200 OK", "text/event-stream", "Transfer-Encoding: chunked"),
        *(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces),
    )


def stalling(*first: bytes) -> Reply:
    def reply(connection: socket.socket) -> None:
        connection.sendall(b"".join(first))
        with suppress(TimeoutError):
            connection.recv(1)  # until the client goes

    return reply


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.init(tmp_path / "store") as made:
        add_sources(made, [DOCUMENTS / "skarv-lighthouse.md"])
        yield made


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def start(*replies: Reply) -> Server:
        made.append(Server(*replies))
        return made[-1]

    yield start
    for server in made:
        server.close()


#: For servers that do not let themselves be waited for; any other may take its time on a busy machine.
QUICK = Waits(connect=10, read=0.3, total=60, tries=3, pause=0.01, longest_pause=5)
PATIENT = Waits(connect=10, read=30, total=60, tries=3, pause=0.01, longest_pause=5)


def answerer(server: Server, waits: Waits = PATIENT, **more: object) -> OpenAIAnswerer:
    return OpenAIAnswerer("test-model", url=server.url, key=KEY, waits=waits, **more)  # type: ignore[arg-type]


def state(store: Store) -> tuple[dict[str, str], int]:
    with store.snapshot() as view:
        return store.refs(), view.count()


def test_a_stream_is_heard_as_it_comes_and_kept_when_whole(
    store: Store, serve: Callable[..., Server]
) -> None:
    server = serve(streaming(GOOD))
    heard: list[str] = []
    asked = ask(store, LIT, answerer=answerer(server), on_text=heard.append)
    assert "".join(heard) == GOOD and len(heard) > 5
    assert (asked.audit_mode, len(asked.claims)) == ("STRICT", 2)
    again = ask(store, LIT, answerer=answerer(server))
    assert again.from_cache and again.answer_id == asked.answer_id
    (request,) = server.requests
    assert f"Authorization: Bearer {KEY}".encode() in request[0]
    assert request[0].startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    sent = json.loads(request[1])
    assert sent["model"] == "test-model" and sent["stream"] is True
    assert "[E1] The Lighthouse at Skarv Point" in sent["messages"][1]["content"]
    assert sent["messages"][1]["content"].endswith(f"Question: {LIT}")


def test_the_key_is_nowhere_in_the_store(store: Store, serve: Callable[..., Server]) -> None:
    ask(store, LIT, answerer=answerer(serve(streaming(GOOD))))
    with store.snapshot() as view:
        assert not any(KEY.encode() in stored.data for _, stored in view.objects())


def test_a_whole_json_reply_and_chunks_are_read_too(store: Store, serve: Callable[..., Server]) -> None:
    body = json.dumps({"choices": [{"finish_reason": "stop", "message": {"content": GOOD}}]}).encode()
    for reply in (
        refusing("200 OK", body),
        chunked(event(GOOD[:20]) + event(GOOD[20:])[:9], event(GOOD[20:])[9:], event(None, "stop"), b""),
        streaming(GOOD, end=b"data: [DONE]\n\n"),
        streaming(GOOD, end=event(None, "stop")),
    ):
        asked = answerer(serve(reply)).answer(request_of(store))
        assert asked == GOOD


def request_of(store: Store):  # type: ignore[no-untyped-def]
    from porcelain.session.answering.answerers import Request
    from porcelain.session.answering.asking import find_evidence

    return Request(LIT, tuple(find_evidence(store, LIT)))


BROKEN: dict[str, tuple[Reply, type[ObjstoreError], str]] = {
    "stall": (stalling(), EndpointFailed, "nothing came for"),
    "stall in the middle": (stalling(head(), event("It was")), EndpointFailed, "nothing came for"),
    "drop": (sending(), EndpointFailed, "closed"),
    "drop in the middle": (sending(head(), event("It was first")), BadReply, "closed in the middle"),
    "drop in a chunk": (
        sending(head("200 OK", "text/event-stream", "Transfer-Encoding: chunked"), b"40\r\ndata: "),
        EndpointFailed,
        "closed",
    ),
    "drop before the length": (
        sending(head("200 OK", "application/json", "Content-Length: 900"), b'{"choices"'),
        EndpointFailed,
        "closed",
    ),
    "429": (refusing("429 Too Many Requests"), EndpointFailed, "answered 429: not now"),
    "500": (refusing("500 Internal Server Error"), EndpointFailed, "answered 500: not now"),
    "401": (refusing("401 Unauthorized"), EndpointFailed, "answered 401"),
    "401 that shows the key": (
        refusing("401 Unauthorized", json.dumps({"error": f"wrong key {KEY}"}).encode()),
        EndpointFailed,
        "wrong key [key]",
    ),
    "404": (refusing("404 Not Found", b"<html>"), EndpointFailed, "answered 404: Not Found"),
    "redirect": (refusing("302 Found", b"", "Location: http://127.0.0.1:1/"), EndpointFailed, "not followed"),
    "not HTTP": (sending(b"SSH-2.0-x\r\n\r\n"), EndpointFailed, "closed"),
    "bad JSON": (sending(head(), b"data: {broken\n\n"), BadReply, "not JSON"),
    "deep JSON": (sending(head(), b"data: " + b"[" * 100_000 + b"\n\n"), BadReply, "not JSON"),
    "other JSON": (sending(head(), b"data: [1]\n\n"), BadReply, "another shape"),
    "odd choices": (
        sending(head(), b'data: {"choices": [{"delta": {"content": 5}}]}\n\n'),
        BadReply,
        "another shape",
    ),
    "odder choices": (sending(head(), b'data: {"choices": 7}\n\n'), BadReply, "another shape"),
    "invalid UTF-8": (sending(head(), b'data: {"choices": "\xff\xfe"}\n\n'), BadReply, "not UTF-8"),
    "an error in the stream": (
        sending(head(), event("It"), b'data: {"error": {"message": "out of \\u001b[31mmemory"}}\n\n'),
        ReplyError,
        "out of [31mmemory",
    ),
    "cut off by the limit": (streaming(GOOD, end=event(None, "length")), BadReply, "limit of tokens"),
    "withheld": (streaming(GOOD, end=event(None, "content_filter")), ReplyError, "content_filter"),
    "nothing": (streaming(""), BadReply, "empty"),
    "huge": (streaming("x" * (MAX_OUTPUT + 100)), BadReply, "longer than"),
    "endless line": (sending(head(), *[b"data: " + b"x" * 65536] * 20), BadReply, "line of more than"),
    "endless blanks": (sending(head(), *[b": ping\n" * 90_000] * 16), BadReply, "longer than"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_every_failure_is_one_clear_line_and_leaves_nothing(
    store: Store, serve: Callable[..., Server], name: str
) -> None:
    reply, error, words = BROKEN[name]
    before = state(store)
    with pytest.raises(error) as caught:
        ask(store, LIT, answerer=answerer(serve(reply), QUICK if "stall" in name else PATIENT))
    message = caught.value.message
    assert words in message
    assert "\n" not in message and message.isprintable() and len(message) < 400
    assert KEY not in message + (caught.value.hint or "")
    assert state(store) == before


@pytest.mark.parametrize("name", ["500", "429", "drop", "stall", "drop before the length"])
def test_what_may_pass_is_tried_again(store: Store, serve: Callable[..., Server], name: str) -> None:
    server = serve(BROKEN[name][0], streaming(GOOD))
    assert ask(store, LIT, answerer=answerer(server)).audit_mode == "STRICT"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "name", ["401", "404", "bad JSON", "drop in the middle", "stall in the middle", "redirect"]
)
def test_what_will_not_pass_is_not_tried_again(store: Store, serve: Callable[..., Server], name: str) -> None:
    server = serve(BROKEN[name][0], streaming(GOOD))
    with pytest.raises(ObjstoreError):
        ask(store, LIT, answerer=answerer(server))
    assert len(server.requests) == 1


def test_pauses_double_and_a_server_may_ask_for_longer_ones(
    store: Store, serve: Callable[..., Server]
) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)
    server = serve(
        refusing("500 x"),
        refusing("429 x", b"{}", "Retry-After: 4"),
        refusing("503 x", b"{}", f"Retry-After: {later}"),
        refusing("500 x", b"{}", "Retry-After: soon"),
        streaming(GOOD),
    )
    slept: list[float] = []
    waits = Waits(connect=2, read=2, total=60, tries=6, pause=0.5, longest_pause=5)
    made = answerer(server, waits, sleep=slept.append)
    assert made.answer(request_of(store)) == GOOD
    assert slept[:2] == [0.5, 4.0]
    assert 1.9 <= slept[2] <= 3.1
    assert slept[3] == 4.0


def test_a_pause_that_is_too_long_is_not_waited_for(store: Store, serve: Callable[..., Server]) -> None:
    server = serve(refusing("429 x", b"{}", "Retry-After: 3600"))
    with pytest.raises(EndpointFailed, match="wait 3600 seconds") as caught:
        answerer(server, sleep=lambda _: pytest.fail("waited")).answer(request_of(store))
    assert caught.value.status == 429


def test_a_byte_now_and_then_does_not_get_round_the_time(store: Store, serve: Callable[..., Server]) -> None:
    gone = threading.Event()

    def trickle(connection: socket.socket) -> None:
        connection.sendall(head() + b"data: ")
        with suppress(OSError):
            while True:
                connection.sendall(b" ")
                time.sleep(0.02)
        gone.set()

    with pytest.raises(EndpointFailed, match=r"within 0\.5 seconds"):
        answerer(serve(trickle), Waits(total=0.5)).answer(request_of(store))
    assert gone.wait(5)


def test_nothing_listens(store: Store) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    made = OpenAIAnswerer("m", url=f"http://127.0.0.1:{port}", waits=QUICK)
    with pytest.raises(EndpointFailed, match="nothing listens there"):
        made.answer(request_of(store))


def test_being_stopped_leaves_nothing(store: Store, serve: Callable[..., Server]) -> None:
    before = state(store)

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(store, LIT, answerer=answerer(serve(streaming(GOOD))), on_text=stop)
    assert state(store) == before


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://x",
        "http://",
        "localhost:11434",
        "http://a:b@x/v1",
        "http://x/v1?y",
        "http://x:99999",
        "http://x y/",
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(UsageError):
        OpenAIAnswerer("m", url=url)


def test_the_key_goes_only_over_tls_or_to_this_machine() -> None:
    for url in ("http://example.com/v1", "http://10.0.0.5:8000/v1", "http://127.0.0.1.example.com/"):
        with pytest.raises(UsageError, match="open connection"):
            OpenAIAnswerer("m", url=url, key=KEY)
        OpenAIAnswerer("m", url=url)
    for url in ("https://example.com/v1", "http://localhost:1/", "http://[::1]:1/", "http://127.0.0.1:1"):
        OpenAIAnswerer("m", url=url, key=KEY)
    for key in ("a\r\nX: y", "clé", " "):
        with pytest.raises(UsageError):
            OpenAIAnswerer("m", key=key)


def test_the_key_comes_from_the_environment() -> None:
    assert key_from_environment({}) is None
    assert key_from_environment({"OPENAI_API_KEY": "a"}) == "a"
    assert key_from_environment({"OPENAI_API_KEY": "a", "OBJSTORE_API_KEY": "b"}) == "b"
    assert key_from_environment({"OBJSTORE_API_KEY": ""}) is None


def test_the_profile_tells_models_apart_and_holds_neither_address_nor_key() -> None:
    profile = OpenAIAnswerer("m", url="https://example.com/v1", key=KEY, revision="r1").profile()
    assert profile["model"] == "m" and profile["revision"] == "r1"
    assert KEY not in str(profile) and "example" not in str(profile)
    assert profile != OpenAIAnswerer("m").profile()


@given(st.binary(max_size=300), st.integers(1, 40))
def test_any_bytes_are_text_or_a_clear_error_however_they_are_cut(data: bytes, size: int) -> None:
    stream = event("ab") + data
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    with suppress(BadReply, ReplyError):
        "".join(streamed(pieces)).encode("utf-8", "surrogatepass")


@given(st.lists(st.binary(max_size=20)))
def test_lines_do_not_depend_on_how_bytes_arrive(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert list(lines(pieces)) == list(lines([whole])) == list(lines(bytes([byte]) for byte in whole))


def test_a_line_without_end_is_refused() -> None:
    with pytest.raises(BadReply):
        list(lines([b"x" * (MAX_LINE + 1)]))


@given(st.text())
def test_what_is_printed_has_no_control_characters(text: str) -> None:
    clean = printable(text)
    assert all(c == "\n" or c.isprintable() or c.isspace() or not c.isascii() for c in clean)
    clean.encode()
    assert "\x1b" not in clean and "\r" not in clean and "\u202e" not in clean
