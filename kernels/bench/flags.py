"""What makes a figure doubtful. Flagged figures are kept and shown; `suspect` ones enter no summary."""

from enum import StrEnum

from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.bench.conditions import Conditions
from warpfold.kernels.bench.stopping import Ending
from warpfold.kernels.bench.summary import Summary

SLOW_CLOCK = 0.75
"""Below this share of the highest clock a busy device counts as throttled (NVBench's default threshold)."""

BUSY_OTHERS = 0.25
"""From this many busy cores on, other processes count as contention for a CPU."""


class Flag(StrEnum):
    THROTTLED = "throttled"  # clocks were held down
    CONTENDED = "contended"  # other processes used the device
    UNCONVERGED = "unconverged"  # a limit came before the wanted standard error
    SUSPECT = "suspect"  # faster than physics allows: the timing is wrong


def flags_of(
    *,
    summary: Summary,
    ending: Ending,
    read_bytes: int,
    cold: bool,
    resolution_s: float,
    ceiling: Ceiling,
    looks: tuple[Conditions, ...],
    max_clock_mhz: float | None,
) -> frozenset[Flag]:
    """The flags of one measurement; `looks` are the conditions before and after, `resolution_s` the clock's step."""
    flags = set()
    if any(throttled(look, max_clock_mhz) for look in looks):
        flags.add(Flag.THROTTLED)
    if any(look.others is not None and look.others >= BUSY_OTHERS for look in looks):
        flags.add(Flag.CONTENDED)
    if ending is not Ending.CONVERGED:
        flags.add(Flag.UNCONVERGED)
    if read_bytes > ceiling.limit(read_bytes, cold=cold) * (summary.min + resolution_s):
        flags.add(Flag.SUSPECT)
    return frozenset(flags)


def throttled(look: Conditions, max_clock_mhz: float | None) -> bool:
    if look.throttle:
        return True
    if look.clock_mhz is None or not max_clock_mhz:
        return False
    return look.clock_mhz < SLOW_CLOCK * max_clock_mhz
