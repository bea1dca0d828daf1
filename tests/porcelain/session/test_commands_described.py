"""The man page, the help and the completion of sessions say what the commands take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from porcelain.commands import COMMANDS, load
from porcelain.completion import bash, places
from porcelain.session.repl.words import COMMANDS as WORDS
from tests.porcelain.importing.driving import ROOT, objstore, succeed

PAGE = (ROOT / "man" / "objstore-session.1").read_text(encoding="utf-8")
OURS = [command for command in COMMANDS if command.name.split()[0] == "session"]


def plain(roff: str) -> str:
    return re.sub(r"\\f[BIR]", "", roff).replace("\\-", "-").replace("\\(aq", "'")


def sections() -> dict[str, str]:
    parts = re.split(r"^\.S[HS] (.*)\n", PAGE, flags=re.MULTILINE)
    return {plain(title): plain(body) for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def test_the_synopsis_is_the_usage_of_all_commands() -> None:
    usage = [line.strip() for command in OURS for line in load(command).USAGE.splitlines()]
    shown = sections()["SYNOPSIS"].replace(".br\n", "").splitlines()
    assert shown == [f"objstore {line}" for line in usage]


@pytest.mark.parametrize("command", OURS, ids=lambda command: command.name)
def test_every_option_is_described_where_it_belongs(command) -> None:
    module = load(command)
    name = command.name.partition(" ")[2] or "(none)"
    parts = [body for title, body in sections().items() if title == name or title.startswith(f"{name} ")]
    if hasattr(module, "WORDS"):
        assert {title for title in sections() if title.startswith(f"{name} ")} == {
            f"{name} {w}" for w in module.WORDS
        }
    shown = {
        flag
        for body in parts
        for label in re.findall(r"^\.TP\n(.*)", body, re.M)
        for flag in re.findall(r"--?[\w-]+", label)
    }
    assert shown == {flag for option in module.OPTIONS for flag in option.flags}


def test_the_words_of_the_terminal_are_described() -> None:
    text = sections()["AT THE TERMINAL"]
    assert all(word in text for word in WORDS)


def test_completion_offers_commands_options_and_first_words() -> None:
    found = {place.path: place for place in places()}
    group = found["session"]
    assert {"ask", "tree", "verify-proof"} <= group.words.keys()
    assert ["--sid"] in [list(option.flags) for option in group.options]
    assert list(found["session source"].words) == ["add", "list", "remove", "reindex"]
    assert found["session export"].arguments == "files" and found["session ask"].words == {}
    script = bash(places())
    assert script.count("        'session')") == 1 and "'session --sid'" in script


def test_help_of_the_group_shows_its_own_options_and_its_commands(tmp_path: Path) -> None:
    shown = succeed(tmp_path / "store", "session", "--help").out
    assert shown.startswith("usage: objstore session [--sid SID]") and "  --gc N" in shown
    assert "\ncommands:\n  new " in shown
    assert objstore(tmp_path / "store", "session", "ask", "--help").out.startswith(
        "usage: objstore session ask"
    )
    assert not (tmp_path / "store").exists()
