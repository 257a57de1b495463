"""Instants and durations as ISO 8601 writes them. Each is an integer of its unit, of any size; none is rounded."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from types import MappingProxyType
from zoneinfo import ZoneInfo

import numpy as np

PER_SECOND: Mapping[str, int] = MappingProxyType({"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9})
"""How many of a unit make a second."""

SECONDS_PER: Mapping[str, int] = MappingProxyType({"W": 604_800, "D": 86_400, "h": 3_600, "m": 60, "s": 1})
"""How many seconds a unit has."""

UNITS = (*SECONDS_PER, *PER_SECOND)
"""The units by NumPy's names. Months and years are left out, because they differ in length."""

_LAST = 1 << 62
"""Beyond it seconds are not handed to NumPy."""


@dataclass(frozen=True, slots=True)
class TimeValue:
    """The meaning of an integer of a column of times.

    `iso` is the instant or the duration; with a time zone the local time there and its distance from UTC. `exact` is
    the true value as a fraction of units where the integer is rounded, such as a mean: "7/2".
    """

    iso: str
    unit: str
    timezone: str | None = None
    exact: str | None = None


def instant(units: int, unit: str, zone: str | None = None) -> str:
    """The instant `units` after 1970-01-01T00:00 (in UTC where there is a zone). Where the zone is not known here, or
    Python has no such year, or the clocks were no whole minutes ahead of UTC, the text is that of UTC, with a Z."""
    whole, fraction = _split(units, unit)
    offset, mark = timedelta(), ""
    if zone is not None:
        known = _offset(whole, zone)
        offset, mark = (timedelta(), "Z") if known is None else (known, _distance(known))
    local = whole + offset.days * 86_400 + offset.seconds
    if abs(local) >= _LAST:
        return f"{units} {unit} after 1970-01-01T00:00{mark}"
    if unit in ("D", "W"):
        return np.datetime_as_string(np.datetime64(local // 86_400, "D")).item() + mark
    return np.datetime_as_string(np.datetime64(local, "s")).item() + fraction + mark


def duration(units: int, unit: str) -> str:
    """The duration as days, hours, minutes and seconds: "-P1DT2H3M4.500000S"."""
    whole, fraction = _split(abs(units), unit)
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, seconds = divmod(rest, 60)
    shown = fraction.rstrip("0").rstrip(".")
    clock = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    clock += f"{seconds}{shown}S" if seconds or shown else ""
    text = (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
    return ("-" if units < 0 else "") + "P" + (text or "T0S")


def _split(units: int, unit: str) -> tuple[int, str]:
    """Whole seconds, rounded down, and what follows them as ".123"."""
    if unit in SECONDS_PER:
        return units * SECONDS_PER[unit], ""
    whole, rest = divmod(units, PER_SECOND[unit])
    return whole, f".{rest:0{len(str(PER_SECOND[unit])) - 1}d}"


def _offset(seconds: int, zone: str) -> timedelta | None:
    """How far the clocks of a zone are ahead of UTC at an instant; None where that is not known here, or is no whole
    number of minutes, which ISO 8601 cannot write: local mean times before standard times had seconds."""
    try:
        instant_utc = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        offset = instant_utc.astimezone(_zone(zone)).utcoffset()
    except (OverflowError, ValueError, LookupError, OSError):
        return None
    return offset if offset is not None and offset.seconds % 60 == 0 else None


def _zone(name: str) -> tzinfo:
    """The zone of a name such as "Europe/Berlin" or "+02:00"."""
    if name[:1] in ("+", "-"):
        return datetime.strptime(name.replace(":", ""), "%z").tzinfo or UTC
    return ZoneInfo(name)


def _distance(offset: timedelta) -> str:
    seconds = offset.days * 86_400 + offset.seconds
    hours, rest = divmod(abs(seconds) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{rest:02}"
