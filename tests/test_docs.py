"""The examples of the documentation are true."""

from __future__ import annotations

import doctest
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import porcelain  # noqa: F401  declares the kinds

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("page", ["docs/api.md"])
def test_examples(page: str, tmp_path: Path) -> None:
    result = doctest.testfile(
        str(ROOT / page), module_relative=False, globs={"folder": tmp_path / "store"}, encoding="utf-8"
    )
    assert result.attempted and not result.failed


def test_the_page_of_lineage_tables_is_that_of_the_schema() -> None:
    from porcelain.lineage.tables.ddl import page

    written = (ROOT / "docs" / "lineage-tables.md").read_text(encoding="utf-8")
    assert written == "# The tables of the lineage view\n\n" + page()


PAGES = [
    str(page.relative_to(ROOT))
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if "```console\n" in page.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_real_output(page: str, tmp_path: Path) -> None:
    """A page's blocks of commands, one after the other as one person would type them whose agents' folders are those of
    ``fixtures/home``, print what stands there; ``...`` stands for anything."""
    pytest.importorskip("pypdf", reason="the extra pdf is not installed")
    type_in = typist(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for command, expected in steps_of((ROOT / page).read_text(encoding="utf-8")):
        shown = type_in(command)
        assert doctest.OutputChecker().check_output(expected, shown, flags), f"$ {command}\n{shown}"


def steps_of(page: str) -> list[tuple[str, str]]:
    """Commands in the ``console`` blocks of a page, and what each prints."""
    parts = [part.split("```", 1)[0].rstrip("\n") + "\n" for part in page.split("```console\n")[1:]]
    steps = "\n".join(parts).removeprefix("$ ").split("\n$ ")
    return [(command, expected) for command, _, expected in (step.partition("\n") for step in steps)]


def typist(folder: Path) -> Callable[[str], str]:
    """What runs a command line in ``folder`` and returns what it prints."""
    programs = folder / "bin"
    programs.mkdir()
    for name, module in {"objstore": "-m porcelain.main", "python3": ""}.items():
        line = f'exec "{sys.executable}" {module} "$@"'
        (programs / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    (folder / "fixtures").symlink_to(ROOT / "fixtures")
    # Files that are new, as a copy made by hand would be: how soon an agent deletes them depends on it.
    shutil.copytree(ROOT / "fixtures" / "home", folder / "demo", copy_function=shutil.copyfile)
    environment = {
        "HOME": str(folder / "demo"),
        "LC_ALL": "C.UTF-8",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }

    def type_in(command: str) -> str:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        return done.stdout

    return type_in
