"""The examples of the documentation are true."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

import porcelain  # noqa: F401  declares the kinds
from fixtures.six_agents import write_home

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("page", ["docs/api.md"])
def test_examples(page: str, tmp_path: Path) -> None:
    result = doctest.testfile(
        str(ROOT / page), module_relative=False, globs={"folder": tmp_path / "store"}, encoding="utf-8"
    )
    assert result.attempted and not result.failed


def test_the_page_of_lineage_tables_is_that_of_the_schema() -> None:
    from porcelain.lineage.ddl import page

    written = (ROOT / "docs" / "lineage-tables.md").read_text(encoding="utf-8")
    assert written == "# The tables of the lineage view\n\n" + page()


def test_the_tour_is_real_output(tmp_path: Path) -> None:
    """Each command of the README's tour, in its order in one store, prints what stands there."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    steps = console_steps(page.split("```console\n", 1)[1].split("```", 1)[0])
    assert len(steps) >= 8
    check_steps(steps, tmp_path)


def test_the_page_of_lineage_is_real_output(tmp_path: Path) -> None:
    """The same for the page of lineage, over a home folder with conversations of six agents."""
    page = (ROOT / "docs" / "lineage.md").read_text(encoding="utf-8")
    blocks = [block.split("```", 1)[0] for block in page.split("```console\n")[1:]]
    steps = [step for block in blocks for step in console_steps(block)]
    assert len(steps) >= 18
    write_home(tmp_path / "home")
    check_steps(steps, tmp_path / "home")


def console_steps(block: str) -> list[list[str]]:
    """Commands of a block and what each prints."""
    steps = [step.split("\n", 1) for step in block.removeprefix("$ ").split("\n$ ")]
    return [[step[0], step[1] if len(step) > 1 else ""] for step in steps]


def check_steps(steps: list[list[str]], home: Path) -> None:
    """Run commands one after the other in the project's folder, with a store below ``home``."""
    folder = str(Path(sys.executable).parent)
    environment = {
        "HOME": str(home),
        "OBJSTORE_DIR": str(home / "store"),
        "PATH": folder + os.pathsep + os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
    }
    checker = doctest.OutputChecker()
    for command, expected in steps:
        program = command.replace("objstore ", f'"{sys.executable}" -m porcelain.main ')
        done = subprocess.run(
            ["sh", "-c", program],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert checker.check_output(expected, done.stdout, flags), f"$ {command}\n{done.stdout}"
