"""Completion scripts, run by the shells they are for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from plumbing.interface.options import JSON, Option
from porcelain import commands, completion
from porcelain.commands import PLUMBING, PORCELAIN, Command
from porcelain.main import main

REFS = ("tag/one", "tag/two words", "tag/$(touch HARM)", "flow/x")


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small table of commands in place of the program's."""

    def module(name: str, usage: str, *options: Option) -> None:
        made = ModuleType(name)
        vars(made).update(USAGE=usage, OPTIONS=options)
        monkeypatch.setitem(sys.modules, name, made)

    module("made_cat", "cat [--json] ID...", JSON, Option(("-z", "--null"), help="it's NUL"))
    module(
        "made_show",
        "flow show [-f FORM] PATH",
        Option(("-f", "--form"), help="form", kind="choice", choices=("up", "on")),
    )
    module(
        "made_out",
        "export --at ID FILE",
        Option("--at", help="as of", kind="id"),
        Option("--into", help="where", kind="file"),
    )
    module("made_keep", "config [content keep on|off]")
    rows = (
        Command(PLUMBING, "cat", "made_cat:main", "print objects"),
        Command(PORCELAIN, "flow show", "made_show:run", "show: one"),
        Command(PORCELAIN, "export", "made_out:run", "don't lose it"),
        Command(PLUMBING, "config", "made_keep:main", "settings"),
        Command(PORCELAIN, "completion", "porcelain.completion:run", "this"),
    )
    for module_that_reads_it in (commands, completion):
        monkeypatch.setattr(module_that_reads_it, "COMMANDS", rows)
        monkeypatch.setattr(module_that_reads_it, "GROUPS", {"flow": "structure"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files to complete, a stand-in program that lists refs, and the three scripts."""
    (tmp_path / "some file").touch()
    (tmp_path / "some dir").mkdir()
    program = tmp_path / "objstore"
    listing = "\n".join(REFS)
    program.write_text(f"#!/bin/sh\necho \"$@\" >> asked\ncat <<'END'\n{listing}\nEND\n")
    program.chmod(0o755)
    for shell, script in completion.SCRIPTS.items():
        (tmp_path / shell).write_text(script(completion.places()))
    return tmp_path


CASES = {
    "objstore ": {"cat", "flow", "export", "config", "completion"},
    "objstore c": {"cat", "config", "completion"},
    "objstore --lo": {"--lock-timeout"},
    "objstore flow ": {"show"},
    "objstore --store x --quiet flow s": {"show"},
    "objstore cat --": {"--json", "--null", "--help"},
    "objstore cat --json fl": {"flow/x"},
    "objstore export --at fl": {"flow/x"},
    "objstore flow show -f ": {"up", "on"},
    "objstore completion ": {"bash", "zsh", "fish"},
    "objstore config o": {"on", "off"},
}


def ask(folder: Path, *command: str) -> list[str]:
    """The lines that ``command`` prints when it finds the stand-in program."""
    env = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env=env)
    assert done.stderr == ""
    return done.stdout.splitlines()


def offered_by_bash(folder: Path, line: str) -> list[str]:
    press = (
        'source ./bash; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _objstore; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return ask(folder, "bash", "--norc", "-c", press, "bash", *line.split(" "))


def offered_by_fish(folder: Path, line: str) -> list[str]:
    rows = ask(folder, "fish", "--no-config", "-c", "source ./fish; complete -C $argv[1]", line)
    return [row.partition("\t")[0] for row in rows]


@pytest.mark.parametrize("line", CASES)
def test_bash(folder: Path, line: str) -> None:
    assert set(offered_by_bash(folder, line)) == CASES[line]


def test_bash_offers_files_and_quotes_refs(folder: Path) -> None:
    assert set(offered_by_bash(folder, "objstore flow show so")) == {"some file", "some dir"}
    assert set(offered_by_bash(folder, "objstore export --into so")) == {"some file", "some dir"}
    assert offered_by_bash(folder, "objstore -C so") == ["some dir"]
    assert offered_by_bash(folder, "objstore cat tag/") == [
        "tag/one",
        r"tag/two\ words",
        r"tag/\$\(touch\ HARM\)",
    ]
    assert not (folder / "HARM").exists()


def test_bash_asks_the_store_that_was_named(folder: Path) -> None:
    offered_by_bash(folder, "objstore --store ~/s -q cat t")
    assert (folder / "asked").read_text() == f"--store {folder}/s -q for-each-ref --format=name\n"


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize("line", CASES)
def test_fish(folder: Path, line: str) -> None:
    offered = set(offered_by_fish(folder, line))
    if line.endswith("--"):
        assert offered >= CASES[line]
    else:
        assert offered == CASES[line]


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_asks_the_store_that_was_named(folder: Path) -> None:
    assert "tag/two words" in offered_by_fish(folder, "objstore --store /s cat tag/")
    assert set((folder / "asked").read_text().splitlines()) == {"--store /s for-each-ref --format=name"}
    assert "some dir/" in offered_by_fish(folder, "objstore flow show so")


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_accepts_its_script(folder: Path) -> None:
    subprocess.run(["zsh", "-f", "-n", "./zsh"], cwd=folder, check=True)


def test_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    assert "complete -F _objstore objstore" in capfd.readouterr().out
    assert main(["completion", "csh"]) == 2
    assert capfd.readouterr().err == (
        "objstore: completion: csh: none of bash, zsh, fish\nhint: objstore completion --help\n"
    )
