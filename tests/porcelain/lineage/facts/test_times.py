from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porcelain.lineage.facts.times import is_time, normal_time, time_of_ns


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("2026-05-22T15:00:00.000Z", "2026-05-22T15:00:00.000Z"),
        ("2026-05-22T15:00:00Z", "2026-05-22T15:00:00.000Z"),
        ("2026-05-22T15:00:00.123456+01:30", "2026-05-22T13:30:00.123Z"),
        ("2026-05-22 15:00:00", "2026-05-22T15:00:00.000Z"),
        ("0001-01-01T00:00:00+10:00", None),
        ("2026-13-01T00:00:00.000Z", None),
        ("2026-05-22T24:30:00.000Z", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_normal_time(text: str, normal: str | None) -> None:
    assert normal_time(text) == normal


@given(st.datetimes(), st.integers(-720, 720))
def test_normal_times_sort_as_the_moments_do(moment: datetime, minutes: int) -> None:
    other = datetime(2026, 1, 1, tzinfo=UTC)
    here = moment.replace(tzinfo=UTC)
    shifted = moment + timedelta(minutes=minutes) if 1 < moment.year < 9999 else moment
    offset = minutes if 1 < moment.year < 9999 else 0
    text = f"{shifted.isoformat()}{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    normal = normal_time(text)
    assert normal is not None and is_time(normal)
    assert datetime.fromisoformat(normal) == here.replace(microsecond=here.microsecond // 1000 * 1000)
    assert (normal < str(normal_time(other.isoformat()))) == (datetime.fromisoformat(normal) < other)


def test_time_of_a_file() -> None:
    assert time_of_ns(1_700_000_000_123_456_789) == "2023-11-14T22:13:20.123Z"
    assert time_of_ns(-1) == "1969-12-31T23:59:59.999Z"
    assert time_of_ns(10**30) is None
