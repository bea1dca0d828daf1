"""A session as of a snapshot, and a change of it: worked out from one snapshot, committed in one transaction.

Nodes, events, the move of the head by compare-and-swap, the index, and where the person is go together. When another
process was faster, the change is worked out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from msgspec import UNSET, Struct, structs

from objstore import kinds
from objstore.batch import Batch
from objstore.errors import CheckFailed, Conflict, NotFound, RefMoved, UsageError
from objstore.merkle import SiblingOrder
from objstore.objects import SESSION_NODE
from objstore.refs import ANY
from objstore.snapshot import Snapshot
from objstore.store import Store, load
from porcelain.session.tree import names
from porcelain.session.tree.events import KIND, Body, Event, follow
from porcelain.session.tree.identity import bates_of, check_sid
from porcelain.session.tree.index import IndexDamaged, State, TreeIndex, read_state, rebuild
from porcelain.session.tree.nodes import AuditMode, Node

T = TypeVar("T")
#: Times that a change is worked out again when others were faster.
_ATTEMPTS = 1000


class Added(NamedTuple):
    """A node that came in: its ids, the root after it, and the event that says so (hex)."""

    bates: str
    seq: int
    node_hash: str
    session_root: str
    event: str


class Labelled(NamedTuple):
    """A node that was named: its new hash, the root after it, and how many nodes were minted again."""

    bates: str
    node_hash: str
    session_root: str
    minted: int


class Session(Struct, frozen=True):
    """One session as of a snapshot; usable while the snapshot is open."""

    sid: str
    state: State
    index: TreeIndex

    def node(self, view: Snapshot, seq: int) -> Node:
        """The node; raises ``NotFound`` where there is none."""
        if seq not in self.index:
            raise NotFound(f"{self.sid}: has no node {seq}")
        node: Node = load(view, self.index.node_hash(seq), SESSION_NODE)
        return node

    def event(self, view: Snapshot, seq: int) -> Event:
        """The event that brought the node."""
        event: Event = load(view, bytes.fromhex(self.index.event(seq)), KIND)
        return event

    def answer(self, view: Snapshot, seq: int) -> str | None:
        """The id of the answer that the node shows; None for the root."""
        answer = self.event(view, seq).body.answer
        return answer if isinstance(answer, str) else None


def one_head(view: Snapshot, sid: str) -> str:
    """The event id of a session's head; raises ``NotFound``, or ``Diverged`` where there are several."""
    found = names.heads(view, check_sid(sid))
    if not found:
        raise NotFound(f"{sid}: no such session", hint="list them with: objstore session list")
    for name in names.misnamed_heads(view, sid):
        raise CheckFailed(
            f"{name}: stands elsewhere than its name says", hint="run: objstore session chain-check"
        )
    if len(found) > 1:
        raise names.Diverged(sid, found)
    return found[0]


def open_session(view: Snapshot, sid: str) -> Session:
    """A session for reading. Where its index is not up to date, one is made in memory."""
    return _open(view, sid, one_head(view, sid))[0]


def open_head(view: Snapshot, sid: str, head: str) -> Session:
    """A session as one of its heads has it."""
    return _open(view, sid, head)[0]


def _open(view: Snapshot, sid: str, head: str, *, anew: bool = False) -> tuple[Session, dict[bytes, bytes]]:
    """A session, and nodes that its head implies but that may not be stored."""
    state = None if anew else read_state(view, sid)
    if state is not None and state.head == head:
        return Session(sid, state, TreeIndex(view, sid)), {}
    index, state, tree = rebuild(view, sid, head)
    return Session(sid, state, index), tree.minted


class Change:
    """A change of one session, worked out from one snapshot into one batch."""

    def __init__(
        self, view: Snapshot, batch: Batch, sid: str, *, head: str | None = None, anew: bool = False
    ) -> None:
        self.view = view
        self.batch = batch
        self.sid = sid
        self.head = one_head(view, sid) if head is None else head
        session, minted = _open(view, sid, self.head, anew=anew)
        for data in minted.values():
            batch.put(SESSION_NODE, data)
        self.session = session
        self.index = session.index
        self.last: Event = load(view, bytes.fromhex(self.head), KIND)
        self.last_id = self.head
        self.next_seq = session.state.next_seq
        self.node_count = session.state.node_count
        if self.index.subtree_hash(0).hex() != self.last.body.session_root:
            raise IndexDamaged(f"{sid}: the index does not have the root that the last event states")

    def add(
        self,
        *,
        answer: str,
        audit_mode: AuditMode,
        cache_key: str,
        created_at: str,
        label: str | None,
        parent: int,
        question: str,
        grafted_from: str | None = None,
        also: str | None = None,
    ) -> Added:
        """Add a node under ``parent`` with the next number, and the event that says so."""
        bates = bates_of(self.sid, self.next_seq)
        if self.next_seq in self.index:
            raise IndexDamaged(f"{bates}: is there already, though it was the next number")
        node = Node(
            audit_mode=audit_mode,
            bates=bates,
            cache_key=cache_key,
            created_at=created_at,
            label=label,
            parent_node_hash=self.index.node_hash(parent).hex(),
            question=question,
        )
        digest = self.batch.put(SESSION_NODE, kinds.encode(node))
        seq = self.next_seq
        self.index.insert(seq, parent, bytes.fromhex(digest))
        self.next_seq += 1
        self.node_count += 1
        if label is not None:
            self.index.add_label(label, seq)
        self.append(
            Body(
                answer=answer,
                bates=bates,
                created_at=created_at,
                event_type="node_added",
                grafted_from=UNSET if grafted_from is None else grafted_from,
                node_hash=digest,
                parent_bates=bates_of(self.sid, parent),
                prev_root=self.last.body.session_root,
                session_root=self.root,
            ),
            also=also,
        )
        self.index.set_event(seq, self.last_id)
        return Added(bates, seq, digest, self.root, self.last_id)

    def label(self, seq: int, label: str | None, created_at: str, *, also: str | None = None) -> Labelled:
        """Name a node (None takes its name away): it and what is below it are minted again."""
        before = self.node(seq)
        minted: dict[int, bytes] = {}
        changed = self.index.descendants(seq) if label != before.label else []
        for at in changed:
            node = before if at == seq else self.node(at)
            if at == seq:
                node = structs.replace(node, label=label)
            else:
                above = self.index.parent(at)
                assert above is not None
                node = structs.replace(node, parent_node_hash=minted[above].hex())
            minted[at] = bytes.fromhex(self.batch.put(SESSION_NODE, kinds.encode(node)))
        old = self.index.node_hash(seq)
        if minted:
            self.index.remint(minted)
            if before.label is not None:
                self.index.drop_label(before.label, seq)
            if label is not None:
                self.index.add_label(label, seq)
        digest = self.index.node_hash(seq)
        self.append(
            Body(
                bates=before.bates,
                created_at=created_at,
                event_type="node_labelled",
                label=label,
                node_hash=digest.hex(),
                old_label=before.label,
                old_node_hash=old.hex(),
                prev_root=self.last.body.session_root,
                session_root=self.root,
            ),
            also=also,
        )
        return Labelled(before.bates, digest.hex(), self.root, len(minted))

    def append(self, body: Body, *, also: str | None = None) -> None:
        """Add an event; ``also`` is the head of a chain that it takes in."""
        self.last = follow(self.last, self.last_id, body, also=also)
        self.last_id = self.batch.put(KIND, kinds.encode(self.last))
        self.index.set_root(body.session_root, self.last.seq)

    @property
    def root(self) -> str:
        """The session's root as it is now (hex)."""
        return self.index.subtree_hash(0).hex()

    def node(self, seq: int) -> Node:
        """A node, whether it is stored or came with this change."""
        self.require(seq)
        key = self.index.node_hash(seq)
        fresh = self.batch.get(key)
        if fresh is None and key not in self.view:
            raise IndexDamaged(f"{self.sid}: the index names a node {seq} that is not here")
        node: Node = kinds.decode(*fresh) if fresh is not None else load(self.view, key, SESSION_NODE)
        return node

    def require(self, seq: int) -> None:
        """Raise ``NotFound`` unless there is a node ``seq``; ``IndexDamaged`` where there may be one all the same."""
        if seq not in self.index:
            if 0 <= seq < self.next_seq and not self.index.is_whole:
                raise IndexDamaged(f"{self.sid}: no row of node {seq} in the index")
            raise NotFound(f"{self.sid}: has no node {seq}")

    def move_current(self, seq: int) -> None:
        """Put the person at a node."""
        self.batch.move_ref(names.current_ref(self.sid), self.index.node_hash(seq).hex(), ANY, "")

    def finish(self, why: str, *, heads: Iterable[str] | None = None) -> State:
        """Move the head and write the index; ``heads`` are those that the new head takes the place of."""
        if self.last_id == self.head:
            self.batch.move_ref(names.head_ref(self.sid, self.head), self.head, self.head, why)
        else:
            for head in (self.head,) if heads is None else heads:
                self.batch.move_ref(names.head_ref(self.sid, head), None, head, why)
            self.batch.move_ref(names.head_ref(self.sid, self.last_id), self.last_id, None, why)
        state = State(
            created_at=self.session.state.created_at,
            event_count=self.last.seq,
            head=self.last_id,
            next_seq=self.next_seq,
            node_count=self.node_count,
            root=self.root,
            updated_at=self.last.body.created_at,
        )
        self.index.write(self.batch, state)
        return state


def change(store: Store, sid: str, do: Callable[[Change], T], why: str) -> T:
    """Work out a change and commit it; again when the head moved meanwhile, or the index had to be made anew."""
    require_sha256(store)
    check_sid(sid)
    anew = False
    for _ in range(_ATTEMPTS):
        batch = store.batch()
        with store.snapshot() as view:
            try:
                made = Change(view, batch, sid, anew=anew)
                result = do(made)
                made.finish(why)
            except (IndexDamaged, SiblingOrder):
                if anew:
                    raise
                anew = True
                continue
        try:
            store.commit(batch)
            return result
        except RefMoved:
            continue
    raise Conflict(f"{sid}: others changed it {_ATTEMPTS} times meanwhile", hint="try again")


def require_sha256(store: Store) -> None:
    """Raise ``UsageError`` unless the store's ids are SHA-256, as node hashes are."""
    if store.algorithm != "sha256":
        raise UsageError(
            f"sessions need a store keyed by sha256, this one is keyed by {store.algorithm}",
            hint="make one with: objstore init --hash sha256",
        )
