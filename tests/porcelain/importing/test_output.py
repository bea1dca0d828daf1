"""What ``import`` prints: for a person, for a script, for a narrow terminal, and for nobody."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plumbing.interface.output import display_width
from tests.porcelain.importing.driving import (
    CONVERSATIONS,
    HOME,
    RECORDS,
    TIDEPOOL,
    copy_home,
    environment,
    held,
    objstore,
    patched,
    run,
    succeed,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copy_home(tmp_path / "home")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def on_terminal(store: Path, home: Path, *words: str, script: Path | None = None, columns: int = 80) -> str:
    """What a terminal shows, standard output and standard error in one."""
    leader, follower = pty.openpty()
    program = ["-m", "porcelain.main"] if script is None else [str(script)]
    process = subprocess.Popen(
        [sys.executable, *program, "--store", str(store), *words],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment(home, COLUMNS=str(columns)),
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not data:
            break
        shown += data
    os.close(leader)
    assert process.wait(timeout=60) == 0, shown
    return shown.decode()


def test_for_a_person(store: Path, home: Path) -> None:
    result = succeed(store, "import", home=home)
    assert result.err == f"made a store in {store}\n"
    lines = result.out.splitlines()
    assert [" ".join(line.split()) for line in lines[:7]] == [
        "agent where conversations files new grown unchanged records",
        f"Claude Code {home}/.claude/projects 8 19 8 0 0 279",
        f"Codex {home}/.codex 5 7 5 0 0 224",
        f"Factory Droid {home}/.factory/sessions 3 8 3 0 0 52",
        f"oh-my-pi {home}/.omp/agent/sessions 4 7 4 0 0 79",
        f"OpenCode {home}/.local/share/opencode 5 7 5 0 0 46",
        f"Pi {home}/.pi/agent/sessions 5 5 5 0 0 82",
    ]
    assert lines[7].startswith("Claude Code: 5 damaged places ")
    assert lines[8].startswith("Claude Code: 1 file with an incomplete last line")
    assert lines[9] == "Claude Code: 2 files without any conversation, left out"
    assert " new objects from " in lines[-3] and " kB read, without message text; " in lines[-3]
    assert lines[-3].endswith(f"; {len(held(store).folds)} rounds of structure")
    assert lines[-1] == "next: objstore status, objstore lineage sessions, objstore flow show ID"


def test_for_a_script(store: Path, home: Path) -> None:
    result = succeed(store, "--quiet", "import", "--json", home=home)
    assert result.err == "" and result.out.count("\n") == 1
    document = result.json
    assert document.keys() == {
        "contentKept", "objects", "places", "problems", "records", "rounds", "sourceBytes",
    }  # fmt: skip
    claude, *_, pi = document["places"]
    assert claude == {
        "checked": 0, "conflicts": 0, "conversations": 8, "damaged": 5, "files": 19, "gone": 0, "grown": 0,
        "leftOut": 2, "new": 8, "pending": 1, "provider": "claude", "records": 279, "root": f"{home}/.claude/projects",
    }  # fmt: skip
    assert (pi["provider"], pi["new"], pi["records"]) == ("pi", 5, 82)
    assert (document["records"], document["problems"]) == (RECORDS, [])
    assert document["rounds"] == len(held(store).folds)


def test_what_is_new_and_what_has_grown(store: Path, home: Path) -> None:
    succeed(store, "import", home=home)
    path = home / TIDEPOOL
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines()[1] + b"\n")
    copied = path.read_bytes().replace(b"5c5fd944", b"5c5fd945")
    path.with_name(path.name.replace("5c5fd944", "5c5fd945")).write_bytes(copied)
    claude = succeed(store, "import", "--json", home=home).json["places"][0]
    assert [claude[name] for name in ("conversations", "new", "grown", "records")] == [9, 1, 1, 44]


@pytest.mark.parametrize(
    ("words", "agents"), [(("--provider", "pi"), {"pi"}), (("--provider", "claude"), {"claude"})]
)
def test_only_some_agents(store: Path, home: Path, words: tuple[str, ...], agents: set[str]) -> None:
    document = succeed(store, "import", "--json", *words, home=home).json
    assert {place["provider"] for place in document["places"]} == agents


def test_agents_own_variables_are_honoured(store: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (home / ".claude").rename(tmp_path / "elsewhere" / "claude")
    for name in (".codex", ".factory", ".local", ".pi"):
        (home / name).rename(tmp_path / "elsewhere" / name[1:])
    # Pi's variable is oh-my-pi's as well: what it keeps in its own folder then is not looked at.
    env = {
        "CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere" / "claude"),
        "CODEX_HOME": str(tmp_path / "elsewhere" / "codex"),
        "FACTORY_DIR": str(tmp_path / "elsewhere" / "factory"),
        "PI_CODING_AGENT_DIR": str(tmp_path / "elsewhere" / "pi" / "agent"),
        "XDG_DATA_HOME": str(tmp_path / "elsewhere" / "local" / "share"),
    }
    omp = succeed(store, "import", "--json", home=home).json
    assert [place["provider"] for place in omp["places"]] == ["oh-my-pi"]
    assert succeed(store, "import", "--json", home=home, **env).json["records"] == RECORDS - omp["records"]


def test_one_file(store: Path) -> None:
    document = succeed(store, "import", "--json", HOME / TIDEPOOL).json
    assert [(p["provider"], p["conversations"], p["records"]) for p in document["places"]] == [
        ("claude", 1, 42)
    ]


def test_a_folder_given_twice_or_inside_another_is_imported_once(store: Path, home: Path) -> None:
    claude = home / ".claude"
    document = succeed(store, "import", "--json", claude, claude, claude / "projects").json
    assert document["records"] == 279
    assert objstore(store, "flow", "verify").code == 0


def test_somebodys_home_folder(store: Path, home: Path, tmp_path: Path) -> None:
    """What is imported from a copy of a home folder is what would be at home."""
    at_home = succeed(store, "import", "--json", home=home).json
    copied = succeed(tmp_path / "other", "import", "--json", home).json
    assert [{**place, "root": ""} for place in copied["places"]] == [
        {**place, "root": ""} for place in at_home["places"]
    ]
    assert copied["objects"] == at_home["objects"]


def test_what_is_another_agents_is_not_left_out(store: Path, home: Path, tmp_path: Path) -> None:
    both = tmp_path / "both"
    shutil.copytree(home / ".pi" / "agent" / "sessions", both / "one")
    shutil.copytree(home / ".factory" / "sessions", both / "other")
    document = succeed(store, "import", "--json", both).json
    # A file of noise is nobody's.
    assert [(p["provider"], p["conversations"], p["leftOut"]) for p in document["places"]] == [
        ("factory", 3, 1), ("pi", 5, 1),
    ]  # fmt: skip


def test_nothing_there(store: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    result = succeed(store, "import", home=tmp_path / "home")
    assert result.out.splitlines()[0] == "no conversations found"
    assert succeed(store, "import", "--json", home=tmp_path / "home").json["places"] == []


def test_strict(store: Path, home: Path) -> None:
    assert objstore(store, "import", "--strict", home=home).code == 1
    assert objstore(store, "import", "--strict", home=home).code == 0  # nothing new is damaged
    clean = objstore(store.with_name("clean"), "import", "--strict", "--provider", "pi", home=home)
    assert clean.code == 0


def test_quiet_says_only_what_went_wrong(store: Path, home: Path) -> None:
    (home / TIDEPOOL).with_name("44444444-2222-4333-8444-555555555555.jsonl").symlink_to("nowhere")
    result = objstore(store, "--quiet", "import", home=home)
    assert result.code == 5
    assert len(result.err.splitlines()) == 1 and "44444444" in result.err


def test_a_narrow_terminal(store: Path, home: Path) -> None:
    succeed(store, "import", home=home)
    wide = succeed(store, "import", home=home).out
    assert str(home / ".claude" / "projects") in wide  # no terminal: nothing is cut
    for words in (("import",), ("status",), ("lineage", "sessions"), ("flow", "show", "5c5fd944")):
        shown = on_terminal(store, home, *words, columns=100).splitlines()
        assert max(map(display_width, shown)) <= 100, words
    shown = on_terminal(store, home, "lineage", "sessions", columns=40).splitlines()
    assert len(shown) == 1 + CONVERSATIONS and any("…" in line for line in shown)
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d  \S+ +[\w-]{13} ", line) for line in shown[1:])
    tree = on_terminal(store, home, "flow", "show", "5c5f", columns=40).partition("\r\n\r\n")[2]
    assert len(tree.splitlines()) > 30
    assert max(map(display_width, tree.splitlines())) <= 40


def test_progress_is_for_terminals(store: Path, home: Path, tmp_path: Path) -> None:
    script = patched(
        tmp_path / "slow.py",
        "import time, plumbing.interface.output, porcelain.importing.run as importing",
        "plumbing.interface.output._QUIET_START = plumbing.interface.output._REDRAW = 0",
        "take = importing._Import._take",
        "importing._Import._take = lambda self, piece: (time.sleep(0.01), take(self, piece))[1]",
    )
    shown = on_terminal(store, home, "import", script=script, columns=60)
    drawn = [line for line in shown.split("\r") if "%" in line]
    assert len(drawn) > 3 and all(len(line) < 60 for line in drawn)
    assert re.search(r"100% (\S+ kB) of \1,", drawn[-1])
    assert shown.replace("\r", "").rstrip().endswith("flow show ID")
    for words in (("--quiet", "import"), ("import", "--json")):
        other = store.with_name("-".join(words))
        quiet = on_terminal(other, home, *words, script=script)
        assert ("%" in quiet) is (words[0] != "--quiet")
    piped = subprocess.run(
        [sys.executable, str(script), "--store", str(store.with_name("piped")), "import"],
        env=environment(home),
        capture_output=True,
        check=True,
    )
    assert b"%" not in piped.stderr and b"\r" not in piped.stdout + piped.stderr


#: Prints how many bytes the import said beforehand that it would read, and how many it said at the end that it had.
TOLD = (
    "import porcelain.importing.command as command",
    "class Told(command.Progress):",
    "    def __exit__(self, *error):",
    "        print(self.done, self.total, file=sys.stderr)",
    "        super().__exit__(*error)",
    "command.Progress = Told",
)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_progress_ends_at_all_of_it(store: Path, home: Path, tmp_path: Path, processes: str) -> None:
    """Also of sources whose size can only be estimated."""
    script = patched(tmp_path / "told.py", *TOLD)
    for _ in range(2):
        result = run(store, "import", "--processes", processes, home=home, script=script)
        done, total = map(int, result.err.splitlines()[-1].split())
        assert done == total
        with (home / TIDEPOOL).open("ab") as file:
            file.write(b"\n")
    assert total == 1
