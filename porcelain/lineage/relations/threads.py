"""Logical threads: which nodes belong together, in which order, and how the thread branches.

A thread is a component of the nodes that decisions join. A context jump begins another one. Its members stand in
topological order; where the claims run in a circle, that is reported and not followed.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec import Struct

from porcelain.lineage.relations.decision import Decision
from porcelain.lineage.relations.edges import Components
from porcelain.lineage.relations.nodes import Node, Nodes


class Topology(Struct, frozen=True, kw_only=True):
    """A relation within a thread, as it looks from the whole: ``rule`` is that of the decision, or
    ``several-children``."""

    decision: Decision
    relation: str
    rule: str


class Thread(Struct, frozen=True, kw_only=True):
    """A thread: its nodes in order, the relations between them, and the nodes of ``cycles``, one tuple a cycle.
    ``root`` is the node at its root, ``jumped`` says that a context jump led to it."""

    root: Node
    members: tuple[Node, ...]
    relations: tuple[Topology, ...]
    cycles: tuple[tuple[str, ...], ...] = ()
    jumped: bool = False

    @property
    def circling(self) -> frozenset[str]:
        """The ids of all nodes that are in a cycle."""
        return frozenset(one for cycle in self.cycles for one in cycle)


def joined(nodes: Nodes, decisions: Iterable[Decision]) -> Components:
    """The components of the nodes that decisions join; an older state of a file goes with the current one."""
    components = Components()
    for decision in decisions:
        if decision.joins:
            components.join(decision.source, decision.target)
    for node in nodes:
        if node.older:
            current = nodes.at(node.host, node.path)
            if current is not None:
                components.join(node.id, current.id)
    return components


def apart(components: Components, decisions: Iterable[Decision]) -> set[tuple[str, str]]:
    """The pairs of components that a decision keeps from one another."""
    found = set()
    for decision in decisions:
        if decision.relation in ("context_jump", "unrelated"):
            first, second = sorted((components.of(decision.source), components.of(decision.target)))
            found.add((first, second))
    return found


def make_threads(nodes: Nodes, decisions: Iterable[Decision], components: Components) -> list[Thread]:
    """All threads, in order of their roots' ids."""
    members: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        members[components.of(node.id)].append(node)
    inside: dict[str, list[Decision]] = defaultdict(list)
    jumped: set[str] = set()
    for decision in decisions:
        if decision.relation == "context_jump":
            jumped.add(decision.target)
        elif decision.joins:
            inside[components.of(decision.source)].append(decision)
    threads = [_thread(found, inside.get(top, ()), jumped) for top, found in members.items()]
    return sorted(threads, key=lambda thread: thread.root.id)


def _thread(members: list[Node], decisions: Iterable[Decision], jumped: set[str]) -> Thread:
    if len(members) == 1:
        (only,) = members
        return Thread(root=only, members=(only,), relations=(), jumped=only.id in jumped)
    decisions = list(decisions)
    children: dict[str, set[str]] = defaultdict(set)
    for decision in decisions:
        if decision.is_child:
            children[decision.source].add(decision.target)
    ordered, cycles = _topological(members, decisions)
    relations = tuple(
        Topology(decision=one, relation="fork", rule="several-children")
        if one.relation == "continuation" and len(children[one.source]) > 1
        else Topology(decision=one, relation=one.relation, rule=one.rule)
        for one in decisions
    )
    targets = {one.target for one in decisions}
    roots = [node for node in ordered if node.id not in targets and not node.older]
    root = min(roots or ordered, key=lambda node: (node.session, node.order))
    return Thread(
        root=root,
        members=tuple(ordered),
        relations=relations,
        cycles=cycles,
        jumped=any(node.id in jumped for node in roots or ordered),
    )


def _topological(
    members: list[Node], decisions: Iterable[Decision]
) -> tuple[list[Node], tuple[tuple[str, ...], ...]]:
    """The nodes so that each stands behind all that it comes from, ties by time and id, and the cycles. The nodes of a
    cycle come by time, when all that leads to the cycle has come, and what follows one of them follows them all."""
    by_id = {node.id: node for node in members}
    after: dict[str, set[str]] = {node.id: set() for node in members}
    for one in decisions:
        after[one.source].add(one.target)
    cycle_of = _cycles(after)
    groups: dict[str, list[str]] = defaultdict(list)
    for node in by_id:
        groups[cycle_of.get(node, node)].append(node)
    following: dict[str, set[str]] = defaultdict(set)
    for source, targets in after.items():
        group = cycle_of.get(source, source)
        following[group].update(cycle_of.get(target, target) for target in targets)
        following[group].discard(group)
    pending: dict[str, int] = dict.fromkeys(groups, 0)
    for found in following.values():
        for group in found:
            pending[group] += 1
    left = {group: len(nodes) for group, nodes in groups.items()}
    ready = [by_id[node].order for group, nodes in groups.items() if not pending[group] for node in nodes]
    heapq.heapify(ready)
    ordered: list[Node] = []
    while ready:
        node = heapq.heappop(ready)[2]
        ordered.append(by_id[node])
        group = cycle_of.get(node, node)
        left[group] -= 1
        for target in following[group] if not left[group] else ():
            pending[target] -= 1
            if not pending[target]:
                for waiting in groups[target]:
                    heapq.heappush(ready, by_id[waiting].order)
    cycles = (tuple(sorted(nodes)) for nodes in groups.values() if len(nodes) > 1)
    return ordered, tuple(sorted(cycles))


def _cycles(after: Mapping[str, set[str]]) -> dict[str, str]:
    """For each node in a cycle the smallest node of its strongly connected component (Tarjan, without recursion)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: dict[str, str] = {}
    for start in sorted(after):
        if start in number:
            continue
        work = [(start, iter(sorted(after[start])))]
        number[start] = low[start] = len(number)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in number:
                    number[target] = low[target] = len(number)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(after[target]))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], number[target])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == number[node]:
                    component: list[str] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    if len(component) > 1:
                        found.update((one, min(component)) for one in component)
    return found
