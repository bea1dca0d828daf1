"""Times as lineage keeps them: RFC 3339 in UTC with exactly three digits of a second, so that they sort as text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_NORMAL = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_time(text: str) -> bool:
    """True for a text of the form ``2026-05-22T15:00:00.000Z``."""
    return _NORMAL.fullmatch(text) is not None


def normal_time(text: str) -> str | None:
    """``text`` (ISO 8601 with an offset, or taken as UTC without one) in the normal form, finer digits cut off; None
    for what is no time."""
    if _NORMAL.fullmatch(text):
        return text
    try:
        moment = datetime.fromisoformat(text)
        return _text(moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None


def time_of_ns(nanoseconds: int) -> str | None:
    """The time that a file system gives in nanoseconds since 1970; None for one outside the years 1 to 9999."""
    try:
        return _text(_EPOCH + timedelta(microseconds=nanoseconds // 1000))
    except OverflowError:
        return None


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")[:23] + "Z"
