"""Usage: each model call once, whatever repeats it, with the numbers of the public reports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from objstore.store import Store
from porcelain.flow.chain.naming import best_heads
from porcelain.lineage.index import opening
from porcelain.lineage.usage import measuring
from porcelain.lineage.usage.activity import activity_at
from porcelain.lineage.usage.measuring import PREFIX, measured, stale
from tests.porcelain.importing.driving import HOME, copy_home, objstore, opened, succeed
from tests.porcelain.lineage import usage_homes as homes

A, B, C = (f"0197000{n}-0000-7000-8000-00000000000{n}" for n in (1, 2, 3))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def usage(store: Path, home: Path, *words: str) -> Any:
    succeed(store, "import", home=home)
    return succeed(store, "lineage", "usage", "--json", *words, home=home).json


def counted(document: Any) -> tuple[int, ...]:
    """Calls, input, cache read, cache write, output, reasoning, total."""
    total = document["total"]
    names = ("input", "cacheRead", "cacheWrite", "output", "reasoning", "total")
    return (total["calls"], *(total["counted"][name] for name in names))


# -- forks that copy history -----------------------------------------------------------------------------------------


def test_36_pi_forks_of_439_calls_count_them_once(home: Path, store: Path) -> None:
    """ccusage#1634: 161.9 million cached tokens, of which 36 files made 5.83 billion."""
    cached = [161_900_000 // 439 + (number < 161_900_000 % 439) for number in range(439)]
    shared = [homes.pi_call(number, cache_read=cached[number]) for number in range(439)]
    tails = [31 + (number * 153) // 35 for number in range(36)]
    first = homes.pi_path(home, "s00")
    for number, tail in enumerate(tails):
        own = [homes.pi_call(1000 * (number + 1) + index) for index in range(tail)]
        parent = None if number == 0 else str(first)
        session = f"s{number:02}"
        homes.write(homes.pi_path(home, session), [homes.pi_header(session, parent=parent), *shared, *own])
    document = usage(store, home, "--by", "session")
    calls = 439 + sum(tails)
    assert counted(document) == (calls, 10 * calls, 161_900_000, 0, 5 * calls, 0, 161_900_000 + 15 * calls)
    assert document["total"]["seen"] == 36 * 439 + sum(tails)
    assert document["total"]["stated"]["cacheRead"] == 36 * 161_900_000 == 5_828_400_000
    assert document["files"] == 36
    assert document["total"]["inferred"] == 0
    of_session = {row["name"]: row for row in document["rows"]}
    assert of_session["s00"]["calls"] == 439 + tails[0]
    assert [of_session[f"s{number:02}"]["calls"] for number in range(1, 36)] == tails[1:]


def test_an_opencode_fork_with_new_ids_is_inferred(home: Path, store: Path) -> None:
    """ccusage#1780: the copies of a fork have ids of their own, the times and figures of their origin."""
    tokens = {"input": 100, "output": 20, "reasoning": 0, "cache": {"read": 7, "write": 1}}
    times = [1_780_000_000_000 + 1000 * n for n in range(20)]
    origin = [(f"msg_a{n:02}", time, tokens) for n, time in enumerate(times)]
    fork = [(f"msg_b{n:02}", time, tokens) for n, time in enumerate(times)]
    fork.append(("msg_b99", times[-1] + 5000, tokens))
    homes.opencode_session(home, "ses_2origin", "1.1.65", origin)
    homes.opencode_session(home, "ses_1fork", "1.1.65", fork, title="compost (fork #1)")
    document = usage(store, home)
    assert counted(document) == (21, 2100, 147, 21, 420, 0, 2688)
    assert (document["total"]["inferred"], document["total"]["seen"]) == (20, 41)
    said = succeed(store, "lineage", "usage", home=home).err
    assert "20 copies known by time, model and figures only (inferred)" in said


def test_two_calls_of_one_file_that_look_alike_are_two(home: Path, store: Path) -> None:
    lines = [homes.pi_call(number, minute=5) for number in range(2)]
    homes.write(homes.pi_path(home, "twins"), [homes.pi_header("twins"), *lines])
    assert counted(usage(store, home))[0] == 2


def test_entry_ids_of_two_files_may_be_the_same(home: Path, store: Path) -> None:
    """An id of eight digits is unique in its file only."""
    for number, session in enumerate(("one", "two")):
        call = homes.pi_call(number, entry="cafe0001", minute=30 * number)
        homes.write(homes.pi_path(home, session), [homes.pi_header(session), call])
    assert counted(usage(store, home))[0] == 2


def test_a_call_belongs_to_the_conversation_that_is_no_fork(home: Path, store: Path) -> None:
    """Whichever name sorts first, and though a copy states the same times."""
    shared = [homes.pi_call(number) for number in range(3)]
    origin = homes.write(homes.pi_path(home, "z-origin"), [homes.pi_header("z-origin"), *shared])
    header = homes.pi_header("a-fork", cwd="/home/ines/shed", parent=str(origin))
    homes.write(homes.pi_path(home, "a-fork", "--home-ines-shed--"), [header, *shared, homes.pi_call(9)])
    rows = {row["name"]: row["calls"] for row in usage(store, home, "--by", "project")["rows"]}
    assert rows == {"/home/ines/garden": 3, "/home/ines/shed": 1}


# -- Codex -----------------------------------------------------------------------------------------------------------


def test_codex_states_the_same_totals_again(home: Path, store: Path) -> None:
    """ccusage#1288: two turns, 3,300 tokens, the first one's counters stated three times."""
    first, second = (1000, 0, 100, 0), (2000, 0, 200, 0)
    total = (3000, 0, 300, 0)
    lines = [
        *homes.codex_start(A), *homes.codex_turn(1), homes.codex_answer(2), homes.codex_count(3, first, first),
        homes.codex_count(4, first, first), homes.codex_count(9, first, first),
        *homes.codex_turn(10, "turn-2"), homes.codex_answer(11), homes.codex_count(12, total, second),
    ]  # fmt: skip
    homes.write(homes.codex_path(home, A), lines)
    assert counted(usage(store, home)) == (2, 3000, 0, 0, 300, 0, 3300)


def test_codex_repeats_a_snapshot(home: Path, store: Path) -> None:
    """ccusage#884: 130 tokens, not 260."""
    stated = (100, 20, 30, 5)
    lines = [
        *homes.codex_start(A), *homes.codex_turn(1), homes.codex_answer(2),
        homes.codex_count(3, stated, stated), homes.codex_count(4, stated, stated),
    ]  # fmt: skip
    homes.write(homes.codex_path(home, A), lines)
    assert counted(usage(store, home)) == (1, 80, 20, 0, 30, 5, 130)


def test_codex_repeats_a_snapshot_between_calls(home: Path, store: Path) -> None:
    """ccusage PR 878: 1,440 tokens, not 2,540."""
    first, second, total = (1000, 400, 100, 10), (300, 0, 40, 0), (1300, 400, 140, 10)
    lines = [
        *homes.codex_start(A), *homes.codex_turn(1), homes.codex_answer(2), homes.codex_count(3, first, first),
        homes.codex_count(4, first, first), homes.codex_answer(5), homes.codex_count(6, total, second),
    ]  # fmt: skip
    homes.write(homes.codex_path(home, A), lines)
    assert counted(usage(store, home))[-1] == 1440


@pytest.mark.parametrize(
    ("stated", "total"),
    [
        ((100, 0, 50, 20), 150),  # ccusage PR 1499: not 170
        ((20_015, 18_000, 1_800, 1_100), 21_815),  # the same: as many as Codex itself states
        (
            (123_302, 118_000, 1_944, 900),
            125_246,
        ),  # entireio/cli PR 1021: cached tokens are part of the input
    ],
)
def test_codex_cached_is_part_of_input_and_reasoning_of_output(
    home: Path, store: Path, stated: tuple[int, ...], total: int
) -> None:
    lines = [
        *homes.codex_start(A), *homes.codex_turn(1), homes.codex_answer(2), homes.codex_count(3, stated, stated),
    ]  # fmt: skip
    homes.write(homes.codex_path(home, A), lines)
    document = usage(store, home)
    fresh = stated[0] - stated[1]
    assert counted(document) == (1, fresh, stated[1], 0, stated[2], stated[3], total)
    assert document["rows"][0]["name"] == "2026-05-01"


def test_a_codex_fork_repeats_its_parents_calls_under_new_times(home: Path, store: Path) -> None:
    """ccusage#897: 100 tokens, and a fork that adds 50, are 150."""
    first, more, total = (80, 0, 20, 0), (40, 0, 10, 0), (120, 0, 30, 0)
    history = [*homes.codex_turn(1), homes.codex_answer(2), homes.codex_count(3, first, first)]
    homes.write(homes.codex_path(home, A), [*homes.codex_start(A), *history])
    repeated = [
        {**line, "timestamp": "2026-05-02T08:00:00.000Z"} for line in [*homes.codex_start(A), *history]
    ]
    own = [*homes.codex_turn(100, "turn-9"), homes.codex_answer(101), homes.codex_count(102, total, more)]
    homes.write(homes.codex_path(home, B), [*homes.codex_start(B, forked_from=A), *repeated, *own])
    document = usage(store, home, "--by", "session")
    assert counted(document)[-1] == 150
    assert {row["name"]: row["counted"]["total"] for row in document["rows"]} == {A: 100, B: 50}


def test_a_codex_fork_without_its_origin_is_not_dated_by_the_forking(home: Path, store: Path) -> None:
    """What it repeats has the forking's time in every line; the ids of the turns say when they began."""
    origin, fork = "019d4a00-0000-7000-8000-00000000000a", "019e4a00-0000-7000-8000-00000000000b"
    before, after = "019d4b00-0000-7000-8000-000000000001", "019e4b00-0000-7000-8000-000000000002"
    first, more, total = (80, 0, 20, 0), (40, 0, 10, 0), (120, 0, 30, 0)
    history = [*homes.codex_turn(1, before), homes.codex_answer(2), homes.codex_count(3, first, first)]
    repeated = [
        {**line, "timestamp": "2026-05-21T08:00:00.000Z"} for line in [*homes.codex_start(origin), *history]
    ]
    own = [*homes.codex_turn(100, after), homes.codex_answer(101), homes.codex_count(102, total, more)]
    own = [{**line, "timestamp": "2026-05-21T09:00:00.000Z"} for line in own]
    homes.write(homes.codex_path(home, fork), [*homes.codex_start(fork, forked_from=origin), *repeated, *own])
    document = usage(store, home, "--by", "day")
    days = {row["name"]: row["counted"]["total"] for row in document["rows"]}
    assert days == {"2026-04-01": 100, "2026-05-21": 50}
    query = "SELECT min(substr(timestamp, 1, 10)) AS first FROM events WHERE event_type LIKE 'event_msg%'"
    assert succeed(store, "lineage", "sql", "--events", "--json", query).json == {"first": "2026-04-01"}
    active = succeed(store, "lineage", "active", "--json", home=home).json
    assert all(one["active"] == 0 or one["active"] < 3_600_000 for one in active["sessions"])


# -- Claude Code -----------------------------------------------------------------------------------------------------


def test_the_last_line_of_an_answer_counts(home: Path, store: Path) -> None:
    """Early lines hold a placeholder."""
    lines = [homes.claude_prompt(A, 0)]
    lines += [homes.claude_part(A, n + 1, "msg_rose", output) for n, output in enumerate((1, 1, 412))]
    homes.write(homes.claude_path(home, A), lines)
    assert counted(usage(store, home)) == (1, 3, 100, 7, 412, 0, 522)


def test_a_copy_that_was_cut_short_states_too_little(home: Path, store: Path) -> None:
    """Whichever of the two is older."""
    parts = [homes.claude_part(A, n + 1, "msg_rose", output) for n, output in enumerate((1, 412))]
    homes.write(homes.claude_path(home, A), [homes.claude_prompt(A, 0), parts[0]])
    copied = [{**line, "sessionId": B} for line in (homes.claude_prompt(A, 0), *parts)]
    homes.write(homes.claude_path(home, B), copied)
    document = usage(store, home)
    assert counted(document)[0] == 1
    assert document["total"]["counted"]["output"] == 412
    assert document["files"] == 2


def test_a_subagents_calls_are_counted_beside_its_parents(store: Path) -> None:
    """The invented home folder: every response once, as its own page counts them."""
    home = HOME
    ids: dict[str, int] = {}
    for path in sorted((home / ".claude").rglob("*.jsonl")):
        of_file: dict[str, int] = {}
        for line in path.read_bytes().replace(b'}{"parentUuid"', b'}\n{"parentUuid"').split(b"\n"):
            start = line.rfind(b'{"parentUuid"')
            try:
                record = json.loads(line[max(start, 0) :].replace(b"\0", b""))
            except ValueError:
                continue
            message = record.get("message") if isinstance(record, dict) else None
            stated = message.get("usage") if isinstance(message, dict) else None
            if record.get("type") == "assistant" and stated:
                of_file[message["id"]] = sum(v for v in stated.values() if isinstance(v, int))
        for name, total in of_file.items():
            ids[name] = max(total, ids.get(name, 0))
    document = usage(store, home, "--provider", "claude")
    assert document["total"]["calls"] == sum(1 for total in ids.values() if total)
    assert document["total"]["counted"]["total"] == sum(ids.values())


# -- the others ------------------------------------------------------------------------------------------------------


def test_opencode_reasoning_is_in_the_output_of_old_versions_only(home: Path, store: Path) -> None:
    tokens = {"input": 100, "output": 42, "reasoning": 7, "cache": {"read": 8, "write": 0}}
    homes.opencode_session(home, "ses_old", "1.1.65", [("msg_old", 1_780_000_000_000, tokens)])
    apart = {**tokens, "output": 35}
    homes.opencode_session(home, "ses_new", "1.18.33", [("msg_new", 1_780_000_100_000, apart)])
    document = usage(store, home, "--by", "session")
    assert {row["name"]: row["counted"]["total"] for row in document["rows"]} == {
        "ses_old": 150,
        "ses_new": 150,
    }
    assert document["total"]["counted"]["reasoning"] == 14


def test_the_latest_settings_of_a_factory_session_count(home: Path, store: Path) -> None:
    settings = homes.factory_session(home, "f1", (500, 20, 5))
    homes.factory_session(home, "f2", (500, 20, 5))  # the same sums in another session are no copy
    assert counted(usage(store, home)) == (2, 1000, 10, 0, 40, 0, 1050)
    stated = json.loads(settings.read_text())
    stated["tokenUsage"]["inputTokens"] = 900
    settings.write_text(json.dumps(stated))
    document = usage(store, home)
    assert counted(document) == (2, 1400, 10, 0, 40, 0, 1450)
    assert [row["name"] for row in document["rows"]] == ["2026-06-01"]


def test_a_factory_fork_that_may_have_its_origins_totals_is_named(home: Path, store: Path) -> None:
    homes.factory_session(home, "f1", (500, 20, 5))
    homes.factory_session(home, "f2", (700, 30, 5), parent="f1")
    homes.factory_session(home, "f3", (90, 10, 5), parent="f1")
    document = usage(store, home)
    assert document["remarks"] == ["factory f2: a fork whose totals may have those of f1 in them"]


# -- the samples, counted independently ------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["pi", "oh-my-pi"])
def test_samples_of_pi(store: Path, home: Path, shared: Path, provider: str) -> None:
    seen: dict[Any, tuple[int, ...]] = {}
    folder = shared / "samples" / provider / ("public-pi-mono" if provider == "pi" else "local-14.9.9")
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            record = json.loads(line or b"{}")
            message = record.get("message") or {}
            stated = message.get("usage") or record.get("usage")
            if not stated:
                continue
            numbers = tuple(stated.get(name) or 0 for name in ("input", "cacheRead", "cacheWrite", "output"))
            key = message.get("responseId") or (record.get("timestamp"), message.get("model"), numbers)
            if sum(numbers):
                seen[key] = numbers
    succeed(store, "import", folder, home=home)
    document = succeed(store, "lineage", "usage", "--json", home=home).json
    names = ("input", "cacheRead", "cacheWrite", "output")
    assert len(seen) > 10
    assert document["total"]["calls"] == len(seen)
    assert tuple(document["total"]["counted"][name] for name in names) == tuple(
        map(sum, zip(*seen.values(), strict=True))
    )


def test_samples_of_codex_add_up_to_what_codex_states(store: Path, home: Path, shared: Path) -> None:
    """A rollout of one thread: the running totals of its last line."""
    path = next((shared / "samples" / "codex" / "public-hyperweave").glob("*.jsonl"))
    last = {}
    for line in path.read_bytes().split(b"\n"):
        payload = json.loads(line or b"{}").get("payload") or {}
        if payload.get("type") == "token_count" and payload.get("info"):
            last = payload["info"]["total_token_usage"]
    succeed(store, "import", path, home=home)
    document = succeed(store, "lineage", "usage", "--json", home=home).json
    assert document["total"]["counted"]["total"] == last["total_tokens"] > 0
    assert document["total"]["counted"]["cacheRead"] == last["cached_input_tokens"]


# -- views and the index ---------------------------------------------------------------------------------------------


def three(home: Path) -> None:
    for number, session in enumerate(("one", "two", "three")):
        lines = [homes.pi_call(number * 10 + n, minute=1440 * number + n) for n in range(number + 1)]
        homes.write(homes.pi_path(home, session), [homes.pi_header(session), *lines])


def test_by_day_and_between_days(home: Path, store: Path) -> None:
    three(home)
    rows = usage(store, home)["rows"]
    assert [(row["name"], row["calls"]) for row in rows] == [
        ("2026-03-01", 1), ("2026-03-02", 2), ("2026-03-03", 3),
    ]  # fmt: skip
    later = usage(store, home, "--since", "2026-03-02", "--until", "2026-03-02")
    assert later["total"]["calls"] == 2
    assert [row["name"] for row in usage(store, home, "--by", "model")["rows"]] == ["fern-1"]
    inventory = json.loads(succeed(store, "lineage", "inventory", "--json", home=home).out)
    assert {usage(store, home, "--by", by)["fold"] for by in ("day", "session")} == {inventory["fold"]}


def test_a_day_must_be_one(home: Path, store: Path) -> None:
    three(home)
    succeed(store, "import", home=home)
    result = objstore(store, "lineage", "usage", "--since", "yesterday", home=home)
    assert result.code == 2 and "yesterday: is no day" in result.err


def test_for_a_person(home: Path, store: Path) -> None:
    three(home)
    succeed(store, "import", home=home)
    result = succeed(store, "lineage", "usage", "--by", "session", "-n", "1", home=home)
    lines = result.out.splitlines()
    assert lines[0].split()[:3] == ["agent", "id", "name"]
    assert lines[1].split()[:2] == ["pi", "three"] and lines[-1].startswith("total")
    assert "counted once: 6 calls, 90 tokens; files state 6 calls, 90 tokens, in 3 files" in result.err
    assert "2 rows not shown" in result.err


def test_the_index_is_kept_and_follows_the_conversations(home: Path, store: Path) -> None:
    three(home)
    before = usage(store, home)
    with opened(store) as (_, view):
        assert stale(view) == 0
        entries = dict(view.derived_items(PREFIX))
        assert len(entries) == 3
    path = homes.pi_path(home, "two")
    path.write_text(path.read_text() + json.dumps(homes.pi_call(99, minute=99)) + "\n")
    succeed(store, "import", home=home)
    with opened(store) as (_, view):
        assert stale(view) == 1
    after = usage(store, home)
    assert after["total"]["calls"] == before["total"]["calls"] + 1
    with opened(store) as (_, view):
        changed = {key for key, value in view.derived_items(PREFIX) if entries[key] != value}
    assert changed == {PREFIX + b"pi/two"}


def test_nothing_is_lost_when_the_agent_deletes_its_files(home: Path, store: Path) -> None:
    """claude-code#85466, recall#14: all files deleted, imported again, every index made anew."""
    three(home)
    before = usage(store, home)
    for path in home.rglob("*.jsonl"):
        path.unlink()
    succeed(store, "import", home=home)
    succeed(store, "doctor", "--rebuild", home=home)
    after = usage(store, home)
    assert after["rows"] == before["rows"] and after["total"] == before["total"]
    inventory = json.loads(succeed(store, "lineage", "inventory", "--gone", "--json", home=home).out)
    assert len(inventory["files"]) == 3


def test_a_damaged_or_missing_index_changes_no_figure(home: Path, store: Path) -> None:
    three(home)
    before = usage(store, home)
    with Store.open(store) as found:
        batch = found.batch()
        batch.set_derived(PREFIX + b"pi/one", b"\xff\x00")
        batch.set_derived(PREFIX + b"pi/two", None)
        batch.set_derived(PREFIX + b"pi/gone", b"what was never imported")
        found.commit(batch)
        opening.remove(found)
    assert usage(store, home) == before
    with opened(store) as (_, view):
        assert {key for key, _ in view.derived_items(PREFIX)} == {
            PREFIX + f"pi/{name}".encode() for name in ("one", "two", "three")
        }


def test_nothing_is_read_of_a_conversation_that_has_not_changed(home: Path, store: Path) -> None:
    three(home)
    usage(store, home)
    with Store.open(store) as found:
        worked_out: list[int] = []
        assert len(list(measured(found, lambda: worked_out.append(1)))) == 3
    assert worked_out == []


def test_a_rewritten_file_counts_its_calls_once(home: Path, store: Path) -> None:
    """Pi gives entries new ids when it brings an old file up to date."""
    path = homes.pi_path(home, "old")
    homes.write(path, [homes.pi_header("old"), *(homes.pi_call(n) for n in range(3))])
    usage(store, home)
    homes.write(path, [homes.pi_header("old"), *(homes.pi_call(n, entry=f"beef000{n}") for n in range(4))])
    document = usage(store, home)
    assert document["total"]["calls"] == 4
    assert (document["total"]["seen"], document["total"]["inferred"]) == (7, 3)


def test_two_stores_that_are_one_count_the_same(home: Path, store: Path, tmp_path: Path) -> None:
    three(home)
    other = tmp_path / "other"
    shutil.copytree(home, tmp_path / "copy")
    document = usage(store, home)
    assert usage(other, tmp_path / "copy") == document | {"fold": usage(other, tmp_path / "copy")["fold"]}


def test_many_conversations_are_measured_by_processes_as_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, store = copy_home(tmp_path / "home"), tmp_path / "store"
    succeed(store, "import", home=home)
    monkeypatch.setattr(measuring, "_MANY", 1)
    monkeypatch.setattr(measuring, "_BUNDLE", 7)
    one_by_one: list[str] = []
    with Store.open(store) as writable:
        with writable.snapshot() as view:
            heads = best_heads(view, "landed")
            expected = {name: activity_at(view, name[0], head) for name, head in heads.items()}
        monkeypatch.setattr(measuring, "activity_at", lambda *_: one_by_one.append("worked out"))
        found = {(one.provider, one.name): one.activity for one in measured(writable)}
    assert found == expected
    assert len(found) > 7
    assert not one_by_one
