"""Months of what agents and their owner do, in seconds: nothing is lost, counted twice, or different when made anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.porcelain.importing.living import live


@pytest.mark.parametrize("seed", range(3))
def test_two_machines(tmp_path: Path, seed: int) -> None:
    live(tmp_path, seed, 60)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 100 + int(os.environ.get("OBJSTORE_LIVES", "100"))))
def test_many_lives(tmp_path: Path, seed: int) -> None:
    live(tmp_path, seed, 200)
