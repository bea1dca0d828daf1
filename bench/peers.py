"""Peers from the package index, each installed once into an environment of its own below the folder of work."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

AGENTSVIEW = "agentsview==0.46.1"
LLM = "llm==0.36"


def environment(work: Path, requirement: str) -> Path | None:
    """The ``bin`` folder of an environment with ``requirement`` (``name==version``); None where it cannot be had."""
    folder = work / "peers" / requirement.replace("==", "-")
    done = folder / "installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", requirement]
        if subprocess.run(pip, capture_output=True, check=False).returncode:
            return None
        done.touch()
    return folder / "bin"
