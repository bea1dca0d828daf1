"""``lineage usage`` in terminals that are narrower than its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.porcelain.importing.driving import copy_home, succeed
from tests.porcelain.importing.test_output import on_terminal


@pytest.mark.parametrize("by", ["day", "model"])
def test_what_does_not_fit_is_left_out_as_a_whole_and_named(tmp_path: Path, by: str) -> None:
    home, store = copy_home(tmp_path / "home"), tmp_path / "store"
    succeed(store, "import", home=home)
    words = ("lineage", "usage", "--by", by)
    wide = [line.rstrip() for line in on_terminal(store, home, *words, columns=200).splitlines()]
    narrow = [line.rstrip() for line in on_terminal(store, home, *words, columns=80).splitlines()]
    assert "too narrow" not in "".join(wide) and wide[0].split()[-3:] == ["total", "seen", "stated"]
    left_out = narrow[-1].removeprefix("the terminal is too narrow for: ").split(", ")
    assert left_out[:2] == ["seen", "stated"] or left_out == ["reasoning", "seen", "stated"]
    assert max(len(line) for line in narrow if "counted once" not in line) <= 80
    fields = narrow[0].replace("cache ", "cache-").split()
    whole = wide[0].replace("cache ", "cache-").split()
    for short, full in zip(narrow[1:], wide[1:], strict=False):
        if short.startswith("counted once"):
            break
        numbers = dict(zip(reversed(whole), reversed(full.split()), strict=False))
        assert short.split()[1:] == [numbers[name] for name in fields[1:]]
