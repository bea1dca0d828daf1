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
from objstore.snapshot import Snapshot
from porcelain.session import names
from porcelain.session.events import ZERO_ROOT, Event, event_hash
from porcelain.session.identity import bates_of
from porcelain.session.index import TreeIndex
from porcelain.session.replay import Broken, Reason, Tree, main_chain, replaying

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


def check_all(view: Snapshot, *, replay: bool = False) -> list[Check]:
    """A check of every head of every session."""
    return [one for sid in names.session_ids(view) for one in chain_check(view, sid, replay=replay)]


def chain_check(view: Snapshot, sid: str, *, replay: bool = False) -> list[Check]:
    """A check of every head of a session; with ``replay`` also of every earlier root."""
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
    return misnamed + [check_head(view, sid, head, replay=replay) for head in heads]


def check_head(view: Snapshot, sid: str, head: str, *, replay: bool = False) -> Check:
    """A check of one head."""
    tree = Tree()
    done, root = 0, ZERO_ROOT
    try:
        chain = main_chain(view, bytes.fromhex(head))
        for event in _checked(view, sid, chain, tree, replay):
            done, root = event.seq, event.body.session_root
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
    view: Snapshot, sid: str, chain: list[tuple[str, Event]], tree: Tree, replay: bool
) -> Iterator[Event]:
    """Each event when it was found to be in order."""
    index = TreeIndex(None, sid)
    before_hash, before_root = ZERO_HASH, ZERO_ROOT
    applied = replaying(view, chain, tree)
    for number, (key, event) in enumerate(chain):
        body = event.body
        if sha256(kinds.encode(event)).hexdigest() != key:
            raise Broken("hash_mismatch", key, "the event does not hash to its id", number)
        if event_hash(before_hash, kinds.encode(body)).hex() != event.event_hash:
            raise Broken(
                "hash_mismatch", key, "event_hash does not follow from the body and the event before", number
            )
        if event.session_id != sid:
            raise Broken("prev_mismatch", key, f"belongs to the session {event.session_id[:40]}", number)
        if body.prev_root != before_root:
            raise Broken(
                "prev_mismatch", key, "prev_root is not the session_root of the event before", number
            )
        _, changed = next(applied)
        if replay:
            _check_root(index, tree, event, changed, number)
        before_hash, before_root = bytes.fromhex(event.event_hash), body.session_root
        yield event


def _check_root(index: TreeIndex, tree: Tree, event: Event, changed: list[int], number: int) -> None:
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
