"""The public tool's own scenarios and what it expects of them (in the shared folder, no part of the project)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tests.porcelain.flow.sample import attrs, state
from tests.porcelain.flow.scenarios import BASE, Checkpoint, duration, run

yaml = pytest.importorskip("yaml")

NAMES = ["fixture", "lost-records", "three-rounds", "unfinished-tool", "workflow"]
#: What a view document would show, and what a push would send: neither exists here.
ELSEWHERE = {"state", "first_talk", "push"}


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    found = shared / "vectors" / "session-flow" / "upstream" / "tests" / "scenarios"
    if not found.is_dir():
        pytest.skip("the shared folder holds no scenarios")
    return found


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_gives_what_is_expected(folder: Path, name: str) -> None:
    checkpoints, agents = run(load(folder / f"{name}.yaml"))
    expected = load(folder / f"{name}.expect.yaml")["checkpoints"]
    assert expected
    for point, wanted in expected.items():
        for key, value in wanted.items():
            check(key, value, checkpoints[point], agents)


def check(key: str, wanted: Any, point: Checkpoint, agents: dict[str, str]) -> None:
    fold = point.fold
    kinds = Counter(node.kind for node in fold.nodes.values())
    if key == "rounds":
        assert fold.round == wanted
    elif key == "written":
        assert (point.written is not None) == wanted
    elif key == "delta":
        assert point.written is not None
        frames = point.written.round.nodes
        assert wanted and len(frames) < len(fold.nodes)
    elif key == "kinds":
        assert {kind: kinds[kind] for kind in wanted} == wanted
    elif key == "talks_on":
        talks = Counter(node.stream for node in fold.nodes.values() if node.kind == "talk")
        assert {name: talks[agents.get(name, name)] for name in wanted} == wanted
    elif key == "relations":
        types = Counter(relation.type for relation in fold.relations.values())
        assert {type_: types[type_] for type_ in wanted} == wanted
    elif key == "unresolved":
        states = Counter(entry.state for entry in fold.unresolved.values())
        assert {state_: states[state_] for state_ in wanted} == wanted
    elif key == "unresolved_kinds":
        for kind, state_ in wanted.items():
            found = {entry.state for entry in fold.unresolved.values() if entry.kind == kind}
            assert found == (set() if state_ == "none" else {state_})
    elif key == "nodes":
        for name, value in wanted.items():
            check_node(name, value, point, agents)
    elif key == "session":
        (session,) = (node for node in fold.nodes.values() if node.kind == "session")
        header = fold.header
        assert header is not None
        assert attrs(session)["from_time"] == header.session_from_time == moment(wanted["from"])
        assert attrs(session)["through_time"] == header.session_through_time == moment(wanted["to"])
    elif key == "view":
        found = {"talks": kinds["talk"], "rounds": fold.round, "files": point.files + fold.round}
        assert {name: found[name] for name in wanted if name not in ELSEWHERE} == {
            name: value for name, value in wanted.items() if name not in ELSEWHERE
        }
    else:
        raise AssertionError(f"an expectation that is not checked: {key}")


def moment(offset: str) -> str:
    from porcelain.flow.formats.times import rfc3339nano

    return rfc3339nano(BASE + duration(offset.removeprefix("+")))


def check_node(name: str, wanted: Any, point: Checkpoint, agents: dict[str, str]) -> None:
    prefix, _, last = name.rpartition("/")
    node = point.fold.nodes.get(f"{prefix}/{agents.get(last, last)}")
    if wanted.get("absent"):
        assert node is None
        return
    assert node is not None
    if "refs" in wanted:
        assert node.refs is not UNSET and len(node.refs) == wanted["refs"]
    if "revision" in wanted:
        assert node.revision == wanted["revision"]
    if "kind" in wanted:
        assert node.kind == wanted["kind"]
    for key, value in wanted.get("attrs", {}).items():
        assert attrs(node)[key] == value


def test_what_is_replayed_changes_nothing(folder: Path) -> None:
    checkpoints, _ = run(load(folder / "replay.yaml"))
    clean, final = checkpoints["clean"], checkpoints["final"]
    assert final.files == clean.files + 1
    assert final.written is not None and final.written.round.nodes == []
    assert state(final.fold) == state(clean.fold)
