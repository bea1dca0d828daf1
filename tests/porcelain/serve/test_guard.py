"""Who is let in, what is refused, and what the log says."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore.closure import select
from objstore.pack.writer import pack_stream
from objstore.store import Store
from porcelain.serve.guard import Limits
from porcelain.serve.tokens import find_token, keep_token, new_token
from tests.objstore.sync.building import add_round, opened, state
from tests.porcelain.serve.serving import Served, served

REF = "flow/1111111111111111/test/x"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "s") as made:
        add_round(made, REF, "a")
        yield made


@pytest.fixture
def server(store: Store) -> Iterator[Served]:
    with served(store, limits=Limits(seconds=0.5, question=10_000, pack=50_000)) as running:
        yield running


def _pack(store: Store) -> bytes:
    with store.snapshot() as view:
        return b"".join(pack_stream(view, select(view, list(view.refs())), "sha256"))


PATHS = ["/health", "/refs", f"/refs/{REF}", "/objects/" + "0" * 64, "/openapi.json", "/", "/nothing"]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_without_a_token(server: Served, path: str) -> None:
    flipped = server.reader[:-1] + ("A" if server.reader[-1] != "A" else "B")
    for token in ("", "x", flipped, "00000000." + server.reader.partition(".")[2], server.reader[:-1]):
        status, _, body = server.ask("GET", path, token=token)
        assert status == 401 and b"token is needed" in body
    assert server.ask("POST", "/exchange/hello", b"", token="")[0] == 401


def test_tokens_are_shown_as_bearer_or_as_a_password(server: Served) -> None:
    import base64

    basic = base64.b64encode(f"token:{server.reader}".encode()).decode()
    assert server.ask("GET", "/health", token="", Authorization=f"Basic {basic}")[0] == 200
    assert server.ask("GET", "/health", token="", Authorization=f"bearer {server.reader}")[0] == 200
    assert server.ask("GET", "/health", token="", Authorization="Basic %%%")[0] == 401
    assert server.ask("GET", f"/health?token={server.reader}", token="")[0] == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "169.254.169.254", "[::2]"])
def test_another_host_name_is_refused(server: Served, host: str) -> None:
    assert server.ask("GET", "/health", Host=host)[0] == 421
    assert server.ask("GET", "/health", Host=f"localhost:{server.port}")[0] == 200


def test_a_page_of_another_origin_gets_nothing(server: Served, store: Store) -> None:
    before = state(store)
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{server.port + 1}", "http://localhost"):
        status, headers, body = server.ask("GET", "/refs", Origin=origin)
        assert status == 403 and REF.encode() not in body
        assert "access-control-allow-origin" not in headers
        assert server.ask("POST", "/exchange/push", b"x", Origin=origin)[0] == 403
        assert server.ask("OPTIONS", "/exchange/push", Origin=origin)[0] == 403
    assert server.ask("GET", "/refs", Origin=f"http://127.0.0.1:{server.port}")[0] == 200
    for site in ("cross-site", "same-site"):
        assert server.ask("GET", "/refs", Sec_Fetch_Site=site)[0] == 403
    assert state(store) == before


def test_answers_may_not_be_framed_cached_or_guessed_at(server: Served) -> None:
    for path in ("/health", "/nothing"):
        headers = server.ask("GET", path)[1]
        assert headers["x-content-type-options"] == "nosniff"
        assert "no-store" in headers["cache-control"]
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_writing_needs_a_token_for_it_and_a_server_for_it(server: Served, store: Store) -> None:
    pack = _pack(store)
    assert server.ask("POST", "/exchange/push", pack, token=server.reader)[0] == 403
    assert server.ask("POST", "/exchange/push", pack)[0] == 200
    assert server.ask("GET", "/refs", token=server.reader)[0] == 200
    server.server.should_exit = True


def test_a_server_takes_nothing_in_unless_told_to(store: Store) -> None:
    with served(store, writable=False) as server:
        status, _, body = server.ask("POST", "/exchange/push", _pack(store))
        assert status == 403 and b"--write" in body


def test_oversized_bodies(server: Served, store: Store) -> None:
    before = state(store)
    assert server.ask("POST", "/exchange/hello", b"x" * 10_001)[0] == 413
    assert server.ask("POST", "/exchange/hello", iter([b"x" * 5000] * 3))[0] == 413
    assert server.ask("POST", "/exchange/push", b"x" * 50_001)[0] == 413
    assert server.ask("POST", "/exchange/push", iter([_pack(store)] + [b"x" * 5000] * 20))[0] in (413, 422)
    assert b" 200 " not in _raw(server, _head(server, f"GET /refs?prefix={'x' * 200_000} HTTP/1.1"))[:20]
    assert state(store) == before and server.ask("GET", "/health")[0] == 200


def _raw(server: Served, sent: bytes, wait: float = 5.0) -> bytes:
    """What comes back on a connection that ``sent`` was written to, until it is closed or ``wait`` is over."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=wait) as connection:
        parts = []
        try:
            connection.sendall(sent)
            while part := connection.recv(65536):
                parts.append(part)
        except TimeoutError:
            parts.append(b"<open>")
        except ConnectionResetError:
            pass  # it did not read all that was sent
        return b"".join(parts)


def _head(server: Served, first: str, *more: str) -> bytes:
    lines = [first, f"Host: 127.0.0.1:{server.port}", f"Authorization: Bearer {server.writer}", *more]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def test_slow_clients_are_given_up(server: Served) -> None:
    """One that sends nothing, half a head, a head and no body, or its pack by drops; the last said a length."""
    for sent in (
        b"",
        b"GET /health HTTP/1.1\r\nHost: loc",
        _head(server, "POST /exchange/hello HTTP/1.1", "Content-Length: 100") + b"x",
        _head(server, "POST /exchange/push HTTP/1.1", "Content-Length: 100"),
        _head(server, "GET /health HTTP/1.1"),
    ):
        answer = _raw(server, sent)
        assert not answer.endswith(b"<open>")
        assert b" 200 OK" not in answer or sent.startswith(b"GET /health HTTP/1.1\r\nHost: 127")
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(_head(server, "POST /exchange/push HTTP/1.1", "Transfer-Encoding: chunked"))
        answer = b""
        for _ in range(60):
            try:
                connection.sendall(b"1\r\nx\r\n")
            except OSError:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("dripped for six seconds and was not given up")
        with contextlib.suppress(OSError):
            answer = connection.recv(1000)
        assert b" 200 OK" not in answer
    assert server.ask("GET", "/health")[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/objects/../../../etc/passwd",
        "/objects/..%2f..%2fetc%2fpasswd",
        "/objects/%2e%2e/%2e%2e/data.mdb",
        "/refs/../objects",
        "/refs/..%2f..%2fdata.mdb",
        "/refs/%00",
        "/refs/a/%0d%0aSet-Cookie:%20x",
        "/sessions/..%2f../refresh",
        "/sessions/%00/nodes/%00",
        "//etc/passwd",
        "/objects/" + "0" * 5000,
        "/objects/ＡＡ",
    ],
)
def test_paths_that_lead_elsewhere(server: Served, path: str) -> None:
    answer = _raw(
        server, _head(server, "GET " + path.encode().decode("latin-1") + " HTTP/1.1", "Connection: close")
    )
    status = int(answer.split()[1])
    assert status in (400, 404, 422)
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert b"set-cookie" not in head and b"root:" not in answer


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\nX: y\r\n b: c\r\n\r\n",
        b"GET /health\r\nX HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /exchange/hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST /exchange/hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /exchange/hello HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"\0" * 1000,
    ],
)
def test_what_is_no_request(server: Served, sent: bytes) -> None:
    answer = _raw(server, sent)
    assert not answer.endswith(b"<open>") and b" 200 " not in answer.partition(b"\r\n")[0]
    assert server.ask("GET", "/health")[0] == 200


def test_two_authorizations_are_refused(server: Served) -> None:
    answer = _raw(
        server, _head(server, "GET /health HTTP/1.1", "Authorization: Bearer x", "Connection: close")
    )
    assert b" 400 " in answer.partition(b"\r\n")[0]


def test_too_many_at_once_are_told_so(store: Store) -> None:
    with served(store, limits=Limits(requests=2, seconds=5.0)) as server:
        waiting = []
        for _ in range(2):
            connection = socket.create_connection(("127.0.0.1", server.port))
            connection.sendall(_head(server, "POST /exchange/hello HTTP/1.1", "Content-Length: 9"))
            waiting.append(connection)
        deadline = time.monotonic() + 5
        while (found := server.ask("GET", "/health"))[0] != 503 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert found[0] == 503 and found[1]["retry-after"] == "1"
        for connection in waiting:
            connection.close()
        while server.ask("GET", "/health")[0] != 200:
            assert time.monotonic() < deadline + 5


def test_the_log_has_a_line_for_each_request_and_no_token(server: Served) -> None:
    server.ask("GET", f"/refs?prefix={server.writer}")
    server.ask("GET", "/health", token="wrong")
    server.ask("GET", "/health%0a%7bforged%7d")
    while len(server.log) < 3:
        time.sleep(0.01)
    lines = [json.loads(line) for line in server.log]
    assert [line["status"] for line in lines] == [200, 401, 404]
    assert [line["token"] for line in lines] == [server.writer[:8], "", server.writer[:8]]
    assert all("\n" not in line for line in server.log)
    for secret in (server.writer.partition(".")[2], "wrong", "Bearer"):
        assert not any(secret in line for line in server.log)


def test_a_stop_finishes_what_was_begun(store: Store, tmp_path: Path) -> None:
    with opened(tmp_path / "other") as other:
        add_round(other, "flow/2222222222222222/test/y", "b")
        pack = _pack(other)
    with served(store, limits=Limits(seconds=10.0)) as server:
        status: list[int] = []
        half = threading.Event()

        def parts() -> Iterator[bytes]:
            yield pack[:100]
            half.set()
            while not server.server.should_exit:
                time.sleep(0.01)
            time.sleep(0.2)
            yield pack[100:]

        thread = threading.Thread(
            target=lambda: status.append(server.ask("POST", "/exchange/push", parts())[0]), daemon=True
        )
        thread.start()
        assert half.wait(20)
        deadline = time.monotonic() + 20
        while not server.server.server_state.tasks:  # the request has begun for the server, too
            assert time.monotonic() < deadline
            time.sleep(0.01)
        server.server.should_exit = True
        thread.join(20)
    assert status == [200] and store.ref("flow/2222222222222222/test/y") is not None


def test_a_client_that_vanishes_frees_its_place(store: Store) -> None:
    for number in range(300):
        add_round(store, REF, f"{number} {os.urandom(2000).hex()} a")
    with served(store, limits=Limits(seconds=5.0, exchanges=1)) as server:
        import msgspec

        body = msgspec.msgpack.encode(({"content": False, "patterns": []}, [REF], [], 10))
        for _ in range(3):
            connection = socket.create_connection(("127.0.0.1", server.port))
            length = f"Content-Length: {len(body)}"
            connection.sendall(_head(server, "POST /exchange/fetch HTTP/1.1", length) + body)
            assert b" 200 " in connection.recv(100)
            connection.close()
        assert server.ask("POST", "/exchange/fetch", body)[0] == 200


def test_a_fetch_that_finds_no_place_is_told_so(store: Store) -> None:
    batch = store.batch()
    for number in range(250):  # more than the buffers of a connection hold
        text = os.urandom(30_000).hex()
        made = batch.put("document-chunk", b'{"text":"%s","type":"document-chunk"}' % text.encode())
        batch.move_ref(f"tag/{number}", made, None, "")
    store.commit(batch)
    with served(store, limits=Limits(seconds=1.0, exchanges=1)) as server:
        import msgspec

        names = [f"tag/{number}" for number in range(250)]
        body = msgspec.msgpack.encode(({"content": False, "patterns": []}, names, [], 1000))
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            length = f"Content-Length: {len(body)}"
            slow.sendall(_head(server, "POST /exchange/fetch HTTP/1.1", length) + body)
            assert b" 200 " in slow.recv(100)  # and the rest is left where it is
            status, headers, _ = server.ask("POST", "/exchange/fetch", body)
            assert (status, headers["retry-after"]) == (503, "5")


def test_what_breaks_in_the_server_is_told_to_nobody_but_the_log(
    server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from porcelain.serve import app, exchange

    def broken(*_: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(exchange.Exchange, "_transport", broken)
    status, _, body = server.ask("POST", "/exchange/hello", b"\x91\x80")
    assert (status, json.loads(body)) == (500, {"error": "the server failed"})
    monkeypatch.setattr(app, "description", broken)
    assert server.ask("GET", "/openapi.json")[0] == 500
    assert "a secret" not in "".join([*server.log, *capsys.readouterr()])
    assert json.loads(server.log[0])["failure"] == "RuntimeError"


def test_tokens_are_kept_as_hashes_and_can_be_revoked(store: Store) -> None:
    from porcelain.serve.tokens import forget_token

    identity, text, token = new_token("write", "laptop", "2026-03-04T05:06:07Z")
    batch = store.batch()
    keep_token(batch, identity, token)
    store.commit(batch)
    with store.snapshot() as view:
        assert find_token(view, {}, text) == (identity, token)
        assert find_token(view, {}, text[:-1]) is None
        assert not any(text.partition(".")[2].encode() in value for _, value in view.local_items(b""))
    with served(store) as server:
        assert server.ask("GET", "/health", token=text)[0] == 200
        batch = store.batch()
        with store.snapshot() as view:
            forget_token(view, batch, identity)
        store.commit(batch)
        assert server.ask("GET", "/health", token=text)[0] == 401
