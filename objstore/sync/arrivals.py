"""What has to follow when refs arrive from another store: indexes over their chains are brought up to date in the same
transaction. A module says so by name, so that nothing is loaded before it is needed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from objstore.batch import Batch
    from objstore.refs import RefMove
    from objstore.snapshot import Snapshot

_followers: list[tuple[str, str]] = []


def follow(prefix: str, target: str) -> None:
    """When refs whose names begin with ``prefix`` have moved, ``target`` (``module:function``) is called with the view
    after it, a batch for values of ``derived`` and ``local``, and the moves. It must not take long: the store is locked
    meanwhile."""
    _followers.append((prefix, target))


def notify(view: Snapshot, batch: Batch, moves: Sequence[RefMove]) -> None:
    """Let every follower add to ``batch`` what the moves ask of it."""
    import importlib

    for prefix, target in _followers:
        own = [move for move in moves if move.name.startswith(prefix)]
        if own:
            module, _, name = target.partition(":")
            getattr(importlib.import_module(module), name)(view, batch, own)
