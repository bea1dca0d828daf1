"""Where a thread can be taken up again.

A leaf is a node that nothing has taken the place of. A file that is not there is never recommended, and of several
leaves none is: the choice is a person's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from msgspec import Struct

from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.relations.threads import Thread

#: Marks that take a leaf out of what is offered, unless it is preserved.
SETTING_ASIDE = frozenset({"superseded", "archived", "deletion_candidate"})
PRESERVING = frozenset({"preserve", "intentional_branch"})


class Resume(Struct, frozen=True, kw_only=True):
    """``active`` are the leaves that are there, oldest first, ``recoverable`` what one could go back to where there is
    none; ``recommended`` is None unless exactly one node is right."""

    status: str
    recommended: Node | None
    active: tuple[Node, ...]
    recoverable: tuple[Node, ...]
    reasons: tuple[str, ...]


def resume(thread: Thread, marks: Mapping[str, list[Fact]]) -> Resume:
    """The resume target of a thread; ``marks`` are those that people have set, by node id."""
    replaced = replacements(thread)
    aside = aside_nodes(thread)
    candidates = [node for node in thread.members if node.id not in aside]
    there = {node.id for node in candidates if node.present}
    words = {
        node.id: {str(one.columns["mark_type"]) for one in marks.get(node.id, ())} for node in candidates
    }
    leaves = [node for node in candidates if not replaced.get(node.id)]
    active = [
        node
        for node in leaves
        if node.id in there and (words[node.id] & PRESERVING or not words[node.id] & SETTING_ASIDE)
    ]
    reasons: list[str] = []
    if thread.cycles:
        reasons.append("cycle")
    if len(active) == 1:
        return _made("deterministic", active[0], active, [], [*reasons, "one-active-leaf"])
    if active:
        return _made("branch-choices", None, active, [], [*reasons, "several-active-leaves"])
    set_aside = [node for node in leaves if node.id in there]
    recoverable = set_aside or [
        node for node in candidates if node.id in there and not _lives_on(node.id, replaced, there)
    ]
    if recoverable:
        reasons.append("leaves-set-aside" if set_aside else "replacement-missing")
        only = recoverable[0] if len(recoverable) == 1 else None
        return _made("recoverable-only", only, [], recoverable, reasons)
    return _made("no-target", None, [], [], [*reasons, "no-file-present"])


def replacements(thread: Thread) -> dict[str, set[str]]:
    """For each node the nodes that took its place; none for the nodes of a cycle, where nothing comes last."""
    found: dict[str, set[str]] = defaultdict(set)
    for one in thread.relations:
        decision = one.decision
        if decision.continues and not {decision.source, decision.target} <= thread.circling:
            found[decision.source].add(decision.target)
    return found


def aside_nodes(thread: Thread) -> set[str]:
    """The nodes that only refer to another one: earlier states of a file, subagents and what came from them, and
    copies that hold nothing of their own."""
    found = {node.id for node in thread.members if node.older}
    if not thread.relations:
        return found
    there = {node.id for node in thread.members if node.present}
    targets = [(one.decision.source, one.decision.target) for one in thread.relations]
    for one in thread.relations:
        if one.decision.copy and one.decision.source in there - found:
            found.add(one.decision.target)
    served = {one.decision.target for one in thread.relations if one.decision.subagent}
    again = bool(served)
    while again:
        again = False
        for source, target in targets:
            if source in served and target not in served:
                served.add(target)
                again = True
    return found | served


def _lives_on(node: str, replaced: Mapping[str, set[str]], there: set[str]) -> bool:
    """Whether something that came after ``node`` is there."""
    work, done = [node], {node}
    while work:
        for target in replaced.get(work.pop(), ()):
            if target in there:
                return True
            if target not in done:
                done.add(target)
                work.append(target)
    return False


def _made(
    status: str, recommended: Node | None, active: list[Node], recoverable: list[Node], reasons: list[str]
) -> Resume:
    by_age = sorted(active, key=lambda node: node.order)
    return Resume(
        status=status,
        recommended=recommended,
        active=tuple(by_age),
        recoverable=tuple(sorted(recoverable, key=lambda node: node.order)),
        reasons=tuple(reasons),
    )
