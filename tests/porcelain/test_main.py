"""Dispatch, options before the command, and what becomes of errors."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from objstore.errors import NotFound
from plumbing.interface.options import JSON, Context, Option, parse
from porcelain import commands
from porcelain.commands import PLUMBING, PORCELAIN, Command
from porcelain.main import main

ROOT = Path(__file__).resolve().parents[2]


def plumb(argv: list[str], context: Context) -> int:
    """A plumbing command that prints what it was given, or fails as it is told."""
    arguments = parse(argv, (JSON, Option("--fail", kind="text")), "plumb [--json] ARG...")
    failures: dict[str | None, BaseException] = {
        "found": NotFound("plumb: 12ab: no such object", hint="objstore ls-objects"),
        "full": OSError(errno.ENOSPC, "No space left on device", "/data/store"),
        "absent": FileNotFoundError(errno.ENOENT, "No such file or directory", "a\nb"),
        "deep": RecursionError("maximum recursion depth exceeded"),
        "memory": MemoryError(),
        "bug": ValueError("my secret text"),
        "stop": KeyboardInterrupt(),
        "pipe": BrokenPipeError(),
    }
    if arguments.fail:
        raise failures[arguments.fail]
    context.stdout.write(
        f"{arguments.json} {arguments.args} {context.store} {context.lock_timeout}\n".encode()
    )
    return 0


def carry(arguments, context: Context) -> int:
    """A porcelain command that prints what was read for it."""
    context.stdout.write(
        f"{arguments.args} {arguments.count} {arguments.way} {arguments.each} {arguments.json}".encode()
    )
    return 1 if arguments.json else 0


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two commands of our own in place of the program's."""
    module = ModuleType("made_up")
    vars(module).update(
        main=plumb,
        run=carry,
        SUMMARY="Say it.",
        USAGE="plumb [--json] ARG...\nplumb --fail WAY",
        OPTIONS=(JSON, Option("--fail", help="fail", kind="text")),
        EXAMPLES=("objstore plumb a",),
    )
    other = ModuleType("made_up_too")
    vars(other).update(
        run=carry,
        SUMMARY="Carry it.",
        USAGE="flow carry [-n COUNT] ARG",
        OPTIONS=(
            JSON,
            Option(("-n", "--count"), help="how often", kind="integer", default=3),
            Option("--way", help="how", kind="choice", choices=("up", "down")),
            Option("--each", help="again", kind="text", many=True),
        ),
        EXAMPLES=("objstore flow carry a",),
        ARGUMENTS=(1, 2),
    )
    monkeypatch.setitem(sys.modules, "made_up", module)
    monkeypatch.setitem(sys.modules, "made_up_too", other)
    rows = (
        Command(PLUMBING, "plumb", "made_up:main", "say"),
        Command(PORCELAIN, "flow carry", "made_up_too:run", "carry"),
    )
    monkeypatch.setattr(commands, "COMMANDS", rows)
    monkeypatch.setattr(commands, "GROUPS", {"flow": "structure"})
    monkeypatch.delenv("OBJSTORE_DEBUG", raising=False)


def run(capfd: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(argv)
    out, err = capfd.readouterr()
    return code, out, err


def test_plumbing_gets_what_follows_its_name(capfd) -> None:
    assert run(capfd, "--store", "s", "--lock-timeout=2.5", "plumb", "--json", "a", "--", "--b") == (
        0,
        "True ['a', '--b'] s 2.5\n",
        "",
    )


def test_porcelain_options_come_from_the_same_table(capfd) -> None:
    code, out, _ = run(capfd, "flow", "carry", "x", "-n", "7", "--way=up", "--each", "1", "--each", "2")
    assert (code, out) == (0, "['x'] 7 up ['1', '2'] False")
    code, out, _ = run(capfd, "flow", "carry", "x", "--json")
    assert (code, out) == (1, "['x'] 3 None [] True")


def test_options_of_a_groups_own_command_stand_before_none_of_its_commands(capfd, monkeypatch) -> None:
    own = Command(PORCELAIN, "flow", "made_up_too:run", "carry")
    monkeypatch.setattr(commands, "COMMANDS", (*commands.COMMANDS, own))
    assert run(capfd, "flow", "carry", "a") == (0, "['a'] 3 None [] False", "")
    assert run(capfd, "flow", "--each", "1") == (0, "[] 3 None ['1'] False", "")
    code, out, err = run(capfd, "flow", "--each", "1", "carry", "a")
    assert (code, out) == (2, "") and "options stand behind 'carry'" in err


@pytest.mark.parametrize(
    ("argv", "line", "hint"),
    [
        (["plum"], "plum: no such command: did you mean 'objstore plumb'?", "objstore --help"),
        (["zzz"], "zzz: no such command", "objstore --help"),
        (
            ["flow", "cary"],
            "cary: no such command: did you mean 'objstore flow carry'?",
            "objstore flow --help",
        ),
        (["--stor", "x"], "unknown option --stor: did you mean --store?", "objstore --help"),
        (["--store"], "--store needs a value: DIR", "objstore --help"),
        (["plumb", "--jsn"], "plumb: unknown option --jsn: did you mean --json?", "objstore plumb --help"),
        (["plumb", "--store", "x"], "plumb: --store stands before the command", "objstore plumb --help"),
        (
            ["--lock-timeout", "long", "plumb"],
            "--lock-timeout: 'long' is not a number of seconds",
            "objstore --help",
        ),
        (["flow", "carry"], "flow carry: too few arguments", "objstore flow carry --help"),
        (
            ["flow", "carry", "a", "b", "c"],
            "flow carry: unexpected argument 'c'",
            "objstore flow carry --help",
        ),
        (["flow", "carry", "--bogus"], "flow carry: unknown option --bogus", "objstore flow carry --help"),
        (
            ["flow", "carry", "a", "--way", "left"],
            "flow carry: --way: 'left' is none of up, down",
            "objstore flow carry --help",
        ),
        (["flow", "carry", "-n"], "flow carry: -n needs a value: INTEGER", "objstore flow carry --help"),
        (["flow"], "flow: which command?", "objstore flow --help"),
        (["flow", "--bogus", "carry"], "flow: unknown option --bogus", "objstore flow --help"),
        (
            ["flow", "carry", "-q", "a"],
            "flow carry: -q stands before the command",
            "objstore flow carry --help",
        ),
    ],
)
def test_wrong_command_lines(capfd, argv: list[str], line: str, hint: str) -> None:
    assert run(capfd, *argv) == (2, "", f"objstore: {line}\nhint: {hint}\n")


@pytest.mark.parametrize(
    ("way", "code", "err"),
    [
        ("found", 3, "objstore: plumb: 12ab: no such object\nhint: objstore ls-objects\n"),
        ("full", 5, "objstore: /data/store: No space left on device\n"),
        ("absent", 3, "objstore: a\\nb: No such file or directory\n"),
        ("deep", 5, "objstore: the input is nested too deeply\n"),
        ("memory", 5, "objstore: out of memory\n"),
        ("stop", 130, "objstore: interrupted\n"),
    ],
)
def test_errors_are_a_line_and_an_exit_code(capfd, way: str, code: int, err: str) -> None:
    assert run(capfd, "plumb", "--fail", way) == (code, "", err)


def test_unexpected_errors_tell_their_place_and_not_their_text(capfd) -> None:
    code, _, err = run(capfd, "plumb", "--fail", "bug")
    assert code == 5
    assert err.startswith("objstore: internal error: ValueError in ")
    assert "secret" not in err and "Traceback" not in err


def test_debug_keeps_the_traceback(capfd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBJSTORE_DEBUG", "1")
    with pytest.raises(ValueError, match="my secret text"):
        main(["plumb", "--fail", "bug"])


def test_help(capfd) -> None:
    code, out, _ = run(capfd, "--help")
    assert code == 0 and "  plumb  say\n" in out and "  flow   structure\n" in out and "--store DIR" in out
    code, out, _ = run(capfd, "plumb", "--help")
    assert code == 0
    assert out == (
        "usage: objstore plumb [--json] ARG...\n       objstore plumb --fail WAY\n\nSay it.\n\noptions:\n"
        "  --json       print JSON, one object a line\n  --fail TEXT  fail\n  -h, --help   show this help\n"
        "\nexamples:\n  objstore plumb a\n"
    )
    code, out, _ = run(capfd, "flow", "carry", "-h")
    assert code == 0 and out.startswith("usage: objstore flow carry [-n COUNT] ARG\n\nCarry it.\n")
    code, out, _ = run(capfd, "flow", "--help")
    assert code == 0 and "  carry  carry\n" in out
    code, out, err = run(capfd)
    assert code == 2 and not out and err.startswith("usage: objstore ")


def test_c_changes_the_folder_for_one_command(capfd, tmp_path: Path) -> None:
    before = os.getcwd()
    assert run(capfd, "-C", str(tmp_path), "plumb")[0] == 0
    assert os.getcwd() == before
    code, _, err = run(capfd, "-C", str(tmp_path / "absent"), "plumb")
    assert (code, err) == (3, f"objstore: {tmp_path / 'absent'}: No such file or directory\n")


def shell(script: str) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -m porcelain.main"
    return subprocess.run(
        ["bash", "-c", script.replace("objstore", program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_reader_that_leaves_early_is_no_error() -> None:
    done = shell("objstore --help | true; echo ${PIPESTATUS[0]}; objstore --version | head -c 3")
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] in {"0", "141"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device that is always full")
def test_a_full_disk_under_standard_output_is_one_line() -> None:
    done = shell("objstore --version > /dev/full")
    assert (done.returncode, done.stderr) == (5, "objstore: No space left on device\n")


def test_closed_standard_streams() -> None:
    assert shell("objstore --version <&- >&- 2>&-").returncode == 0
    assert shell("objstore nonesuch 2>&-").returncode == 2


#: Starts the program as its script does, and presses Ctrl-C when a module begins to load.
PRESSED = """
import importlib.abc, os, signal, sys

at = sys.argv.pop()

class Press(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == at:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started without
sys.meta_path.insert(0, Press())
from porcelain.start import main
code = main()
sys.stdout.write("loaded" if at in sys.modules else "half")
sys.exit(code)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held back here")
@pytest.mark.parametrize("module", ["porcelain.main", "plumbing.interface.options", "plumbing.show_ref"])
def test_interrupt_while_loading_is_told_when_all_is_loaded(module: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", PRESSED, "--store", str(tmp_path / "none"), "show-ref", module]
    done = subprocess.run(words, check=False, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "loaded", "objstore: interrupted\n")
