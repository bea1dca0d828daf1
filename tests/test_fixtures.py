"""The sample conversations are what their README says: counted here from the bytes, not by what made them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from porcelain.providers.redaction import redact
from tests.fixture_files import (
    CLAUDE,
    COUNTED,
    FIXTURES,
    PI,
    README,
    TREES,
    UNCOUNTED,
    count,
    data_of,
    records_of,
    shown,
)


def test_generator_writes_the_same_bytes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-B", str(FIXTURES / "generate.py"), str(tmp_path)], check=True)
    again = {p.relative_to(tmp_path).as_posix(): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    here = {
        p.relative_to(FIXTURES).as_posix(): p.read_bytes()
        for p in (FIXTURES / "home").rglob("*")
        if p.is_file()
    }
    here["README.md"] = (FIXTURES / "README.md").read_bytes()
    assert again == here


def test_readme_names_every_file() -> None:
    found = [p for p in (FIXTURES / "home").rglob("*") if p.is_file()]
    files = {p.relative_to(FIXTURES).as_posix(): p.stat().st_size for p in found}
    sizes = dict(files)
    for folder, number in TREES.items():
        inside = {path: files.pop(path) for path in sizes if path.startswith(folder)}
        assert len(inside) == number
        files[folder] = sum(inside.values())
    assert COUNTED.keys() | UNCOUNTED.keys() == files.keys()
    assert {path: files[path] for path in UNCOUNTED} == UNCOUNTED
    assert sum(sizes.values()) < 600_000


def test_git_keeps_every_file_as_it_is() -> None:
    files = [p.relative_to(FIXTURES.parent).as_posix() for p in (FIXTURES / "home").rglob("*") if p.is_file()]
    ask = {"cwd": FIXTURES.parent, "input": "\n".join(files), "text": True, "capture_output": True}
    if not (FIXTURES.parent / ".git").exists():
        pytest.skip("this is no working tree of git")
    ignored = subprocess.run(["git", "check-ignore", "--no-index", "--stdin"], check=False, **ask)
    assert ignored.stdout == ""
    said = subprocess.run(["git", "check-attr", "text", "--stdin"], check=True, **ask).stdout.splitlines()
    assert len(said) == len(files) and all(line.endswith(": text: unset") for line in said)


@pytest.mark.parametrize("path", sorted(COUNTED))
def test_counts(path: str) -> None:
    assert count(path) == COUNTED[path]


@pytest.mark.parametrize("path", CLAUDE)
def test_claude_layout(path: str) -> None:
    project, name = path.split("/")[3:5]
    for record in records_of(path):
        if "uuid" in record:
            assert re.sub(r"[^A-Za-z0-9]", "-", record["cwd"]) == project
            assert record["sessionId"] == name.removesuffix(".jsonl")


@pytest.mark.parametrize("path", [path for path in CLAUDE if COUNTED[path][6] == 0])
def test_claude_chain(path: str) -> None:
    seen: set[str] = set()
    for record in records_of(path):
        if "uuid" in record:
            assert record["uuid"] not in seen
            assert record["parentUuid"] is None or record["parentUuid"] in seen
            seen.add(record["uuid"])


@pytest.mark.parametrize("path", CLAUDE)
def test_claude_results_answer_calls(path: str) -> None:
    calls, answered = set(), set()
    for record in records_of(path):
        content = record.get("message", {}).get("content")
        for block in content if isinstance(content, list) else ():
            calls |= {block["id"]} if block["type"] == "tool_use" else set()
            answered |= {block["tool_use_id"]} if block["type"] == "tool_result" else set()
    assert answered == calls


def test_claude_fork_and_branch_copy_the_first_session() -> None:
    first = {r["uuid"]: r for r in records_of(shown("a plain session")) if "uuid" in r}
    for words, marked in (("--fork-session", False), ("`/branch`", True)):
        copies = [r for r in records_of(shown(words)) if r.get("uuid") in first]
        assert len(copies) > 15
        for copy in copies:
            mark = copy.pop("forkedFrom", None)
            assert (mark is not None) is marked
            assert {**copy, "sessionId": first[copy["uuid"]]["sessionId"]} == first[copy["uuid"]]
            assert mark is None or mark == {
                "sessionId": first[copy["uuid"]]["sessionId"],
                "messageUuid": copy["uuid"],
            }


def test_claude_usage_is_repeated_and_its_last_figure_is_the_highest() -> None:
    repeated = 0
    for path in CLAUDE:
        figures: dict[str, list[int]] = {}
        for record in records_of(path):
            if record["type"] == "assistant":
                figures.setdefault(record["message"]["id"], []).append(
                    record["message"]["usage"]["output_tokens"]
                )
        repeated += sum(len(tokens) > 1 for tokens in figures.values())
        assert all(tokens[-1] == max(tokens) for tokens in figures.values())
    assert repeated > 20


def test_claude_subagents_are_tied_to_their_calls() -> None:
    main = shown("two subagents")
    said = [record for record in records_of(main) if record["type"] == "assistant"]
    calls = {block["id"] for record in said for block in record["message"]["content"] if "id" in block}
    sidecars = list((FIXTURES / main).with_suffix("").rglob("*.meta.json"))
    assert len(sidecars) == 2
    for sidecar in sidecars:
        assert json.loads(sidecar.read_bytes())["toolUseId"] in calls
        assert sidecar.with_name(sidecar.name.replace(".meta.json", ".jsonl")).exists()


@pytest.mark.parametrize("path", PI)
def test_pi_layout_and_tree(path: str) -> None:
    header, *entries = records_of(path)
    assert path.split("/")[-2] == "--" + header["cwd"].lstrip("/").replace("/", "-") + "--"
    assert path.rsplit("/", maxsplit=1)[-1].startswith(re.sub("[:.]", "-", header["timestamp"]) + "_")
    seen: set[str | None] = {None}
    for entry in entries:
        if "version" in header:
            assert entry["parentId"] in seen and entry["id"] not in seen
            seen.add(entry["id"])
        else:
            assert not entry.keys() & {"id", "parentId"}
    parent = header.get("parentSession") or header.get("branchedFrom")
    if parent:
        original = records_of("home/" + parent.removeprefix("/home/mira/"))
        assert sum(entry in original for entry in entries) >= 6


def test_damaged_file_shows_every_kind() -> None:
    data = (FIXTURES / shown("damage: glued")).read_bytes()
    assert (
        b"}{" in data and b"\n\n" in data and b"\r\n" in data and b"\x00" * 96 in data and b"\\ud83d " in data
    )
    assert not data.endswith(b"\n")


def test_planted_secrets_are_replaced_and_nothing_else() -> None:
    planted = shown("planted secrets")
    rules = {rule: int(n) for rule, n in re.findall(r"^\| `([a-z-]+)` \| (\d+) \|$", README, re.MULTILINE)}
    assert len(rules) == 6
    for path in sorted(p.relative_to(FIXTURES).as_posix() for p in FIXTURES.glob("home/**/*") if p.is_file()):
        data = data_of(path)
        clean = redact(data)
        if path != planted:
            assert clean is data, path
            continue
        for rule, times in rules.items():
            assert clean.count(b"[redacted:%s]" % rule.encode()) == times, rule
        assert clean.count(b"[redacted:") == sum(rules.values())
        assert not re.search(rb"AKIA|ghp_|not-a-real|notARealSecret|FAKEfake|fixture0token", clean)
        kept = rb"RELEASE_COMMIT=[0-9a-f]{40}|IMAGE=sha256:[0-9a-f]{64}|x-request-id: [0-9a-f-]{36}"
        assert re.findall(kept, clean) == re.findall(kept, data) and len(re.findall(kept, data)) == 6
        for before, after in zip(data.splitlines(), clean.splitlines(), strict=True):
            assert json.loads(before).keys() == json.loads(after).keys()
