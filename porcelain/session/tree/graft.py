"""Uniting the heads of a session that went on in several places.

The head that went furthest (then the smallest id) is the base; the turns of the others that it does not contain are
minted again under new numbers, in their order, with their own times. No clock and no view from here enters, so two
machines that have the same heads make the same objects. Labels follow the rule of three: one that only the other side
changed since they parted is taken over, one that both changed stays as the base has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from objstore.batch import Batch
from objstore.chain import entries
from objstore.errors import CheckFailed, Conflict, RefMoved
from objstore.objects import SESSION_NODE
from objstore.snapshot import Snapshot
from objstore.store import Store, load
from porcelain.session.tree import names
from porcelain.session.tree.change import (
    Added,
    Change,
    Labelled,
    Session,
    one_head,
)
from porcelain.session.tree.events import KIND, Event, node_seq
from porcelain.session.tree.identity import check_sid
from porcelain.session.tree.nodes import Node, turn_of
from porcelain.session.tree.replay import Tree, main_chain, replay

Turn = tuple[str, str, str, str, str]
_ATTEMPTS = 100


class Grafted(NamedTuple):
    """What a graft did: the head it made (or the one there was), the heads it united, what it brought."""

    head: str
    united: list[str]
    nodes: list[Added]
    labels: list[Labelled]


class _Origins:
    """Which turn a node is: the one that it was first asked as, through any number of grafts."""

    def __init__(self, view: Snapshot, chains: Iterable[list[Event]]) -> None:
        self._view = view
        self._from: dict[Turn, Turn] = {}
        for chain in chains:
            for event in chain:
                source = event.body.grafted_from
                if isinstance(source, str) and bytes.fromhex(source) in view:
                    self._from[self._identity(event.body.node_hash)] = self._identity(source)

    def _identity(self, key: str) -> Turn:
        node: Node = load(self._view, bytes.fromhex(key), SESSION_NODE)
        return turn_of(node)

    def of(self, node: Node) -> Turn:
        """The turn that a node is."""
        turn = turn_of(node)
        seen = {turn}
        while (before := self._from.get(turn)) is not None and before not in seen:
            seen.add(turn := before)
        return turn

    def of_key(self, key: str) -> Turn:
        """The turn that the node with this key is."""
        return self.of(load(self._view, bytes.fromhex(key), SESSION_NODE))


def _history(view: Snapshot, head: str) -> dict[bytes, Event]:
    """All events that a head goes back to, grafted chains included."""
    return dict(entries(view, bytes.fromhex(head)))


def grafted_as(view: Snapshot, session: Session, node: Node) -> int | None:
    """The ``seq`` of the node in ``session`` that is the same turn as ``node`` of another head, or None."""
    history = _history(view, session.state.head)
    origins = _Origins(view, [list(history.values())])
    wanted = origins.of(node)
    for seq in session.index.seqs():
        if origins.of(session.node(view, seq)) == wanted:
            return seq
    return None


def join_heads(view: Snapshot, heads: Iterable[str]) -> list[str]:
    """``heads`` (event ids that are here) without those that another one of them goes back to, ascending.

    This is how the heads of two stores are joined.
    """
    given = sorted(set(heads))
    events: dict[str, Event] = {head: load(view, bytes.fromhex(head), KIND) for head in given}
    lowest = min((event.seq for event in events.values()), default=0)
    older: set[str] = set()
    waiting = [one for event in events.values() for one in event.previous]
    while waiting:
        key = waiting.pop()
        if key in older:
            continue
        event: Event = load(view, bytes.fromhex(key), KIND)
        if event.seq >= lowest:
            older.add(key)
            waiting += event.previous
    return [head for head in given if head not in older]


def graft_heads(store: Store, sid: str) -> Grafted:
    """Unite all heads of a session into one; nothing happens where there is one. Raises ``NotFound``, ``Conflict``."""
    check_sid(sid)
    for _ in range(_ATTEMPTS):
        batch = store.batch()
        with store.snapshot() as view:
            heads = names.heads(view, sid)
            if len(heads) < 2:
                return Grafted(one_head(view, sid), [], [], [])
            result = _unite(view, batch, sid, heads)
        try:
            store.commit(batch)
            return result
        except RefMoved:
            continue
    raise Conflict(f"{sid}: others changed it {_ATTEMPTS} times meanwhile", hint="try again")


def _unite(view: Snapshot, batch: Batch, sid: str, heads: list[str]) -> Grafted:
    histories = {head: _history(view, head) for head in heads}
    origins = _Origins(view, [list(history.values()) for history in histories.values()])
    ordered = sorted(heads, key=lambda head: (-histories[head][bytes.fromhex(head)].seq, head))
    base, others = ordered[0], ordered[1:]
    made = Change(view, batch, sid, head=base)
    here = {origins.of(made.node(seq)): seq for seq in made.index.seqs()}
    trees = {head: replay(view, main_chain(view, bytes.fromhex(head))) for head in others}
    made.next_seq = max([made.next_seq, *(tree.last + 1 for tree in trees.values())])
    known = dict(histories[base])
    nodes: list[Added] = []
    labels: list[Labelled] = []
    for head in others:
        if trees[head].hashes[0] != made.index.node_hash(0) and origins.of(trees[head].nodes[0]) not in here:
            raise Conflict(f"{sid}: {head} began as another session of the same name")
        first = made.last_id
        nodes += _bring_nodes(made, head, trees[head], origins, here, view)
        changed = _label_changes(histories[head], known, origins)
        unchanged_here = changed.keys() - _label_changes(known, histories[head], origins).keys()
        for turn in sorted(unchanged_here, key=lambda turn: here[turn]):
            seq = here[turn]
            label = changed[turn].body.label
            if isinstance(label, str | None) and made.node(seq).label != label:
                also = head if made.last_id == first else None
                labels.append(made.label(seq, label, changed[turn].body.created_at, also=also))
        if made.last_id == first:
            # Nothing to bring: the event that names both heads is one that changes nothing.
            other = histories[head][bytes.fromhex(head)]
            time = max(made.last.body.created_at, other.body.created_at)
            made.label(0, made.node(0).label, time, also=head)
        known |= histories[head]
    _move_current(view, made, origins, here)
    made.finish("graft", heads=heads)
    return Grafted(made.last_id, heads, nodes, labels)


def _bring_nodes(
    made: Change, head: str, tree: Tree, origins: _Origins, here: dict[Turn, int], view: Snapshot
) -> list[Added]:
    """Mint the turns of another head that are not here yet; ``here`` learns them."""
    brought: list[Added] = []
    for seq in sorted(tree.nodes):
        node = tree.nodes[seq]
        turn = origins.of(node)
        if turn in here:
            continue
        above = tree.parents[seq]
        event: Event = load(view, bytes.fromhex(tree.events[seq]), KIND)
        if above is None or not isinstance(event.body.answer, str):
            raise CheckFailed(f"{node.bates}: cannot be grafted: it is a root")
        brought.append(
            made.add(
                answer=event.body.answer,
                audit_mode=node.audit_mode,
                cache_key=node.cache_key,
                created_at=node.created_at,
                label=node.label,
                parent=here[origins.of(tree.nodes[above])],
                question=node.question,
                grafted_from=tree.hashes[seq].hex(),
                also=None if brought else head,
            )
        )
        here[turn] = brought[-1].seq
    return brought


def _label_changes(
    history: dict[bytes, Event], without: dict[bytes, Event], origins: _Origins
) -> dict[Turn, Event]:
    """The newest event that labelled each turn, of those in ``history`` and not in ``without``."""
    found: dict[Turn, Event] = {}
    for key, event in history.items():
        if event.body.event_type == "node_labelled" and key not in without and node_seq(event.body) != 0:
            found[origins.of_key(event.body.node_hash)] = event
    return found


def _move_current(view: Snapshot, made: Change, origins: _Origins, here: dict[Turn, int]) -> None:
    key = view.ref(names.current_ref(made.sid))
    if key is not None and view.kind(key) == SESSION_NODE:
        made.move_current(here.get(origins.of_key(key.hex()), 0))
