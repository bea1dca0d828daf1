"""A store on another machine, through the user's own ssh: ``objstore upload-pack`` or ``receive-pack`` is run there.

``OBJSTORE_SSH`` names another command in the place of ``ssh``, with options if need be. No host or path that begins
with ``-`` is passed on, and all stand behind ``--``.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, NamedTuple
from urllib.parse import unquote

from objstore.errors import StorageError, UsageError
from objstore.sync.pipes import PipeTransport
from objstore.sync.transport import Transport
from plumbing.interface.options import Context
from porcelain.remotes.config import Pusher, Remote

_URL = re.compile(r"ssh://(?:([^@/]+)@)?(\[[0-9A-Fa-f:.%]+\]|[^:/@]+)(?::(\d{1,5}))?(/.*)", re.IGNORECASE)
#: Seconds that the program is given to end by itself.
_PATIENCE = 5.0
_SAID = 64 * 1024


class Target(NamedTuple):
    """Where to go: user (or None), host, port (or None), path there."""

    user: str | None
    host: str
    port: str | None
    path: str


def parse_ssh(url: str) -> Target:
    """The parts of an ssh URL; raises ``UsageError``. ``/~/x`` is ``x`` in the home folder there."""
    found = _URL.fullmatch(url)
    if found is None:
        raise UsageError(f"{url!r}: not of the form ssh://[user@]host[:port]/path")
    user, host, port, path = found.groups()
    path = unquote(path)
    if path.startswith("/~/"):
        path = path[3:]
    for part in (user or "u", host, path):
        if part.startswith("-") or not part.isprintable():
            raise UsageError(f"{url!r}: no part may begin with '-' or hold what cannot be printed")
    if not path.strip("/"):
        raise UsageError(f"{url!r}: names no folder")
    return Target(user, host.strip("[]"), port, path)


def command_line(remote: Remote, context: Context, service: str) -> list[str]:
    """The command that runs ``service`` on the other machine."""
    target = parse_ssh(remote.url)
    words = shlex.split(context.env.get("OBJSTORE_SSH") or "ssh")
    if not words:
        raise UsageError("OBJSTORE_SSH: is empty")
    if target.port is not None:
        words += ["-p", target.port]
    host = target.host if target.user is None else f"{target.user}@{target.host}"
    return [*words, "--", host, f"{remote.program} {service} -- {shlex.quote(target.path)}"]


@contextmanager
def open_ssh(remote: Remote, context: Context, pusher: Pusher | None) -> Iterator[Transport]:
    """The store there."""
    words = command_line(remote, context, "upload-pack" if pusher is None else "receive-pack")
    with run_service(words, context) as transport:
        yield transport


@contextmanager
def run_service(words: list[str], context: Context) -> Iterator[Transport]:
    """Run a program that serves a store on its standard streams; it is gone at the end."""
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(context.env),
        )
    except OSError as error:
        raise StorageError(f"{words[0]}: cannot be run: {error.strerror}") from None
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    said = _Said(process.stderr)

    def end() -> str | None:
        with suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return said.last_line()

    try:
        yield PipeTransport(process.stdout, process.stdin, end)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        with suppress(OSError):
            process.stdin.close()


class _Said:
    """What a program says on standard error, read as it comes; at most the last of it is kept."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._text = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while chunk := self._stream.read1(4096):  # type: ignore[attr-defined]
                self._text = (self._text + chunk)[-_SAID:]

    def lines(self) -> list[str]:
        """All lines."""
        self._thread.join(_PATIENCE)
        return [line for line in self._text.decode("utf-8", "replace").splitlines() if line.strip()]

    def last_line(self) -> str | None:
        """The last line but hints, which as a rule says what went wrong."""
        lines = [line for line in self.lines() if not line.startswith("hint: ")]
        return lines[-1].removeprefix("objstore: ") if lines else None
