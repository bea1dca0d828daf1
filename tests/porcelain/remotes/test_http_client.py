"""The contract of transports, over HTTP; and what only an HTTP client can meet."""

# ruff: noqa: F811  (fixtures that are imported)

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from objstore.errors import NotFound, ObjstoreError, StorageError, UsageError
from objstore.store import Store
from objstore.sync.exchange import fetch, push
from objstore.sync.pipes import READ, WRITE
from objstore.sync.transport import Transport
from plumbing.interface.options import Context
from porcelain.main import main
from porcelain.remotes import http_client
from porcelain.remotes.config import Remote
from porcelain.remotes.http_client import HttpTransport, Target, open_http, parse_http, token_for
from porcelain.remotes.urls import shown
from tests.objstore.sync.building import EVERYTHING, add_round, opened, put_node, put_tags, sound, state
from tests.objstore.sync.test_transports import (  # noqa: F401
    REF,
    here,
    test_a_dry_run_changes_nothing,
    test_a_fetch_brings_everything_and_the_next_one_nothing,
    test_a_push_brings_everything_and_the_next_one_nothing,
    test_a_push_in_several_packs,
    test_a_push_to_a_store_that_has_more_sends_only_what_it_lacks,
    test_a_scope_is_kept_to,
    test_an_empty_store_has_nothing,
    test_only_what_is_new_travels,
    test_stores_of_different_hashes_say_so,
    test_what_is_refused_there_is_told_here_and_nothing_moved,
    there,
)
from tests.porcelain.remotes.cutting import Cutting, cutting
from tests.porcelain.serve.serving import served


class _Way:
    """The contract's way to a store: a server, and a client of it."""

    kind = "http"

    @contextmanager
    def to(self, store: Store, allowed: frozenset[str] = READ | WRITE) -> Iterator[Transport]:
        with served(store) as server:
            transport = server.transport()
            try:
                yield transport
            finally:
                transport.close()


@pytest.fixture
def way() -> _Way:
    return _Way()


@pytest.fixture
def writable() -> _Way:
    return _Way()


def test_a_small_push_asks_little_and_loads_nothing_that_receives(here: Store, there: Store) -> None:
    put_tags(there, 700)
    put_tags(here, 700)
    here.update_ref("tag/new", put_node(here, "new"), None)
    program = (
        "import sys; from porcelain.main import main; code = main()\n"
        "sys.stderr.write(' '.join(sys.modules)); sys.exit(code)"
    )
    with served(there) as server:
        words = [sys.executable, "-c", program, "--store", str(here.database.path), "push", server.url]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        asked = [json.loads(line)["path"] for line in server.log]
    assert there.refs()["tag/new"] == here.refs()["tag/new"]
    assert not {"tempfile", "concurrent.futures", "click", "subprocess"} & set(done.stderr.split())
    assert asked.count("/exchange/push") == 1 and len(asked) <= 6


def test_several_packs_over_one_connection(here: Store, there: Store) -> None:
    put_tags(there, 700)
    with _Way().to(there) as transport:
        fetch(here, transport, EVERYTHING, keeps_content=False, most=200)
        assert transport.traffic.requests > 4
    assert state(here) == state(there)


def test_nothing_to_do_is_one_request_of_a_few_bytes(here: Store, there: Store) -> None:
    with _Way().to(there) as transport:
        result = fetch(here, transport, EVERYTHING, keeps_content=False)
        before = transport.traffic.sent + transport.traffic.received
        assert fetch(here, transport, EVERYTHING, keeps_content=False, seen=result.root).differed == 0
        assert transport.traffic.sent + transport.traffic.received - before < 400


def test_an_answer_that_is_cut_is_gone_on_with(there: Store, tmp_path: Path) -> None:
    for number in range(30):
        add_round(there, REF, f"{number} {os.urandom(9000).hex()} a")
    with served(there) as server:

        def fetched(name: str, left: int, between: Callable[[], object] = lambda: None) -> int:
            """The bytes that passed, with the first connection cut after ``left`` of them."""
            with (
                opened(tmp_path / name) as into,
                cutting(server.port, left, once=True, between=between) as proxy,
                closing(HttpTransport(Target(False, "127.0.0.1", proxy.port, "", ""), server.writer)) as way,
            ):
                fetch(into, way, EVERYTHING, keeps_content=False)
                assert state(into) == state(there)
                sound(into)
                return left + (1 << 40) - proxy.left if proxy.left > left else left - proxy.left

        whole = fetched("whole", 1 << 39)
        assert whole > 250_000
        for left in (20_000, 100_000, whole - 20_000):
            assert fetched(f"cut {left}", left) < whole + 90_000
        # Where something was written meanwhile, the bytes could be others: then it is begun again by whoever asked.
        with pytest.raises(StorageError, match="cut"):
            fetched("changed", 100_000, between=lambda: put_tags(there, 1))
        assert server.log and all(line.count("\n") == 0 for line in server.log)


@pytest.mark.parametrize("direction", ["fetch", "push"])
def test_an_exchange_that_is_cut_at_any_byte(
    there: Store, tmp_path: Path, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "RESUMES", 0)
    whole = state(there)
    with opened(tmp_path / "into") as store:
        empty = state(store)
        with served(there if direction == "fetch" else store) as server:
            for left in range(1, 8000, 173):
                proxy = Cutting(server.port, left)
                transport = HttpTransport(Target(False, "127.0.0.1", proxy.port, "", ""), server.writer)
                try:
                    if direction == "fetch":
                        fetch(store, transport, EVERYTHING, keeps_content=False)
                    else:
                        push(there, transport, EVERYTHING)
                except ObjstoreError:
                    assert state(store) in (empty, whole)
                else:
                    assert state(store) == whole and left > 300
                    break
                finally:
                    transport.close()
                    proxy.close()
            else:
                raise AssertionError("never came through")
        sound(store)


def test_tls_with_a_certificate_that_is_trusted_and_one_that_is_not(
    here: Store,
    there: Store,
    tmp_path: Path,
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make a certificate with")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    with served(there, certificate=str(certificate), key=str(key)) as server:
        target = Target(True, "localhost", server.port, "", "")
        transport = HttpTransport(target, server.reader, str(certificate))
        fetch(here, transport, EVERYTHING, keeps_content=False)
        transport.close()
        with pytest.raises(StorageError, match="not trusted"):
            HttpTransport(target, server.reader).hello(EVERYTHING)
    assert state(here) == state(there)


def test_a_clone_and_a_push_from_the_command_line(
    there: Store,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    with served(there) as server:
        assert main(["clone", server.url, str(tmp_path / "copy")]) == 0
        copy = str(tmp_path / "copy" / ".objstore")
        with Store.open(copy) as store:
            assert state(store) == state(there)
            add_round(store, f"flow/{store.store_id}/test/mine", "mine")
        assert main(["--store", copy, "push"]) == 0
        with Store.open(copy) as store:
            assert state(store) == state(there)
        assert main(["--store", copy, "fetch"]) == 0
        assert b"nothing new" in capsysbinary.readouterr().out
    assert main(["--store", copy, "fetch"]) == 5
    said = capsysbinary.readouterr().err
    assert b"nothing answers there" in said and server.writer.encode() not in said


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http:///x",
        "http://h:99999/",
        "http://h/x?y",
        "http://h/#x",
        "http://h/a b",
        "http://h/\r\nX: y",
        "http://a%0d%0aX:%0d@h/",
    ],
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(UsageError):
        parse_http(url)


def test_urls() -> None:
    assert parse_http("https://token:a.b@h:1/x/") == Target(True, "h", 1, "/x", "a.b")
    assert parse_http("http://h") == Target(False, "h", 80, "", "")
    assert parse_http("https://h") == Target(True, "h", 443, "", "")
    assert shown("https://token:a.b@h:1/x@y") == "https://h:1/x@y"
    assert shown("http://h/") == "http://h/" and shown("/a/b@c") == "/a/b@c"


def test_where_the_token_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "t"
    file.write_text("from-file\n")
    target = parse_http("https://h")
    assert token_for(target, {}) == ""
    assert token_for(target, {"OBJSTORE_TOKEN_FILE": str(file)}) == "from-file"
    assert token_for(target, {"OBJSTORE_TOKEN": "x", "OBJSTORE_TOKEN_FILE": str(file)}) == "x"
    assert token_for(parse_http("https://a:url@h"), {"OBJSTORE_TOKEN": "x"}) == "url"
    with pytest.raises(NotFound):
        token_for(target, {"OBJSTORE_TOKEN_FILE": str(tmp_path / "none")})


def test_a_wrong_token_is_told_from_none(here: Store, there: Store) -> None:
    with served(there) as server:
        for token, said in (("wrong", "not one of its tokens"), ("", "a token is needed")):
            with closing(server.transport(token)) as transport, pytest.raises(UsageError, match=said):
                fetch(here, transport, EVERYTHING, keeps_content=False)


def test_no_token_in_clear_to_another_machine() -> None:
    context = Context(env={"OBJSTORE_TOKEN": "x"})
    with (
        pytest.raises(UsageError, match="in clear"),
        open_http(Remote(url="http://192.0.2.1/"), context, None),
    ):
        pass


class _Odd(http.server.BaseHTTPRequestHandler):
    """Answers everything in one way, which the server object says."""

    def do_POST(self) -> None:
        self.server.seen.append(self.headers.get("Authorization"))  # type: ignore[attr-defined]
        status, headers, body = self.server.says  # type: ignore[attr-defined]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.mark.parametrize(
    "says",
    [
        (200, {}, b"hello"),
        (200, {"Content-Length": "99"}, b"cut"),
        (200, {"Content-Length": "0"}, b""),
        (302, {"Location": "http://localhost:1/", "Content-Length": "0"}, b""),
        (404, {"Content-Type": "text/html"}, b"<html>"),
        (500, {}, b"\xff" * 100_000),
        (401, {}, b'{"error": "no"}'),
        (422, {}, b'{"code": 77, "error": "odd"}'),
    ],
)
def test_a_client_survives_what_is_no_answer(
    here: Store,
    says: tuple[int, dict[str, str], bytes],
) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Odd) as server:
        server.says, server.seen = says, []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        transport = HttpTransport(Target(False, "127.0.0.1", server.server_port, "", ""), "secret")
        with pytest.raises(ObjstoreError) as caught:
            fetch(here, transport, EVERYTHING, keeps_content=False)
        assert "secret" not in caught.value.message
        assert server.seen == ["Bearer secret"]  # type: ignore[attr-defined]
        server.shutdown()
