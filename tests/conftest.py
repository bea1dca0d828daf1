"""Fixtures for the whole suite."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# No test may fail because the machine is busy.
settings.register_profile("objstore", deadline=None)
settings.load_profile("objstore")

# A shell that runs the suite in the background has it ignore Ctrl-C, and what ignores it hands that on to the commands
# under test, some of which are interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of published vectors and sample conversations, which is no part of the project.

    ``OBJSTORE_SHARED`` names it; otherwise it is looked for beside the project. Tests that need it skip
    without it.
    """
    named = os.environ.get("OBJSTORE_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("no folder of shared vectors and samples (set OBJSTORE_SHARED to it)")
    return folder
