"""ISO 8601: instants of any year and zone, durations of any length."""

import pytest

from warpfold.kernels.lowering.iso8601 import duration, instant


@pytest.mark.parametrize(
    ("units", "unit", "zone", "text"),
    [
        (0, "s", None, "1970-01-01T00:00:00"),
        (-1, "ns", None, "1969-12-31T23:59:59.999999999"),
        (1_767_268_800_123, "ms", "UTC", "2026-01-01T12:00:00.123+00:00"),
        (1_767_268_800, "s", "Europe/Berlin", "2026-01-01T13:00:00+01:00"),
        (1_783_000_000, "s", "America/St_Johns", "2026-07-02T11:16:40-02:30"),
        (1_767_268_800, "s", "+05:30", "2026-01-01T17:30:00+05:30"),
        (1_767_268_800, "s", "Nowhere/Land", "2026-01-01T12:00:00Z"),
        (-3_000_000_000, "s", "Europe/Berlin", "1874-12-07T18:40:00Z"),  # there the clocks were 53:28 ahead
        (20454, "D", None, "2026-01-01"),
        (1 << 40, "s", "UTC", "36812-02-20T00:36:16Z"),
        (1 << 62, "W", None, f"{1 << 62} W after 1970-01-01T00:00"),
    ],
)
def test_an_instant_is_written_with_its_zone(units: int, unit: str, zone: str | None, text: str) -> None:
    assert instant(units, unit, zone) == text


@pytest.mark.parametrize(
    ("units", "unit", "text"),
    [
        (0, "s", "PT0S"),
        (90_061_500, "ms", "P1DT1H1M1.5S"),
        (-90, "s", "-PT1M30S"),
        (1, "ns", "PT0.000000001S"),
        (2, "W", "P14D"),
        (10**30, "s", f"P{10**30 // 86400}DT{10**30 % 86400 // 3600}H{10**30 % 3600 // 60}M{10**30 % 60}S"),
    ],
)
def test_a_duration_is_written_in_days_and_less(units: int, unit: str, text: str) -> None:
    assert duration(units, unit) == text
