"""The commands that answer about structure: what they print, as text, JSON and YAML."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from porcelain.flow.assembly.dialects import DIALECTS
from porcelain.flow.chain.folding import fold_rounds
from porcelain.flow.formats.sf_reading import read_round
from tests.porcelain.flow.folders import SESSION, build, chain, landed_files
from tests.porcelain.importing.driving import HOME, objstore, succeed

yaml = pytest.importorskip("yaml")
ROUNDS = [read_round(data) for data, _ in chain(landed_files(), 1, 3)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one imported conversation in two rounds."""
    folder = tmp_path_factory.mktemp("commands")
    succeed(folder / "store", "init")
    succeed(folder / "store", "config", "content.keep", "on")
    succeed(folder / "store", "flow", "import", build(folder / "root"))
    return folder / "store"


def answers(store: Path, *words: str) -> list[Any]:
    """The answer as JSON, which is also the answer as YAML."""
    rows = [json.loads(line) for line in succeed(store, *words, "--json").out.splitlines()]
    assert yaml.safe_load(succeed(store, *words, "--yaml").out) == rows
    return rows


def test_conversations(store: Path) -> None:
    (row,) = answers(store, "flow", "conversations")
    header = ROUNDS[1].header
    assert (row["id"], row["provider"], row["rounds"]) == (SESSION, "quill", 2)
    assert row["origins"] == ["sf-" + ROUNDS[0].digest[:16]]
    assert (row["talks"], row["llm_calls"], row["subagents"], row["unresolved"]) == (
        3,
        4,
        1,
        header.unresolved,
    )
    lines = succeed(store, "flow", "conversations").out.splitlines()
    assert lines[0].split()[:3] == ["last", "agent", "id"] and lines[1].split()[2:4] == ["quill", SESSION]
    assert succeed(store, "flow", "conversations", "--provider", "pi").out == ""


def test_log_of_rounds(store: Path) -> None:
    one, two = answers(store, "flow", "log", SESSION)
    assert (one["fromSeq"], one["throughSeq"], two["fromSeq"], two["throughSeq"]) == (1, 1, 2, 3)
    assert [one["digest"], two["digest"]] == [round_.digest for round_ in ROUNDS]
    assert two["nodes"] == len(ROUNDS[1].nodes) and two["open"] == ROUNDS[1].header.unresolved
    lines = succeed(store, "flow", "log", SESSION[:6]).out.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["1", ROUNDS[0].digest[:12], "1-1"],
        ["2", ROUNDS[1].digest[:12], "2-3"],
    ]


def test_history_of_an_entity(store: Path) -> None:
    added, changed = answers(store, "flow", "log", SESSION, "tool/t2")
    assert (added["round"], added["change"], added["kind"]) == (1, "added", "tool")
    assert (changed["round"], changed["change"]) == (2, "changed")
    assert changed["fields"]["attrs.result"] == {"old": "unavailable", "new": "available"}
    assert changed["fields"]["kind"] == {"old": "tool", "new": "agent.call"}
    text = succeed(store, "flow", "log", SESSION, "tool/t2").out.splitlines()
    assert text[0] == f"round 1  {ROUNDS[0].digest[:12]}" and "  + node tool/t2  tool" in text
    assert "      attrs.result: unavailable -> available" in text
    resolved = answers(store, "flow", "log", SESSION, "unres/tool_result/t2")
    assert [one["state"] for one in resolved] == ["open", "resolved"]
    assert objstore(store, "flow", "log", SESSION, "tool/none").code == 3
    several = objstore(store, "flow", "log", SESSION, "t2")
    assert several.code == 2 and "type one of: tool/t2 unres/tool_result/t2" in several.err
    assert [one["id"] for one in answers(store, "flow", "log", SESSION, "t1")] == ["tool/t1"]


def test_diff_is_what_leads_from_one_fold_to_the_other(store: Path) -> None:
    rows = answers(store, "flow", "diff", SESSION, "1", "2")
    old, new = fold_rounds(ROUNDS[:1]), fold_rounds(ROUNDS)
    names = {row["id"]: row["change"] for row in rows}
    assert {name for name, change in names.items() if change == "added"} == (
        (new.nodes.keys() | new.relations.keys() | new.unresolved.keys())
        - (old.nodes.keys() | old.relations.keys() | old.unresolved.keys())
    )
    assert names["tool/t2"] == names["session/" + SESSION] == "changed" and "tool/t1" not in names
    assert answers(store, "flow", "diff", SESSION, "1") == rows
    assert answers(store, "flow", "diff", SESSION, "2", "2") == []
    back = {row["id"]: row["change"] for row in answers(store, "flow", "diff", SESSION, "2", "1")}
    swapped = {"added": "removed", "removed": "added", "changed": "changed"}
    assert back == {name: swapped[change] for name, change in names.items()}
    everything = answers(store, "flow", "diff", SESSION, "0", "2")
    assert {row["change"] for row in everything} == {"added"} and len(everything) == len(new.nodes) + len(
        new.relations
    ) + len(new.unresolved)
    result = succeed(store, "flow", "diff", SESSION, "1", "2")
    assert "~ node tool/t2  agent.call" in result.out.splitlines()
    kinds = Counter(names.values())
    assert result.err == f"round 1 to 2: {kinds['added']} added, {kinds['changed']} changed\n"


@pytest.mark.parametrize(("words", "code"), [(("1", "9"), 3), (("x",), 2), ((), 2), (("1", "2", "3"), 2)])
def test_diff_of_what_is_not_there(store: Path, words: tuple[str, ...], code: int) -> None:
    assert objstore(store, "flow", "diff", SESSION, *words).code == code


def test_unresolved(store: Path, tmp_path: Path) -> None:
    assert answers(store, "flow", "unresolved") == []
    assert succeed(store, "flow", "unresolved").err == "nothing is unresolved\n"
    (row,) = answers(store, "flow", "unresolved", "--all", SESSION)
    assert (row["kind"], row["ref"], row["state"], row["since"]) == ("tool_result", "t2", "resolved", 2)
    early = tmp_path / "early"
    succeed(early, "init")
    succeed(early, "flow", "import", build(tmp_path / "root", landed_files()[:1], ends=(1,)))
    (row,) = answers(early, "flow", "unresolved", SESSION)
    assert (row["state"], row["reason"]) == ("open", "no result landed for this tool use")
    lines = succeed(early, "flow", "unresolved").out.splitlines()
    assert lines[1].split()[:3] == [f"quill/{SESSION}", "tool_result", "t2"]


def test_stats(store: Path) -> None:
    quill, total = answers(store, "flow", "stats")
    assert (quill["provider"], quill["conversations"], quill["talks"]) == ("quill", 1, 3)
    assert total == quill | {"provider": "total"}
    (one,) = answers(store, "flow", "stats", SESSION)
    fold = fold_rounds(ROUNDS)
    assert one["kinds"] == Counter(node.kind for node in fold.nodes.values())
    assert list(one["kinds"].values()) == sorted(one["kinds"].values(), reverse=True)
    assert one["unresolved"] == {"tool_result resolved": 1} and one["digest"] == fold.digest
    lines = succeed(store, "flow", "stats", SESSION).out.splitlines()
    assert lines[0] == f"quill {SESSION}" and f"nodes: {len(fold.nodes)}" in lines


def test_glossary(tmp_path: Path) -> None:
    rows = answers(tmp_path / "none", "flow", "glossary")
    assert {row["dialect"] for row in rows} == set(DIALECTS)
    some = answers(tmp_path / "none", "flow", "glossary", "claude")
    assert {row["dialect"] for row in some} == {"claude-code/1"}
    assert len(some) == len(DIALECTS["claude-code/1"])
    assert "(derived)" in succeed(tmp_path / "none", "flow", "glossary", "claude").out
    assert objstore(tmp_path / "none", "flow", "glossary", "klingon").code == 3


def test_json_or_yaml(store: Path) -> None:
    for words in (("conversations",), ("stats",), ("glossary",), ("log", SESSION)):
        result = objstore(store, "flow", *words, "--json", "--yaml")
        assert result.code == 2 and result.out == ""


def test_an_empty_store(tmp_path: Path) -> None:
    succeed(tmp_path / "store", "init")
    for words in (("conversations",), ("stats",), ("unresolved",), ("log", "x"), ("assemble",)):
        result = objstore(tmp_path / "store", "flow", *words)
        assert (result.code, result.out) == (3, ""), words
    assert objstore(tmp_path / "store", "flow", "export", "--all", tmp_path / "out").code == 3
    assert objstore(tmp_path / "store", "flow", "export", tmp_path / "out").code == 2
    assert objstore(tmp_path / "none", "flow", "assemble").code == 3


def test_several_agents_beside_one_another(tmp_path: Path) -> None:
    succeed(tmp_path / "store", "import", home=HOME)
    rows = answers(tmp_path / "store", "flow", "conversations")
    assert {row["provider"] for row in rows} >= {"claude", "pi"}
    assert [row["to"] for row in rows] == sorted((row["to"] for row in rows), reverse=True)
    *agents, total = answers(tmp_path / "store", "flow", "stats")
    assert total["talks"] == sum(one["talks"] for one in agents) == sum(row["talks"] for row in rows)
