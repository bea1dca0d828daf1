"""Events: what happened to a session tree, one object each, chained by ``event_hash``.

``event_hash`` is SHA-256 over the 32 raw bytes of the event before (zeros for the first) and the canonical bytes of the
body. ``previous`` names the predecessors as objects: none for the first event, one as a rule, two where another head
was grafted in; the first is the one that ``event_hash`` goes on from.
"""

from __future__ import annotations

from hashlib import sha256
from operator import attrgetter
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from objstore import kinds
from objstore.core import ObjectId
from objstore.errors import CheckFailed
from objstore.merkle import VERSION as MERKLE_RULES
from objstore.merkle import ZERO_HASH
from porcelain.session.identity import SID_LENGTH, is_bates, is_time, seq_of, split_bates

KIND: Literal["session-event"] = "session-event"
ZERO_ROOT = ZERO_HASH.hex()
CANONICAL_RULES = "canon-json-1"
EVENT_RULES = "prev-raw-1"

EventType = Literal["node_added", "node_labelled", "session_init"]


class Rules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The names of the rules by which a session's hashes are made."""

    canonical: str = CANONICAL_RULES
    event: str = EVENT_RULES
    merkle: str = MERKLE_RULES


#: The rules of this program.
RULES = Rules()


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What an event says; which keys it has depends on ``event_type`` (``KEYS``).

    ``prev_root`` and ``session_root`` are the roots before and after. ``answer`` is the object that a turn shows, and
    ``grafted_from`` the ``node_hash`` of the same turn on the head that it was taken from.
    """

    answer: ObjectId | UnsetType = UNSET
    bates: str
    created_at: str
    event_type: EventType
    grafted_from: ObjectId | UnsetType = UNSET
    label: str | UnsetType | None = UNSET
    node_hash: ObjectId
    old_label: str | UnsetType | None = UNSET
    old_node_hash: ObjectId | UnsetType = UNSET
    parent_bates: str | UnsetType = UNSET
    prev_root: ObjectId
    rules: Rules | UnsetType = UNSET
    session_root: ObjectId


#: The keys beside ``bates created_at event_type node_hash prev_root session_root`` that each type must have.
KEYS: dict[str, frozenset[str]] = {
    "session_init": frozenset({"rules"}),
    "node_added": frozenset({"answer", "parent_bates"}),
    "node_labelled": frozenset({"label", "old_label", "old_node_hash"}),
}
_OPTIONAL = ("answer", "grafted_from", "label", "old_label", "old_node_hash", "parent_bates", "rules")


_optional = attrgetter(*_OPTIONAL)
#: Which of the optional keys are there, for each type.
_PATTERNS = {
    kind: {
        tuple(name in keys | extra for name in _OPTIONAL)
        for extra in ([set(), {"grafted_from"}] if kind == "node_added" else [set()])
    }
    for kind, keys in KEYS.items()
}


class Event(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One event; ``seq`` counts the events of its chain from 1."""

    body: Body
    event_hash: ObjectId
    previous: Annotated[list[ObjectId], Meta(max_length=2)]
    seq: Annotated[int, Meta(ge=1, le=kinds.MAX_SAFE_INTEGER)]
    session_id: Annotated[str, Meta(min_length=20, max_length=20)]
    type: Literal["session-event"] = KIND


def event_hash(previous: bytes, body: bytes) -> bytes:
    """The 32-byte hash of an event: ``previous`` is the hash before it (32 raw bytes), ``body`` its canonical text."""
    return sha256(previous + body).digest()


def check_body(body: Body) -> None:
    """Raise ``CheckFailed`` unless a body has exactly the keys of its type, and what they hold can be."""
    pattern = tuple([key is not UNSET for key in _optional(body)])
    if pattern not in _PATTERNS[body.event_type]:
        present = {name for name, there in zip(_OPTIONAL, pattern, strict=True) if there} - {"grafted_from"}
        name = min(present ^ KEYS[body.event_type], default="grafted_from")
        wrong = "must" if name in KEYS[body.event_type] else "may not"
        raise CheckFailed(f"{body.event_type}: {name} {wrong} be there")
    seq = split_bates(body.bates)[1]
    if not is_time(body.created_at):
        raise CheckFailed(f"{body.event_type}: created_at is not a time of the form 2026-01-31T23:59:59Z")
    for text in (body.label, body.old_label):
        if isinstance(text, str) and "\x00" in text:
            raise CheckFailed(f"{body.event_type}: a label holds NUL")
    if (body.event_type == "session_init") != (seq == 0 and body.prev_root == ZERO_ROOT):
        raise CheckFailed(f"{body.event_type}: the first event alone is about node 0 and follows no root")
    if isinstance(body.parent_bates, str):
        # In text order as in number order: both have the same session id and six digits.
        same_session = body.parent_bates[:SID_LENGTH] == body.bates[:SID_LENGTH]
        if not is_bates(body.parent_bates) or not same_session or body.parent_bates >= body.bates:
            raise CheckFailed(f"{body.bates}: {body.parent_bates[:60]!r} cannot be its parent")


def _check_event(event: Event) -> None:
    check_body(event.body)
    if event.body.bates[:SID_LENGTH] != event.session_id:
        raise CheckFailed(f"event {event.seq} of {event.session_id}: is about {event.body.bates}")
    first = event.seq == 1
    if first != (event.body.event_type == "session_init") or first != (not event.previous):
        raise CheckFailed(f"event {event.seq} of {event.session_id}: only the first begins a session")
    if len(set(event.previous)) != len(event.previous):
        raise CheckFailed(f"event {event.seq} of {event.session_id}: names one predecessor twice")


def check_link(event: Event, before: list[Event]) -> None:
    """Raise ``CheckFailed`` unless ``event`` follows its predecessors by number, session, root and hash."""
    where = f"event {event.seq} of {event.session_id}"
    last = before[0] if before else None
    if event.seq != (last.seq + 1 if last is not None else 1) or any(event.seq <= one.seq for one in before):
        raise CheckFailed(f"{where}: follows event {last.seq if last is not None else 0}")
    if any(one.session_id != event.session_id for one in before):
        raise CheckFailed(f"{where}: follows an event of another session")
    if event.body.prev_root != (last.body.session_root if last is not None else ZERO_ROOT):
        raise CheckFailed(f"{where}: its prev_root is not the root before it")
    previous = bytes.fromhex(last.event_hash) if last is not None else ZERO_HASH
    if event_hash(previous, kinds.encode(event.body)).hex() != event.event_hash:
        raise CheckFailed(f"{where}: its hash does not follow from its body and the event before")


def follow(last: Event | None, last_id: str | None, body: Body, *, also: str | None = None) -> Event:
    """The event that comes after ``last`` (whose object id is ``last_id``); ``also`` is the head of a grafted chain."""
    check_body(body)
    before = bytes.fromhex(last.event_hash) if last is not None else ZERO_HASH
    return Event(
        body=body,
        event_hash=event_hash(before, kinds.encode(body)).hex(),
        previous=[one for one in (last_id, also) if one is not None],
        seq=last.seq + 1 if last is not None else 1,
        session_id=split_bates(body.bates)[0],
    )


def _needs(event: Event) -> list[str]:
    return [*event.previous, event.body.node_hash]


def _names(event: Event) -> list[str]:
    body = event.body
    return [one for one in (body.answer, body.grafted_from, body.old_node_hash) if isinstance(one, str)]


def node_seq(body: Body) -> int:
    """The ``seq`` of the node that a body is about."""
    return seq_of(body.bates)


def _previous(event: Any) -> list[str]:
    return list(event.previous)


SESSION_EVENT_KIND = kinds.register(
    kinds.Kind(
        name=KIND,
        struct=Event,
        needs=_needs,
        names=_names,
        check=_check_event,
        previous=_previous,
        check_link=check_link,
    )
)
