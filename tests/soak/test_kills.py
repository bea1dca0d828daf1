"""Fifty rounds of imports that are killed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.porcelain.importing.driving import copy_home
from tests.porcelain.importing.killing import Undisturbed, round_of_kills, undisturbed

pytestmark = pytest.mark.soak
ROUNDS = 50


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("reference")
    return undisturbed(folder, copy_home(folder / "home"))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_at_random(tmp_path: Path, reference: Undisturbed, seed: int) -> None:
    round_of_kills(tmp_path, reference, random.Random(seed), 1 + seed % 2)
