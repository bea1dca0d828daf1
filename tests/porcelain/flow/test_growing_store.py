"""Conversations that grow in a store: what an append costs, kills in the middle of it, and one of a great size."""

from __future__ import annotations

import json
import signal
import uuid
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from objstore.database import LmdbSnapshot
from objstore.store import Store
from porcelain.flow.assembly import assemble, growing
from porcelain.flow.chain.fold_store import stored_fold
from porcelain.flow.chain.naming import best_heads
from porcelain.flow.chain.store import landed_files
from tests.porcelain.flow.sample import content
from tests.porcelain.importing.driving import SMALL_PIECES, objstore, opened, patched, run, succeed

SESSION = "5c5fd944-d386-42dd-9b31-250b1a31a74c"
PROJECT = Path(".claude/projects/-home-mira-src-quay")


def name(kind: str, *numbers: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind}{numbers}"))


def stamp(second: int) -> str:
    day, rest = divmod(second, 86_400)
    return f"2026-03-{1 + day:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}.000Z"


def line(kind: str, uid: str, parent: str | None, second: int, **more: Any) -> bytes:
    record = {
        "parentUuid": parent,
        "sessionId": SESSION,
        "type": kind,
        "uuid": uid,
        "timestamp": stamp(second),
    }
    return json.dumps(record | more).encode() + b"\n"


def turns(start: int, count: int, calls: int = 2, *, apart: int = 60, child: bool = False) -> Iterator[bytes]:
    """Talks of ``calls`` calls, each with a text, a tool use and its result; with ``child``, each first call starts an
    agent that runs beside it."""
    for turn in range(start, start + count):
        second, parent = turn * apart, name("r", turn - 1, calls - 1) if turn else None
        run_ = name("run", turn)
        yield line(
            "user",
            name("u", turn),
            parent,
            second,
            promptId=run_,
            origin={"kind": "human"},
            message={"role": "user", "content": "mend the next plank"},
        )
        parent = name("u", turn)
        for call in range(calls):
            said = {"id": f"msg_{name('m', turn, call)}", "role": "assistant", "model": "claude-opus-5"}
            tool = f"toolu_{name('t', turn, call)}"
            text = {"type": "text", "text": "looking"}
            use = {
                "type": "tool_use",
                "id": tool,
                "name": "Agent" if child and not call else "Bash",
                "input": {},
            }
            yield line(
                "assistant",
                name("a", turn, call),
                parent,
                second + 1 + call,
                message=said | {"content": [text]},
            )
            yield line(
                "assistant",
                name("b", turn, call),
                name("a", turn, call),
                second + 1 + call,
                message=said | {"content": [use], "stop_reason": "tool_use"},
            )
            more: dict[str, Any] = {}
            if child and not call:
                more = {"toolUseResult": {"status": "completed", "agentId": agent(turn)}}
            yield line(
                "user",
                name("r", turn, call),
                name("b", turn, call),
                second + 2 + call,
                promptId=run_,
                message={
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": tool, "content": "ok"}],
                },
                **more,
            )
            parent = name("r", turn, call)


def agent(turn: int) -> str:
    return f"a{turn:016x}"


def children(folder: Path, count: int, calls: int) -> None:
    """A transcript for each agent."""
    folder.mkdir(parents=True)
    for turn in range(count):
        lines = []
        parent = None
        for call in range(calls):
            uid = name("k", turn, call)
            said = {
                "id": f"msg_{name('km', turn, call)}",
                "role": "assistant",
                "model": "claude-opus-5",
                "content": [{"type": "text", "text": "done"}],
            }
            lines.append(
                line(
                    "assistant",
                    uid,
                    parent,
                    turn * 60 + 2,
                    message=said,
                    isSidechain=True,
                    agentId=agent(turn),
                )
            )
            parent = uid
        (folder / f"agent-{agent(turn)}.jsonl").write_bytes(b"".join(lines))


def transcript(home: Path) -> Path:
    path = home / PROJECT / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def is_whole(store: Path) -> None:
    """What the rounds fold to is what the landed pages give when they are assembled at once."""
    with opened(store) as (_, view):
        flows = best_heads(view, "flow")
        for key, head in best_heads(view, "landed").items():
            fold, files = stored_fold(view, flows[key]), landed_files(view, head)
            assert fold.header is not None and fold.through_seq == len(files)
            rows = chain.from_iterable(file.entries for file in files)
            built = assemble(
                rows,
                conversation=fold.header.conversation,
                session_name=fold.header.session,
                revision=1,
                through=len(files),
            )
            assert {n.id: content(n) for n in fold.nodes.values()} == {n.id: content(n) for n in built.nodes}
            assert set(fold.relations) == {r.id for r in built.relations}
            assert {u.id for u in fold.unresolved.values() if u.state == "open"} == {
                u.id for u in built.unresolved
            }


@pytest.mark.parametrize("length", [30, 300])
def test_an_append_reads_and_writes_what_is_new(
    tmp_path: Path, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects that ``flow assemble`` reads after one more turn, however long the conversation is."""
    monkeypatch.setattr(growing, "STANDING_ROWS", 0)
    home, store = tmp_path / "home", tmp_path / "store"
    path = transcript(home)
    path.write_bytes(b"".join(turns(0, length)))
    succeed(store, "import", home / ".claude")
    with path.open("ab") as file:
        file.writelines(turns(length, 1))
    succeed(store, "flow", "land", home / ".claude")
    read: list[bytes] = []
    values: list[bytes] = []
    stored, derived = LmdbSnapshot._stored, LmdbSnapshot.derived
    monkeypatch.setattr(LmdbSnapshot, "_stored", lambda self, key: (read.append(key), stored(self, key))[1])
    monkeypatch.setattr(
        LmdbSnapshot, "derived", lambda self, key: (values.append(key), derived(self, key))[1]
    )
    succeed(store, "flow", "assemble")
    # The plan and the work read heads, the new landing entry, its page and its seven records.
    assert len(set(read)) <= 14, len(set(read))
    assert len(set(values)) <= 40
    is_whole(store)


def test_what_is_saved_is_no_authority(tmp_path: Path) -> None:
    """All of it gone or spoilt, the next import goes on the same."""
    home, store = tmp_path / "home", tmp_path / "store"
    path = transcript(home)
    script = patched(tmp_path / "small.py", *SMALL_PIECES)
    for number in range(4):
        path.write_bytes(b"".join(turns(0, 10 + 10 * number)))
        assert run(store, "import", home / ".claude", script=script).code == 0
        is_whole(store)
        with Store.open(store) as writable:
            with writable.snapshot() as view:
                saved = [*view.derived_items(b"flow/"), *view.derived_items(b"flow-fold/")]
            assert len(saved) > 8
            batch = writable.batch()
            for index, (key, value) in enumerate(saved):
                batch.set_derived(key, None if number == 0 else value[:-1] if index % 2 else b"")
            writable.commit(batch)
        is_whole(store)


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("commit", range(1, 5))
def test_killed_while_it_grows(tmp_path: Path, commit: int, where: str) -> None:
    """Rounds, the standing and the saved fold move in one transaction: a kill leaves all of them or none."""
    home, store = tmp_path / "home", tmp_path / "store"
    path = transcript(home)
    path.write_bytes(b"".join(turns(0, 40, child=True)))
    children(path.with_suffix("") / "subagents", 30, 3)
    small = patched(tmp_path / "small.py", *SMALL_PIECES)
    assert run(store, "import", home / ".claude", script=small).code == 0
    with path.open("ab") as file:
        file.writelines(turns(40, 20, child=True))
    script = patched(
        tmp_path / "killed.py",
        *SMALL_PIECES,
        "import os, signal, objstore.store",
        "commit = objstore.store.Store.commit",
        f"left = [{commit}]",
        "def killed(self, batch):",
        "    left[0] -= 1",
        f"    if {where == 'after'}: done = commit(self, batch)",
        "    if not left[0]: os.kill(os.getpid(), signal.SIGKILL)",
        f"    return done if {where == 'after'} else commit(self, batch)",
        "objstore.store.Store.commit = killed",
    )
    assert run(store, "import", home / ".claude", script=script).code == -signal.SIGKILL
    succeed(store, "verify")
    assert objstore(store, "flow", "verify").code == 0
    assert run(store, "import", home / ".claude", script=small).code == 0
    assert run(store, "flow", "assemble", script=small).code == 0
    assert objstore(store, "flow", "verify").code == 0
    is_whole(store)


def test_a_conversation_of_a_great_size(tmp_path: Path) -> None:
    """50,000 nodes, 900 talks, 616 streams, a record of 4.6 MB: as many as a plain count of the files gives; and one
    more turn does not assemble the whole again."""
    home, store = tmp_path / "home", tmp_path / "store"
    path = transcript(home)
    talks, agents, calls = 900, 615, 14
    lines = [*turns(0, agents, calls, child=True), *turns(agents, talks - agents, calls)]
    huge = {"type": "tool_result", "tool_use_id": f"toolu_{name('t', 5, 1)}", "content": "x" * 4_600_000}
    at = next(number for number, one in enumerate(lines) if name("r", 5, 1).encode() in one[:500])
    record = json.loads(lines[at])
    record["message"]["content"] = [huge]
    lines[at] = json.dumps(record).encode() + b"\n"
    path.write_bytes(b"".join(lines))
    children(path.with_suffix("") / "subagents", agents, 12)
    succeed(store, "import", home / ".claude")
    with opened(store) as (_, view):
        (head,) = best_heads(view, "flow").values()
        fold = stored_fold(view, head)
    kinds = Counter(node.kind for node in fold.nodes.values())
    assert len(fold.nodes) > 50_000
    assert (kinds["talk"], kinds["stream"]) == (talks + agents, 1 + agents)
    assert sum(node.kind == "talk" and node.stream == "main" for node in fold.nodes.values()) == talks
    assert kinds["llm.call"] == talks * calls + agents * 12
    assert (kinds["agent.call"], kinds["tool"]) == (agents, talks * calls - agents)
    assert kinds["message.assistant"] == kinds["llm.call"]
    assert not [entry for entry in fold.unresolved.values() if entry.state == "open"]
    assert sum(relation.type == "starts" for relation in fold.relations.values()) == agents
    with path.open("ab") as file:
        file.writelines(turns(talks, 1, calls))
    script = patched(
        tmp_path / "counted.py",
        "import porcelain.flow.assembly.growing as growing",
        "whole = growing.Chain._from_start",
        "def never(self): raise AssertionError('the whole was assembled')",
        "growing.Chain._from_start = never",
    )
    done = run(store, "import", "--json", home / ".claude", script=script)
    assert (done.code, done.json["rounds"]) == (0, 1), done.err
    assert objstore(store, "flow", "verify").code == 0
    is_whole(store)
