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
from objstore.errors import CheckFailed
from objstore.merkle import VERSION as MERKLE_RULES
from objstore.merkle import ZERO_HASH
from porcelain.session.tree.identity import SID_LENGTH, is_bates, is_time, seq_of, split_bates
from porcelain.session.tree.nodes import are_hex_digits

KIND: Literal["session-event"] = "session-event"
ZERO_ROOT = ZERO_HASH.hex()
CANONICAL_RULES = "canon-json-1"
EVENT_RULES = "prev-raw-1"

#: 64 lower-case hex digits: the length is checked as it is read, the digits of all of them together in ``check_body``,
#: which takes a third of the time of a pattern for each.
Digest = Annotated[str, Meta(min_length=64, max_length=64)]

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

    answer: Digest | UnsetType = UNSET
    bates: str
    created_at: str
    event_type: EventType
    grafted_from: Digest | UnsetType = UNSET
    label: str | UnsetType | None = UNSET
    node_hash: Digest
    old_label: str | UnsetType | None = UNSET
    old_node_hash: Digest | UnsetType = UNSET
    parent_bates: str | UnsetType = UNSET
    prev_root: Digest
    rules: Rules | UnsetType = UNSET
    session_root: Digest


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
    event_hash: Digest
    previous: Annotated[list[Digest], Meta(max_length=2)]
    seq: Annotated[int, Meta(ge=1, le=kinds.MAX_SAFE_INTEGER)]
    session_id: Annotated[str, Meta(min_length=20, max_length=20)]
    type: Literal["session-event"] = KIND


def event_hash(previous: bytes, body: bytes) -> bytes:
    """The 32-byte hash of an event: ``previous`` is the hash before it (32 raw bytes), ``body`` its canonical text."""
    return sha256(previous + body).digest()


def check_body(body: Body) -> None:
    """Raise ``CheckFailed`` unless a body has exactly the keys of its type, and what they hold can be."""
    answer, grafted_from, label, old_label, old_node_hash, parent, rules = optional = _optional(body)
    pattern = tuple([value is not UNSET for value in optional])
    if pattern not in _PATTERNS[body.event_type]:
        raise _wrong_keys(body, pattern)
    digests = body.node_hash + body.prev_root + body.session_root
    for digest in (answer, grafted_from, old_node_hash):
        if digest is not UNSET:
            digests += digest
    if not are_hex_digits(digests):
        raise CheckFailed(f"{body.event_type}: a hash is not 64 lower-case hexadecimal digits")
    if not is_bates(body.bates):
        raise CheckFailed(f"{body.bates[:60]!r}: not a Bates id")
    if not is_time(body.created_at):
        raise CheckFailed(f"{body.event_type}: created_at is not a time of the form 2026-01-31T23:59:59Z")
    if (label and "\x00" in label) or (old_label and "\x00" in old_label):
        raise CheckFailed(f"{body.event_type}: a label holds NUL")
    first = rules is not UNSET
    if first != (body.prev_root == ZERO_ROOT) or (first and seq_of(body.bates) != 0):
        raise CheckFailed(f"{body.event_type}: the first event alone begins node 0 and follows no root")
    if parent is not UNSET:
        # In text order as in number order: both have the same session id and six digits.
        same_session = parent[:SID_LENGTH] == body.bates[:SID_LENGTH]
        if not is_bates(parent) or not same_session or parent >= body.bates:
            raise CheckFailed(f"{body.bates}: {parent[:60]!r} cannot be its parent")


def _wrong_keys(body: Body, pattern: tuple[bool, ...]) -> CheckFailed:
    present = {name for name, there in zip(_OPTIONAL, pattern, strict=True) if there} - {"grafted_from"}
    name = min(present ^ KEYS[body.event_type], default="grafted_from")
    return CheckFailed(
        f"{body.event_type}: {name} {'must' if name in KEYS[body.event_type] else 'may not'} be there"
    )


def _check_event(event: Event) -> None:
    check_body(event.body)
    if event.body.bates[:SID_LENGTH] != event.session_id:
        raise CheckFailed(f"event {event.seq} of {event.session_id}: is about {event.body.bates}")
    first = event.seq == 1
    if first != (event.body.event_type == "session_init") or first != (not event.previous):
        raise CheckFailed(f"event {event.seq} of {event.session_id}: only the first begins a session")
    if not are_hex_digits("".join([event.event_hash, *event.previous])):
        raise CheckFailed(
            f"event {event.seq} of {event.session_id}: a hash is not 64 lower-case hexadecimal digits"
        )
    if len(event.previous) == 2 and event.previous[0] == event.previous[1]:
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
