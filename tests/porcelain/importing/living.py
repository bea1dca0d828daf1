"""Two machines on which six agents write, rewrite, move, copy and delete what they wrote, while the owner imports, is
killed at it, compares and syncs; and what must hold whatever happened.

What the agents have to say is that of the fixtures, a line at a time. What must hold is taken from the files' own
bytes: the digest of every line that ever stood complete at an import has to be found in the store's pages.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import zstandard
from msgspec import Struct

from porcelain.flow.chain.landed import pages
from porcelain.flow.chain.naming import conversations
from porcelain.importing.cursors import load_cursors
from porcelain.providers.redaction import redact
from tests.porcelain.importing.driving import (
    HOME,
    finish,
    objstore,
    opened,
    start,
    state_of,
    succeed,
    verify,
)

#: Where the agents whose conversations are files of lines keep them, below a home folder.
LINES = {
    "claude": ".claude/projects",
    "codex": ".codex/sessions",
    "factory": ".factory/sessions",
    "oh-my-pi": ".omp/agent/sessions",
    "pi": ".pi/agent/sessions",
}
#: Files among the fixtures that look like conversations and are none.
NOISE = {"exec-output.jsonl", "journal.jsonl"}
TREE = ".local/share/opencode/storage"
#: What may be wrong once files were rewritten, and is said until a person says otherwise.
EXPECTED = {"conflict"}


class Script(Struct, frozen=True):
    """What one file will say in the end: its place below the home folder, and its lines, each with its newline."""

    provider: str
    place: Path
    lines: tuple[bytes, ...]


class Live(Struct):
    """A file that is being written. ``said`` counts the whole lines of its script that were written to it; ``own`` says
    that its bytes are no longer those of the script's beginning."""

    script: Script
    path: Path
    said: int = 0
    own: bool = False


def scripts() -> list[Script]:
    """One for each file of lines among the fixtures; those of them that hold no conversation are noise here too."""
    return [
        Script(provider, path.relative_to(HOME), tuple(path.read_bytes().splitlines(keepends=True)))
        for provider, place in LINES.items()
        for path in sorted((HOME / place).rglob("*.jsonl"))
    ]


class Machine:
    """A home folder, a store, and a person who uses both."""

    def __init__(self, folder: Path, draw: random.Random, mine: Iterable[Script], documents: bool) -> None:
        self.home = folder / "home"
        self.store = folder / "store"
        self.draw = draw
        self.waiting = list(mine)
        self.files: list[Live] = []
        self.away: list[tuple[Path, bytes]] = []
        self.documents = sorted(p for p in (HOME / TREE).rglob("*.json") if p.is_file()) if documents else []
        #: Digests of complete lines that stood in files when an import ended, by agent.
        self.seen: dict[str, set[str]] = {name: set() for name in LINES}
        self.happened: list[str] = []
        self.home.mkdir(parents=True)
        succeed(self.store, "init")

    def happen(self, what: str) -> None:
        self.happened.append(what)
        getattr(self, what)()

    # -- what agents do ----------------------------------------------------------------------------

    def _there(self, *, scripted: bool = False) -> list[Live]:
        return [one for one in self.files if one.path.is_file() and not (scripted and one.own)]

    def begin(self) -> None:
        if self.waiting:
            script = self.waiting.pop(self.draw.randrange(len(self.waiting)))
            live = Live(script, self.home / script.place)
            self.files.append(live)
            live.path.parent.mkdir(parents=True, exist_ok=True)
            self._say(live, self.draw.choice((1, 3, len(script.lines))))
            for beside in (HOME / script.place).parent.glob(f"{script.place.stem}.*.json"):
                shutil.copyfile(beside, live.path.parent / beside.name)

    def _say(self, live: Live, count: int) -> None:
        """Write ``count`` more lines, after making whole the one that was left torn."""
        whole = b"".join(live.script.lines[: live.said + count])
        with live.path.open("ab") as file:
            file.write(
                whole[file.tell() :] if not live.own else b"".join(live.script.lines[live.said :][:count])
            )
        live.said = min(len(live.script.lines), live.said + count)

    def go_on(self) -> None:
        for live in self.draw.sample(there := self._there(), min(3, len(there))):
            self._say(live, self.draw.randrange(1, 9))

    def tear(self) -> None:
        """A line is only half written."""
        for live in self._there(scripted=True)[:3]:
            whole = b"".join(live.script.lines[: live.said])
            if live.said < len(live.script.lines) and live.path.stat().st_size == len(whole):
                line = live.script.lines[live.said]
                with live.path.open("ab") as file:
                    file.write(line[: self.draw.randrange(1, max(2, len(line) - 1))])

    def cut(self) -> None:
        """A file is written anew with only its beginning, and goes on from there."""
        if there := [live for live in self._there(scripted=True) if live.said > 1]:
            live = self.draw.choice(there)
            live.said = self.draw.randrange(1, live.said)
            live.path.write_bytes(b"".join(live.script.lines[: live.said]))

    def rewrite(self) -> None:
        """A line in the middle says something else now, at the same length."""
        if there := [live for live in self._there(scripted=True) if live.said > 2]:
            live = self.draw.choice(there)
            lines = list(live.script.lines[: live.said])
            number = self.draw.randrange(1, len(lines))
            lines[number] = lines[number].translate(bytes.maketrans(b"56", b"65"))
            live.path.write_bytes(b"".join(lines))
            live.own = True

    def vanish(self) -> None:
        if there := self._there():
            path = self.draw.choice(there).path
            self.away.append((path, path.read_bytes()))
            path.unlink()

    def come_back(self) -> None:
        if self.away:
            path, data = self.away.pop(self.draw.randrange(len(self.away)))
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_bytes(data)

    def move(self) -> None:
        """The project's folder has another name."""
        if there := [live for live in self._there() if live.script.provider in ("claude", "pi", "oh-my-pi")]:
            live = self.draw.choice(there)
            target = live.path.parent.with_name(live.path.parent.name + "-moved") / live.path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            live.path = live.path.rename(target)

    def archive(self) -> None:
        """Codex puts a conversation away, compressed or not."""
        if there := [live for live in self._there() if live.script.provider == "codex"]:
            live = self.draw.choice(there)
            folder = self.home / ".codex" / "archived_sessions"
            folder.mkdir(exist_ok=True)
            if self.draw.random() < 0.5:
                target = folder / (live.path.name + ".zst")
                target.write_bytes(zstandard.compress(live.path.read_bytes()))
                live.path.unlink()
            else:
                live.path.rename(folder / live.path.name)

    def copy(self) -> None:
        """A person copies a conversation, and both go on."""
        if there := [
            live for live in self._there() if live.path.parent.parent.name in ("projects", "sessions")
        ]:
            live = self.draw.choice(there)
            target = live.path.with_name("copy-" + live.path.name)
            if not target.exists():
                shutil.copyfile(live.path, target)
                self.files.append(Live(live.script, target, live.said, live.own))

    def touch(self) -> None:
        for live in self._there():
            os.utime(live.path)

    def restore_from_backup(self) -> None:
        """Every file is another one with the same bytes."""
        for live in self._there():
            other = live.path.with_name("restored")
            shutil.copy2(live.path, other)
            other.replace(live.path)

    def document(self) -> None:
        """OpenCode writes some of its documents, or writes one anew."""
        for source in self.documents[:5]:
            target = self.home / TREE / source.relative_to(HOME / TREE)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        self.documents = self.documents[5:]
        if written := sorted((self.home / TREE / "part").rglob("*.json")):
            path = self.draw.choice(written)
            with suppress(ValueError):  # one of them is damaged
                value = json.loads(path.read_bytes())
                path.write_text(json.dumps(value | {"again": self.draw.randrange(3)}))

    # -- what the person does ----------------------------------------------------------------------

    def import_all(self, *words: str) -> None:
        result = objstore(self.store, "import", "--processes", "1", *words, home=self.home)
        assert result.code in (0, 3), result.err
        for provider, line in self.lines():
            with suppress(ValueError, RecursionError):
                if isinstance(json.loads(line), dict) and redact(line) == line:
                    self.seen[provider].add(sha256(line).hexdigest()[:12])
        if self.draw.random() < 0.3:
            self.nothing_is_lost()

    def import_again(self) -> None:
        self.import_all()
        before = state_of(self.store)[1]
        self.import_all()
        assert state_of(self.store)[1] == before

    def import_and_compare(self) -> None:
        self.import_all("--check")
        self.compared()

    def import_killed(self) -> None:
        process = start(self.store, "import", "--processes", "1", home=self.home, start_new_session=True)
        time.sleep(self.draw.uniform(0.05, 0.6))
        process.send_signal(signal.SIGKILL)
        result = finish(process)
        assert "Traceback" not in result.err, result.err
        succeed(self.store, "verify")

    def keep_content(self) -> None:
        succeed(self.store, "config", "content.keep", "on")

    def look(self) -> None:
        succeed(self.store, "lineage", "threads")
        succeed(self.store, "lineage", "usage")

    # -- what must hold ----------------------------------------------------------------------------

    def lines(self) -> Iterator[tuple[str, bytes]]:
        """Every complete line on disk of files that are a conversation, without its newline, with its agent."""
        with opened(self.store) as (_, view):
            cursors = {path: one for name in LINES for path, one in load_cursors(view, name).items()}
        for live in self._there():
            lines = live.path.read_bytes().split(b"\n")[:-1]
            cursor = cursors.get(str(live.path))
            if cursor is None or cursor.state == "left-out":
                assert live.script.place.name in NOISE or len(lines) < 3, live
                continue
            yield from ((live.script.provider, line) for line in lines if line.strip())

    def nothing_is_lost(self) -> None:
        found: dict[str, set[str]] = {name: set() for name in LINES}
        with opened(self.store) as (_, view):
            for _, provider, _, head in conversations(view, "landed"):
                for page in pages(view, head) if provider in found else ():
                    found[provider] |= {page.digests[at : at + 12] for at in range(0, len(page.digests), 12)}
        for provider, digests in self.seen.items():
            assert digests <= found[provider], (provider, digests - found[provider], self.happened)

    def compared(self) -> None:
        """The store's counts are those of the files, as a reader that knows no format counts them."""
        document = objstore(self.store, "doctor", "--json", home=self.home).json
        problems = Counter(problem["rule"] for problem in document["problems"])
        assert set(problems) <= EXPECTED, (document["problems"], self.happened)
        for agent in document["agents"]:
            assert agent["waiting"] == 0, (agent, self.happened)
            assert agent["disk_lines"] == agent["store_lines"], (agent, self.happened)

    def settle(self) -> None:
        """At the end: all is imported, whole, and the same when everything derived is made anew."""
        self.import_again()
        self.nothing_is_lost()
        self.compared()
        verify(self.store)
        before = self.exported("before")
        objstore(self.store, "doctor", "--rebuild", "--fast", home=self.home)
        assert self.exported("after") == before, self.happened

    def exported(self, name: str) -> bytes:
        file = self.store.parent / f"{name}.json"
        succeed(self.store, "lineage", "export", file)
        return file.read_bytes()


#: How often each thing happens beside the others.
EVENTS = {
    "begin": 10,
    "go_on": 12,
    "tear": 4,
    "cut": 2,
    "rewrite": 2,
    "vanish": 2,
    "come_back": 2,
    "move": 2,
    "archive": 2,
    "copy": 2,
    "touch": 1,
    "restore_from_backup": 1,
    "document": 2,
    "import_all": 8,
    "import_again": 1,
    "import_and_compare": 2,
    "import_killed": 1,
    "keep_content": 1,
    "look": 1,
}


def live(folder: Path, seed: int, steps: int) -> None:
    """Two machines with about half of the conversations each, some on both, that sync every now and then."""
    draw = random.Random(seed)
    every = scripts()
    machines = [
        Machine(folder / name, draw, draw.sample(every, 2 * len(every) // 3), documents)
        for name, documents in (("a", True), ("b", draw.random() < 0.5))
    ]
    names, weights = list(EVENTS), list(EVENTS.values())
    for _ in range(steps):
        if draw.random() < 0.04:
            sync(*machines)
        draw.choice(machines).happen(draw.choices(names, weights)[0])
    for machine in machines:
        machine.settle()
    sync(*machines)
    one, two = (machine.exported("united") for machine in machines)
    assert one == two, [machine.happened for machine in machines]
    for machine in machines:
        verify(machine.store)


def sync(one: Machine, two: Machine) -> None:
    """What either has is with the other afterwards: directly, by a file, or by a hub."""
    way = one.draw.choice(("store", "store", "file", "hub"))
    for machine in (one, two):
        machine.happened.append(f"sync by {way}")
    if way == "store":
        succeed(one.store, "push", two.store)
        succeed(one.store, "pull", two.store)
    elif way == "file":
        stick = one.store.parent / "stick.objpack"
        for there, here in ((one, two), (two, one)):
            stick.unlink(missing_ok=True)
            if succeed(there.store, "for-each-ref").out:
                succeed(there.store, "bundle", "create", stick)
                succeed(here.store, "bundle", "unbundle", stick)
    else:
        hub = one.store.parent.parent / "hub.git"
        if not hub.exists():
            subprocess.run(["git", "init", "--quiet", "--bare", hub], check=True)
        for machine in (one, two, one):
            succeed(machine.store, "sync", f"git+file://{hub}")
