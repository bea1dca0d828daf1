"""What there is to see of sessions: the list, the tree from top to bottom, branch points, one node in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.session.tree import names
from porcelain.session.tree.change import Session, open_head
from porcelain.session.tree.events import KIND, Event
from porcelain.session.tree.identity import bates_of
from porcelain.session.tree.nodes import Node
from porcelain.session.tree.places import current_seq


class Summary(NamedTuple):
    """One session in the list. Of a session that diverged, times and counts are those of the head that went furthest;
    ``root`` and ``current`` are None."""

    sid: str
    created_at: str
    updated_at: str
    turns: int
    events: int
    root: str | None
    current: str | None
    heads: tuple[str, ...]


class TreeRow(NamedTuple):
    """One node in the order in which a tree is drawn; ``depth`` is 0 for the root."""

    seq: int
    depth: int
    parent: int | None
    node: Node
    children: int
    is_current: bool


class Shown(NamedTuple):
    """One node in full; ``answer`` is the id of its answer's object, None for the root."""

    seq: int
    node: Node
    node_hash: str
    subtree_hash: str
    parent: str | None
    children: tuple[str, ...]
    answer: str | None
    event: str
    grafted_from: str | None


def list_sessions(view: Snapshot) -> list[Summary]:
    """All sessions, the one with the latest last event first (then by sid, descending)."""
    found = [summarize(view, sid) for sid in names.session_ids(view)]
    return sorted(found, key=lambda one: (one.updated_at, one.sid), reverse=True)


def summarize(view: Snapshot, sid: str) -> Summary:
    """One session of the list."""
    heads = names.heads(view, sid)
    sessions = [open_head(view, sid, head) for head in heads]
    states = [one.state for one in sessions]
    furthest = max(states, key=lambda state: (state.event_count, state.head))
    single = sessions[0] if len(sessions) == 1 else None
    return Summary(
        sid=sid,
        created_at=furthest.created_at,
        updated_at=max(state.updated_at for state in states),
        turns=furthest.node_count - 1,
        events=furthest.event_count,
        root=single.state.root if single is not None else None,
        current=bates_of(sid, current_seq(view, single)) if single is not None else None,
        heads=tuple(heads),
    )


def last_event_time(view: Snapshot, sid: str) -> str:
    """When the last event of a session happened, over all its heads."""
    times = []
    for head in names.heads(view, sid):
        event: Event = load(view, bytes.fromhex(head), KIND)
        times.append(event.body.created_at)
    return max(times, default="")


def tree_rows(view: Snapshot, session: Session) -> Iterator[TreeRow]:
    """All nodes, each before what is below it, children by number."""
    index = session.index
    here = current_seq(view, session)
    waiting: list[tuple[int, int, int | None]] = [(0, 0, None)]
    while waiting:
        seq, depth, parent = waiting.pop()
        children = sorted(one for _, one in index.children(seq))
        yield TreeRow(seq, depth, parent, session.node(view, seq), len(children), seq == here)
        waiting += [(one, depth + 1, seq) for one in reversed(children)]


def branch_points(session: Session) -> list[int]:
    """The nodes with two children or more, ascending."""
    return [seq for seq, _, _, _, children in session.index.rows() if children > 1]


def show_node(view: Snapshot, session: Session, seq: int) -> Shown:
    """One node in full; raises ``NotFound``."""
    index, sid = session.index, session.sid
    node = session.node(view, seq)
    event = session.event(view, seq)
    above = index.parent(seq)
    return Shown(
        seq=seq,
        node=node,
        node_hash=index.node_hash(seq).hex(),
        subtree_hash=index.subtree_hash(seq).hex(),
        parent=None if above is None else bates_of(sid, above),
        children=tuple(bates_of(sid, one) for one in sorted(child for _, child in index.children(seq))),
        answer=event.body.answer if isinstance(event.body.answer, str) else None,
        event=index.event(seq),
        grafted_from=event.body.grafted_from if isinstance(event.body.grafted_from, str) else None,
    )


def subtree_document(session: Session, seq: int = 0) -> dict[str, object]:
    """What stands behind a subtree hash, which is no object: the two hashes it is made of, as plain JSON values.

    ``session/<sid>/root`` names such a hash; this is what to print for it.
    """
    index = session.index
    return {
        "bates": bates_of(session.sid, seq),
        "children": [[bates_of(session.sid, one), digest.hex()] for digest, one in index.children(seq)],
        "node_hash": index.node_hash(seq).hex(),
        "subtree_hash": index.subtree_hash(seq).hex(),
    }
