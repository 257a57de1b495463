"""Parameters that several lists have."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def _dated(written: object) -> object:
    """Pydantic takes a plain number for seconds since 1970. A parameter says a date."""
    if isinstance(written, str) and not _DATE.match(written):
        raise ValueError("it should begin with a date, as 2026-11-21T04:00:00Z does")
    return written


DateTime = Annotated[datetime, BeforeValidator(_dated)]
"""A moment; without a zone it is in UTC."""


def in_utc(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
