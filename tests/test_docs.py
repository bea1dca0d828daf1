"""The examples of the documentation are true."""

from __future__ import annotations

import doctest
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
