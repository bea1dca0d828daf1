"""The examples of the documentation are true."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
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
    from porcelain.lineage.ddl import page

    written = (ROOT / "docs" / "lineage-tables.md").read_text(encoding="utf-8")
    assert written == "# The tables of the lineage view\n\n" + page()


PAGES = [
    str(page.relative_to(ROOT))
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if "```console\n" in page.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_real_output(page: str, tmp_path: Path) -> None:
    """A page's blocks of commands, one after the other as one person would type them, print what stands there; ``...``
    stands for anything."""
    pytest.importorskip("pypdf", reason="the extra pdf is not installed")
    programs = {"objstore": "-m porcelain.main", "python3": ""}
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, module in programs.items():
        line = f'exec "{sys.executable}" {module} "$@"'
        (folder / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    environment = {
        "HOME": str(tmp_path),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
    }
    parts = (ROOT / page).read_text(encoding="utf-8").split("```console\n")[1:]
    steps = "\n".join(part.split("```", 1)[0].rstrip("\n") + "\n" for part in parts)
    for step in steps.removeprefix("$ ").split("\n$ "):
        command, _, expected = step.partition("\n")
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(expected, done.stdout, flags), (
            f"$ {command}\n{done.stdout}"
        )
