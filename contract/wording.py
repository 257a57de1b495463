"""Numbers, sizes, ratios and durations as people read them, for pages, reports, charts and lists alike.

Three rules shorten a number: `number` keeps every digit before the point (pages), `figure` rounds to significant
digits and turns to exponents early (tables of reports), `significant` rounds and turns to exponents late (sentences
about charts).
"""

import math

ABSENT = "–"
"""The text in place of a value that does not exist."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(value: float | None) -> str:
    """Bytes in the binary unit that suits them: 154618822656 → "144 GiB"."""
    if value is None:
        return ABSENT
    power = _power_of_1024(value)
    scaled = value / 1024**power
    return f"{scaled:.0f} {_UNITS[power]}" if scaled >= 100 or power == 0 else f"{scaled:.1f} {_UNITS[power]}"


def part_of(used: float, whole: float) -> str:
    """Bytes of bytes, in the unit of the whole: 2899102925 of 25233256448 → "2.7 / 23.5 GiB"."""
    power = _power_of_1024(whole)
    digits = 0 if whole / 1024**power >= 100 else 1
    return f"{used / 1024**power:.{digits}f} / {whole / 1024**power:.{digits}f} {_UNITS[power]}"


def count(value: int | None) -> str:
    """1000000 → "1,000,000"."""
    return ABSENT if value is None else f"{value:,}"


def compact_count(n: int) -> str:
    """A power as a power: 10000000 → "10⁷", 20000 → "2·10⁴", 1073741824 → "2³⁰", 1500 → "1,500"."""
    if n >= 1024 and n & (n - 1) == 0:
        return f"2{_raised(n.bit_length() - 1)}"
    digits = str(n)
    if n >= 1000 and set(digits[1:]) == {"0"}:
        factor = "" if digits[0] == "1" else f"{digits[0]}·"
        return f"{factor}10{_raised(len(digits) - 1)}"
    return f"{n:,}"


def number(value: float | None) -> str:
    """A number with at least three digits, thousands apart: 4654.3 → "4,654", 2.5 → "2.50", 0.00001 → "1e-05"."""
    if value is None:
        return ABSENT
    if value == 0 or not math.isfinite(value):
        return str(int(value)) if value == 0 else str(value)
    if not 1e-3 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return f"{value:,.{_decimals(value)}f}"


def figure(value: float | None, digits: int = 3) -> str:
    """`digits` significant digits, without zeros at the end: "4,350", "0.12", "1.20e-07", "0"."""
    if value is None:
        return ABSENT
    if value == 0:
        return "0"
    short = f"{value:.{digits}g}"
    rounded = float(short)
    if not 1e-3 <= abs(rounded) < 1e7:
        return f"{value:.{digits - 1}e}"
    if abs(rounded) >= 10 ** (digits - 1):
        return f"{rounded:,.0f}"
    decimals = len(short.partition(".")[2])
    return f"{rounded:,.{decimals}f}"


def significant(value: float) -> str:
    """Three significant digits: "4,350", "0.123", "1.00", "1.2e-07"."""
    if value == 0 or not math.isfinite(value):
        return str(value)
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return f"{float(f'{value:.3g}'):,.{_decimals(value)}f}"


def exactly(value: float | int | bool) -> str:
    """A value with the fewest digits that tell it from every other."""
    return repr(value)


def duration(ms: float | None) -> str:
    """Milliseconds, in the unit that suits them: 0.0051 → "5.10 µs", 61000 → "1 min 01 s"."""
    if ms is None:
        return ABSENT
    for limit, factor, unit in ((1e-3, 1e6, "ns"), (1.0, 1e3, "µs"), (1e3, 1.0, "ms"), (60e3, 1e-3, "s")):
        if abs(ms) < limit:
            return f"{number(ms * factor)} {unit}"
    minutes, seconds = divmod(round(ms / 1e3), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def milliseconds(value: float | None) -> str:
    """Milliseconds with four significant digits and without a unit, for a column whose heading names it."""
    return figure(value, 4)


def percent(value: float | None) -> str:
    """12.34 → "12.3 %"."""
    return ABSENT if value is None else f"{value:.1f} %"


def times(value: float | None) -> str:
    """A ratio: "1.52×"."""
    return ABSENT if value is None else f"{figure(value)}×"


def yes_or_no(value: bool | None) -> str:
    """True → "yes", False → "no"."""
    return {True: "yes", False: "no", None: ABSENT}[value]


def _raised(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _power_of_1024(value: float) -> int:
    return min(len(_UNITS) - 1, int(math.log2(value) // 10)) if value >= 1 else 0


def _decimals(value: float) -> int:
    """The decimals that leave `value` with three significant digits."""
    return max(0, 2 - math.floor(math.log10(abs(value))))


def number_of(noun: str, count: int) -> str:
    """How many there are: "1 element", "1,000 elements"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
