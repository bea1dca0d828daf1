"""The refs of a session that are computed when they are asked for, the one that stays on this machine, and those that
are not taken from other stores.

Importing this module makes them known to the store; it loads neither msgspec nor a model.
"""

from __future__ import annotations

from objstore.refs import register_declined, register_derived, register_local
from porcelain.session.tree.names import Diverged, heads, is_removed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from objstore.snapshot import Snapshot


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
    from porcelain.session.tree.change import open_session
    from porcelain.session.tree.listing import subtree_document

    return subtree_document(open_session(view, name.split("/")[1]))


register_local("session/*/current")
register_declined("session/*/heads/*", lambda view, name: is_removed(view, name.split("/")[1]))
register_derived("session/*/head", _resolve)
register_derived("session/*/root", _resolve, show=_show_root)
