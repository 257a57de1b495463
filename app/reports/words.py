"""Numbers and names as reports write them."""

from warpfold.contract.provenance import DeviceView

ABSENT = "–"
"""Where a table has nothing to say."""


def figure(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits: "4,350", "0.123", "1.2e-07", "0"."""
    if value is None:
        return ABSENT
    if value == 0:
        return "0"
    short = f"{value:.{digits}g}"
    number = float(short)
    if not 1e-3 <= abs(number) < 1e7:
        return f"{value:.{digits - 1}e}"
    if abs(number) >= 10 ** (digits - 1):
        return f"{number:,.0f}"
    decimals = len(short.partition(".")[2])
    return f"{number:,.{decimals}f}"


def exactly(value: float | int | bool) -> str:
    """A value with the fewest digits that tell it from every other."""
    return repr(value)


def milliseconds(value: float | None) -> str:
    """A time in milliseconds, four significant digits."""
    return ABSENT if value is None else figure(value, 4)


def percent(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.1f} %"


def times(value: float | None) -> str:
    """A ratio: "1.52×"."""
    return ABSENT if value is None else f"{figure(value)}×"


def machine(device: DeviceView | None) -> str | None:
    """A device by its name."""
    return None if device is None else device.name


def yes(value: bool | None) -> str:
    return {True: "yes", False: "no", None: ABSENT}[value]
