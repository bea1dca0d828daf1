"""Checking sessions: is every event in order, does every node hash to what is said of it, is the root the tree's?

``verified`` says yes to all. ``unchained`` is a session without any event. ``corrupted`` says no, with the index (from
0) of the first event that breaks, the place and one of the words of ``replay.Reason``. No check can show, without an
outside copy of a root, that the newest events were cut off or that all of them were written anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from objstore import kinds
from objstore.errors import CheckFailed
from objstore.merkle import ZERO_HASH, SiblingOrder
from objstore.objects import SESSION_NODE
from objstore.snapshot import Snapshot
from porcelain.session.integrity.run_finding import find_runs
from porcelain.session.integrity.runs import Single, chain_in_runs, likely_events, one_by_one
from porcelain.session.tree import names
from porcelain.session.tree.events import ZERO_ROOT, Event, event_hash
from porcelain.session.tree.identity import bates_of
from porcelain.session.tree.index import TreeIndex
from porcelain.session.tree.replay import Broken, Reason, Run, Tree, load_checked, main_chain, replaying

Status = Literal["corrupted", "unchained", "verified"]


class Check(Struct, frozen=True, kw_only=True):
    """What a check of one head found. ``index``, ``reason``, ``place`` and ``what`` are set for a corrupted one;
    ``events`` and ``nodes`` count what was in order."""

    sid: str
    head: str | None
    status: Status
    events: int
    nodes: int
    root: str | None = None
    index: int | None = None
    reason: Reason | None = None
    place: str | None = None
    what: str | None = None


def check_all(view: Snapshot, *, replay: bool = False, path: str | None = None) -> list[Check]:
    """A check of every head of every session; see ``chain_check``."""
    return [
        one for sid in names.session_ids(view) for one in chain_check(view, sid, replay=replay, path=path)
    ]


def chain_check(view: Snapshot, sid: str, *, replay: bool = False, path: str | None = None) -> list[Check]:
    """A check of every head of a session; with ``replay`` also of every earlier root.

    With ``path``, the folder of the store that ``view`` is of, another process helps with a large session.
    """
    heads = names.heads(view, sid)
    if not heads:
        return [Check(sid=sid, head=None, status="unchained", events=0, nodes=0)]
    misnamed = [
        Check(
            sid=sid,
            head=name.rsplit("/", 1)[1],
            status="corrupted",
            events=0,
            nodes=0,
            reason="hash_mismatch",
            place=name,
            what="the ref stands elsewhere than its name says",
        )
        for name in names.misnamed_heads(view, sid)
    ]
    return misnamed + [check_head(view, sid, head, replay=replay, path=path) for head in heads]


def check_head(
    view: Snapshot, sid: str, head: str, *, replay: bool = False, path: str | None = None
) -> Check:
    """A check of one head; see ``chain_check``."""
    tree = Tree(lambda digest: load_checked(view, digest.hex(), SESSION_NODE))
    done, root = 0, ZERO_ROOT
    try:
        for number, stated in _checked(view, sid, head, tree, replay=replay, path=path):
            done, root = number, stated
        try:
            found = tree.subtree_hashes()[0].hex()
        except SiblingOrder as error:
            raise Broken("root_mismatch", sid, error.message) from None
        if found != root:
            raise Broken(
                "root_mismatch",
                sid,
                f"its nodes hash to the root {found}, its last event states {root}",
                done - 1,
            )
    except Broken as broken:
        return Check(
            sid=sid,
            head=head,
            status="corrupted",
            events=done,
            nodes=len(tree.hashes),
            index=broken.index,
            reason=broken.reason,
            place=broken.place,
            what=broken.what,
        )
    return Check(sid=sid, head=head, status="verified", events=done, nodes=len(tree.hashes), root=root)


def _checked(
    view: Snapshot, sid: str, head: str, tree: Tree, *, replay: bool, path: str | None
) -> Iterator[tuple[int, str]]:
    """Number and ``session_root`` of each event that was found to be in order, or of the last of a run of them."""
    index = TreeIndex(None, sid) if replay else None
    before_hash, before_root = ZERO_HASH, ZERO_ROOT
    for part in _parts(view, sid, head, replay=replay, path=path):
        if isinstance(part, Run):
            goes_on = (part.prev_root, part.first_hash) == (before_root, event_hash(before_hash, part.body))
            if goes_on and tree.add_run(part):
                before_hash, before_root = part.last_hash, part.root
                yield part.last_seq, part.root
                continue
            part = one_by_one(view, part)
        applied = replaying(view, part, tree)
        for key, event in part:
            _check_event(sid, key, event, before_hash, before_root)
            _, changed = next(applied)
            if index is not None:
                _check_root(index, tree, event, changed)
            before_hash, before_root = bytes.fromhex(event.event_hash), event.body.session_root
            yield event.seq, before_root


def _parts(view: Snapshot, sid: str, head: str, *, replay: bool, path: str | None) -> list[Run | Single]:
    """The main chain of a head, oldest first: in one part where every root is asked for."""
    if replay:
        return [main_chain(view, bytes.fromhex(head), likely_events(view, sid))]
    return chain_in_runs(view, head, find_runs(view, sid, path))


def _check_event(sid: str, key: str, event: Event, before_hash: bytes, before_root: str) -> None:
    """Raise ``Broken`` unless the event is its id's and goes on from the event before."""
    number = event.seq - 1
    if sha256(kinds.encode(event)).hexdigest() != key:
        raise Broken("hash_mismatch", key, "the event does not hash to its id", number)
    if event_hash(before_hash, kinds.encode(event.body)).hex() != event.event_hash:
        raise Broken(
            "hash_mismatch", key, "event_hash does not follow from the body and the event before", number
        )
    if event.session_id != sid:
        raise Broken("prev_mismatch", key, f"belongs to the session {event.session_id[:40]}", number)
    if event.body.prev_root != before_root:
        raise Broken("prev_mismatch", key, "prev_root is not the session_root of the event before", number)


def _check_root(index: TreeIndex, tree: Tree, event: Event, changed: list[int]) -> None:
    number = event.seq - 1
    try:
        if event.body.event_type == "node_labelled":
            index.remint({seq: tree.hashes[seq] for seq in changed})
        else:
            index.insert(changed[0], tree.parents[changed[0]], tree.hashes[changed[0]])
    except CheckFailed as error:
        raise Broken("root_mismatch", event.body.bates, error.message, number) from None
    if index.subtree_hash(0).hex() != event.body.session_root:
        raise Broken(
            "root_mismatch",
            bates_of(event.session_id, 0),
            "the nodes as of this event do not hash to the session_root that it states",
            number,
        )
