"""Waiting until something may have changed below some folders: by file events where ``watchfiles`` is installed, else
by looking again after a while."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: Milliseconds of silence that end one burst of file events.
_DEBOUNCE = 400
#: Milliseconds without an event after which it is time to look all the same: a look at what is unchanged is cheap.
_LONGEST_WAIT = 10_000


def changes(folders: Callable[[], list[Path]], interval: float) -> Iterator[None]:
    """Yield whenever it is time to look again, without end: after file events, and at the latest after ``interval``
    seconds where there are none to be had. ``folders`` is asked anew each time, since an agent may make its folder
    later."""
    watch = _file_events()
    if watch is None:
        while True:
            time.sleep(interval)
            yield
    while True:
        present = [folder for folder in folders() if folder.is_dir()]
        if not present:
            time.sleep(interval)
            yield
            continue
        # Every wait ends after a while: for what happened before the watcher stood, and for folders made since.
        for _ in watch(
            *present,
            debounce=_DEBOUNCE,
            rust_timeout=_LONGEST_WAIT,
            yield_on_timeout=True,
            raise_interrupt=True,
            ignore_permission_denied=True,
        ):
            yield
            if {folder for folder in folders() if folder.is_dir()} != set(present):
                break


def has_events() -> bool:
    """Whether file events are to be had."""
    return _file_events() is not None


def _file_events() -> Any:
    """The function of the optional package that watches folders, or None."""
    try:
        return importlib.import_module("watchfiles").watch
    except ImportError:
        return None
