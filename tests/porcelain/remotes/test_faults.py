"""Whatever happens to either side, and whenever: both stores hold, nothing is half there, and the next try completes.

Processes are killed at the n-th call into C that they make, so that every stage of the work is met on any machine;
connections are cut after the n-th byte; and files may not grow.
"""

# ruff: noqa: F811  (fixtures that are imported)

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from objstore.errors import ObjstoreError
from objstore.store import Store
from objstore.sync.exchange import fetch, push
from plumbing.interface.options import Context
from porcelain.remotes import http_client, s3_bucket
from porcelain.remotes.config import Remote, pusher
from porcelain.remotes.urls import open_transport
from tests.objstore.sync.building import EVERYTHING, add_fact, add_round, opened, put_tags, sound, state
from tests.porcelain.remotes.bucket_server import Bucket, Seaweed, bucket  # noqa: F401
from tests.porcelain.remotes.cutting import cutting
from tests.porcelain.remotes.git_servers import GitDaemon, git_daemon
from tests.porcelain.serve.serving import served

ROOT = Path(__file__).resolve().parents[3]
KINDS = ("path", "ssh", "http", "git", "s3")
#: Runs the program, and ends as if by ``kill -9`` at the n-th call into C since it began its work; without n it writes
#: down at its end how many there were.
KILLED = """
import os, signal, sys, threading
most, noted = int(sys.argv[1]), sys.argv[2]
import porcelain.main, porcelain.remotes.urls, porcelain.remotes.transfer
count = 0
def met(frame, event, argument):
    global count
    if event == "c_call":
        count += 1
        if count == most:
            os.kill(os.getpid(), signal.SIGKILL)
threading.setprofile(met)
sys.setprofile(met)
try:
    code = porcelain.main.main(sys.argv[3:])
finally:
    sys.setprofile(None)
    if not most:
        with open(noted, "w") as file:
            file.write(str(count))
sys.exit(code)
"""
#: Runs the program where no file may have more bytes.
LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
most = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
from porcelain.main import main
sys.exit(main(sys.argv[3:]))
"""


class Sides:
    """A store that has something, an empty one, and the way between them. ``is_hub`` where there is a hub between."""

    def __init__(self, kind: str, folder: Path, stack: ExitStack, bucket: Callable[[], Bucket]) -> None:
        self.kind = kind
        self.folder = folder
        self.is_hub = kind in ("git", "s3")
        self.env = dict(os.environ)
        self.program = f"{sys.executable} -m porcelain.main"
        self._stack = stack
        self._bucket = bucket
        for name, large in (("full", True), ("empty", False)):
            with opened(folder / name) as store:
                if large:
                    fill(store)
                    self.whole = state(store)
                else:
                    self.nothing = state(store)
        self.url = self.made("hub")

    def made(self, name: str) -> str:
        """The URL of a new hub, if there is one between."""
        if self.kind == "git":
            hub = self.folder / f"{name}.git"
            subprocess.run(["git", "init", "--quiet", "--bare", str(hub)], check=True)
            return f"git+file://{hub}"
        if self.kind == "s3":
            found = self._bucket()
            self.env |= found.env
            return found.url
        if self.kind == "ssh":
            script = self.folder / "local-ssh"
            script.write_text(f'#!/bin/sh\nfor last; do :; done\ncd "{ROOT}" && exec sh -c "exec $last"\n')
            script.chmod(0o700)
            self.env["OBJSTORE_SSH"] = str(script)
        return ""

    def place(self, there: str) -> str:
        """The URL of the other side: of the hub, or of the store called ``there``."""
        path = self.folder / there
        if self.is_hub:
            return self.url
        if self.kind == "http":
            return self._stack.enter_context(serving(path))[1]
        return str(path) if self.kind == "path" else f"ssh://example.org{path}"

    def words(self, direction: str, here: str, there: str) -> list[str]:
        """The command line that brings everything."""
        program = ("--program", self.program) if self.kind == "ssh" else ()
        return ["--store", str(self.folder / here), direction, *program, self.place(there)]

    def run(self, words: list[str], before: str, *given: object) -> subprocess.CompletedProcess[bytes]:
        """Run a command line in a process of its own."""
        return subprocess.run(
            [sys.executable, "-c", before, *map(str, given), *words],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            check=False,
            timeout=120,
        )

    def through_hub(self, number: object) -> Any:
        """What stands in the hub, as a new store sees it."""
        with opened(self.folder / f"seen {number}") as seen:
            context = Context(env=self.env, store=str(self.folder / f"seen {number}"))
            with open_transport(Remote(url=self.url), context) as transport:
                fetch(seen, transport, EVERYTHING, keeps_content=False)
            sound(seen)
            return state(seen)


def fill(store: Store) -> None:
    """A bit of everything, most of it hard to compress."""
    chance = random.Random(5)
    put_tags(store, 150)
    for number in range(6):
        add_round(
            store, f"flow/{store.store_id}/test/{number % 2}", f"{number} {chance.randbytes(9000).hex()} a"
        )
    add_fact(store, "/home/x")


@contextmanager
def serving(folder: Path, before: str = "", *given: object) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """``objstore serve`` of a store, and its URL."""
    code = before or "import sys; from porcelain.main import main; sys.exit(main(sys.argv[1:]))"
    words = ["--store", str(folder), "--quiet", "serve", "--port", "0", "--write"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, given), *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().decode().strip()
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(20)
        process.stdout.close()


@pytest.fixture
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sides]:
    kind: str = request.param
    if kind == "git" and shutil.which("git") is None:
        pytest.skip("git is not installed")
    if kind == "s3":
        pytest.importorskip("obstore", reason="obstore is not installed")
    if kind == "http":
        pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    with ExitStack() as stack:
        yield Sides(kind, tmp_path, stack, lambda: request.getfixturevalue("bucket"))


def check(sides: Sides, number: object, *, pushed: bool) -> None:
    """Both stores hold, and of what was to come all is there or nothing."""
    for name in ("full", "empty"):
        with Store.open(sides.folder / name) as store:
            sound(store)
            found = state(store)
        assert found == sides.whole if name == "full" else found in (sides.nothing, sides.whole)
    if sides.is_hub and pushed:
        assert sides.through_hub(number) in (sides.nothing, sides.whole)


def finish(sides: Sides, direction: str, words: list[str]) -> None:
    """The next try completes."""
    done = sides.run(words, "import sys; from porcelain.main import main; sys.exit(main(sys.argv[1:]))")
    assert done.returncode == 0, done.stderr
    if sides.is_hub and direction == "push":
        assert sides.through_hub("end") == sides.whole
    else:
        with Store.open(sides.folder / "empty") as store:
            assert state(store) == sides.whole
            sound(store)


def _moment(chance: random.Random, total: int, number: int) -> int:
    """When to kill: the first time early, so that it is met however fast the machine, then whenever."""
    return total // 4 if number == 0 else chance.randrange(total // 8, total * 15 // 16)


@pytest.mark.parametrize("direction", ["push", "fetch"])
@pytest.mark.parametrize("sides", KINDS, indirect=True)
def test_this_side_is_killed_at_any_moment(sides: Sides, direction: str) -> None:
    here, there = ("full", "empty") if direction == "push" else ("empty", "full")
    if sides.is_hub and direction == "fetch":
        finish(sides, "push", sides.words("push", "full", ""))
    noted = sides.folder / "noted"
    words = sides.words(direction, here, there)
    shutil.copytree(sides.folder / here, sides.folder / "copy here")
    if not sides.is_hub:
        shutil.copytree(sides.folder / there, sides.folder / "copy there")
    once = sides.words(direction, "copy here", "copy there")
    if sides.is_hub and direction == "push":
        once[-1] = sides.made("other")
    assert sides.run(once, KILLED, 0, noted).returncode == 0
    total = int(noted.read_text())
    chance = random.Random(total)
    killed = 0
    for number in range(7):
        done = sides.run(words, KILLED, _moment(chance, total, number), noted)
        assert done.returncode in (-9, 0), done.stderr
        killed += done.returncode == -9
        check(sides, number, pushed=direction == "push")
        if not done.returncode:
            break
    assert killed
    finish(sides, direction, words)
    left = {one.name for one in (sides.folder / "empty").iterdir()}
    assert left <= {"data.mdb", "lock.mdb", "write.lock", "hubs"}


@pytest.mark.parametrize("direction", ["push", "fetch"])
@pytest.mark.parametrize("sides", ["ssh", "http"], indirect=True)
def test_the_other_side_is_killed_at_any_moment(sides: Sides, direction: str) -> None:
    here, there = ("full", "empty") if direction == "push" else ("empty", "full")
    noted = sides.folder / "noted"
    shutil.copytree(sides.folder / here, sides.folder / "copy here")
    shutil.copytree(sides.folder / there, sides.folder / "copy")
    _answered(sides, direction, "copy here", "copy", 0, noted)
    total = int(noted.read_text())
    chance = random.Random(total)
    killed = 0
    for number in range(6):
        most = _moment(chance, total, number)
        code = _answered(sides, direction, here, there, most, noted)
        assert code in (0, 5)
        killed += code == 5
        check(sides, number, pushed=direction == "push")
        if not code:
            break
    assert killed
    _answered(sides, direction, here, there, 0, noted)
    with Store.open(sides.folder / "empty") as store:
        assert state(store) == sides.whole


def _answered(sides: Sides, direction: str, here: str, there: str, most: int, noted: Path) -> int:
    """The exit code of an exchange with a side that is killed after so many calls into C (0: never)."""
    plain = "import sys; from porcelain.main import main; sys.exit(main(sys.argv[1:]))"
    if sides.kind == "ssh":
        script = sides.folder / "killed.py"
        script.write_text(KILLED)
        sides.program = f"{sys.executable} {script} {most} {noted}"
        sides.env["PYTHONPATH"] = str(ROOT)
        return sides.run(sides.words(direction, here, there), plain).returncode
    with serving(sides.folder / there, KILLED, most, noted) as (process, url):
        if not url:
            assert process.wait(20) == -9
            return 5
        words = ["--store", str(sides.folder / here), direction, url]
        return sides.run(words, plain).returncode


@pytest.mark.parametrize("direction", ["push", "fetch"])
@pytest.mark.parametrize("sides", KINDS, indirect=True)
def test_a_full_disk_on_the_side_that_takes(sides: Sides, direction: str) -> None:
    here, there = ("full", "empty") if direction == "push" else ("empty", "full")
    if sides.is_hub and direction == "fetch":
        finish(sides, "push", sides.words("push", "full", ""))
    most = 60_000  # more than an empty store, less than what comes
    if direction == "push" and sides.kind == "http":
        with serving(sides.folder / "empty", LIMITED, most, "") as (_, url):
            done = sides.run(["--store", str(sides.folder / "full"), "push", url], LIMITED, 1 << 40, "")
    elif direction == "push" and sides.kind == "ssh":
        script = sides.folder / "limited.py"
        script.write_text(LIMITED)
        sides.env["PYTHONPATH"] = str(ROOT)
        sides.program = f"{sys.executable} {script} {most} x"
        done = sides.run(sides.words(direction, here, there), LIMITED, 1 << 40, "")
        sides.program = f"{sys.executable} -m porcelain.main"
    else:
        done = sides.run(sides.words(direction, here, there), LIMITED, most, "")
    assert done.returncode == 5, done.stderr
    assert done.stderr.count(b"\n") <= 2 and b"Traceback" not in done.stderr
    check(sides, 0, pushed=direction == "push")
    with Store.open(sides.folder / "empty") as store:
        assert state(store) == sides.nothing
    finish(sides, direction, sides.words(direction, here, there))


@pytest.mark.parametrize("direction", ["push", "fetch"])
@pytest.mark.parametrize("kind", ["http", "git", "s3"])
def test_a_connection_that_is_cut_at_any_byte(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    direction: str,
) -> None:
    """Bytes of both directions are counted together; their number is found by an exchange that is not cut."""
    monkeypatch.setattr(s3_bucket, "RETRIES", 0)
    monkeypatch.setattr(s3_bucket, "RESUMES", 0)
    monkeypatch.setattr(http_client, "RESUMES", 0)
    with ExitStack() as stack:
        full, empty = (stack.enter_context(opened(tmp_path / name)) for name in ("full", "empty"))
        fill(full)
        whole, nothing = state(full), state(empty)
        env = dict(os.environ)
        target = empty if direction == "push" else full
        if kind == "http":
            server = stack.enter_context(served(target))
            port, url = server.port, f"http://token:{server.writer}@127.0.0.1:{{}}/"
        elif kind == "git":
            subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "hub.git")], check=True)
            port, url = stack.enter_context(git_daemon(tmp_path)), "git+git://127.0.0.1:{}/hub.git"
        else:
            found: Bucket = request.getfixturevalue("bucket")
            env |= found.env
            port, url = urlsplit(found.env["AWS_ENDPOINT_URL"]).port or 0, found.url

        def exchange(number: object, left: int) -> int:
            """Exchange everything; how many bytes passed."""
            with cutting(port, left) as proxy:
                here = full if direction == "push" else empty
                context = Context(
                    env=env
                    | ({"AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"} if kind == "s3" else {}),
                    store=str(tmp_path / f"state {number}"),
                )
                remote = Remote(url=url.format(proxy.port))
                with open_transport(remote, context, pusher(here) if direction == "push" else None) as way:
                    if direction == "push":
                        push(here, way, EVERYTHING)
                    else:
                        fetch(here, way, EVERYTHING, keeps_content=False)
                return left - proxy.left

        if kind != "http" and direction == "fetch":
            with cutting(port, 1 << 40) as proxy:
                context = Context(env=env, store=str(tmp_path / "first"))
                with open_transport(Remote(url=url.format(proxy.port)), context, pusher(full)) as way:
                    push(full, way, EVERYTHING)
        most = 80_000 if kind == "http" else 150_000
        positions = sorted(random.Random(3).sample(range(1, most), 10 if kind == "s3" else 14))
        cuts = 0
        for number, left in enumerate(positions):
            try:
                exchange(number, left)
            except ObjstoreError as error:
                assert "Traceback" not in error.message and "\n" not in error.message
                cuts += 1
            assert state(full) == whole and state(empty) in (nothing, whole)
            if state(empty) == whole:
                break
        assert cuts >= 5
        sound(empty)
        assert exchange("last", 1 << 40) > 0
        if direction == "push" and kind != "http":
            with open_transport(
                Remote(url=url.format(port)), Context(env=env, store=str(tmp_path / "reader"))
            ) as way:
                fetch(empty, way, EVERYTHING, keeps_content=False)
        assert state(empty) == whole
        sound(empty)


# -- the server of a hub is killed -------------------------------------------------------------------------------------


def _git_hub(folder: Path) -> tuple[Callable[[], None], Callable[[], None], int, str, dict[str, str]]:
    subprocess.run(["git", "init", "--quiet", "--bare", str(folder / "hub.git")], check=True)
    daemon = GitDaemon(folder)
    return daemon.start, lambda: daemon.end(signal.SIGKILL), daemon.port, "git+git://127.0.0.1:{}/hub.git", {}


def _s3_hub(folder: Path) -> tuple[Callable[[], None], Callable[[], None], int, str, dict[str, str]]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    (folder / "seaweed").mkdir()
    server = Seaweed(folder / "seaweed")
    return server.start, server.kill, server.port, server.bucket.url, server.bucket.env


def _killed(folder: Path, hub: Callable[[Path], Any], direction: str, moments: int) -> None:
    """Kill the server of a hub after so and so many bytes of an exchange, and start it again: both stores hold, what is
    in the hub is whole, and the next try completes."""
    chance = random.Random(7)
    start, kill, port, url, env = hub(folder)
    with ExitStack() as stack:
        full, empty = (stack.enter_context(opened(folder / name)) for name in ("full", "empty"))

        def exchange(to: int, number: object, way: str) -> None:
            here = full if way == "push" else empty
            endpoint = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{to}"} if env else {}
            context = Context(env=dict(os.environ) | env | endpoint, store=str(folder / f"state {number}"))
            with open_transport(
                Remote(url=url.format(to)), context, pusher(here) if way == "push" else None
            ) as transport:
                if way == "push":
                    push(here, transport, EVERYTHING)
                else:
                    fetch(here, transport, EVERYTHING, keeps_content=False)

        start()
        stack.callback(kill)
        killed = 0
        for number in range(moments):
            add_round(full, f"flow/{full.store_id}/test/x", f"{number} {chance.randbytes(30_000).hex()} a")
            before = state(empty)
            if direction == "fetch":
                exchange(port, f"{number} first", "push")
            left = chance.randrange(500, 40_000)
            with cutting(port, left, once=True, between=kill) as proxy:
                try:
                    exchange(proxy.port, number, direction)
                except ObjstoreError as error:
                    assert "Traceback" not in error.message and "\n" not in error.message
                    killed += 1
            kill()
            sound(full)
            sound(empty)
            assert state(empty) in (before, state(full))
            start()
            exchange(port, f"{number} again", direction)
            exchange(port, f"{number} there", "fetch")
            assert state(empty) == state(full)
        assert killed >= moments // 2


@pytest.mark.parametrize("direction", ["push", "fetch"])
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_daemon_is_killed(tmp_path: Path, direction: str) -> None:
    _killed(tmp_path, _git_hub, direction, 5)


def test_the_server_of_a_bucket_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_bucket, "RETRIES", 1)
    _killed(tmp_path, _s3_hub, "push", 1)


@pytest.mark.soak
@pytest.mark.parametrize("direction", ["push", "fetch"])
@pytest.mark.parametrize("hub", [_git_hub, _s3_hub])
def test_the_server_of_a_hub_is_killed_often(
    tmp_path: Path, hub: Callable[[Path], Any], direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_bucket, "RETRIES", 1)
    _killed(tmp_path, hub, direction, 20)
