"""A home in which things happen, for the tests of the index."""

from __future__ import annotations

import json
import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.porcelain.importing.driving import run, succeed
from tests.porcelain.lineage.pi_home import PiHome


class Life:
    """A home in which things happen, and a store that imports it."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        self.home = PiHome(folder / "home")
        self.store = folder / "store"
        self.draw = draw
        self.names: list[str] = []
        self.files: list[Path] = []
        self.claude = 0
        #: What was stated by command.
        self.said: list[tuple[str, ...]] = []
        succeed(self.store, "init")

    def happen(self, what: str) -> None:
        getattr(self, what)()

    def _new(self) -> str:
        self.names.append(f"{len(self.names) + 1:x}")
        return self.names[-1]

    def _folder(self) -> str:
        return self.draw.choice(("garden", "orchard"))

    def begin(self) -> None:
        name = self._new()
        self.files.append(self.home.write(name, self.home.entries(name, 22), folder=self._folder()))

    def other_agent(self) -> None:
        self.claude += 1
        rows = [
            {"type": "mode", "mode": "normal", "sessionId": self._native(self.claude)},
            *(self._claude(self.claude, row) for row in range(2)),
        ]
        path = self._transcript(self.claude)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def stray(self) -> None:
        """Lines of one conversation go into the file of another; its own file may come later, and have them too."""
        if self.claude:
            host, guest = self.draw.randint(1, self.claude), self.draw.randint(1, self.claude + 2)
            rows = [self._claude(guest, row) for row in range(self.draw.randrange(3), 3)]
            if self.draw.random() < 0.3:  # the host goes on after them
                rows.append(self._claude(host, 10 + len(self.names)))
            with self._transcript(host).open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)

    @staticmethod
    def _native(number: int) -> str:
        return f"{number:08}-0000-4000-8000-000000000000"

    def _transcript(self, number: int) -> Path:
        folder = self.home.home / ".claude" / "projects" / "-home-ines-garden"
        return folder / f"{self._native(number)}.jsonl"

    def _claude(self, number: int, row: int) -> dict[str, Any]:
        return {
            "type": "user",
            "uuid": f"u{number}-{row}",
            "sessionId": self._native(number),
            "cwd": f"/home/ines/{self._folder()}",
            "timestamp": f"2026-03-01T10:{(7 * number + row) % 60:02}:00.000Z",
            "message": {"role": "user", "content": "hello"},
        }

    def go_on(self) -> None:
        if self.files:
            path = self.draw.choice(self.files)
            if path.exists():
                size = path.stat().st_size
                entry = self.home.entries(self._new(), 23, 22)
                with path.open("a") as file:
                    file.writelines(json.dumps(row) + "\n" for row in entry)
                assert path.stat().st_size > size

    def fork(self, linked: bool = False) -> None:
        there = [path for path in self.files if path.exists()]
        if there:
            origin = self.draw.choice(there)
            lines = [json.loads(line) for line in origin.read_text().splitlines()][1:]
            name = self._new()
            link = {"parentSession": str(origin)} if linked else {}
            more = self.home.entries(name, 25, 20)
            self.files.append(self.home.write(name, [*lines[:20], *more], folder=self._folder(), **link))

    def linked_fork(self) -> None:
        self.fork(linked=True)

    def orphan(self) -> None:
        name = self._new()
        link = self.home.native(f"{self.draw.randrange(1, 12):x}")
        self.files.append(
            self.home.write(name, self.home.entries(name, 21), folder=self._folder(), parentSession=link)
        )

    def move(self) -> None:
        there = [path for path in self.files if path.exists() and "garden" in path.parent.name]
        if there:
            source = self.draw.choice(there)
            target = self.home.move(source, "garden", "orchard")
            self.files.append(target)
            inferred = {"inferred": True} if self.draw.random() < 0.3 else {}
            self.home.manifest(self.home.moved(source, target, "garden", "orchard", **inferred))

    def name_a_file(self) -> None:
        """A manifest names a file before it is there, or one that never will be."""
        if self.files:
            later = self.home.path(f"{len(self.names) + 1:x}", "orchard")
            self.home.manifest(self.home.moved(self.draw.choice(self.files), later, "garden", "orchard"))

    def vanish(self) -> None:
        if self.files:
            with suppress(OSError):
                os.remove(self.draw.choice(self.files))

    def rewrite(self) -> None:
        there = [path for path in self.files if path.exists()]
        if there:
            path = self.draw.choice(there)
            lines = path.read_text().splitlines()
            other = self.home.entries("e", 30, 10)
            path.write_text("\n".join([*lines[:8], *(json.dumps(row) for row in other)]) + "\n")

    def _sessions(self) -> list[str]:
        out = succeed(self.store, "lineage", "sessions", "--json").out
        return [json.loads(line)["native_id"] for line in out.splitlines()]

    def judge(self) -> None:
        found = self._sessions()
        if len(found) > 1:
            one, two = self.draw.sample(found, 2)
            word = self.draw.choice(("context-jump", "continuation", "unrelated"))
            run(self.store, "lineage", "classify", one, two, word)

    def judge_an_edge(self) -> None:
        out = succeed(self.store, "lineage", "sql", "--json", "SELECT id FROM edges ORDER BY id").out
        edges = [json.loads(line)["id"] for line in out.splitlines()]
        if edges:
            word = self.draw.choice(("context-jump", "continuation"))
            run(self.store, "lineage", "classify", self.draw.choice(edges), word)

    def label(self) -> None:
        found = self._sessions()
        if found:
            run(self.store, "lineage", "label", self.draw.choice(found), f"name {self.draw.randrange(3)}")

    def mark(self) -> None:
        found = self._sessions()
        if found:
            run(self.store, "lineage", "mark", self.draw.choice(found), "preserve")

    def mark_whatever(self) -> None:
        """Also files that are only named, and conversations in the files of others."""
        query = "SELECT id FROM session_observations ORDER BY id"
        out = succeed(self.store, "lineage", "sql", "--json", query).out
        found = [json.loads(line)["id"] for line in out.splitlines()]
        if found:
            word = self.draw.choice(("preserve", "archived"))
            run(self.store, "lineage", "mark", self.draw.choice(found), word)

    def sidecars(self) -> None:
        succeed(self.store, "lineage", "import-sidecars", home=self.home.home)

    def catch_up(self) -> None:
        succeed(self.store, "import", home=self.home.home)

    def _judged(self, *words: str) -> None:
        """State something by command; every third time what the same words said before is taken back."""
        if self.said and self.draw.random() < 0.3:
            run(self.store, "lineage", *self.draw.choice(self.said), "--undo")
            return
        self.said.append(words)
        run(self.store, "lineage", *words)

    def name_something(self) -> None:
        self._judged("alias", f"/home/ines/{self._folder()}", f"/srv/{self.draw.randrange(3)}")

    def suggest(self) -> None:
        found = self._sessions()
        if len(found) > 1:
            one, two = self.draw.sample(found, 2)
            relation = self.draw.choice(("continuation", "fork", "context_jump"))
            run(
                self.store,
                "lineage",
                "suggest",
                "add",
                "--suggester",
                "some-model",
                "--relation",
                relation,
                one,
                two,
            )

    def settle_a_suggestion(self) -> None:
        out = succeed(self.store, "lineage", "suggest", "list", "--json").out
        found = [json.loads(line)["id"] for line in out.splitlines()]
        if found:
            word = self.draw.choice(("promote", "promote", "reject"))
            run(self.store, "lineage", "suggest", word, self.draw.choice(found))

    def relocate(self) -> None:
        """All sessions of a folder, at once; their copies may come, and may not."""
        copies = ("--copy",) if self.draw.random() < 0.5 else ()
        before, after = self.draw.sample(("garden", "orchard", "meadow"), 2)
        folders = ("--from", f"/home/ines/{before}", "--to", f"/home/ines/{after}")
        run(self.store, "lineage", "move", *folders, "--apply", *copies, home=self.home.home)

    def move_a_repository(self) -> None:
        """Every session that moved with it tells of the same event."""
        for source in [path for path in self.files if path.exists() and "garden" in path.parent.name][:3]:
            target = self.home.path(self._new(), "meadow")
            more = {
                "operationType": "repo_move",
                "sourceRepo": "/home/ines/garden",
                "targetRepo": "/home/ines/meadow",
            }
            self.home.manifest(self.home.moved(source, target, "garden", "meadow", **more, batchId="b1"))

    def state_a_repository(self) -> None:
        name = f"project-{self.draw.randrange(2)}"
        kind = self.draw.randrange(3)
        if kind == 0:
            self._judged("repo", "--path", f"/home/ines/{self._folder()}", name)
        elif kind == 1:
            self._judged(
                "repo", "--event", "rename", "--from", "/a", "--to", "/b", "--related", "project-9", name
            )
        else:
            self._judged("repo", "--display", "The garden", name)

    def checkpoint(self) -> None:
        run(self.store, "lineage", "checkpoints", "--record")

    def mark_with_replacement(self) -> None:
        found = self._sessions()
        if len(found) > 1:
            one, two = self.draw.sample(found, 2)
            self._judged("mark", "--replacement", one, two, "superseded")

    def classify_something(self) -> None:
        found = self._sessions()
        if found:
            self._judged("classify", self.draw.choice(found), "worth-keeping")

    def clear_a_conflict(self) -> None:
        if self.files:
            run(self.store, "lineage", "mark", "--clear-conflict", str(self.draw.choice(self.files)))

    def write_sidecars(self) -> None:
        """Overlays, names, marks, reports, each about files that are there, are gone or are still to come."""
        paths = [str(path) for path in self.files] + [
            str(self.home.path(f"{len(self.names) + 2:x}", "orchard"))
        ]
        one, two = self.draw.choice(paths), self.draw.choice(paths)
        native = self.home.native(self.draw.choice([*self.names, "5"]))
        events = {"sourceRepo": "/home/ines/garden", "targetRepo": "/home/ines/meadow"}
        sidecar, line = self.draw.choice(
            [
                (
                    "session-graph/lineage-overlays.jsonl",
                    {"kind": "root", "session": one, "label": "the first"},
                ),
                (
                    "session-graph/lineage-overlays.jsonl",
                    {
                        "kind": "edge",
                        "source": one,
                        "destination": two,
                        "lineageKind": "explicit-continuation",
                    },
                ),
                (
                    "session-graph/lineage-overlays.jsonl",
                    {
                        "kind": "classification",
                        "source": one,
                        "destination": two,
                        "lineageKind": "context-jump",
                    },
                ),
                (
                    "session-graph/lineage-overlays.jsonl",
                    {"kind": "session-label", "session": one, "label": "beans"},
                ),
                (
                    "relocation-lineages.jsonl",
                    {"type": "lineage_named", "root": one, "currentSession": two, "name": "pond"},
                ),
                (
                    "session-store/observation-marks.jsonl",
                    {
                        "kind": "observation-mark",
                        "markType": "preserve",
                        "sessionId": native,
                        "label": "keep",
                    },
                ),
                (
                    "session-store/observation-marks.jsonl",
                    {
                        "kind": "observation-mark",
                        "markType": "archived",
                        "path": one,
                        "replacementObservationId": "observation_0",
                    },
                ),
                (
                    "session-store/repo-identities.jsonl",
                    {"kind": "repo-observation", "stableName": "project-0", "path": events["targetRepo"]},
                ),
                (
                    "session-store/repo-identities.jsonl",
                    {
                        "kind": "repo-event",
                        "eventType": "move",
                        "fromPath": events["sourceRepo"],
                        "toPath": events["targetRepo"],
                        "timestamp": "2026-03-02T12:00:00.000Z",
                        "summary": "the repository was moved, and its sessions with it",
                    },
                ),
            ]
        )
        target = self.home.agent / sidecar
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def write_reports(self) -> None:
        if not self.files:
            return
        one, two = str(self.draw.choice(self.files)), str(self.draw.choice(self.files))
        buckets = str(self.home.agent / "sessions")
        folder = self.home.agent / "session-graph"
        folder.mkdir(parents=True, exist_ok=True)
        backup = {"rootSession": one, "presentAtBst": f"2026-05-22 21:{self.draw.randrange(10, 13)}"}
        match self.draw.randrange(3):
            case 0:
                (folder / "pre-manifest-lineage.json").write_text(
                    json.dumps({"backupEvidence": {"root": backup}})
                )
            case 1:
                best = {"source": one, "destination": two, "sharedLines": 20, "sourceLines": 20}
                best["destinationLines"] = 22
                (folder / "prefix-lineage.json").write_text(json.dumps({"bestCandidates": [{"best": best}]}))
            case 2:
                bucket = {
                    "root": buckets,
                    "bucket": "--home-ines-garden--",
                    "status": "active",
                    "sessionCount": 1,
                }
                (folder / "session-bucket-reconciliation.json").write_text(json.dumps({"buckets": [bucket]}))


#: Everything that may happen.
EVENTS = [name for name in vars(Life) if not name.startswith("_") and name != "happen"]
#: What people and their sidecars say.
JUDGEMENTS = [
    "checkpoint",
    "classify_something",
    "clear_a_conflict",
    "judge",
    "judge_an_edge",
    "label",
    "mark",
    "mark_whatever",
    "mark_with_replacement",
    "name_something",
    "relocate",
    "settle_a_suggestion",
    "sidecars",
    "state_a_repository",
    "suggest",
]
