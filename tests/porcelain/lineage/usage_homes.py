"""Invented transcripts of several agents whose tokens are known, written where the agents keep them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def write(path: Path, lines: Iterable[Line]) -> Path:
    """A file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


# -- Pi --------------------------------------------------------------------------------------------------------------


def pi_header(session: str, cwd: str = "/home/ines/garden", parent: str | None = None) -> Line:
    header: Line = {
        "type": "session",
        "version": 3,
        "id": session,
        "timestamp": "2026-03-01T10:00:00.000Z",
        "cwd": cwd,
    }
    return header | ({"parentSession": parent} if parent else {})


def pi_call(number: int, *, cache_read: int = 0, entry: str | None = None, minute: int | None = None) -> Line:
    """An answer of the model: 10 tokens in, 5 out, ``cache_read`` beside the input."""
    minutes = number if minute is None else minute
    return {
        "type": "message",
        "id": entry or f"{number:08x}",
        "parentId": f"{number - 1:08x}" if number else None,
        "timestamp": f"2026-03-{1 + minutes // 1440:02}T{minutes // 60 % 24:02}:{minutes % 60:02}:00.000Z",
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": "grown"}],
            "provider": "hothouse",
            "model": "fern-1",
            "stopReason": "stop",
            "usage": {"input": 10, "output": 5, "cacheRead": cache_read, "cacheWrite": 0},
        },
    }


def pi_path(home: Path, session: str, folder: str = "--home-ines-garden--") -> Path:
    return home / ".pi" / "agent" / "sessions" / folder / f"2026-03-01T10-00-00-000Z_{session}.jsonl"


# -- Codex -----------------------------------------------------------------------------------------------------------

Counts = Sequence[int]


def codex_counts(counts: Counts) -> Line:
    """Tokens as Codex states them: input, cached, output, reasoning."""
    names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
    return dict(zip(names, counts, strict=True)) | {"total_tokens": counts[0] + counts[2]}


def codex_count(second: int, total: Counts | None, last: Counts) -> Line:
    """A ``token_count`` event."""
    info = {"last_token_usage": codex_counts(last), "model_context_window": 1000}
    if total is not None:
        info["total_token_usage"] = codex_counts(total)
    return _codex(second, "event_msg", {"type": "token_count", "info": info})


def codex_start(thread: str, *, forked_from: str | None = None) -> list[Line]:
    """The first lines of a rollout: who it is, and a turn with a model."""
    meta: Line = {"id": thread, "timestamp": "2026-05-01T10:00:00.000Z", "cwd": "/home/ines/garden"}
    meta |= {"originator": "codex_cli_rs", "cli_version": "0.80.0"}
    if forked_from is not None:
        meta["forked_from_id"] = forked_from
    return [_codex(0, "session_meta", meta)]


def codex_turn(second: int, turn: str = "turn-1") -> list[Line]:
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"water {turn}"}]}
    return [
        _codex(second, "turn_context", {"cwd": "/home/ines/garden", "model": "moss-2", "turn_id": turn}),
        _codex(second, "response_item", said),
    ]


def codex_answer(second: int) -> Line:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"{second}"}]}
    return _codex(second, "response_item", said)


def _codex(second: int, kind: str, payload: Line) -> Line:
    time = f"2026-05-01T10:{second // 60:02}:{second % 60:02}.000Z"
    return {"timestamp": time, "type": kind, "payload": payload}


def codex_path(home: Path, thread: str) -> Path:
    return home / ".codex" / "sessions" / "2026" / "05" / "01" / f"rollout-2026-05-01T10-00-00-{thread}.jsonl"


# -- Claude Code -----------------------------------------------------------------------------------------------------


def claude_prompt(session: str, number: int) -> Line:
    return _claude(session, number, "user", {"role": "user", "content": "prune the roses"})


def claude_part(session: str, number: int, message: str, output: int, cache_read: int = 100) -> Line:
    """One line of an answer, which repeats the answer's tokens as they are known by then."""
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": cache_read,
        "cache_creation_input_tokens": 7,
        "output_tokens": output,
    }
    body = {
        "id": message,
        "role": "assistant",
        "model": "rose-4",
        "content": [{"type": "text", "text": f"cut {number}"}],
        "usage": usage,
        "stop_reason": None,
    }
    return _claude(session, number, "assistant", body)


def _claude(session: str, number: int, kind: str, message: Line) -> Line:
    return {
        "type": kind,
        "uuid": f"0000{number:04x}-0000-4000-8000-{session[:12].rjust(12, '0')}",
        "parentUuid": None,
        "sessionId": session,
        "cwd": "/home/ines/garden",
        "version": "2.1.97",
        "isSidechain": False,
        "userType": "external",
        "timestamp": f"2026-04-01T10:{number:02}:00.000Z",
        "message": message,
    }


def claude_path(home: Path, session: str) -> Path:
    return home / ".claude" / "projects" / "-home-ines-garden" / f"{session}.jsonl"


# -- OpenCode --------------------------------------------------------------------------------------------------------


def opencode_session(
    home: Path, session: str, version: str, messages: Iterable[tuple[str, int, Line]], title: str = "compost"
) -> None:
    """A conversation as documents: ``messages`` are id, time (milliseconds) and tokens of each answer."""
    storage = home / ".local" / "share" / "opencode" / "storage"
    time = {"created": 1_780_000_000_000, "updated": 1_780_000_900_000}
    about = {"id": session, "version": version, "projectID": "global", "directory": "/home/ines/garden"}
    document(storage / "session" / "global" / f"{session}.json", {**about, "title": title, "time": time})
    for name, created, tokens in messages:
        answer = {
            "id": name,
            "sessionID": session,
            "role": "assistant",
            "parentID": "msg_0",
            "modelID": "loam-3",
            "providerID": "hothouse",
            "mode": "build",
            "path": {"cwd": "/home/ines/garden", "root": "/home/ines/garden"},
            "cost": 0,
            "tokens": tokens,
            "time": {"created": created, "completed": created + 900},
        }
        document(storage / "message" / session / f"{name}.json", answer)
        part = {
            "id": f"prt_{name[4:]}",
            "messageID": name,
            "sessionID": session,
            "type": "text",
            "text": "turned",
        }
        document(storage / "part" / name / f"prt_{name[4:]}.json", part)


def document(path: Path, value: Line) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


# -- Factory ---------------------------------------------------------------------------------------------------------


def factory_session(home: Path, session: str, tokens: Sequence[int], parent: str | None = None) -> Path:
    """A conversation whose settings state the sums of its tokens: in, out, cached."""
    folder = home / ".factory" / "sessions" / "-home-ines-garden"
    start: Line = {
        "type": "session_start",
        "id": session,
        "title": "t",
        "version": 2,
        "cwd": "/home/ines/garden",
    }
    lines = [
        start | ({"parent": parent} if parent else {}),
        {
            "type": "message",
            "id": f"{session}-1",
            "timestamp": "2026-06-01T10:00:00.000Z",
            "message": {"role": "user", "content": [{"type": "text", "text": "rake"}]},
        },
    ]
    write(folder / f"{session}.jsonl", lines)
    usage = dict(zip(("inputTokens", "outputTokens", "cacheReadTokens"), tokens, strict=True))
    usage |= {"cacheCreationTokens": 0, "thinkingTokens": 0}
    settings = folder / f"{session}.settings.json"
    document(settings, {"model": "clay-1", "tokenUsage": usage, "inclusiveTokenUsage": usage})
    return settings
