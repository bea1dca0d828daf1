"""Running commands on stores in one folder."""

from __future__ import annotations

from tests.plumbing.conftest import objstore

__all__ = ["objstore"]
