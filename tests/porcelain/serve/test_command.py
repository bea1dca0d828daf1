"""``objstore serve`` as a person starts it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import msgspec
import pytest

from objstore.store import Store
from porcelain.main import main
from porcelain.serve.server import is_loopback
from tests.objstore.sync.building import add_round, opened, put_node, state
from tests.porcelain.serve.serving import Served, served

REF = "flow/1111111111111111/test/x"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    with opened(tmp_path / "s") as store:
        add_round(store, REF, "a")
    return str(tmp_path / "s")


@contextmanager
def _started(folder: str, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The program, and the URL that it printed."""
    code = "import sys; from porcelain.main import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "--store", folder, "serve", "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().decode().strip()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_url_is_printed_that_can_be_cloned(folder: str, tmp_path: Path) -> None:
    with _started(folder, "--write") as (process, url):
        assert main(["clone", url, str(tmp_path / "copy")]) == 0
        copy = str(tmp_path / "copy" / ".objstore")
        with Store.open(copy) as store:
            mine = add_round(store, f"flow/{store.store_id}/test/x", "mine")
        assert main(["--store", copy, "push"]) == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stderr is not None
        said = process.stderr.read().decode()
    secret = urlsplit(url).password
    assert secret and secret not in said
    assert all("status" in json.loads(line) for line in said.splitlines())
    with Store.open(folder) as store, Store.open(copy) as other:
        assert mine in store.refs().values() and state(store) == state(other)


def test_a_token_file_that_nobody_else_reads_and_that_goes_again(folder: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    before = os.umask(0)
    try:
        with _started(folder, "--token-file", str(file)) as (process, url):
            assert "@" not in url
            assert file.stat().st_mode & 0o777 == 0o600
            token = file.read_text().strip()
            place = urlsplit(url)
            connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
            connection.request("GET", "/health", headers={"Authorization": f"Bearer {token}"})
            assert connection.getresponse().status == 200
            connection.close()
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
    finally:
        os.umask(before)
    assert not file.exists()


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root can act as another user of this machine"
)
def test_another_user_of_this_machine_gets_nothing(folder: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    for outer in (tmp_path, *tmp_path.parents):
        if outer.stat().st_uid == os.geteuid() and outer != Path("/"):
            outer.chmod(
                outer.stat().st_mode | 0o055
            )  # else it would be the tests' own folder that keeps them out
    with _started(folder, "--write", "--token-file", str(file)) as (process, url):
        token = file.read_text().strip()
        script = f"""
import encodings.idna, http.client, os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for path in ({str(file)!r}, {folder!r} + "/data.mdb", "/proc/{process.pid}/environ", "/proc/{process.pid}/mem"):
    try:
        open(path, "rb").read(1)
    except PermissionError:
        continue
    sys.exit("can read " + path)
assert {token!r}.encode() not in open("/proc/{process.pid}/cmdline", "rb").read()
for method, path in (("GET", "/refs"), ("GET", "/health"), ("POST", "/exchange/hello"), ("POST", "/exchange/push")):
    connection = http.client.HTTPConnection("127.0.0.1", {urlsplit(url).port}, timeout=10)
    connection.request(method, path, b"x" if method == "POST" else None)
    answer = connection.getresponse()
    assert (answer.status, len(answer.read()) < 100) == (401, True), (path, answer.status)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_token_file_that_is_there_is_not_written_over(
    folder: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "real").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("real", "link"):
        assert main(["--store", folder, "serve", "--port", "0", "--token-file", str(tmp_path / name)]) == 4
    assert (tmp_path / "real").read_text() == "precious"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "0.0.0.0"], b"in clear"),
        (["--listen", "::"], b"in clear"),
        (["--listen", "store.example.org"], b"in clear"),
        (["--listen", "0.0.0.0", "--behind-proxy"], b"no token"),
        (["--certificate", "c.pem"], b"go together"),
        (["--certificate", "none.pem", "--key", "none.pem"], b"cannot be used"),
        (["--port", "70000"], b"no port"),
    ],
)
def test_what_would_be_unsafe_is_refused(
    folder: str, words: list[str], said: bytes, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["--store", folder, "serve", "--port", "0", *words]) == 2
    printed = capsysbinary.readouterr()
    assert said in printed.err and printed.out == b""


def test_what_is_loopback() -> None:
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        assert is_loopback(host)
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org"):
        assert not is_loopback(host)


def test_tokens_from_the_command_line(folder: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    tokens = ["--store", folder, "serve", "tokens"]
    assert main([*tokens, "--add", "read", "--label", "laptop"]) == 0
    text = capsysbinary.readouterr().out.decode().strip()
    with Store.open(folder) as store, served(store) as server:
        assert server.ask("GET", "/health", token=text)[0] == 200
        assert server.ask("POST", "/exchange/push", b"", token=text)[0] == 403
    assert main([*tokens, "--json"]) == 0
    printed = capsysbinary.readouterr().out
    listed = json.loads(printed)
    assert listed["label"] == "laptop" and listed["scope"] == "read"
    assert text.partition(".")[2].encode() not in printed
    assert main([*tokens, "--revoke", listed["id"]]) == 0
    assert main([*tokens, "--revoke", listed["id"]]) == 3
    assert main(tokens) == 0 and capsysbinary.readouterr().out == b""
    with Store.open(folder) as store, served(store) as server:
        assert server.ask("GET", "/health", token=text)[0] == 401


def _resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _load(tmp_path: Path, seconds: float) -> tuple[int, int, list[int]]:
    """Have 64 clients read, fetch, push and fail at a server in a process of its own; its memory after a third of the
    time and at the end, and how often each status was answered."""
    with opened(tmp_path / "s") as store:
        for number in range(200):
            store.update_ref(f"tag/{number}", put_node(store, str(number) * 200), None)
    body = msgspec.msgpack.encode(
        ({"content": False, "patterns": []}, [f"tag/{number}" for number in range(200)], [], 1000)
    )
    stop = threading.Event()
    answered: Counter[int] = Counter()
    broken: list[Exception] = []
    with _started(str(tmp_path / "s"), "--write", "--timeout", "5") as (process, url):
        port, token = urlsplit(url).port or 0, urlsplit(url).password or ""
        server = Served(port, token, token, [], None)  # type: ignore[arg-type]
        assert process.stderr is not None
        threading.Thread(target=_drop, args=(process.stderr,), daemon=True).start()

        def client(number: int) -> None:
            try:
                while not stop.is_set():
                    kind = number % 4
                    if kind == 0:
                        status = server.ask("GET", "/refs?limit=200")[0]
                    elif kind == 1:
                        status = server.ask("POST", "/exchange/fetch", body)[0]
                    elif kind == 2:
                        status = server.ask("POST", "/exchange/push", b"x" * 20_000)[0]
                    else:
                        status = server.ask("GET", "/health", token="wrong")[0]
                    answered[status] += 1
            except Exception as error:
                broken.append(error)

        threads = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(64)]
        for thread in threads:
            thread.start()
        time.sleep(seconds / 3)
        early = _resident(process.pid)
        time.sleep(seconds * 2 / 3)
        late = _resident(process.pid)
        stop.set()
        for thread in threads:
            thread.join(30)
    assert not broken, broken[:3]
    print(f"\n{early:,} bytes, then {late:,}; answered: {dict(answered)}")
    return early, late, list(answered.elements())


def _drop(stream: IO[bytes]) -> None:
    while stream.read1(65536):  # type: ignore[attr-defined]
        pass


def _check_load(early: int, late: int, answered: list[int]) -> None:
    assert set(answered) <= {200, 401, 422, 503} and answered.count(200) > 20
    assert late - early < 24 * 1024 * 1024, (early, late)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_memory_stays_flat_under_many_clients(tmp_path: Path) -> None:
    _check_load(*_load(tmp_path, 6.0))


@pytest.mark.soak
def test_memory_stays_flat_for_ten_minutes(tmp_path: Path) -> None:
    _check_load(*_load(tmp_path, 600.0))
