"""Taking a session in from a SQLite file, once every hash in it was verified.

What is here already is kept: a file that says nothing new changes nothing, one that goes on from a head here moves that
head, and one that parted from it becomes a head beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from objstore import kinds
from objstore.batch import Batch
from objstore.errors import CheckFailed, Conflict, RefMoved
from objstore.objects import SESSION_NODE
from objstore.snapshot import Snapshot
from objstore.store import Store
from porcelain.session.exchange.sqlite_reading import Verified, read_session, secrets_in, verify_recorded
from porcelain.session.tree import names
from porcelain.session.tree.change import require_sha256
from porcelain.session.tree.events import KIND, Event, follow, node_seq
from porcelain.session.tree.index import State, TreeIndex
from porcelain.session.tree.replay import main_chain

_ATTEMPTS = 100


class Imported(NamedTuple):
    """What an import did: ``new`` session, one that ``continued`` or ``diverged``, or nothing (``known``)."""

    sid: str
    outcome: Literal["continued", "diverged", "known", "new"]
    nodes: int
    events: int
    root: str


def import_session(store: Store, path: Path, *, allow_secrets: bool = False) -> Imported:
    """Verify the file and store its session.

    Raises ``Broken`` for a file in which anything is wrong, ``NotFound``, and ``CheckFailed`` for one whose questions
    or labels hold what looks like a secret, which cannot be replaced without changing every hash (unless
    ``allow_secrets``).
    """
    require_sha256(store)
    verified = verify_recorded(read_session(path))
    if not allow_secrets and (found := secrets_in(verified)):
        raise CheckFailed(
            f"{found[0]}: holds what looks like a secret; its hash does not allow to replace it"
        )
    for _ in range(_ATTEMPTS):
        batch = store.batch()
        with store.snapshot() as view:
            result = _gather(view, batch, verified)
        try:
            store.commit(batch)
            return result
        except RefMoved:
            continue
    raise Conflict(f"{verified.sid}: others changed it {_ATTEMPTS} times meanwhile", hint="try again")


def _gather(view: Snapshot, batch: Batch, verified: Verified) -> Imported:
    sid, tree = verified.sid, verified.tree
    done = Imported(sid, "new", len(tree.hashes), len(verified.bodies), verified.root)
    heads = names.heads(view, sid)
    known = _longest_shared(view, heads, verified.hashes)
    if len(known) == len(verified.hashes):
        return done._replace(outcome="known")
    extended = known[-1][0] if known and known[-1][0] in heads else None
    if heads:
        done = done._replace(outcome="diverged" if extended is None else "continued")
    for data in verified.minted.values():
        batch.put(SESSION_NODE, data)
    last: Event | None = known[-1][1] if known else None
    last_id: str | None = known[-1][0] if known else None
    ids = [key for key, _ in known]
    for body in verified.bodies[len(known) :]:
        last = follow(last, last_id, body)
        last_id = batch.put(KIND, kinds.encode(last))
        ids.append(last_id)
    assert last is not None and last_id is not None
    if extended is not None:
        batch.move_ref(names.head_ref(sid, extended), None, extended, "import")
    batch.move_ref(names.head_ref(sid, last_id), last_id, None, "import")
    batch.set_local(names.removed_key(sid), None)
    if view.ref(names.current_ref(sid)) is None:
        batch.move_ref(names.current_ref(sid), tree.hashes[verified.current].hex(), None, "")
    if not heads or (len(heads) == 1 and extended is not None):
        _write_index(view, batch, verified, ids, last)
    return done


def _longest_shared(view: Snapshot, heads: list[str], hashes: list[str]) -> list[tuple[str, Event]]:
    """The longest beginning that the events of the file have in common with the chain of a head."""
    best: list[tuple[str, Event]] = []
    for head in heads:
        chain = main_chain(view, bytes.fromhex(head))
        shared = 0
        for (_, event), digest in zip(chain, hashes, strict=False):
            if event.event_hash != digest:
                break
            shared += 1
        if shared > len(best):
            best = chain[:shared]
    return best


def _write_index(view: Snapshot, batch: Batch, verified: Verified, ids: list[str], last: Event) -> None:
    sid, tree = verified.sid, verified.tree
    for key, body in zip(ids, verified.bodies, strict=True):
        if body.event_type != "node_labelled":
            tree.events[node_seq(body)] = key
    index = TreeIndex.of_tree(sid, tree, view)
    for number, body in enumerate(verified.bodies, 1):
        index.set_root(body.session_root, number)
    state = State(
        created_at=verified.bodies[0].created_at,
        event_count=len(ids),
        head=ids[-1],
        next_seq=tree.last + 1,
        node_count=len(tree.hashes),
        root=verified.root,
        updated_at=last.body.created_at,
    )
    index.write(batch, state)
