"""The index says what deriving everything from scratch says, whatever happened since it was made."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from objstore.store import Store
from porcelain.lineage.derived.view import lineage_of, lineage_view
from porcelain.lineage.facts.projection import Projection
from porcelain.lineage.index import opening, records
from porcelain.lineage.index.opening import NAME, bring_up, open_lineage
from porcelain.lineage.index.update import Work
from tests.porcelain.importing.driving import copy_home, finish, patched, run, start, succeed
from tests.porcelain.lineage import usage_homes as homes
from tests.porcelain.lineage.index.life import EVENTS, JUDGEMENTS, Life


def as_lists(projection: Projection) -> dict[str, Any]:
    return {
        "fold": projection.fold,
        "dangling": projection.dangling,
        **{name: list(rows) for name, rows in projection.tables.items()},
    }


def check(path: Path, *, anew: bool | None = None) -> None:
    """The index is brought up to date by what is new, and says what all facts say; ``anew`` says whether it may be made
    anew for that."""
    with Store.open(path, read_only=True) as store:
        if anew is False:
            work = bring_up(store)
            assert work is not None and not work.anew
        with store.snapshot() as view:
            expected = as_lists(lineage_view(view))
        with open_lineage(store) as indexed:
            assert as_lists(indexed.projection()) == expected


def brought_up(path: Path) -> Work:
    with Store.open(path, read_only=True) as store:
        work = bring_up(store)
    assert work is not None
    return work


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(EVENTS), min_size=6, max_size=30), st.integers(0, 2**16))
def test_an_index_says_what_all_facts_say(events: list[str], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder), random.Random(seed))
        for number, event in enumerate(["begin", "other_agent", *events, "sidecars", "catch_up"]):
            life.happen(event)
            if event in JUDGEMENTS or number % 3 == 0:
                check(life.store, anew=number == 0)
                life.catch_up()
                check(life.store, anew=number == 0)
        check(life.store)


def test_the_fixtures_of_all_agents(tmp_path: Path) -> None:
    home = copy_home(tmp_path / "home")
    succeed(tmp_path / "store", "import", home=home)
    check(tmp_path / "store")
    succeed(tmp_path / "store", "lineage", "import-sidecars", home=home)
    check(tmp_path / "store")


def test_a_word_about_a_file_that_is_only_named(tmp_path: Path) -> None:
    """Which no fact of its own brought into the index: the origin of a fork, and a conversation in another's file."""
    life = Life(tmp_path, random.Random(1))
    for event in ("begin", "orphan", "other_agent", "catch_up"):
        life.happen(event)
    with life._transcript(1).open("a") as file:
        file.write(json.dumps(life._claude(7, 0)) + "\n")
    life.catch_up()
    check(life.store)
    query = "SELECT id FROM session_observations WHERE json_extract(metadata_json, '$.{}') IS NOT NULL"
    for kind in ("named", "inside"):
        named = succeed(life.store, "lineage", "sql", "--json", query.format(kind)).json["id"]
        succeed(life.store, "lineage", "classify", life.home.native("1"), named, "continuation")
        check(life.store, anew=False)
    assert len(succeed(life.store, "lineage", "threads", "--json").out.splitlines()) == 1


@pytest.fixture
def life(tmp_path: Path) -> Life:
    made = Life(tmp_path, random.Random(1))
    for _ in range(40):
        made.begin()
    made.linked_fork()
    made.catch_up()
    assert brought_up(made.store).anew
    return made


def test_one_appended_line_derives_one_conversation(life: Life) -> None:
    life.go_on()
    life.catch_up()
    work = brought_up(life.store)
    assert not work.anew
    assert work.groups == 1
    assert work.facts <= 6
    assert work.new_files == 1
    assert work.rows <= 12
    check(life.store)


@pytest.mark.parametrize("undo", [(), ("--undo",)])
@pytest.mark.parametrize(
    "words",
    [
        ("mark", "1", "preserve"),
        ("classify", "1", "2", "context-jump"),
        ("label", "1", "beans"),
        ("repo", "--path", "/home/ines/garden", "garden"),
    ],
    ids=lambda words: words[0],
)
def test_a_judgement_derives_what_it_is_about(
    life: Life, words: tuple[str, ...], undo: tuple[str, ...]
) -> None:
    named = [life.home.native(word) if word.isdigit() else word for word in words]
    succeed(life.store, "lineage", *named)
    if undo:
        assert not brought_up(life.store).anew
        succeed(life.store, "lineage", *named, *undo)
    work = brought_up(life.store)
    assert not work.anew
    assert work.new_facts <= 2
    assert work.groups <= 2
    assert work.facts <= 12
    assert work.rows <= 24
    check(life.store)


def test_a_sidecar_derives_what_it_is_about(life: Life) -> None:
    source = life.files[0]
    target = life.home.move(source, "garden", "orchard") if "garden" in source.parent.name else None
    target = target or life.home.move(source, "orchard", "garden")
    life.home.manifest(life.home.moved(source, target, "garden", "orchard"))
    life.sidecars()
    work = brought_up(life.store)
    assert not work.anew
    assert work.groups == 1
    assert work.facts <= 8
    check(life.store)


def test_what_another_store_has_landed_too_is_gone_through_once(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All conversations come once more, in chains of another name: no look through all records for each of them."""
    asked: list[str] = []
    connect = opening._connect

    def listening(path: str) -> sqlite3.Connection:
        connection = connect(path)
        connection.set_trace_callback(asked.append)
        return connection

    monkeypatch.setattr(opening, "_connect", listening)
    with Store.open(life.store) as store:
        batch = store.batch()
        with store.snapshot() as view:
            for ref, head in list(view.refs("landed/")):
                batch.move_ref(ref.replace(store.store_id, "0" * 16), head.hex(), None, "sync")
        store.commit(batch)
    assert not brought_up(life.store).anew
    assert sum("FROM record WHERE token" in statement for statement in asked) == 1
    check(life.store)


def test_nothing_new_is_no_work(life: Life) -> None:
    assert brought_up(life.store) == Work()


@pytest.mark.parametrize("harm", ["cut", "zeros", "text", "other version", "gone"])
def test_a_damaged_index_is_made_anew(life: Life, harm: str) -> None:
    path = life.store / NAME
    with sqlite3.connect(path) as connection:
        if harm == "other version":
            connection.execute("UPDATE state SET value = '0/-' WHERE name = 'edition'")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = path.read_bytes()
    if harm == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif harm == "zeros":
        path.write_bytes(data[:4096] + bytes(len(data) - 4096))
    elif harm == "text":
        path.write_bytes(b"no database at all\n" * 1000)
    elif harm == "gone":
        path.unlink()
    check(life.store)
    assert brought_up(life.store) == Work()


def test_a_history_that_the_store_does_not_have(life: Life, tmp_path: Path) -> None:
    """The file comes from another store."""
    other = Life(tmp_path / "other", random.Random(2))
    other.begin()
    other.catch_up()
    check(other.store)
    for name in (NAME, NAME + "-wal", NAME + "-shm"):
        (life.store / name).unlink(missing_ok=True)
        if (other.store / name).exists():
            (life.store / name).write_bytes((other.store / name).read_bytes())
    check(life.store)


def test_a_store_that_cannot_be_written_to(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(life.store, read_only=True) as store:
        opening.remove(store)

    def refuse(_path: str) -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(opening, "_connect", refuse)
    check(life.store)
    assert not (life.store / NAME).exists()


def test_what_bears_on_a_conversation_is_what_everything_says(life: Life) -> None:
    life.linked_fork()
    life.catch_up()
    names = life._sessions()
    with Store.open(life.store, read_only=True) as store:
        with store.snapshot() as view:
            _, whole = lineage_of(view)
        with open_lineage(store) as indexed:
            for native in names:
                part = indexed.around([native])
                mine = {node.id for node in part.nodes}
                assert mine
                assert part.nodes.by_id == {name: whole.nodes.by_id[name] for name in mine}
                assert part.decisions == [one for one in whole.decisions if one.source in mine]
                assert part.threads == [one for one in whole.threads if one.root.id in mine]


def test_forks_that_do_not_name_their_origin(tmp_path: Path) -> None:
    """OpenCode's: any conversation of the folder may be it, and more of them come one by one."""
    home, store = tmp_path / "home", tmp_path / "store"
    tokens = {"input": 100, "output": 20, "reasoning": 0, "cache": {"read": 7, "write": 1}}
    for number in range(4):
        messages = [(f"msg_{number}{n:02}", 1_780_000_000_000 + 1000 * n, tokens) for n in range(6 + number)]
        title = "compost (fork #1)" if number % 2 else "compost"
        homes.opencode_session(home, f"ses_2origin{number}", "1.1.65", messages, title=title)
        succeed(store, "import", home=home)
        check(store)
    with Store.open(store, read_only=True) as opened, open_lineage(opened) as indexed:
        rules = {row["metadata_json"]["rule"] for row in indexed.projection().tables["edges"]}
    assert "retold-fork" in rules


def test_several_processes_make_one_index(life: Life) -> None:
    """All at once, where there is none: each sees all of it, and one of them leaves it behind."""
    for name in (NAME, NAME + "-wal", NAME + "-shm"):
        (life.store / name).unlink(missing_ok=True)
    processes = [
        start(life.store, "lineage", "threads", "--all", "--json", home=life.home.home) for _ in range(4)
    ]
    results = [finish(process) for process in processes]
    assert {(result.code, result.err) for result in results} == {(0, "")}
    assert len({result.out for result in results}) == 1
    assert len(results[0].out.splitlines()) == 40
    check(life.store)
    assert brought_up(life.store) == Work()


def test_processes_read_the_pages_of_many_files(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what one of them was at when it died is read by this one."""
    life.fork()
    life.catch_up()
    monkeypatch.setattr(records, "_MANY", 1)
    monkeypatch.setattr(records, "_BUNDLE", 8)
    monkeypatch.setattr(records.os, "cpu_count", lambda: 2)
    results = iter(range(99))
    real, given = records.run_tasks, 0

    def run_tasks(*arguments: Any) -> Any:
        nonlocal given
        for number, data in real(*arguments):
            given += data is not None
            yield number, None if next(results) == 1 else data

    monkeypatch.setattr(records, "run_tasks", run_tasks)
    with Store.open(life.store, read_only=True) as store:
        opening.remove(store)
    check(life.store)
    assert given == 6  # of 42 files


def test_a_process_that_was_killed_while_it_made_the_index(life: Life) -> None:
    (life.store / NAME).unlink()
    script = patched(
        life.store.parent / "killed.py",
        "import os, signal, porcelain.lineage.index.written as written",
        "real = written.write_rows",
        "def write_rows(*arguments):",
        "    real(*arguments)",
        "    os.kill(os.getpid(), signal.SIGKILL)",
        "written.write_rows = write_rows",
    )
    result = run(life.store, "lineage", "threads", home=life.home.home, script=script)
    assert result.code == -9
    check(life.store)
    assert brought_up(life.store) == Work()
