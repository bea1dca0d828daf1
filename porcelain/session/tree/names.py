"""The names of a session's refs. Two of them are computed: ``derived_refs``.

========================================  ==============================================================
``session/<sid>/heads/<event id>``        a head of the session's chain of events; one, unless it diverged
``session/<sid>/head``                    derived: the one head
``session/<sid>/root``                    derived: the ``session_root`` it states, a Merkle hash and no object
``session/<sid>/current``                 local: the node where the person is
========================================  ==============================================================
"""

from __future__ import annotations

from objstore.errors import Conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from objstore.snapshot import Snapshot

PREFIX = "session/"
_REMOVED = b"session/removed/"


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


def removed_key(sid: str) -> bytes:
    """The key in ``local`` that says that a session was removed from this store on purpose."""
    return _REMOVED + sid.encode()


def is_removed(view: Snapshot, sid: str) -> bool:
    """Whether the session was removed from this store on purpose, and not brought back since."""
    return view.local(removed_key(sid)) is not None and not heads(view, sid)


def removed_sessions(view: Snapshot) -> list[str]:
    """The sessions that were removed and not brought back, ascending."""
    keys = [key for key, _ in view.local_items(_REMOVED)]
    return [sid for key in keys if is_removed(view, sid := key[len(_REMOVED) :].decode())]
