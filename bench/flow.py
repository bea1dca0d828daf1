"""Session Flow: what assembly, a fold and verification cost as a conversation grows, against budgets, and one more turn
against assembling the whole again (which is what other writers of ``sf/1`` do)."""

from __future__ import annotations

import shutil
import statistics
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.measure import command, interleaved, run, timed
from bench.table import Row, time_budget
from objstore.store import Store
from porcelain.flow.assembly.tasks import assembly_plan
from porcelain.flow.chain.fold_store import stored_fold
from porcelain.flow.checking.folder_check import check_folder
from porcelain.flow.checking.folder_scan import scan
from porcelain.importing.cursors import hash_key
from porcelain.importing.run import run_import
from porcelain.importing.tasks import Settings

#: Nodes of the conversations, and model calls of a turn, which has about 3.5 nodes a call.
SIZES = (1_000, 5_000, 20_000, 53_000)
QUICK_SIZES = (1_000, 5_000)
_CALLS = 6
_NODES_A_TURN = 3 * _CALLS + 3
_SESSION = str(uuid.UUID(int=20261130))
_DERIVED = (b"flow/", b"flow-fold/")
#: Seconds; a fold of 53,000 nodes takes ``asz`` 302 ms by its own account.
_TURN, _COLD, _SAVED = 0.150, 0.300, 0.030
_VERIFY = 100e6


def measure(folder: Path, sizes: Sequence[int], repetitions: int) -> tuple[list[Row], list[str]]:
    """Rows for conversations of about ``sizes`` nodes, and notes."""
    rows: list[Row] = []
    for size in sizes:
        shutil.rmtree(folder, ignore_errors=True)
        rows += _conversation(folder, size, repetitions)
    shutil.rmtree(folder, ignore_errors=True)
    return rows, ["no other writer of sf/1 is at hand: flow is measured against its budgets"]


def _conversation(folder: Path, size: int, repetitions: int) -> list[Row]:
    home, path = folder / "home" / ".claude", folder / "store"
    turns = size // _NODES_A_TURN
    transcript = home / "projects" / "-bench" / f"{_SESSION}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(b"".join(_lines(0, turns)))
    _objstore(path, "flow", "land", home)
    done = run([*command(), "--store", str(path), "flow", "assemble"], watch_memory=True)
    with Store.open(path) as store:
        nodes = _fold(store)
    name = f"{nodes:,} nodes"
    rows = [
        Row(
            work=f"flow: assemble all, {name}",
            ours=f"{nodes / done.seconds / 1000:.1f} k nodes/s",
            peer="peak memory",
            theirs=f"{done.memory / 1e6:.0f} MB",
        )
    ]

    def one_more(whole: bool) -> float:
        nonlocal turns
        with transcript.open("ab") as file:
            file.writelines(_lines(turns, 1))
        turns += 1
        _objstore(path, "flow", "land", home)
        with Store.open(path) as store:
            if whole:
                _forget(store)
            return timed(lambda: _assemble(store))

    found = interleaved({"ours": lambda: one_more(False), "whole": lambda: one_more(True)}, repetitions)
    rows += [
        time_budget(f"flow: one more turn, {name}", found["ours"], _TURN),
        Row(
            work=f"flow: one more turn, {name}",
            ours=f"{found['ours'] * 1000:.1f} ms",
            peer="the whole again",
            theirs=f"{found['whole'] * 1000:.1f} ms",
            ratio=found["whole"] / found["ours"],
        ),
    ]
    with Store.open(path) as store:
        saved = statistics.median(timed(lambda: _fold(store)) for _ in range(repetitions))
        rows.append(time_budget(f"flow: fold, saved head, {name}", saved, _SAVED))
        _forget(store)
        cold = statistics.median(timed(lambda: _fold(store)) for _ in range(repetitions))
        rows.append(time_budget(f"flow: fold, from all rounds, {name}", cold, _COLD))
    _objstore(path, "flow", "export", _SESSION, folder / "out")
    files = [file for file in (folder / "out").rglob("*.s[df]")]
    total = sum(file.stat().st_size for file in files)
    seconds = statistics.median(
        timed(lambda: list(check_folder(scan(folder / "out")))) for _ in range(repetitions)
    )
    rows.append(
        Row(
            work=f"flow: verify files, {name}",
            ours=f"{total / seconds / 1e6:.0f} MB/s",
            peer="budget",
            theirs=f"{_VERIFY / 1e6:.0f} MB/s",
            ratio=total / seconds / _VERIFY,
            goal=1,
        )
    )
    return rows


def _objstore(store: Path, *words: object) -> None:
    run([*command(), "--store", str(store), *map(str, words)])


def _assemble(store: Store) -> None:
    """What ``flow assemble`` does once it has started."""
    with store.snapshot() as view:
        plan = assembly_plan(view, store.store_id)
    settings = Settings(
        path=store.database.path,  # type: ignore[union-attr]
        store=store.store_id,
        algorithm=store.algorithm,
        keep=False,
        key=hash_key(store),
    )
    result = run_import(store, plan, settings, host="", processes=1)
    assert result.rounds, result.problems


def _fold(store: Store) -> int:
    with store.snapshot() as view:
        (head,) = (key for _, key in view.refs("flow/"))
        return len(stored_fold(view, head).nodes)


def _forget(store: Store) -> None:
    """Take away what going on needs, so that all must be read again."""
    batch = store.batch()
    with store.snapshot() as view:
        for prefix in _DERIVED:
            for key, _ in view.derived_items(prefix):
                batch.set_derived(key, None)
    store.commit(batch)


def _lines(start: int, turns: int) -> Iterator[bytes]:
    """Lines of a Claude Code transcript: each turn is asked by a person and answered in calls with a tool use each."""
    encoder = msgspec.json.Encoder()
    for turn in range(start, start + turns):
        parent = _name("r", turn - 1, _CALLS - 1) if turn else None
        second = turn * 40
        for record in _turn(turn):
            second += 1
            record |= {
                "cwd": "/home/mira/src/bench",
                "parentUuid": parent,
                "sessionId": _SESSION,
                "timestamp": _time(second),
                "version": "2.1.220",
            }
            parent = record["uuid"]
            yield encoder.encode(record) + b"\n"


def _turn(turn: int) -> Iterator[dict[str, Any]]:
    run_ = _name("run", turn, 0)
    yield {
        "type": "user",
        "uuid": _name("u", turn, 0),
        "promptId": run_,
        "origin": {"kind": "human"},
        "message": {"role": "user", "content": "mend the next beam " * 10},
    }
    for number in range(_CALLS):
        tool = "toolu_" + _name("t", turn, number)[:24]
        message = {
            "id": "msg_" + _name("m", turn, number)[:24],
            "model": "claude-opus-5",
            "role": "assistant",
            "usage": {"input_tokens": 2, "output_tokens": 50},
        }
        yield {
            "type": "assistant",
            "uuid": _name("a", turn, number),
            "message": message | {"content": [{"type": "text", "text": "looking at it " * 20}]},
        }
        use = {"type": "tool_use", "id": tool, "name": "Bash", "input": {"command": "make beam " * 20}}
        yield {
            "type": "assistant",
            "uuid": _name("b", turn, number),
            "message": message | {"content": [use], "stop_reason": "tool_use"},
        }
        yield {
            "type": "user",
            "uuid": _name("r", turn, number),
            "promptId": run_,
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": tool, "content": "it holds " * 30}],
            },
        }


def _name(prefix: str, turn: int, number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{prefix}{turn}.{number}"))


def _time(second: int) -> str:
    day, rest = divmod(second, 86_400)
    return f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}.000Z"
