"""The interactive session on a terminal, as a person has it: keys in, screen out."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.porcelain.importing.driving import ROOT, environment, objstore, succeed
from tests.porcelain.session.test_openai_answerer import Server, stalling, streaming

pytest.importorskip("prompt_toolkit", reason="the extra repl is not installed")

DOCUMENT = ROOT / "fixtures" / "documents" / "skarv-lighthouse.md"
LIT = "When was the lighthouse first lit?"
CTRL_C, CTRL_D = b"\x03", b"\x04"
_SECONDS = 60.0
#: The program, with standard input as the terminal that its Ctrl-C comes from.
_PROGRAM = """
import fcntl, sys, termios
from porcelain.main import main
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.exit(main(sys.argv[1:]))
"""
_ESCAPE = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])")


class Terminal:
    """A program on a terminal of its own. ``text`` is what it has shown, without escape sequences."""

    def __init__(self, *words: str | Path) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, 200))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *map(str, words)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(None) | {"PATH": os.environ["PATH"], "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(theirs)
        self._raw = b""
        self._seen = 0

    @property
    def text(self) -> str:
        return _ESCAPE.sub(b"", self._raw).decode("utf-8", "replace")

    def keys(self, text: str | bytes) -> None:
        os.write(self._ours, text.encode() if isinstance(text, str) else text)

    def until(self, wanted: str) -> str:
        """What was shown since the last call, up to ``wanted``."""
        end = time.monotonic() + _SECONDS
        while (at := self.text.find(wanted, self._seen)) < 0:
            assert time.monotonic() < end and self._read(), f"no {wanted!r} in {self.text[self._seen :]!r}"
        shown = self.text[self._seen : at + len(wanted)]
        self._seen = at + len(wanted)
        return shown

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], 1.0)
        if not ready:
            return True
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # the other end was closed
            return False
        if b"\x1b[6n" in data:
            self.keys("\x1b[1;1R")  # it asks where its cursor is
        self._raw += data
        return bool(data)

    def end(self) -> int:
        """The exit code."""
        while self._process.poll() is None:
            if not self._read():
                break
        return self._process.wait(timeout=_SECONDS)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._ours)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    succeed(tmp_path / "store", "session", "source", "add", DOCUMENT)
    return tmp_path / "store"


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    made: list[Terminal] = []
    yield made
    for terminal in made:
        terminal.close()


def test_a_session_from_the_first_key_to_ctrl_d(store: Path, terminals: list[Terminal]) -> None:
    terminal = Terminal("--store", store, "session")
    terminals.append(terminal)
    greeting = terminal.until("ask a question, or /help")
    sid = re.search(r"session (\d{8}-\d{6}-[0-9a-f]{4})", greeting)[1]  # type: ignore[index]
    terminal.until("0>")
    terminal.keys(f"{LIT}\r")
    terminal.until("[E1 | The Lighthouse at Skarv Point | ")
    terminal.until(f"{sid}-000001")
    terminal.until("1>")
    terminal.keys("/la")
    terminal.until("name the node")  # the menu is there
    terminal.keys("\tfork\r")
    terminal.until("1 fork>")
    terminal.keys("half a question")
    terminal.until("half a question")
    terminal.keys(CTRL_C)
    terminal.until("1 fork>")
    terminal.keys("/tre\r")
    terminal.until("error: /tre: no such command: did you mean /tree?")
    terminal.keys("/tree\r")
    terminal.until(f"◉ 1 [fork] STRICT {LIT}")
    collected = objstore(store, "session", "gc", "0", "--yes")
    assert collected.out == "" and f"{sid}: is open, and was kept" in collected.err
    terminal.until("1 fork>")
    terminal.keys(CTRL_D)
    terminal.until(f"resume it with: objstore session --sid {sid}")
    assert terminal.end() == 0
    assert b"\x1b[32mSTRICT" in terminal._raw
    again = Terminal("--store", store, "session", "--sid", sid[:17])
    terminals.append(again)
    assert f"session {sid}, 1 turn" in again.until("1 fork>")
    again.keys("/quit\r")
    assert again.end() == 0


def test_an_answer_is_seen_while_it_is_written(store: Path, terminals: list[Terminal]) -> None:
    server = Server(streaming("It was first lit on 4 October 1874. [E1]"))
    try:
        model = ("--answerer", "openai", "--model", "tiny", "--url", server.url)
        terminal = Terminal("--store", store, "session", *model)
        terminals.append(terminal)
        terminal.until("0>")
        terminal.keys(f"{LIT}\r")
        terminal.until("It was first lit on 4 October 1874. [E1]")
        terminal.until("It was first lit on 4 October 1874. [E1 | The Lighthouse at Skarv Point | ")
        terminal.until("STRICT by ")
        terminal.until("1>")
        terminal.keys(CTRL_D)
        assert terminal.end() == 0
    finally:
        server.close()
    assert b"\r\x1b[J" in terminal._raw  # the draft was taken away


def test_ctrl_c_cancels_the_turn_and_not_the_session(store: Path, terminals: list[Terminal]) -> None:
    server = Server(stalling())
    try:
        model = ("--answerer", "openai", "--model", "tiny", "--url", server.url)
        terminal = Terminal("--store", store, "session", *model)
        terminals.append(terminal)
        terminal.until("questions and passages go to tiny")
        terminal.until("0>")
        terminal.keys(f"{LIT}\r")
        until = time.monotonic() + _SECONDS
        while not server.requests and time.monotonic() < until:
            time.sleep(0.02)
        terminal.keys(CTRL_C)
        terminal.until("cancelled: nothing was written")
        terminal.until("0>")
        terminal.keys(CTRL_D)
        assert terminal.end() == 0
    finally:
        server.close()
    (listed,) = succeed(store, "session", "list", "--json").out.splitlines()
    assert '"turns":0' in listed and '"events":1' in listed
    assert succeed(store, "session", "answers", "list", "--json").out == ""


def test_keeping_no_session_is_asked_for(store: Path, terminals: list[Terminal]) -> None:
    sid = succeed(store, "session", "new").out.strip()
    for answer, said in (("n", "nothing was removed"), ("y", sid)):
        terminal = Terminal("--store", store, "session", "gc", "0")
        terminals.append(terminal)
        terminal.until("remove all 1 session? [y/N] ")
        terminal.keys(f"{answer}\n")
        terminal.until(said)
        assert terminal.end() == 0
    assert succeed(store, "session", "list", "--json").out == ""
