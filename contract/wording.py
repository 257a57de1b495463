"""Numbers and times as people read them."""

import math
import re
from datetime import UTC, datetime

from markupsafe import Markup, escape

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(value: float | None) -> str:
    """Bytes: 154618822656 → "144 GiB"."""
    if value is None:
        return "–"
    power = min(len(_SIZES) - 1, int(math.log2(value) // 10)) if value >= 1 else 0
    scaled = value / 1024**power
    return f"{scaled:.0f} {_SIZES[power]}" if scaled >= 100 or power == 0 else f"{scaled:.1f} {_SIZES[power]}"


def part_of(used: float, whole: float) -> str:
    """Of bytes, in the unit of the whole: 2899102925 of 25233256448 → "2.7 / 23.5 GiB"."""
    power = min(len(_SIZES) - 1, int(math.log2(whole) // 10)) if whole >= 1 else 0
    digits = 0 if whole / 1024**power >= 100 else 1
    return f"{used / 1024**power:.{digits}f} / {whole / 1024**power:.{digits}f} {_SIZES[power]}"


def count(value: int | None) -> str:
    """1000000 → "1,000,000"."""
    return "–" if value is None else f"{value:,}"


def milliseconds(value: float | None) -> str:
    """A duration in milliseconds, with the unit that suits it: 0.0051 → "5.10 µs"."""
    if value is None:
        return "–"
    for limit, factor, unit in ((1e-3, 1e6, "ns"), (1.0, 1e3, "µs"), (1e3, 1.0, "ms"), (60e3, 1e-3, "s")):
        if abs(value) < limit:
            return f"{number(value * factor)} {unit}"
    minutes, seconds = divmod(round(value / 1e3), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def number(value: float | None) -> str:
    """Three significant digits, thousands apart; "–" for None."""
    if value is None:
        return "–"
    if value == 0 or not math.isfinite(value):
        return str(int(value)) if value == 0 else str(value)
    magnitude = abs(value)
    if magnitude >= 1e9 or magnitude < 1e-3:
        return f"{value:.3g}"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(magnitude)))}f}"


def iso(moment: datetime) -> str:
    """As HTML's `datetime` attribute has it, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def coded(text: str) -> Markup:
    """Text of ours in which `names` stand between backticks, as HTML."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before
