"""Session trees: inserting, verifying, refreshing and exporting, against their budgets, against the same tables in
SQLite by hand, and against ``llm`` logging turns."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench import peers
from bench.measure import interleaved, timed
from bench.sessions_sqlite import SqliteSession
from bench.table import Row, rate, time_budget
from objstore.store import Store
from porcelain.session.exchange.refresh import changes_since, encode_delta
from porcelain.session.exchange.sqlite_import import import_session
from porcelain.session.exchange.sqlite_view import export_session
from porcelain.session.integrity.checking import chain_check
from porcelain.session.tree.change import open_session
from porcelain.session.tree.store import Turn, add_turn, add_turns, new_session

#: Children of each node of the balanced tree.
_CHILDREN = 8
#: Turns in one transaction, and turns added one by one.
_BATCH = 1000
_SINGLE = 25
_KEY = "1" * 64
_TIME = "2026-03-04T05:06:07Z"
_VERIFIER = Path(__file__).resolve().parents[1] / "fixtures" / "verify_session_db.py"


def measure(folder: Path, nodes: int, repetitions: int) -> tuple[list[Row], list[str]]:
    """Rows about a session of ``nodes`` nodes and a chat of a tenth as many turns without a branch, and notes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with Store.init(folder / "store") as store:
        answer = store.put({"text": "Ada Byron, in a note on the Engine.", "type": "text"})
        sid = _grow(store, answer, nodes, lambda seq: (seq - 1) // _CHILDREN)
        rows = [_export(store, sid, folder / "export.db")]
        peer = SqliteSession(_copy(folder / "export.db", folder / "peer.db"))
        rows += _inserts(store, sid, answer, peer, repetitions)
        rows += _single(store, sid, answer, peer, "balanced tree", 0.015)
        peer.close()
        rows += [_verify(store, sid, folder / "export.db", nodes), _import(folder, nodes)]
        rows += _refresh(store, sid, answer)
        length = nodes // 10
        linear = _grow(store, answer, length, lambda seq: seq - 1)
        _export(store, linear, folder / "linear.db")
        peer = SqliteSession(folder / "linear.db")
        rows += _single(store, linear, answer, peer, f"end of a {length:,}-turn chat", 0.1)
        peer.close()
        logging, notes = _llm(store, answer, folder)
    return [*rows, *logging], notes


def _grow(store: Store, answer: str, nodes: int, parent: Callable[[int], int]) -> str:
    sid, _ = new_session(store, created_at=_TIME)
    for start in range(1, nodes, _BATCH):
        batch = range(start, min(start + _BATCH, nodes))
        add_turns(store, sid, [_turn(answer, parent(seq), seq) for seq in batch])
    return sid


def _turn(answer: str, parent: int, number: int) -> Turn:
    return Turn(
        answer=answer,
        audit_mode="STRICT",
        cache_key=_KEY,
        created_at=_TIME,
        parent=parent,
        question=_question(number),
    )


def _question(number: int) -> str:
    return f"What did she write on page {number}?"


def _copy(path: Path, to: Path) -> Path:
    shutil.copy(path, to)
    return to


def _pace(work: str, count: int, seconds: float, least: float) -> Row:
    return Row(
        work=work,
        ours=f"{count / seconds / 1000:.1f} k/s",
        peer="budget",
        theirs=f"{least / 1000:g} k/s",
        ratio=count / seconds / least,
        goal=1,
    )


def _inserts(store: Store, sid: str, answer: str, peer: SqliteSession, repetitions: int) -> list[Row]:
    """Batches below nodes that are spread over the tree."""
    step = iter(range(1, 1_000_000))

    def places() -> list[tuple[int, int]]:
        return [((number * 7919) % 5000 + 1, number) for _ in range(_BATCH) for number in [next(step)]]

    def ours() -> float:
        turns = [_turn(answer, parent, number) for parent, number in places()]
        return timed(lambda: add_turns(store, sid, turns))

    def theirs() -> float:
        turns = [(parent, _question(number)) for parent, number in places()]
        return timed(lambda: peer.insert(turns, answer, _KEY, _TIME))

    seconds = interleaved({"ours": ours, "theirs": theirs}, repetitions)
    work = f"session: insert, {_BATCH:,} at a time"
    return [
        _pace(work, _BATCH, seconds["ours"], 2000),
        rate(work, _BATCH, seconds["ours"], "SQLite by hand", seconds["theirs"]),
    ]


def _single(store: Store, sid: str, answer: str, peer: SqliteSession, where: str, most: float) -> list[Row]:
    """Turns that are durable one by one, each below the last node."""
    with store.snapshot() as view:
        last = open_session(view, sid).state.next_seq - 1
    below, found = {"ours": last, "theirs": peer.next_seq - 1}, {"ours": [0.0], "theirs": [0.0]}
    for number in range(_SINGLE):
        turn = _turn(answer, below["ours"], number)
        started = time.perf_counter()
        below["ours"] = add_turn(store, sid, turn).seq
        found["ours"].append(time.perf_counter() - started)
        started = time.perf_counter()
        peer.insert([(below["theirs"], _question(number))], answer, _KEY, _TIME)
        found["theirs"].append(time.perf_counter() - started)
        below["theirs"] = peer.next_seq - 1
    ours, theirs = (statistics.median(found[name][1:]) for name in ("ours", "theirs"))
    work = f"session: one durable turn, {where}"
    peer_row = Row(
        work=work,
        ours=f"{ours * 1000:.2f} ms",
        peer="SQLite by hand",
        theirs=f"{theirs * 1000:.2f} ms",
        ratio=theirs / ours,
    )
    return [time_budget(work, ours, most), peer_row]


def _export(store: Store, sid: str, path: Path) -> Row:
    with store.snapshot() as view:
        session = open_session(view, sid)
        return time_budget(
            "session: export as SQLite", timed(lambda: export_session(view, session, path)), 5.0
        )


def _import(folder: Path, nodes: int) -> Row:
    with Store.init(folder / "imported") as store:
        seconds = timed(lambda: import_session(store, folder / "export.db"))
    return _pace("session: import from SQLite", nodes, seconds, 2000)


def _verify(store: Store, sid: str, export: Path, nodes: int) -> Row:
    with store.snapshot() as view:
        count = open_session(view, sid).state.node_count
        path: str = store.database.path  # type: ignore[union-attr]
        seconds = timed(lambda: chain_check(view, sid, path=path))
    return _pace("session: verify in full", count, seconds, 100_000)


def _refresh(store: Store, sid: str, answer: str) -> list[Row]:
    with store.snapshot() as view:
        root = open_session(view, sid).state.root
    add_turn(store, sid, _turn(answer, 1, 0))
    found = []
    size = 0
    for _ in range(_SINGLE):
        started = time.perf_counter()
        with store.snapshot() as view:
            size = len(encode_delta(changes_since(view, open_session(view, sid), root)))
        found.append(time.perf_counter() - started)
    bytes_row = Row(
        work="session: refresh after one turn",
        ours=f"{size:,} B",
        peer="budget",
        theirs="4,096 B",
        ratio=4096 / size,
        goal=1,
    )
    return [time_budget("session: refresh after one turn", statistics.median(found), 0.005), bytes_row]


def _llm(store: Store, answer: str, folder: Path) -> tuple[list[Row], list[str]]:
    """A turn of ours and one logged by ``llm``."""
    peer = peers.environment(folder.parent, peers.LLM)
    if peer is None:
        return [], ["llm could not be installed: no row about it"]
    script = Path(__file__).with_name("llm_turns.py")
    done = subprocess.run(
        [peer / "python", script, folder / "llm.db", "100"], capture_output=True, text=True, check=True
    )
    sid, _ = new_session(store, created_at=_TIME)
    found = [timed(lambda n=n: add_turn(store, sid, _turn(answer, n, n))) for n in range(100)]
    ours, theirs = statistics.median(found), float(done.stdout)
    row = Row(
        work="session: one durable turn, short chat",
        ours=f"{ours * 1000:.2f} ms",
        peer="llm logging it",
        theirs=f"{theirs * 1000:.2f} ms",
        ratio=theirs / ours,
    )
    return [row], []
