"""A content-addressed store of immutable JSON objects, with refs, chains and folds.

The public interface is ``Store`` and what it returns, ``Snapshot``, ``Batch``, ``Fold``, ``Report``, and the exceptions
of ``objstore.errors``; ``docs/api.md`` is a page about them. Nothing is loaded before it is asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from objstore.batch import Batch
    from objstore.bulk import BulkWriter
    from objstore.fold import Fold
    from objstore.refs import ANY
    from objstore.snapshot import Snapshot
    from objstore.store import Store
    from objstore.verify import Problem, Report

__all__ = ["ANY", "Batch", "BulkWriter", "Fold", "Problem", "Report", "Snapshot", "Store"]

_MODULES = {
    "ANY": "objstore.refs",
    "Batch": "objstore.batch",
    "BulkWriter": "objstore.bulk",
    "Fold": "objstore.fold",
    "Problem": "objstore.verify",
    "Report": "objstore.verify",
    "Snapshot": "objstore.snapshot",
    "Store": "objstore.store",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'objstore' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)
