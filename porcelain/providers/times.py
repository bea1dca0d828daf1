"""Times as agents write them, brought to one comparable form (RFC 3339 in UTC, fraction trimmed)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

#: What most agents write: in UTC, of a day that every month has.
_USUAL = re.compile(
    r"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(?:\.[0-9]{0,8}[1-9])?Z"
)
_WRITTEN = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")

#: What a page is stamped with when neither it nor an earlier page states any time.
EPOCH = "1970-01-01T00:00:00Z"


@lru_cache(maxsize=64)  # a record's time is looked at by its reader, by landing and as that of the page
def instant(text: str) -> str | None:
    """``text`` in UTC with trailing zeros of the fraction removed, or None when it is no RFC 3339 time."""
    if _USUAL.fullmatch(text):
        return text
    written = _WRITTEN.fullmatch(text)
    if written is None:
        return None
    day, clock, fraction, zone = written.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone == 'Z' else zone}")
        if zone != "Z":
            day, clock = moment.astimezone(UTC).isoformat()[:19].split("T")
    except (ValueError, OverflowError):
        return None
    fraction = (fraction or "").rstrip("0")
    return f"{day}T{clock}.{fraction}Z" if fraction else f"{day}T{clock}Z"


def later(one: str, other: str) -> bool:
    """Whether the instant ``one`` lies after ``other`` (both as ``instant`` returns them)."""
    return one[:-1] > other[:-1]


def from_milliseconds(count: int) -> str | None:
    """RFC 3339 text, milliseconds kept, of ``count`` milliseconds since 1970; None when out of range."""
    minute, rest = divmod(count, 60_000)
    try:
        return f"{_minute(minute)}:{rest // 1000:02d}.{rest % 1000:03d}Z"
    except (ValueError, OverflowError, OSError):
        return None


@lru_cache(maxsize=64)
def _minute(count: int) -> str:
    return datetime.fromtimestamp(count * 60, UTC).isoformat()[:16]
