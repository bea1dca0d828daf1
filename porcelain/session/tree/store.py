"""Sessions in a store: beginning one, adding turns, naming nodes.

Two processes that ask in one session both land, with numbers of their own: see ``change``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from msgspec import Struct, structs

from objstore import kinds
from objstore.digest import is_object_id
from objstore.errors import Conflict, NotFound, RefMoved, UsageError
from objstore.merkle import leaf_hash
from objstore.objects import SESSION_NODE
from objstore.store import Store
from porcelain.providers.redaction import redact_text
from porcelain.session.tree import names
from porcelain.session.tree.change import Added, Change, Labelled, change, one_head, require_sha256
from porcelain.session.tree.events import KIND, RULES, ZERO_ROOT, Body, follow
from porcelain.session.tree.identity import is_time, sid_at
from porcelain.session.tree.index import State, TreeIndex, read_state
from porcelain.session.tree.nodes import (
    AUDIT_MODES,
    MAX_QUESTION,
    AuditMode,
    check_label,
    check_text,
    root_node,
)
from porcelain.session.tree.places import current_seq

_SID_ATTEMPTS = 64


class Turn(Struct, frozen=True, kw_only=True):
    """A question that was answered, about to be added.

    ``answer`` is the id of the answer's object, ``cache_key`` 64 hex digits, ``parent`` the ``seq`` it is asked under
    (None: where the person is), ``created_at`` a time of the form ``2026-01-31T23:59:59Z`` (None: the store's clock).
    """

    answer: str
    audit_mode: AuditMode
    cache_key: str
    question: str
    created_at: str | None = None
    label: str | None = None
    parent: int | None = None


def new_session(
    store: Store, *, created_at: str | None = None, random: Callable[[int], bytes] = os.urandom
) -> tuple[str, State]:
    """Begin a session at ``created_at`` (None: the store's clock): its ``sid`` and state.

    A ``sid`` that was ever used in this store is not given again.
    """
    require_sha256(store)
    time = check_time(created_at if created_at is not None else store.now())
    for _ in range(_SID_ATTEMPTS):
        sid = sid_at(time, random(2))
        node = root_node(sid, time)
        batch = store.batch()
        digest = batch.put(SESSION_NODE, kinds.encode(node))
        with store.snapshot() as view:
            if bytes.fromhex(digest) in view or names.heads(view, sid):
                continue
        index = TreeIndex(None, sid)
        index.insert(0, None, bytes.fromhex(digest))
        root = leaf_hash(bytes.fromhex(digest)).hex()
        body = Body(
            bates=node.bates,
            created_at=time,
            event_type="session_init",
            node_hash=digest,
            prev_root=ZERO_ROOT,
            rules=RULES,
            session_root=root,
        )
        event = batch.put(KIND, kinds.encode(follow(None, None, body)))
        index.set_event(0, event)
        index.set_root(root, 1)
        state = State(
            created_at=time,
            event_count=1,
            head=event,
            next_seq=1,
            node_count=1,
            root=root,
            updated_at=time,
        )
        index.write(batch, state)
        batch.move_ref(names.head_ref(sid, event), event, None, "begin")
        batch.move_ref(names.current_ref(sid), digest, None, "")
        try:
            store.commit(batch)
            return sid, state
        except RefMoved:
            continue
    raise Conflict(f"no session id of {time} is free", hint="try again in a second")


def check_time(text: str) -> str:
    """``text``, or ``UsageError`` when it is no time of the form that sessions store."""
    if not is_time(text):
        raise UsageError(f"{text[:40]!r}: not a time of the form 2026-01-31T23:59:59Z")
    return text


def add_turn(store: Store, sid: str, turn: Turn, *, move_current: bool = True) -> Added:
    """Add one turn; the person is at the new node then, unless ``move_current`` is false.

    Its answer must be stored already, so that a process that is killed in between leaves an unused answer and nothing
    else. Raises ``NotFound`` for a session, parent or answer that is not there, ``Diverged``, ``UsageError``.
    """
    return add_turns(store, sid, (turn,), move_current=move_current)[0]


def add_turns(store: Store, sid: str, turns: Iterable[Turn], *, move_current: bool = True) -> list[Added]:
    """Add several turns in one transaction; a ``parent`` of None is the turn before, for the first where the person is.
    See ``add_turn``."""
    checked = [_checked(turn, store) for turn in turns]
    if not checked:
        return []

    def do(made: Change) -> list[Added]:
        added: list[Added] = []
        here: int | None = None
        for turn in checked:
            if bytes.fromhex(turn.answer) not in made.view:
                raise NotFound(f"{turn.answer}: no such object", hint="store the answer first")
            parent = turn.parent
            if parent is None:
                parent = current_seq(made.view, made.session) if here is None else here
            made.require(parent)
            assert turn.created_at is not None
            added.append(
                made.add(
                    answer=turn.answer,
                    audit_mode=turn.audit_mode,
                    cache_key=turn.cache_key,
                    created_at=turn.created_at,
                    label=turn.label,
                    parent=parent,
                    question=turn.question,
                )
            )
            here = added[-1].seq
        if move_current:
            made.move_current(added[-1].seq)
        return added

    return change(store, sid, do, "ask" if len(checked) == 1 else f"ask {len(checked)}")


def _checked(turn: Turn, store: Store) -> Turn:
    """A turn as it may be stored: no secret, no NUL, a time."""
    question = redact_text(check_text("question", turn.question, MAX_QUESTION))
    if not question.strip():
        raise UsageError("a question may not be empty")
    label = turn.label
    if turn.audit_mode not in AUDIT_MODES:
        raise UsageError(f"{turn.audit_mode[:40]!r}: not an audit mode: one of " + " ".join(AUDIT_MODES))
    for what, text in (("cache_key", turn.cache_key), ("answer", turn.answer)):
        if not is_object_id(text):
            raise UsageError(f"{text[:80]!r}: not the {what} of a turn: expected 64 hexadecimal digits")
    return structs.replace(
        turn,
        question=check_text("question", question, MAX_QUESTION),
        label=None if label is None else check_label(redact_text(label)),
        created_at=check_time(turn.created_at if turn.created_at is not None else store.now()),
    )


def set_label(
    store: Store, sid: str, seq: int, label: str | None, *, created_at: str | None = None
) -> Labelled:
    """Name a node, or take its name away with None.

    The label is inside the hash, so the node and what is below it are minted again, and the root and the place where
    the person is move along. A label that the node bears already changes nothing.
    """
    name = None if label is None else check_label(redact_text(label))
    time = check_time(created_at if created_at is not None else store.now())

    def do(made: Change) -> Labelled:
        node = made.node(seq)
        if seq == 0:
            raise UsageError(f"{node.bates}: the root of a session bears no label")
        if node.label == name:
            return Labelled(node.bates, made.index.node_hash(seq).hex(), made.root, 0)
        here = current_seq(made.view, made.session)
        result = made.label(seq, name, time)
        made.move_current(here)
        return result

    return change(store, sid, do, "label")


def refresh_index(store: Store, sid: str) -> None:
    """Make a session's index agree with its head, where it does not. Raises as ``open_session``."""
    with store.snapshot() as view:
        head = one_head(view, sid)
        state = read_state(view, sid)
        if state is not None and state.head == head:
            return
    change(store, sid, lambda made: None, "index")
