"""Man pages and commands say the same: options, synopsis, examples."""

from __future__ import annotations

import hashlib
import importlib
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from porcelain.commands import COMMANDS, PLUMBING

MAN = Path(__file__).resolve().parents[2] / "man"
NAMES = [command.name for command in COMMANDS if command.layer == PLUMBING]
SECTIONS = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "OUTPUT FORMAT",
    "EXAMPLES",
    "EXIT STATUS",
    "SEE ALSO",
]
ESCAPES = {"\\-": "-", "\\(aq": "'", "\\(ha": "^", "\\(ti": "~", "\\(ga": "`", "\\&": "", "\\e": "\\"}


def plain(roff: str) -> str:
    """Text without fonts and escapes."""
    text = re.sub(r"\\f[BIR]", "", roff)
    return re.sub(r"\\(?:\([a-z]{2}|[-&e])", lambda found: ESCAPES[found.group()], text)


def sections(page: Path) -> dict[str, str]:
    parts = re.split(r"^\.SH (.*)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {title: plain(body) for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def command(name: str) -> ModuleType:
    return importlib.import_module("plumbing." + name.replace("-", "_"))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_the_sections_in_order_and_the_summary(name: str) -> None:
    found = sections(MAN / f"objstore-{name}.1")
    assert list(found) == SECTIONS
    summary = command(name).SUMMARY
    assert found["NAME"].strip() == f"objstore-{name} - {summary[0].lower()}{summary[1:].rstrip('.')}"


@pytest.mark.parametrize("name", NAMES)
def test_synopsis_is_the_usage_of_the_command(name: str) -> None:
    lines = sections(MAN / f"objstore-{name}.1")["SYNOPSIS"].replace(".br\n", "").splitlines()
    assert lines == [f"objstore {line.strip()}" for line in command(name).USAGE.strip().splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_options_are_those_of_the_command(name: str) -> None:
    text = sections(MAN / f"objstore-{name}.1")["OPTIONS"]
    shown = [
        tuple(re.findall(r"(?:^|, )(-[\w-]+)", label)) for label in re.findall(r"^\.TP\n(.*)", text, re.M)
    ]
    assert shown == [option.flags for option in command(name).OPTIONS] + [("-h", "--help")]
    described = re.findall(r"^\.TP\n.*\n(\S.*)", text, re.M)
    assert len(described) == len(shown) and not any(line.startswith(".") for line in described)


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_those_of_the_command(name: str) -> None:
    text = sections(MAN / f"objstore-{name}.1")["EXAMPLES"]
    assert tuple(re.findall(r"^\$ (.*)", text, re.M)) == command(name).EXAMPLES


@pytest.mark.parametrize("page", sorted(MAN.glob("objstore*")), ids=lambda page: page.name)
def test_a_page_renders_cleanly_and_refers_to_pages_that_exist(page: Path) -> None:
    own = re.findall(r"([\w-]+)\((\d)\)", sections(page)["SEE ALSO"])
    assert own and all((MAN / f"{name}.{number}").is_file() for name, number in own)
    if shutil.which("groff") is None:
        pytest.skip("no groff to render the page with")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", str(page)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "SEE ALSO" in re.sub(r"\x1b\[[\d;]*m|.\x08", "", done.stdout)


def test_the_ids_in_the_pages_are_true(objstore) -> None:
    document = '{"text":"hello","type":"text"}'
    expected = hashlib.sha256(document.encode()).hexdigest()
    assert expected in sections(MAN / "objstore-kinds.5")["EXAMPLES"]
    assert expected in sections(MAN / "objstore-hash-object.1")["EXAMPLES"]
    assert objstore("hash-object", "--stdin", stdin=document).out == f"{expected}\n"


def test_every_command_is_in_the_overview() -> None:
    listed = re.findall(r"^objstore-([\w-]+)\(1\)$", sections(MAN / "objstore.1")["COMMANDS"], re.M)
    assert listed == NAMES
