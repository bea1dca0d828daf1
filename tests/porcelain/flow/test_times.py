from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porcelain.flow.formats.times import instant, rfc3339nano, trim


@pytest.mark.parametrize(
    ("written", "trimmed"),
    [
        ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:11.100Z", "2026-01-01T00:00:11.1Z"),
        ("2026-01-01T00:00:11.123456789Z", "2026-01-01T00:00:11.123456789Z"),
        ("2026-01-01T00:00:11.1234567891Z", "2026-01-01T00:00:11.123456789Z"),
        ("2026-01-01T01:30:00.5+02:00", "2025-12-31T23:30:00.5Z"),
        ("2026-01-01T00:00:00-00:30", "2026-01-01T00:30:00Z"),
        ("1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999999999Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_trim(written: str, trimmed: str) -> None:
    assert trim(written) == trimmed


@pytest.mark.parametrize(
    "written",
    [
        "",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:6Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.1",
        "2026-01-01T00:00:00.-1Z",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+0200",
        "\u0662026-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
    ],
)
def test_no_time(written: str) -> None:
    assert instant(written) is None
    assert trim(written) is None


@given(st.integers(-(10**18), 4 * 10**18))
def test_text_and_back(ns: int) -> None:
    written = rfc3339nano(ns)
    assert instant(written) == ns
    assert trim(written) == written
