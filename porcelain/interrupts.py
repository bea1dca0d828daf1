"""Ctrl-C while modules load: it is held back until they have loaded. Elsewhere it would end in a traceback, or leave
half of a module behind."""

from __future__ import annotations

# Without the enumerations of ``signal``, which take as long to load as much of the program.
import _signal  # type: ignore[import-not-found]
from _signal import SIGINT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: The signals that were held back before, while SIGINT is; None while it is not.
_before: Iterable[int] | None = None


def hold() -> None:
    """Hold SIGINT back from now on, where the system can."""
    global _before
    if _before is None and hasattr(_signal, "pthread_sigmask"):
        _before = _signal.pthread_sigmask(_signal.SIG_BLOCK, (SIGINT,))


def release() -> None:
    """Let SIGINT through again; raises ``KeyboardInterrupt`` where one came meanwhile."""
    global _before
    if _before is not None:
        before, _before = _before, None
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
