"""Which module registers which kind of object, so that nothing is imported before a kind is needed.

Apart from ``kinds``, which loads msgspec, so that a program can declare its kinds at start-up for nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_modules: dict[str, str] = dict.fromkeys(("blob", "chunks", "list", "round", "text"), "objstore.core")


def declare(module: str, names: Iterable[str]) -> None:
    """Say that importing ``module`` registers the kinds ``names``; what was said first stays."""
    for name in names:
        _modules.setdefault(name, module)


def declarations() -> dict[str, str]:
    """Module by name of kind; worker processes are given this."""
    return dict(_modules)


def module_of(name: str) -> str | None:
    """The module that registers the kind ``name``, or None."""
    return _modules.get(name)
