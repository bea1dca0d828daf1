"""The script of the documentation: two machines, a hub between them, and a session that goes on in two places."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.porcelain.remotes.bucket_server import Bucket, bucket  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "docs" / "two-machines.sh"


@pytest.mark.skipif(shutil.which("git") is None or shutil.which("bash") is None, reason="needs git and bash")
def test_two_machines_and_a_hub_of_each_kind(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    found: Bucket = request.getfixturevalue("bucket")
    program = tmp_path / "bin" / "objstore"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m porcelain.main "$@"\n')
    program.chmod(0o700)
    hub = tmp_path / "hub.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(hub)], check=True)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(SCRIPT), str(tmp_path / "work"), f"git+file://{hub}", found.url],
        env={**os.environ, **found.env, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    said = done.stdout
    assert done.returncode == 0, said[-3000:] + done.stderr[-1000:]
    for other in ("b1", "b2"):
        assert said.count(f"a and {other} export the same 4 files, byte for byte") == 2
    assert said.count(": no problem") == 6
    assert said.count("went on in several places; to unite them: objstore session graft") == 4
    assert said.count("united 2 heads") == 2
    heads = [line for line in said.splitlines() if " session-event\t" in line]
    assert len(heads) == 4 == len(set(heads))
    exported = tmp_path / "work" / "a" / "export"
    assert (exported / "lineage.sqlite").stat().st_size > 100_000
    assert (exported / "lineage.json").stat().st_size > 10_000


def test_the_page_shows_what_the_script_does() -> None:
    """Every command that the page shows as the script's is one of the script."""
    page = (ROOT / "docs" / "sync.md").read_text()
    script = SCRIPT.read_text()
    shown = [
        line.split("$ objstore ", 1)[1] for line in page.splitlines() if line.startswith(("a$ ", "b1$ "))
    ]
    assert len(shown) > 10
    for line in shown:
        words = line.split()[:2] if line.startswith(("session", "remote")) else line.split()[:1]
        assert " ".join(words) in script, line
