"""Where the person is in a session, and what the words for a node mean."""

from __future__ import annotations

from objstore.errors import NotFound, UsageError
from objstore.objects import SESSION_NODE
from objstore.refs import ANY
from objstore.snapshot import Snapshot
from objstore.store import Store, load
from porcelain.session.tree.change import Session, open_session
from porcelain.session.tree.graft import grafted_as
from porcelain.session.tree.identity import bates_of, is_bates, is_number, seq_of
from porcelain.session.tree.names import current_ref
from porcelain.session.tree.nodes import Node, same_turn


class AmbiguousLabel(UsageError):
    """Several nodes bear a label; ``seqs`` are their numbers."""

    def __init__(self, sid: str, label: str, seqs: list[int]) -> None:
        super().__init__(
            f"{label!r}: {len(seqs)} nodes bear this label",
            hint="name one of: " + " ".join(bates_of(sid, seq) for seq in seqs[:5]),
        )
        self.seqs = seqs


def resolve_node(view: Snapshot, session: Session, text: str) -> int:
    """The ``seq`` that a Bates id, a number or a label names, in this order. Digits that are more than any number of a
    node, such as a date, are a label.

    Raises ``NotFound``, or ``AmbiguousLabel``.
    """
    sid, index = session.sid, session.index
    if is_bates(text):
        seq = seq_of(text)
        if not text.startswith(sid + "-") or seq not in index:
            raise NotFound(f"{text}: no such node in {sid}")
        return seq
    if is_number(text):
        seq = int(text.lstrip("0") or "0")
        if seq not in index:
            raise NotFound(f"{text[:40]}: no such node in {sid}")
        return seq
    found = [seq for seq in index.labelled(text) if session.node(view, seq).label == text]
    if len(found) > 1:
        raise AmbiguousLabel(sid, text, found)
    if not found:
        raise NotFound(
            f"{text[:60]!r}: no node of {sid} has this Bates id, number or label",
            hint=f"see: objstore session tree --sid {sid}",
        )
    return found[0]


def current_seq(view: Snapshot, session: Session) -> int:
    """Where the person is; the root where this machine does not know.

    A place that was named by a head which is no more is found again: under its number when a label minted it again,
    else as the node that it was grafted as.
    """
    key = view.ref(current_ref(session.sid))
    if key is None or view.kind(key) != SESSION_NODE:
        return 0
    node: Node = load(view, key, SESSION_NODE)
    seq = seq_of(node.bates)
    if seq in session.index and (
        session.index.node_hash(seq) == key or same_turn(session.node(view, seq), node)
    ):
        return seq
    return grafted_as(view, session, node) or 0


def move_to(store: Store, sid: str, where: str) -> str:
    """Put the person at the node that ``where`` (Bates id, number or label) names; its Bates id."""
    with store.snapshot() as view:
        session = open_session(view, sid)
        seq = resolve_node(view, session, where)
        key = session.index.node_hash(seq)
    _set_current(store, sid, key)
    return bates_of(sid, seq)


def move_back(store: Store, sid: str) -> str:
    """Put the person at the parent of where they are; its Bates id. At the root, ``UsageError``."""
    with store.snapshot() as view:
        session = open_session(view, sid)
        above = session.index.parent(current_seq(view, session))
        if above is None:
            raise UsageError(f"{sid}: you are at its root: there is nothing to go back to")
        key = session.index.node_hash(above)
    _set_current(store, sid, key)
    return bates_of(sid, above)


def _set_current(store: Store, sid: str, key: bytes) -> None:
    batch = store.batch()
    batch.move_ref(current_ref(sid), key.hex(), ANY, "")
    store.commit(batch)
