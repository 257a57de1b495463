"""Where a job's time went, as the parts of a bar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_NARROWEST = 0.4
"""Percent of the bar: what is there can be seen."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the bar: `start` and `width` in percent of the whole, `ms` the time itself."""

    name: str
    style: str
    ms: float
    start: float
    width: float


def parts_of(timings: Mapping[str, Any]) -> Sequence[Part]:
    """The parts of a result's `timings`: waiting, preparing kernels, loading, the kernel, and the rest of the total."""
    names = ("queued_ms", "prepare_ms", "load_ms", "kernel_ms", "total_ms")
    queued, prepare, load, kernel, total = (_ms(timings, name) for name in names)
    known = prepare + load + kernel
    rest = max(0.0, total - known)
    told = (
        ("waiting", "queued", queued),
        ("preparing", "prepare", prepare),
        ("loading", "load", load),
        ("kernel", "kernel", kernel),
        ("other" if load or kernel else "running", "rest", rest),
    )
    whole = queued + max(total, known)
    parts: list[Part] = []
    start = 0.0
    for name, style, ms in told:
        if ms > 0:
            width = max(_NARROWEST, 100 * ms / whole)
            parts.append(Part(name, style, ms, start, width))
            start += width
    scale = 100 / start if start else 1.0
    return [Part(one.name, one.style, one.ms, one.start * scale, one.width * scale) for one in parts]


def _ms(timings: Mapping[str, Any], name: str) -> float:
    value = timings.get(name)
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0
