"""The store, the session and the node that a command line means."""

from __future__ import annotations

import os
from pathlib import Path

from objstore.errors import Conflict, NotFound, UsageError
from objstore.snapshot import Snapshot
from objstore.store import Store
from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import say
from plumbing.interface.stores import open_store
from porcelain.session.tree import names
from porcelain.session.tree.change import Session, open_session
from porcelain.session.tree.identity import is_bates, is_sid
from porcelain.session.tree.listing import last_event_time
from porcelain.session.tree.places import current_seq, resolve_node

SID = Option("--sid", "sid", "SID", "the session (default: the one with the latest event)", "text")
#: Fewest characters by which a session may be named.
_LEAST = 4


def open_or_make(context: Context) -> Store:
    """The store for writing; the first session makes the one it needs, unless the place named looks mistyped."""
    path = context.store_path()
    if not os.path.exists(os.path.join(path, "data.mdb")):
        parent = os.path.dirname(path)
        if context.store is not None and not os.path.isdir(parent):
            raise NotFound(f"{parent}: no such folder", hint="make the store first: objstore init DIR")
        try:
            Store.init(path).close()
        except Conflict:
            pass  # another process was faster
        else:
            say(context, f"made a store in {path}")
    return open_store(context, write=True)


def latest_session(view: Snapshot) -> str | None:
    """The session with the latest event (then the greatest id), or None where there is none."""
    found = [(last_event_time(view, sid), sid) for sid in names.session_ids(view)]
    return max(found)[1] if found else None


def find_session(view: Snapshot, text: str | None, node: str | None = None) -> str:
    """The id of the session that ``text`` (an id or the beginning of one) means; without it the one that the Bates id
    ``node`` belongs to, else the latest. Raises ``NotFound`` and ``UsageError``."""
    if text is None and node is not None and is_bates(node):
        text = node.rpartition("-")[0]
    if text is None:
        latest = latest_session(view)
        if latest is None:
            raise NotFound("there is no session yet", hint="begin one: objstore session new")
        return latest
    if is_sid(text):
        return text
    if len(text) < _LEAST:
        raise UsageError(
            f"{text!r}: too short for a session: type at least {_LEAST} characters of its id",
            hint="list them with: objstore session list",
        )
    found = [sid for sid in names.session_ids(view) if sid.startswith(text)]
    if len(found) > 1:
        raise UsageError(f"{text}: {len(found)} sessions begin so", hint="type more: " + " ".join(found[:3]))
    if not found:
        raise NotFound(f"{text[:60]}: no such session", hint="list them with: objstore session list")
    return found[0]


def chosen_session(view: Snapshot, arguments: Arguments, node: str | None = None) -> Session:
    """The session that ``--sid`` names, open for reading; see ``find_session``."""
    return open_session(view, find_session(view, arguments.sid, node))


def chosen_node(view: Snapshot, session: Session, text: str | None) -> int:
    """The node that ``text`` (Bates id, number, label) names, or where the person is."""
    return current_seq(view, session) if text is None else resolve_node(view, session, text)


def given_path(context: Context, text: str) -> Path:
    """A path from the command line, absolute."""
    return Path(context.cwd) / text
