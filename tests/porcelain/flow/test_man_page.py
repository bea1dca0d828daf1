"""The man page of flow says what its commands say."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

from porcelain.commands import COMMANDS

PAGE = Path(__file__).resolve().parents[3] / "man" / "objstore-flow.1"
MODULES = {
    command.name.split()[1]: importlib.import_module(command.target.partition(":")[0])
    for command in COMMANDS
    if command.name.startswith("flow ")
}


def plain(roff: str) -> str:
    text = re.sub(r"\\f[BIR]", "", roff).replace("\\-", "-").replace("\\(aq", "'")
    return text


SECTIONS = dict(re.findall(r"^\.SH (.*)\n((?:(?!\.SH ).*\n)*)", PAGE.read_text("utf-8"), re.MULTILINE))


def test_synopsis_is_the_usage_of_every_command() -> None:
    lines = plain(SECTIONS["SYNOPSIS"]).replace(".br\n", "").splitlines()
    assert lines == [
        f"objstore {line.strip()}"
        for module in MODULES.values()
        for line in module.USAGE.strip().splitlines()
    ]


@pytest.mark.parametrize(("name", "module"), MODULES.items(), ids=list(MODULES))
def test_options_of_a_command_are_described(name: str, module: ModuleType) -> None:
    (part,) = re.findall(
        rf"^\.SS {name}\n((?:(?!\.S[SH] ).*\n)*)", SECTIONS["COMMANDS"] + ".SS\n", re.MULTILINE
    )
    shown = [
        tuple(re.findall(r"(?:^|, )(-[\w-]+)", label))
        for label in re.findall(r"^\.TP\n(.*)", plain(part), re.M)
    ]
    assert shown == [option.flags for option in module.OPTIONS]
    assert part.splitlines()[0] and not part.startswith(".TP")


def test_examples_name_commands_that_exist() -> None:
    examples = re.findall(r"^\$ objstore flow (\S+)", plain(SECTIONS["EXAMPLES"]), re.MULTILINE)
    assert examples and set(examples) <= set(MODULES)


def test_every_command_with_json_has_its_output_described() -> None:
    described = set(re.findall(r"^\.TP\n(\w+)$", plain(SECTIONS["OUTPUT FORMAT"]), re.MULTILINE))
    assert set(MODULES) - described <= {"show", "view", "land", "assemble"}
