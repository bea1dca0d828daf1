"""Instants as exact nanoseconds, and their text in a round: RFC 3339 in UTC without trailing zeros of the fraction.

Never through floats: a fraction of nine digits survives. What is accepted is what Go's ``time.Parse`` accepts for
``RFC3339Nano``; finer digits than nanoseconds are cut off.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache

NS_PER_SECOND = 1_000_000_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def _number(text: str, limit: int) -> int | None:
    """The value of ASCII digits below ``limit``, else None."""
    if not (text.isascii() and text.isdigit()):
        return None
    value = int(text)
    return value if value < limit else None


@lru_cache(maxsize=4096)
def _minute(text: str) -> int | None:
    """Seconds since 1970 at ``YYYY-MM-DDTHH:MM``; None for anything else."""
    if len(text) != 16 or (text[4], text[7], text[10], text[13]) != ("-", "-", "T", ":"):
        return None
    year, month, day = _number(text[:4], 10_000), _number(text[5:7], 13), _number(text[8:10], 32)
    hour, minute = _number(text[11:13], 24), _number(text[14:16], 60)
    if year is None or month is None or day is None or hour is None or minute is None:
        return None
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    return days * 86_400 + hour * 3_600 + minute * 60


def _offset(text: str) -> int | None:
    """Seconds east of UTC for ``Z`` or ``+HH:MM``; None for anything else."""
    if text == "Z":
        return 0
    if len(text) != 6 or text[0] not in "+-" or text[3] != ":":
        return None
    hours, minutes = _number(text[1:3], 24), _number(text[4:6], 60)
    if hours is None or minutes is None:
        return None
    seconds = hours * 3_600 + minutes * 60
    return -seconds if text[0] == "-" else seconds


def instant(text: str) -> int | None:
    """Nanoseconds since 1970 of an RFC 3339 text, or None where the text is no such time."""
    base = _minute(text[:16])
    second = text[17:19]
    if base is None or text[16:17] != ":" or not (second.isascii() and second.isdigit()) or second >= "60":
        return None
    rest = text[19:]
    fraction = 0
    if rest[:1] == ".":
        end = len(rest) - (1 if rest[-1] == "Z" else 6)
        digits = rest[1:end]
        if not (digits.isascii() and digits.isdigit()):
            return None
        fraction = int(digits[:9].ljust(9, "0"))
        rest = rest[end:]
    if len(second) != 2:
        return None
    east = 0 if rest == "Z" else _offset(rest)
    if east is None:
        return None
    return (base + int(second) - east) * NS_PER_SECOND + fraction


def rfc3339nano(ns: int) -> str:
    """The text of an instant (nanoseconds since 1970): ``2026-01-01T00:00:11.1Z``."""
    minutes, rest = divmod(ns, 60 * NS_PER_SECOND)
    second, fraction = divmod(rest, NS_PER_SECOND)
    digits = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"{_minute_text(minutes)}:{second:02d}{digits}Z"


@lru_cache(maxsize=256)
def _minute_text(minutes: int) -> str:
    days, minute = divmod(minutes, 1440)
    return f"{date.fromordinal(days + _EPOCH_DAY).isoformat()}T{minute // 60:02d}:{minute % 60:02d}"


def trim(text: str) -> str | None:
    """A time as a round writes it, or None where ``text`` is no time."""
    ns = instant(text)
    return None if ns is None else rfc3339nano(ns)
