"""Many small Claude Code conversations, some of them forks of others, for the benchmarks of lineage.

Every twentieth is a fork: it repeats the beginning of an earlier conversation and goes on. Half of the forks say where
they come from, as the agent does since it has a command for it; the others only hold the same records, as resumed
copies do. Everything is drawn from one seed.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

from bench.corpus import SEED

#: Conversations from one fork to the next.
FORK_EVERY = 20
#: Folders that the conversations are spread over.
FOLDERS = 200
#: Earlier conversations that a fork may come from.
_REACH = 500
_MODELS = ("claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929")
_TEXT = "the tide gauge at the old pier reads low again, so compare it with the harbour's own and say which is off "


def write_conversations(home: Path, count: int, seed: int = SEED) -> int:
    """``count`` transcripts under ``home``/.claude/projects, the names of their files in order of age; bytes
    written."""
    draw = random.Random(seed)
    recent: list[list[dict[str, Any]]] = []
    written = 0
    for number in range(count):
        session = _uuid(draw)
        clock = 1_750_000_000_000 + number * 600_000
        folder = f"/home/dev/project-{draw.randrange(FOLDERS)}"
        lines: list[dict[str, Any]] = []
        if number % FORK_EVERY == FORK_EVERY - 1:
            origin = recent[draw.randrange(len(recent))]
            folder = origin[0]["cwd"]
            linked = number % (2 * FORK_EVERY) == FORK_EVERY - 1
            for line in origin[: draw.randrange(len(origin) // 2, len(origin))]:
                copy = {**line, "sessionId": session}
                if linked:
                    copy["forkedFrom"] = {"messageUuid": line["uuid"], "sessionId": line["sessionId"]}
                lines.append(copy)
        parent = lines[-1]["uuid"] if lines else None
        for _ in range(draw.randrange(3, 9)):
            for line in _turn(draw, session, folder, clock, parent):
                lines.append(line)
                parent = line["uuid"]
            clock += draw.randrange(20_000, 400_000)
        recent.append(lines)
        if len(recent) > _REACH:
            del recent[0]
        target = home / ".claude" / "projects" / folder.replace("/", "-") / f"{session}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        target.write_text(data)
        written += len(data)
    return written


def a_turn(session: str, folder: str, seed: int = SEED) -> bytes:
    """The lines of one more question and its answer, to be appended to a transcript."""
    draw = random.Random(seed)
    lines = _turn(draw, session, folder, 1_790_000_000_000, None)
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def _turn(
    draw: random.Random, session: str, folder: str, clock: int, parent: str | None
) -> list[dict[str, Any]]:
    """A question, an answer that uses a tool, and the tool's result."""
    call, use = f"msg_01{draw.randbytes(11).hex()}", f"toolu_01{draw.randbytes(11).hex()}"
    asked: dict[str, Any] = {"role": "user", "content": _words(draw)}
    answered: dict[str, Any] = {
        "content": [
            {"type": "text", "text": _words(draw)},
            {"type": "tool_use", "id": use, "name": "Read", "input": {"file_path": f"{folder}/a.txt"}},
        ],
        "id": call,
        "model": draw.choice(_MODELS),
        "role": "assistant",
        "stop_reason": "tool_use",
        "type": "message",
        "usage": {
            "cache_creation_input_tokens": draw.randrange(2000),
            "cache_read_input_tokens": draw.randrange(50_000),
            "input_tokens": draw.randrange(20),
            "output_tokens": draw.randrange(900),
        },
    }
    result: dict[str, Any] = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": use, "content": _words(draw)}],
    }
    lines = []
    for step, (kind, message) in enumerate((("user", asked), ("assistant", answered), ("user", result))):
        name = _uuid(draw)
        line = {
            "parentUuid": parent,
            "isSidechain": False,
            "type": kind,
            "message": message,
            "uuid": name,
            "timestamp": _time(clock + 3000 * step),
            "cwd": folder,
            "sessionId": session,
            "version": "2.1.332",
            "gitBranch": "main",
        }
        lines.append(line)
        parent = name
    return lines


def _words(draw: random.Random) -> str:
    start = draw.randrange(len(_TEXT))
    return (_TEXT[start:] + _TEXT * 3)[: draw.randrange(20, 300)] + draw.randbytes(4).hex()


def _uuid(draw: random.Random) -> str:
    text = draw.randbytes(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def _time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03}Z"
