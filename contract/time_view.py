"""Instants and durations as results have them."""

from typing import TYPE_CHECKING, Self

from pydantic import Field

from warpfold.contract.frozen import Frozen

if TYPE_CHECKING:
    from warpfold.kernels.lowering.iso8601 import TimeValue


class TimeView(Frozen):
    """An instant or a duration in words."""

    iso: str = Field(
        description="In ISO 8601: an instant with the local time of its zone and the distance from UTC, or a duration "
        'such as "P1DT2H".'
    )
    unit: str = Field(description="What the integer counts: s, ms, us, ns, or D for days and others of NumPy.")
    timezone: str | None = Field(description="The column's time zone; null where it has none.")
    exact: str | None = Field(
        description="The true value as a fraction of units, for an op such as `mean` whose integer is rounded to a "
        "whole number of units (to nearest, ties to even)."
    )

    @classmethod
    def of(cls, value: "TimeValue | None") -> Self | None:
        """The view of a value; None without a value."""
        if value is None:
            return None
        return cls(iso=value.iso, unit=value.unit, timezone=value.timezone, exact=value.exact)
