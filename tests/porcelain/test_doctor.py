"""``doctor``: it compares, warns of what an agent will delete, and gives a green light only then."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from objstore.store import Store
from porcelain.doctor_disk import count_lines
from porcelain.lineage.adapters.retention import CLAUDE_DEFAULT_DAYS, expiring, retention_of
from porcelain.lineage.usage.measuring import PREFIX
from tests.porcelain.importing.driving import (
    CONVERSATIONS,
    TIDEPOOL,
    copy_home,
    objstore,
    opened,
    state_of,
    succeed,
)
from tests.porcelain.lineage import usage_homes as homes


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = copy_home(tmp_path / "home")
    now = time.time()
    for path in home.rglob("*"):
        if path.is_file():
            os.utime(path, (now, now))
    return home


@pytest.fixture
def store(tmp_path: Path, home: Path) -> Path:
    succeed(tmp_path / "store", "import", home=home)
    return tmp_path / "store"


def examined(store: Path, home: Path, *words: str, code: int = 0) -> Any:
    result = objstore(store, "doctor", "--json", *words, home=home)
    assert result.code == code, result.out + result.err
    return result.json


def agent(document: Any, name: str) -> Any:
    (found,) = [one for one in document["agents"] if one["provider"] == name]
    return found


def test_all_well_is_said_after_a_comparison(store: Path, home: Path) -> None:
    document = examined(store, home)
    claude = agent(document, "claude")
    lines = sum(
        sum(bool(line.strip()) for line in path.read_bytes().split(b"\n")[:-1])
        for path in (home / ".claude" / "projects").rglob("*.jsonl")
        if path.stat().st_size and "dc0419c7" not in path.name  # a summary of another file: no conversation
    )
    assert claude["disk_lines"] == claude["store_lines"] == lines
    assert (claude["disk_files"], claude["store_files"], claude["left_out"]) == (16, 14, 2)
    assert (document["ok"], document["compared"], document["problems"]) == (True, True, [])
    assert document["verdict"] == "all well: 43 files compared line by line, the store has all of them"
    assert document["verified"] == document["objects"]
    out = succeed(store, "doctor", home=home).out
    assert out.splitlines()[-1] == document["verdict"]
    assert "Claude Code: 5 damaged places set aside" in out


def test_no_green_light_without_a_comparison(store: Path, home: Path, tmp_path: Path) -> None:
    fast = examined(store, home, "--fast")
    assert not fast["compared"] and fast["verdict"] == "no problem found; the sources were not compared"
    shutil.rmtree(home)
    away = examined(store, tmp_path / "nobody")
    assert agent(away, "claude")["gone"] == 19
    assert away["verdict"] == "no problem found; there is nothing on disk to compare with"


def test_it_writes_nothing_but_the_index_of_activity(store: Path, home: Path) -> None:
    examined(store, home)
    before = state_of(store)
    (home / TIDEPOOL).unlink()
    examined(store, home)
    assert state_of(store) == before


def test_what_is_new_or_has_grown_waits(store: Path, home: Path) -> None:
    path = home / TIDEPOOL
    path.write_bytes(path.read_bytes() + b"{}\n")
    copy = path.with_name(path.name.replace("5c5fd944", "5c5fd945"))
    shutil.copy(path, copy)
    document = examined(store, home)
    assert agent(document, "claude")["waiting"] == 2
    assert document["verdict"] == "no problem found; 2 files not imported as they are now: objstore import"
    succeed(store, "import", home=home)
    assert examined(store, home)["verdict"].startswith("all well: 44 files")


def test_a_line_that_the_store_does_not_have_is_a_problem(store: Path, home: Path) -> None:
    """The file has another line though its size and time are what they were when it was imported."""
    path = home / TIDEPOOL
    stat, data = path.stat(), path.read_bytes()
    first = data.index(b" ", 10)
    path.write_bytes(data[:first] + b"\n" + data[first + 1 :])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    document = examined(store, home, code=1)
    (problem,) = document["problems"]
    assert problem["rule"] == "lines" and problem["what"].startswith(str(path))
    assert problem["hint"] == "objstore import --check"
    out = objstore(store, "doctor", home=home)
    assert out.code == 1 and out.out.splitlines()[-1] == "1 problem found"
    assert out.out.splitlines()[-2].startswith(f"PROBLEM {path}")


def test_records_that_are_not_in_the_pages_are_a_problem(store: Path, home: Path) -> None:
    """What the cursor says is not believed: the pages are counted."""
    with Store.open(store) as found, found.snapshot() as view:
        batch = found.batch()
        (key, value) = next(
            item for item in view.local_items(b"cursor/claude/") if TIDEPOOL.name.encode() in item[1]
        )
        cursor = json.loads(value)
        cursor["facts"]["records"] += 1
        batch.set_local(key, json.dumps(cursor).encode())
        found.commit(batch)
    (problem,) = examined(store, home, code=1)["problems"]
    assert problem["rule"] == "records" and TIDEPOOL.name in problem["what"]


def test_a_file_that_nobody_reads_is_a_problem(store: Path, home: Path) -> None:
    """A cursor is lost: the file is neither imported, nor waiting, nor left out. (An import would take it.)"""
    with Store.open(store) as found, found.snapshot() as view:
        batch = found.batch()
        for key, value in view.local_items(b"cursor/claude/"):
            if TIDEPOOL.name.encode() in value:
                batch.set_local(key, None)
        found.commit(batch)
    document = examined(store, home)
    assert agent(document, "claude")["waiting"] == 1


def test_damage_in_the_store_is_a_problem(store: Path, home: Path) -> None:
    examined(store, home)
    with Store.open(store) as found, found.database.env.begin(write=True) as transaction:  # type: ignore[union-attr]
        cursor = transaction.cursor(found.database.objects)  # type: ignore[union-attr]
        assert cursor.last()
        value = cursor.value()
        cursor.put(cursor.key(), value[:-3] + bytes(b ^ 255 for b in value[-3:]))
    document = examined(store, home, code=1)
    assert any(problem["rule"].startswith("verify ") for problem in document["problems"])


def test_a_wrong_index_of_facts_is_found_and_made_anew(store: Path, home: Path) -> None:
    with Store.open(store) as found, found.snapshot() as view:
        batch = found.batch()
        (first, _), (second, value) = list(view.derived_items(b"fact/"))[:2]
        batch.set_derived(first, None)
        batch.set_derived(second, b"\xff" + value[1:])
        batch.set_derived(b"fact/label_that_never_was", value)
        found.commit(batch)
    document = examined(store, home, code=1)
    assert document["indexes"]["facts"] == 3
    assert [problem["hint"] for problem in document["problems"]] == ["objstore doctor --rebuild"]
    assert examined(store, home, "--rebuild")["indexes"]["facts"] == 0
    with opened(store) as (_, view):
        assert len(list(view.derived_items(PREFIX))) == CONVERSATIONS


def test_sources_that_are_gone_and_those_that_were_rewritten(store: Path, home: Path) -> None:
    """Gone is a note: what was imported is kept. Rewritten is a problem until a person clears it."""
    gone = home / TIDEPOOL
    gone.unlink()
    path = next((home / ".pi").rglob("*3da39d98*.jsonl"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"".join(reversed(lines[1:])))
    succeed(store, "import", home=home)
    document = examined(store, home, code=1)
    assert agent(document, "claude")["gone"] == 1
    assert "Claude Code: 1 file no longer on disk, kept here" in document["notes"]
    (problem,) = document["problems"]
    assert problem["rule"] == "conflict" and "mark --clear-conflict" in problem["hint"]


def test_conversations_that_only_the_agents_own_list_names(store: Path, home: Path) -> None:
    """claude-code#62476: fourteen sessions in the list of prompts, one left."""
    lines = [
        {"display": "x", "project": "/p", "sessionId": f"{n:08}-0000-4000-8000-000000000000"}
        for n in range(13)
    ]
    lines.append({"display": "x", "project": "/p", "sessionId": TIDEPOOL.stem})
    homes.write(home / ".claude" / "history.jsonl", lines)
    document = examined(store, home)
    assert agent(document, "claude")["lost"] == 13
    assert any("13 conversations that neither disk nor store has" in note for note in document["notes"])


def test_a_transcript_from_elsewhere_is_compared_too(store: Path, home: Path, tmp_path: Path) -> None:
    elsewhere = homes.write(
        tmp_path / "elsewhere" / "2026-03-01T10-00-00-000Z_stray.jsonl",
        [homes.pi_header("stray"), homes.pi_call(1)],
    )
    succeed(store, "import", elsewhere, home=home)
    assert agent(examined(store, home), "pi")["compared"] == 6
    elsewhere.write_bytes(elsewhere.read_bytes() + b"{}\n")
    assert agent(examined(store, home), "pi")["waiting"] == 1


def test_opencode_is_counted_in_its_database(tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "store"
    tokens = {"input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    homes.opencode_session(
        home, "ses_1", "1.1.65", [(f"msg_{n}", 1_780_000_000_000 + n, tokens) for n in range(3)]
    )
    succeed(store, "import", home=home)
    found = agent(examined(store, home), "opencode")
    assert (found["disk_lines"], found["store_lines"], found["compared"]) == (4, 4, 1)


def test_what_nothing_was_compared_of_is_not_said_to_be_the_same(tmp_path: Path) -> None:
    """A database that was imported and is no longer there."""
    other = copy_home(tmp_path / "other") / ".local" / "share" / "opencode"
    store, home = tmp_path / "store", tmp_path / "home"
    home.mkdir()
    succeed(store, "import", other, home=home)
    shutil.rmtree(other)
    lines = succeed(store, "doctor", home=home).out.splitlines()
    (row,) = [line for line in lines if line.startswith("OpenCode  ")]
    assert row.endswith("not compared")


@pytest.mark.parametrize("sample", ["local-1.18.33", "local-1.1.65-migrated-by-1.2.27"])
def test_samples_of_opencode(tmp_path: Path, shared: Path, sample: str) -> None:
    home, store = tmp_path / "home", tmp_path / "store"
    target = home / ".local" / "share" / "opencode"
    shutil.copytree(shared / "samples" / "opencode" / sample / "opencode", target)
    succeed(store, "import", home=home)
    document = examined(store, home)
    with sqlite3.connect(target / "opencode.db") as database:
        (messages,) = database.execute("SELECT COUNT(*) FROM message").fetchone()
        (sessions,) = database.execute("SELECT COUNT(*) FROM session").fetchone()
    found = agent(document, "opencode")
    assert found["disk_lines"] == found["store_lines"] >= messages + sessions
    assert document["verdict"].startswith("all well")


def test_samples_of_every_agent(tmp_path: Path, shared: Path) -> None:
    """Transcripts in their agents' own places: the counts agree."""
    home, store = tmp_path / "home", tmp_path / "store"
    samples = shared / "samples"
    for source, target in (
        ("claude/local-2.1.97/projects", ".claude/projects"),
        ("codex/local-0.171.0", ".codex"),
        ("codex/local-0.79.0/sessions", ".codex/sessions"),
        ("factory/local-0.225.2/sessions", ".factory/sessions"),
        ("oh-my-pi/local-14.9.9/agent", ".omp/agent"),
        ("pi/local-1.6.0/sessions", ".pi/agent/sessions"),
    ):
        shutil.copytree(samples / source, home / target, dirs_exist_ok=True)
    succeed(store, "import", home=home)
    document = examined(store, home)
    assert {one["provider"] for one in document["agents"]} == {"claude", "codex", "factory", "oh-my-pi", "pi"}
    assert all(one["disk_lines"] == one["store_lines"] > 0 for one in document["agents"])


# -- retention -------------------------------------------------------------------------------------------------------


def test_what_claude_code_will_delete(store: Path, home: Path) -> None:
    """Files last written 25 days ago go within a week, those of 40 days ago at the next start."""
    paths = sorted((home / ".claude" / "projects").glob("*/*.jsonl"))
    old = [path for path in paths if "tidepool" in path.parent.name]
    for path, days in zip(old, (25, 40, 3), strict=True):
        os.utime(path, (time.time() - days * 86_400,) * 2)
    succeed(store, "import", home=home)
    document = examined(store, home)
    found = agent(document, "claude")
    assert found["retention"]["days"] == CLAUDE_DEFAULT_DAYS and found["retention"]["place"] == ""
    assert (found["expiring"]["conversations"], found["expiring"]["files"]) == (2, 2)
    assert agent(examined(store, home, "--days", "31"), "claude")["expiring"]["files"] == 14
    assert agent(examined(store, home, "--days", "0"), "claude")["expiring"]["files"] == 1
    assert agent(document, "pi")["retention"]["days"] is None
    lines = succeed(store, "doctor", home=home).out
    assert "deletes files 30 days after their last change (cleanupPeriodDays, its default)" in lines
    assert "within 7 days: 2 conversations in 2 files" in lines and "all are kept here" in lines


def test_what_will_be_deleted_before_it_is_imported_is_a_problem(store: Path, home: Path) -> None:
    path = home / TIDEPOOL
    copy = path.with_name(path.name.replace("5c5fd944", "5c5fd945"))
    shutil.copy(path, copy)
    os.utime(copy, (time.time() - 29 * 86_400,) * 2)
    (problem,) = examined(store, home, code=1)["problems"]
    assert (problem["rule"], problem["hint"]) == ("expiring", "objstore import")


@pytest.mark.parametrize(
    ("settings", "days", "problem"),
    [
        ({"cleanupPeriodDays": 365}, 365, ""),
        ({"cleanupPeriodDays": 0}, 0, ""),
        ({"model": "rose-4"}, 30, ""),
        ({"cleanupPeriodDays": "many"}, 30, ""),
        ("{ not JSON", 30, "cannot be read"),
        ([1], 30, "cannot be read"),
    ],
)
def test_the_setting_of_claude_code(tmp_path: Path, settings: Any, days: int, problem: str) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    text = settings if isinstance(settings, str) else json.dumps(settings)
    (folder / "settings.json").write_text(text)
    found = retention_of("claude", {"CLAUDE_CONFIG_DIR": str(folder)}, tmp_path)
    assert (found.days, found.problem) == (days, problem)


def test_deletion_days() -> None:
    kept = retention_of("claude", {}, None)
    files = [("a", "one", "2026-03-01T10:00:00.000Z"), ("b", "one", "2026-03-20T10:00:00.000Z")]
    found = expiring(files, kept, "2026-03-30T00:00:00.000Z", 2, {"a"})
    assert (found.conversations, found.files, found.first, found.unkept) == (1, 1, "2026-03-31", 1)
    assert expiring(files, retention_of("codex", {}, None), "2026-03-30T00:00:00.000Z", 99).files == 0


@pytest.mark.parametrize(
    ("data", "lines", "tail"),
    [
        (b"", 0, False),
        (b"a\nb\n", 2, False),
        (b"a\n\n \t\r\n\xef\xbb\xbf\nb", 1, True),
        (b"a\nb \n  ", 2, False),
        (b"x" * (1024 * 1024 - 1) + b"\n" + b"y" * 10 + b"\n", 2, False),
        (b"x" * (3 * 1024 * 1024) + b"\n\n", 1, False),
    ],
)
def test_lines_are_counted(tmp_path: Path, data: bytes, lines: int, tail: bool) -> None:
    path = tmp_path / "lines"
    path.write_bytes(data)
    with path.open("rb") as file:
        assert count_lines(file) == (lines, tail)


def test_it_goes_by_the_name_of_lineage_too(home: Path, store: Path) -> None:
    objstore(store, "doctor", "--json", home=home)  # brings the index of activity up to date
    plain = objstore(store, "doctor", "--json", home=home)
    named = objstore(store, "lineage", "doctor", "--json", home=home)
    assert (named.code, named.out) == (plain.code, plain.out)


def test_conversations_that_were_imported_from_elsewhere(store: Path, home: Path, tmp_path: Path) -> None:
    """A backup of OpenCode's folder is compared too, and what has changed in it since waits."""
    backup = tmp_path / "backup"
    shutil.copytree(home / ".local" / "share" / "opencode", backup)
    before = agent(examined(store, home), "opencode")
    succeed(store, "import", backup, home=home)
    after = agent(examined(store, home), "opencode")
    assert after["compared"] == 2 * before["compared"] > 0
    assert after["disk_lines"] == after["store_lines"] == 2 * before["disk_lines"]
    message = next((backup / "storage" / "message").rglob("*.json"))
    message.unlink()
    assert agent(examined(store, home), "opencode")["waiting"] == 1
    shutil.rmtree(backup)
    gone = agent(examined(store, home), "opencode")
    assert (gone["compared"], gone["waiting"]) == (before["compared"], 0)


def test_a_file_whose_name_is_no_text_is_not_called_left_out(store: Path, home: Path) -> None:
    before = agent(examined(store, home), "claude")
    folder = os.fsencode((home / TIDEPOOL).parent)
    shutil.copy(os.fsencode(home / TIDEPOOL), os.path.join(folder, b"caf\xe9.jsonl"))
    document = examined(store, home, code=1)
    assert agent(document, "claude")["left_out"] == before["left_out"]
    (problem,) = document["problems"]
    assert problem["rule"] == "unreadable" and "objstore import" in problem["hint"]
