"""Long invented conversations of each of the six agents, with sizes like those of real ones, for the benchmarks.

Samples that the agents' own programs write about a scripted model have 20 records of a few hundred bytes; what people
have is longer. The figures here were taken from published conversations of people (ten of Claude Code, 2,040
records; two of Pi, 2,022 records) together: how long prompts, answers, thoughts, tools' inputs and outputs are at some
quantiles, how many calls of the model follow a prompt, and how many records a conversation has. Records of those come
to 1.7 to 5 kB on average, and half of them have less than 700 to 1,200 bytes. Of Codex, Factory and OpenCode no real
conversation of any length is published with its texts; the people, models and tools are of one sort, so the same
figures are used, in these agents' own records. Text is drawn from an invented vocabulary; everything from one seed.
"""

from __future__ import annotations

import random
import sqlite3
import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.corpus import SEED, Source

_FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
if str(_FIXTURES) not in sys.path:
    sys.path.append(str(_FIXTURES))

from calls import Call, bash, edit, read  # noqa: E402  (stands in the folder that was just added)
from codex_writer import CodexLog, Tool  # noqa: E402
from factory_sessions import DroidLog, execute, folder_of, pretty  # noqa: E402
from omp_writer import OmpLog  # noqa: E402
from omp_writer import folder_of as omp_folder  # noqa: E402
from opencode_writer import Session  # noqa: E402
from pi_sessions import file_name  # noqa: E402
from spending import Spent  # noqa: E402
from writers import ClaudeLog, Clock, PiLog, dumps  # noqa: E402

#: Where the quantiles below stand.
_AT = (0.0, 0.10, 0.25, 0.50, 0.75, 0.90, 0.99, 1.0)
#: Bytes of a prompt, an answer's text, its thought, and of a tool's input and output.
_PROMPT = (5, 14, 36, 90, 200, 420, 5000, 14000)
_TEXT = (10, 36, 52, 92, 190, 750, 3000, 18000)
_THOUGHT = (30, 60, 90, 165, 500, 950, 5700, 16000)
_INPUT = (20, 68, 90, 128, 520, 1390, 9000, 56000)
_OUTPUT = (2, 30, 108, 320, 1300, 3400, 23500, 51000)
#: Records of the conversations that the figures are of.
_RECORDS = (29, 42, 54, 96, 170, 170, 219, 236, 288, 438, 468, 1003, 1019)
#: Calls of the model that follow a prompt.
_CALLS = (1, 1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 22)
#: How many of its answers have text, a thought, a use of a tool; how many of these are edits of a file.
_WITH_TEXT, _WITH_THOUGHT, _WITH_TOOL, _EDITS = 0.45, 0.25, 0.88, 0.25
#: Bytes of what Codex writes of itself in a session's first line, and of a sealed thought.
_INSTRUCTIONS, _SEALED = 18_000, 1_400
_POOL = 2_000_000
_FOLDERS = 40


class _Turn(Struct):
    """One call of the model: what it says, thinks and asks a tool for (``path``, ``input``, ``output``)."""

    text: str
    thought: str
    tool: str
    path: str
    input: str
    output: str


class Drawn:
    """What a conversation consists of, drawn from ``seed``."""

    def __init__(self, seed: int = SEED) -> None:
        self.random = random.Random(seed)
        source = Source(seed)
        words = source.text(_POOL).split(" ")
        for at in range(9, len(words), 10):
            words[at] += "\n"
        self._pool = " ".join(words).replace("\n ", "\n")

    def size(self, quantiles: Sequence[int]) -> int:
        """A size between the quantiles, evenly on a scale of ratios."""
        place = self.random.random()
        index = min(bisect_right(_AT, place), len(_AT) - 1)
        low, high = quantiles[index - 1], quantiles[index]
        share = (place - _AT[index - 1]) / (_AT[index] - _AT[index - 1])
        return int(low * (high / low) ** share)

    def words(self, quantiles: Sequence[int]) -> str:
        return self.text(self.size(quantiles))

    def text(self, size: int) -> str:
        start = self.random.randrange(len(self._pool) - size)
        return self._pool[start : start + size]

    def prompts(self) -> list[tuple[str, list[_Turn]]]:
        """Prompts, each with the calls that follow it, of one conversation."""
        left = self.random.choice(_RECORDS)
        found = []
        while left > 0:
            turns = [self._turn() for _ in range(self.random.choice(_CALLS))]
            turns[-1].tool = ""
            turns[-1].text = turns[-1].text or self.words(_TEXT)
            found.append((self.words(_PROMPT), turns))
            left -= 1 + sum(1 + bool(turn.tool) for turn in turns)
        return found

    def _turn(self) -> _Turn:
        draw = self.random
        tool = ""
        if draw.random() < _WITH_TOOL:
            tool = "edit" if draw.random() < _EDITS else draw.choice(("bash", "bash", "read"))
        return _Turn(
            text=self.words(_TEXT) if draw.random() < _WITH_TEXT or not tool else "",
            thought=self.words(_THOUGHT) if draw.random() < _WITH_THOUGHT else "",
            tool=tool,
            path=f"src/{self.random.choice(('a', 'b', 'c'))}{draw.randrange(30)}.py",
            input=self.words(_INPUT),
            output=self.words(_OUTPUT),
        )

    def spent(self) -> Spent:
        draw = self.random
        return Spent(
            draw.randrange(20), draw.randrange(120_000), draw.randrange(8000), draw.randrange(900), 0
        )


def write(agent: str, home: Path, size: int) -> int:
    """Conversations of ``agent`` below ``home`` until they have about ``size`` bytes; how many they have."""
    drawn = Drawn()
    if agent == "opencode":
        return _opencode(drawn, home, size)
    one = _WRITERS[agent]
    written = number = 0
    while written < size:
        clock = Clock("2026-01-05T08:00:00")
        clock.tick(number * 1_800_000)
        for name, data in one(drawn, number, clock, f"/home/mira/project-{number % _FOLDERS}"):
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            written += len(data)
        number += 1
    return written


_Files = list[tuple[str, bytes]]


def _claude(drawn: Drawn, number: int, clock: Clock, cwd: str) -> _Files:
    log = ClaudeLog(f"long {number}", clock, cwd=cwd, version="2.1.332")
    for prompt, turns in drawn.prompts():
        log.ask(prompt)
        for turn in turns:
            log.work(turn.text, *_claude_calls(drawn, turn), think=turn.thought)
    return [(f".claude/projects/{cwd.replace('/', '-')}/{log.session}.jsonl", log.data())]


def _claude_calls(drawn: Drawn, turn: _Turn) -> list[Call]:
    match turn.tool:
        case "bash":
            return [bash(turn.input, "Look", turn.output)]
        case "read":
            return [read(turn.path, turn.output)]
        case "edit":
            return [
                edit(
                    turn.path,
                    f"{turn.output}\n{turn.input[:400]}\n{turn.output}",
                    turn.input[:400],
                    drawn.text(300),
                )
            ]
        case _:
            return []


def _pi_calls(drawn: Drawn, turn: _Turn) -> list[Call]:
    match turn.tool:
        case "bash":
            return [Call("bash", {"command": turn.input}, turn.output)]
        case "read":
            return [Call("read", {"path": turn.path}, turn.output)]
        case "edit":
            diff = "\n".join(
                f"{sign}{n} {line}" for n, line in enumerate(turn.input.split("\n")) for sign in "-+"
            )
            text = f"Successfully replaced text in {turn.path}."
            arguments = {"path": turn.path, "newText": turn.input, "oldText": drawn.text(200)}
            return [Call("edit", arguments, text, {"diff": diff})]
        case _:
            return []


def _pi(drawn: Drawn, number: int, clock: Clock, cwd: str) -> _Files:
    log = PiLog(f"long {number}", clock, cwd=cwd, version=3)
    for prompt, turns in drawn.prompts():
        log.ask(prompt)
        for turn in turns:
            log.work(turn.text, *_pi_calls(drawn, turn), think=turn.thought)
    name = file_name(log, log.session)
    return [(f".pi/agent/sessions/--{cwd.strip('/').replace('/', '-')}--/{name}", log.data())]


def _omp(drawn: Drawn, number: int, clock: Clock, cwd: str) -> _Files:
    log = OmpLog(f"long {number}", clock, cwd=cwd)
    log.begin()
    for prompt, turns in drawn.prompts():
        log.ask(prompt)
        for turn in turns:
            log.work(turn.text, *_pi_calls(drawn, turn), think=turn.thought, spent=drawn.spent())
    log.slot(f"Work on {cwd[-10:]}", "auto")
    return [(f".omp/agent/sessions/{omp_folder(cwd)}/{log.file}", log.data())]


def _codex(drawn: Drawn, number: int, clock: Clock, cwd: str) -> _Files:
    log = CodexLog(f"long {number}", clock, cwd=cwd, version="0.171.0", first=0, model="gpt-5-codex")
    log.meta["base_instructions"]["text"] = drawn.text(_INSTRUCTIONS)
    for prompt, turns in drawn.prompts():
        log.ask(prompt)
        for turn in turns:
            calls = [Tool("exec_command", {"cmd": turn.input}, turn.output)] if turn.tool else []
            at = len(log.history)
            log.say(turn.text, *calls, spent=drawn.spent(), think=turn.thought)
            for item in log.history[at:]:
                if item["type"] == "reasoning":
                    item["encrypted_content"] = drawn.random.randbytes(_SEALED // 2).hex()
        log.end(turns[-1].text)
    return [(f".codex/sessions/{log.folder}/{log.file}", log.data())]


def _factory(drawn: Drawn, number: int, clock: Clock, cwd: str) -> _Files:
    log = DroidLog(f"long {number}", clock, cwd=cwd, title="Work")
    for prompt, turns in drawn.prompts():
        log.ask(prompt)
        for turn in turns:
            calls = [execute(turn.input, turn.output)] if turn.tool else []
            log.say(turn.text, *calls, think=turn.thought, spent=drawn.spent())
    place = f".factory/sessions/{folder_of(cwd)}/{log.session}"
    return [(f"{place}.jsonl", log.data()), (f"{place}.settings.json", pretty(log.settings()).encode())]


def _opencode(drawn: Drawn, home: Path, size: int) -> int:
    """Sessions in a copy of the database of the fixtures; rows of a session are written when it is complete."""
    target = home / ".local" / "share" / "opencode" / "opencode.db"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes((_FIXTURES / "home" / ".local" / "share" / "opencode" / "opencode.db").read_bytes())
    number = 0
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        run = connection.execute
        for setting in ("journal_mode=OFF", "synchronous=OFF", "foreign_keys=OFF"):
            run(f"PRAGMA {setting}")
        for table in ("part", "message", "session"):
            run(f"DELETE FROM {table}")

        def insert(table: str, rows: list[dict[str, Any]]) -> None:
            columns = list(rows[0])
            places = ", ".join("?" for _ in columns)
            values = [[row[name] for name in columns] for row in rows]
            connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", values)

        while target.stat().st_size < size:
            clock = Clock("2026-01-05T08:00:00")
            clock.tick(number * 1_800_000)
            cwd = f"/home/mira/project-{number % _FOLDERS}"
            session = Session(f"long {number}", clock, cwd=cwd, title="Work")
            for prompt, turns in drawn.prompts():
                session.ask(prompt)
                for turn in turns:
                    calls = [_opencode_call(turn)] if turn.tool else []
                    session.say(turn.text, *calls, spent=drawn.spent(), think=turn.thought)
            run("BEGIN")
            insert("session", [session.row()])
            for message in session.messages:
                times = {"time_created": message.time, "time_updated": message.time}
                own = {"session_id": session.ident, **times}
                insert("message", [{"id": message.ident, **own, "data": dumps(message.data)}])
                parts = [
                    {"id": p.ident, "message_id": message.ident, **own, "data": dumps(p.data)}
                    for p in message.parts
                ]
                if parts:
                    insert("part", parts)
            run("COMMIT")
            number += 1
    return target.stat().st_size


def _opencode_call(turn: _Turn) -> Call:
    result = (
        {"output": turn.output[:2000], "exit": 0} if turn.tool == "bash" else {"preview": turn.output[:60]}
    )
    return Call("bash", {"command": turn.input, "description": "Look"}, turn.output, result)


_WRITERS: dict[str, Callable[[Drawn, int, Clock, str], _Files]] = {
    "claude": _claude,
    "codex": _codex,
    "factory": _factory,
    "oh-my-pi": _omp,
    "pi": _pi,
}
#: The agents that conversations can be written of.
AGENTS = sorted([*_WRITERS, "opencode"])
