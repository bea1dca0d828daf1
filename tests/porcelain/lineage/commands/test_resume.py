"""``lineage resume`` as a command."""

from __future__ import annotations

import json
from pathlib import Path

from tests.porcelain.importing.driving import TIDEPOOL, copy_home, succeed

_NOT_HERE = "    not on this machine: copy the file from "


def test_a_file_that_is_not_on_this_machine_is_said_to_be_elsewhere(tmp_path: Path) -> None:
    home = copy_home(tmp_path / "home")
    succeed(tmp_path / "store", "import", "--provider", "claude", home=home)
    there = succeed(tmp_path / "store", "lineage", "resume", TIDEPOOL.stem)
    assert _NOT_HERE not in there.out
    (home / TIDEPOOL).rename(tmp_path / "away.jsonl")
    lines = succeed(tmp_path / "store", "lineage", "resume", TIDEPOOL.stem).out.splitlines()
    at = lines.index(f"    {home / TIDEPOOL}")
    assert lines[at + 1].startswith(_NOT_HERE) and "claude --resume" in lines[at + 2]
    assert sum(line.startswith(_NOT_HERE) for line in lines) == 1
    document = json.loads(succeed(tmp_path / "store", "lineage", "resume", "--json", TIDEPOOL.stem).out)
    assert {Path(one["path"]).name for one in document["active"] if not one["here"]} == {TIDEPOOL.name}
