"""Assembly of a session from landed rows, one stage a module; ``build`` runs them, ``rounds`` cuts the result."""

from __future__ import annotations

from porcelain.flow.assembly.build import Assembled, Totals, assemble
from porcelain.flow.assembly.growing import Chain, rounds
from porcelain.flow.assembly.rounds import (
    PARSER,
    POLICY,
    ROUND_BYTES,
    Delta,
    Head,
    Written,
    delta,
    next_round,
)

__all__ = [
    "PARSER",
    "POLICY",
    "ROUND_BYTES",
    "Assembled",
    "Chain",
    "Delta",
    "Head",
    "Totals",
    "Written",
    "assemble",
    "delta",
    "next_round",
    "rounds",
]
