"""The label of the host whose paths are meant."""

from __future__ import annotations

import platform

from objstore.snapshot import Snapshot
from plumbing.interface.settings import setting


def host_label(view: Snapshot) -> str:
    """The configured ``host.label``, else the host's name."""
    return setting(view, "host.label") or platform.node() or "localhost"
