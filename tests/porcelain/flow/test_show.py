"""``flow show``: the structure of one conversation as a tree, and its frames as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.porcelain.importing.driving import TIDEPOOL, copy_home, objstore, succeed

AGENTS = "5f9f4cd9-f5f5-4754-835d-fb9d3463361f"
FORKED = TIDEPOOL.stem


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_home(tmp_path_factory.mktemp("show") / "home")


@pytest.fixture(scope="module")
def store(home: Path) -> Path:
    """Two rounds of the first conversation, one of all others."""
    store, path = home.parent / "store", home / TIDEPOOL
    data = path.read_bytes()
    path.write_bytes(b"".join(data.splitlines(keepends=True)[:15]))
    succeed(store, "import", home=home)
    path.write_bytes(data)
    succeed(store, "import", home=home)
    return store


def show(store: Path, *words: str) -> list[str]:
    return succeed(store, "flow", "show", *words).out.splitlines()


def frames(store: Path, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in show(store, "--json", *words)]


def test_the_header_counts_what_is_there(store: Path) -> None:
    lines = show(store, AGENTS)
    assert lines[0] == f"claude {AGENTS}"
    assert lines[1] == "  2 talks, 14 model calls, 48 steps, 2 subagents, 1 segment"
    assert lines[2] == "  2026-04-02T13:05:45Z to 2026-04-02T13:10:43.248Z"
    assert lines[3] == "  tokens: 56 in, 1,269 out, 209,545 cache read, 6,738 cache write"
    assert lines[4].startswith("  round 1, ") and lines[5] == ""


def test_tokens_are_those_of_the_last_line_of_each_response(store: Path, home: Path) -> None:
    last: dict[str, int] = {}
    for path in sorted((home / TIDEPOOL.parent).with_name("-home-mira-src-lantern-mail").rglob("*.jsonl")):
        if AGENTS in str(path):
            for line in path.read_bytes().splitlines():
                message = json.loads(line).get("message", {})
                if "usage" in message:
                    last[message["id"]] = message["usage"]["output_tokens"]
    assert f", {sum(last.values()):,} out, " in show(store, AGENTS)[3]


def test_child_streams_stand_under_the_calls_that_started_them(store: Path) -> None:
    lines = show(store, AGENTS)
    place = lines.index("    agent.call Agent")
    assert lines[place + 1] == "      started a935f24797866b1cf"
    assert lines[place + 2] == "        llm.call  claude-sonnet-5, 50 tokens out"
    assert lines[place + 3] == "          tool Bash"
    assert sum(line.strip() == "agent.call Agent" for line in lines) == 2
    assert "  2 x context.injection" in lines
    assert "    tool mcp__tracker__create_issue" in lines


def test_a_reset_a_sidechain_and_a_missing_result_are_shown(store: Path) -> None:
    assert "--- context reset ---" in show(store, "9103794e")
    assert any("unresolved: 1 tool_result" in line for line in show(store, "--at", "1", FORKED))
    assert any(line.endswith("  (no result)") for line in show(store, "--at", "1", FORKED))
    assert not any("unresolved" in line for line in show(store, FORKED))


def test_as_of_a_round(store: Path) -> None:
    first, last = show(store, "--at", "1", FORKED), show(store, FORKED)
    assert len(first) < len(last)
    assert first != last and last == show(store, "--at", "2", FORKED)
    assert {frame["id"] for frame in frames(store, "--at", "1", FORKED)} < {
        frame["id"] for frame in frames(store, FORKED)
    }
    result = objstore(store, "flow", "show", "--at", "3", FORKED)
    assert (result.code, result.out) == (3, "")
    assert result.err == f"objstore: claude/{FORKED}: has no round 3: the last one is 2\n"


def test_one_talk(store: Path) -> None:
    whole, second = show(store, AGENTS), show(store, "--talk", "2", AGENTS)
    place = next(number for number, line in enumerate(whole) if line.startswith("talk 2"))
    assert second[6:] == whole[place:]
    result = objstore(store, "flow", "show", "--talk", "9", AGENTS)
    assert (result.code, result.out) == (3, "")
    assert result.err == f"objstore: claude/{AGENTS}: has no talk 9\n"


def test_depth(store: Path) -> None:
    def deepest(lines: list[str]) -> int:
        return max((len(line) - len(line.lstrip())) // 2 for line in lines[6:])

    for depth in (1, 2, 3):
        assert deepest(show(store, "--depth", str(depth), AGENTS)) == depth - 1
    assert deepest(show(store, AGENTS)) == 5


def test_json_has_every_frame_of_the_fold(store: Path) -> None:
    found = frames(store, AGENTS)
    assert {frame["frame"] for frame in found} == {"node", "relation"}
    calls = [frame for frame in found if frame.get("kind") == "llm.call"]
    assert len(calls) == 14
    assert all(frame["ref"].keys() == {"seq", "row"} for frame in calls)
    assert all(isinstance(frame["attrs"]["fragments"], int) for frame in calls)
    (start, *_) = [frame for frame in found if frame["frame"] == "relation" and frame["type"] == "starts"]
    assert start["from"].startswith("tool/") and start["to"].startswith("stream/")


@pytest.mark.parametrize("name", [AGENTS, AGENTS[:5], f"claude/{AGENTS}", f"claude/{AGENTS[:5]}"])
def test_names(store: Path, name: str) -> None:
    assert show(store, name)[0] == f"claude {AGENTS}"


def test_a_conversation_of_another_agent(store: Path) -> None:
    lines = show(store, "pi/3da39d98")
    assert lines[0].startswith("pi 3da39d98-")
    assert any("8 model calls" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("zzz",), 3, "no such conversation"),
        ((f"pi/{AGENTS}",), 3, "no such conversation"),
        (("5",), 2, "names 3 conversations"),
        (("",), 3, "no such conversation"),
        (("*",), 3, "no such conversation"),
        ((), 2, "too few arguments"),
        (("a", "b"), 2, "unexpected argument"),
        (("--depth", "x", "a"), 2, "--depth"),
        (("--at", "0", AGENTS), 2, "--at counts rounds from 1"),
    ],
)
def test_what_is_not_there(store: Path, words: tuple[str, ...], code: int, said: str) -> None:
    result = objstore(store, "flow", "show", *words)
    assert (result.code, result.out) == (code, "")
    assert said in result.err and result.err.count("\nobjstore: ") == 0 and "internal" not in result.err
