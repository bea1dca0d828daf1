"""Session ids and Bates ids.

A session id is ``YYYYMMDD-HHMMSS-<4 hex>`` in UTC. A Bates id is a session id, a hyphen and six digits: the ``seq`` of
a node, which is given once and never again. Node 0 is the session's root, whose question is empty.
"""

from __future__ import annotations

import re

from objstore.errors import CheckFailed, Conflict, UsageError

#: Highest ``seq``: one more digit would break the rule that text order is number order.
MAX_SEQ = 999_999

_SID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4}", re.ASCII)
_BATES = re.compile(r"([0-9]{8}-[0-9]{6}-[0-9a-f]{4})-([0-9]{6})", re.ASCII)
_TIME = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z",
    re.ASCII,
)
SID_LENGTH = 20


def is_sid(text: str) -> bool:
    """Whether ``text`` has the form of a session id."""
    return _SID.fullmatch(text) is not None


def check_sid(text: str) -> str:
    """``text``, or ``UsageError`` when it is no session id."""
    if not is_sid(text):
        raise UsageError(
            f"{text[:60]!r}: not a session id: expected YYYYMMDD-HHMMSS-xxxx",
            hint="list them with: objstore session list",
        )
    return text


def is_bates(text: str) -> bool:
    """Whether ``text`` has the form of a Bates id."""
    return _BATES.fullmatch(text) is not None


def is_number(text: str) -> bool:
    """Whether ``text`` reads as the number of a node, which no label may."""
    return text.isascii() and text.isdigit() and len(text.lstrip("0")) <= len(str(MAX_SEQ))


def is_time(text: str) -> bool:
    """Whether ``text`` is a time as sessions store it: ``YYYY-MM-DDTHH:MM:SSZ``."""
    return _TIME.fullmatch(text) is not None


def sid_at(time: str, random: bytes) -> str:
    """The session id for a session begun at ``time`` (``YYYY-MM-DDTHH:MM:SSZ``), with two random bytes."""
    digits = time.translate({ord(mark): None for mark in "-:TZ"})
    return f"{digits[:8]}-{digits[8:14]}-{random[:2].hex()}"


def bates_of(sid: str, seq: int) -> str:
    """The Bates id of node ``seq``; raises ``Conflict`` past the last number that there is."""
    if not 0 <= seq <= MAX_SEQ:
        raise Conflict(f"{sid}: has no number left after {MAX_SEQ}", hint="begin another session")
    return f"{sid}-{seq:06d}"


def seq_of(bates: str) -> int:
    """The ``seq`` of a Bates id (its form is not checked again)."""
    return int(bates[SID_LENGTH + 1 :])


def split_bates(bates: str) -> tuple[str, int]:
    """Session id and ``seq`` of a Bates id; raises ``CheckFailed`` for other text."""
    match = _BATES.fullmatch(bates)
    if match is None:
        raise CheckFailed(f"{bates[:60]!r}: not a Bates id")
    return match[1], int(match[2])
