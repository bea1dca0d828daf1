"""Members in topological order, and circles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from porcelain.lineage.relations.decision import Decision
from porcelain.lineage.relations.nodes import Node, Nodes
from porcelain.lineage.relations.threads import joined, make_threads


def node(name: str, minute: int = 0) -> Node:
    return Node(
        id=f"observation_{name}",
        session=f"session_{name}",
        provider="pi",
        native_id=name,
        host="h",
        source="s",
        path=f"/{name}",
        first=f"2026-03-01T10:{minute:02}:00.000Z",
    )


def decision(source: str, target: str, relation: str = "continuation") -> Decision:
    return Decision(
        source=f"observation_{source}",
        target=f"observation_{target}",
        relation=relation,
        rule="test",
        confidence="high",
        because="",
        would_change="",
        joins=True,
        continues=relation == "continuation",
    )


def order(names: str, edges: list[str], minutes: dict[str, int] | None = None) -> str:
    nodes = Nodes(node(name, (minutes or {}).get(name, 0)) for name in names)
    decisions = [decision(*edge) for edge in edges]
    threads = make_threads(nodes, decisions, joined(nodes, decisions))
    return " ".join("".join(one.native_id for one in thread.members) for thread in threads)


def test_a_copy_stands_behind_what_it_comes_from_whatever_the_clocks_say() -> None:
    assert order("abcd", ["ab", "bc", "bd"], {"a": 9, "b": 3, "c": 5, "d": 1}) == "abdc"
    assert order("abc", []) == "a b c"
    assert order("abc", ["ca"]) == "b ca"


def test_ties_by_time_and_then_id() -> None:
    assert order("abcd", ["ad", "ac", "ab"], {"b": 2, "c": 1, "d": 1}) == "acdb"


def test_a_circle_does_not_hold_up_what_follows_it() -> None:
    assert order("abcd", ["ab", "bc", "cb", "cd"], {"b": 2, "c": 1, "d": 0}) == "acbd"


names = st.sampled_from("abcdef")


@given(st.lists(st.tuples(names, names).filter(lambda pair: pair[0] != pair[1]), max_size=10))
def test_order_and_circles(pairs: list[tuple[str, str]]) -> None:
    nodes = Nodes(node(name) for name in "abcdef")
    decisions = [decision(*pair) for pair in dict.fromkeys(pairs)]
    threads = make_threads(nodes, decisions, joined(nodes, decisions))
    assert sorted(one.native_id for thread in threads for one in thread.members) == list("abcdef")
    reach = {name: {name} for name in "abcdef"}
    for _ in "abcdef":
        for source, target in pairs:
            reach[source] |= reach[target]
    for thread in threads:
        place = {one.native_id: number for number, one in enumerate(thread.members)}
        circles = [{name.removeprefix("observation_") for name in cycle} for cycle in thread.cycles]
        for source in sorted(place):
            for target in sorted(reach[source] - {source}):
                together = source in reach[target]
                assert together == any({source, target} <= circle for circle in circles)
                assert together or place[source] < place[target]
