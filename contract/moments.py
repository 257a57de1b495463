"""Moments as people write them, on the command line and in forms: a time ago, a day, or a time of a day."""

import re
from datetime import UTC, datetime, timedelta

HOW = "a time ago such as 30min, 2h or 7d, a day such as 2026-11-22, or a time such as 2026-11-22T10:00Z"
"""The forms that `moment` reads, in words."""

_AGO = re.compile(r"(\d{1,6})\s*(s|min|m|h|d|w)(?:\s+ago)?")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


def moment(text: str, now: datetime) -> datetime:
    """The moment that `text` names, seen from `now`; without an offset it is in UTC. Raises ValueError."""
    text = text.strip()
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return now - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])
        named = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ValueError(f"should be {HOW}") from None
    return named if named.tzinfo is not None else named.replace(tzinfo=UTC)
