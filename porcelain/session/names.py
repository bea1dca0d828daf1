"""The refs of sessions, and the two that are computed.

========================================  ==============================================================
``session/<sid>/heads/<event id>``        a head of the session's chain of events; one, unless it diverged
``session/<sid>/head``                    derived: the one head
``session/<sid>/root``                    derived: the ``session_root`` it states, a Merkle hash and no object
``session/<sid>/current``                 local: the node where the person is
========================================  ==============================================================

Importing this module makes the names known to the store; it loads neither msgspec nor a model.
"""

from __future__ import annotations

from objstore.errors import Conflict
from objstore.refs import register_derived, register_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from objstore.snapshot import Snapshot

PREFIX = "session/"


class Diverged(Conflict):
    """A session has several heads where one is needed; ``heads`` are their event ids."""

    def __init__(self, sid: str, heads: list[str]) -> None:
        super().__init__(
            f"{sid}: has {len(heads)} heads: it went on in several places",
            hint=f"unite them with: objstore session graft {sid}",
        )
        self.sid = sid
        self.heads = heads


def heads_prefix(sid: str) -> str:
    """What the names of a session's heads begin with."""
    return f"{PREFIX}{sid}/heads/"


def head_ref(sid: str, event: str) -> str:
    """The ref of one head."""
    return heads_prefix(sid) + event


def current_ref(sid: str) -> str:
    """The ref of the node where the person is."""
    return f"{PREFIX}{sid}/current"


def heads(view: Snapshot, sid: str) -> list[str]:
    """The event ids of a session's heads, ascending; empty where there is no such session."""
    return [key.hex() for _, key in view.refs(heads_prefix(sid))]


def misnamed_heads(view: Snapshot, sid: str) -> list[str]:
    """The refs of heads that stand elsewhere than their names say, which only a change by hand can bring about."""
    prefix = heads_prefix(sid)
    return [name for name, key in view.refs(prefix) if name[len(prefix) :] != key.hex()]


def session_ids(view: Snapshot) -> list[str]:
    """All sessions that have a head, ascending."""
    return sorted({name.split("/", 2)[1] for name, _ in view.refs(PREFIX) if name.count("/") == 3})


def _resolve(view: Snapshot, name: str) -> str | None:
    _, sid, which = name.split("/")
    found = heads(view, sid)
    if len(found) > 1:
        raise Diverged(sid, found)
    if not found or which == "head":
        return found[0] if found else None
    from objstore.store import load

    root: str = load(view, bytes.fromhex(found[0]), "session-event").body.session_root
    return root


def _show_root(view: Snapshot, name: str) -> object:
    from porcelain.session.change import open_session
    from porcelain.session.listing import subtree_document

    return subtree_document(open_session(view, name.split("/")[1]))


register_local("session/*/current")
register_derived("session/*/head", _resolve)
register_derived("session/*/root", _resolve, show=_show_root)
