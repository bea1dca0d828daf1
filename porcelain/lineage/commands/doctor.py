"""``objstore lineage doctor``: ``objstore doctor``, where one looks for it."""

from __future__ import annotations

from porcelain import doctor
from porcelain.doctor import ARGUMENTS, OPTIONS, SUMMARY, run

__all__ = ["ARGUMENTS", "EXAMPLES", "OPTIONS", "SUMMARY", "USAGE", "run"]

USAGE = f"lineage {doctor.USAGE}"
EXAMPLES = ("objstore lineage doctor", "objstore lineage doctor --days 14")
