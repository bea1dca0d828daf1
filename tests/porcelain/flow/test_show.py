"""``flow show``: the structure of one conversation as a tree, and its frames as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from objstore.snapshot import Snapshot
from porcelain.flow.chain.naming import all_chains
from porcelain.flow.folders import export_chain
from porcelain.providers.agents import PROVIDERS
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


def test_a_talk_that_is_not_there_where_the_context_was_reset(store: Path) -> None:
    whole = show(store, "9103794e")
    assert "--- context reset ---" in whole
    count = sum(line.startswith("talk ") for line in whole)
    for number in (0, count + 1):
        result = objstore(store, "flow", "show", "--talk", str(number), "9103794e")
        assert (result.code, result.out) == (3, "")
    for number in range(1, count + 1):
        lines = show(store, "--talk", str(number), "9103794e")
        assert [line for line in lines if line.startswith(("talk", "---"))] == [
            line for line in whole if line.startswith(f"talk {number} ")
        ]


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


def test_the_chains_of_a_store_are_listed_once_for_a_tree(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings: list[str] = []

    def counted(view: Snapshot) -> Any:
        listings.append("one")
        return all_chains(view)

    monkeypatch.setattr(export_chain, "all_chains", counted)
    show(store, AGENTS)
    assert listings == ["one"]


@pytest.fixture(scope="module")
def keeping(home: Path) -> Path:
    """A store of the same files that keeps content."""
    store = home.parent / "keeping"
    succeed(store, "init")
    succeed(store, "config", "content.keep", "on")
    succeed(store, "import", home=home)
    return store


def conversations(store: Path) -> list[str]:
    rows = succeed(store, "flow", "conversations", "--json").out.splitlines()
    return [f"{row['provider']}/{row['id']}" for row in map(json.loads, rows)]


def tree(store: Path, name: str) -> list[str]:
    """What was said, without the number of the last round, which depends on when was imported."""
    lines = show(store, "--text", name)
    return lines[lines.index("") :]


def test_text_is_that_of_the_store_or_of_the_files(store: Path, keeping: Path) -> None:
    names = conversations(store)
    assert {name.split("/")[0] for name in names} == set(PROVIDERS)
    for name in names:
        lines = tree(store, name)
        assert lines == tree(keeping, name)
        assert not any("unavailable" in line for line in lines)
        assert any(line.lstrip().startswith("| ") for line in lines)
    lines = tree(store, FORKED)
    place = lines.index("  message.external  107 bytes")
    assert lines[place + 1].startswith("    | The predictions for Skarvik are an hour late since Sunday.")
    assert any(line.startswith("      = ") for line in lines)


def test_text_that_is_nowhere_is_said_to_be_unavailable(home: Path, keeping: Path, tmp_path: Path) -> None:
    private, moved = tmp_path / "private", copy_home(tmp_path / "home")
    path = moved / TIDEPOOL
    succeed(private, "import", home=moved)
    before = tree(private, FORKED)
    path.write_bytes(path.read_bytes().replace(b"an hour late since", b"an hour early since"))
    after = tree(private, FORKED)
    place = before.index("  message.external  107 bytes")
    assert after[place + 1] == "    | (text unavailable)"
    assert [one for one in range(len(before)) if before[one] != after[one]] == [place + 1]
    path.unlink()
    gone = tree(private, FORKED)
    said = [line.lstrip() for line in gone if line.lstrip().startswith(("| ", "= "))]
    assert set(said) == {"| (text unavailable)", "= (text unavailable)"}
    assert len(show(private, FORKED)) < len(gone) < len(before)


def test_text_has_secrets_replaced_and_is_cut(tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = home / TIDEPOOL
    path.parent.mkdir(parents=True)
    secret = "ghp_" + "a1B2" * 9
    lines = [
        {
            "type": "user",
            "uuid": "u1",
            "promptId": "p1",
            "origin": {"kind": "human"},
            "message": {"content": text},
        }
        for text in (f"use {secret} here", "\u00e9" * 1500)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines).replace('"u1"', '"u2"', 1))
    succeed(tmp_path / "store", "import", home=home)
    said = [line for line in tree(tmp_path / "store", FORKED) if "|" in line]
    assert secret not in str(said) and said[0].startswith("    | use [") and said[0].endswith("] here")
    assert said[1:] == ["    | " + "\u00e9" * 1000, "    | ... 1,000 more bytes"]


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
        (("--depth", "0", AGENTS), 2, "--depth counts levels from 1"),
        (("--json", "--text", AGENTS), 2, "takes none of --text, --talk, --depth"),
        (("--json", "--talk", "1", AGENTS), 2, "takes none of --text, --talk, --depth"),
        (("--json", "--depth", "1", AGENTS), 2, "takes none of --text, --talk, --depth"),
    ],
)
def test_what_is_not_there(store: Path, words: tuple[str, ...], code: int, said: str) -> None:
    result = objstore(store, "flow", "show", *words)
    assert (result.code, result.out) == (code, "")
    assert said in result.err and result.err.count("\nobjstore: ") == 0 and "internal" not in result.err
