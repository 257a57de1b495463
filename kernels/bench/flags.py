"""Flags: what makes a figure doubtful. Flagged figures are kept and shown; `suspect` figures enter no summary."""

from enum import StrEnum

from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.bench.conditions import Conditions
from warpfold.kernels.bench.stopping import Ending
from warpfold.kernels.bench.summary import Summary

SLOW_CLOCK = 0.75
"""Below this share of the highest clock a busy device counts as throttled (NVBench's default threshold)."""

BUSY_OTHERS = 0.25
"""From this many busy cores on, other processes count as contention for a CPU."""

ABOVE_CEILING = 0.1
"""The share by which a reduction may read faster than the loop that measured the ceiling: two timings of one memory
differ by a few percent, and the loop need not be the best one."""


class Flag(StrEnum):
    THROTTLED = "throttled"  # clocks were held down
    CONTENDED = "contended"  # other processes used the device
    UNCONVERGED = "unconverged"  # a limit came before the wanted standard error
    SUSPECT = "suspect"  # faster than physics allows, or than the measured ceiling: one of the timings is wrong
    NO_CEILING = "no_ceiling"  # other processes used the device whenever its ceiling was measured
    FIRST_RUN = "first_run"  # kernels were compiled or loaded for it: clocks and caches may be as an idle device's


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
    if any(map(contended, looks)):
        flags.add(Flag.CONTENDED)
    if ending is not Ending.CONVERGED:
        flags.add(Flag.UNCONVERGED)
    if ceiling.bounds(read_bytes, cold=cold):
        if not ceiling.trusted:
            flags.add(Flag.NO_CEILING)
        elif read_bytes > (1 + ABOVE_CEILING) * ceiling.measured * (summary.median + resolution_s):
            flags.add(Flag.SUSPECT)
    if read_bytes > ceiling.limit(read_bytes, cold=cold) * (summary.min + resolution_s):
        flags.add(Flag.SUSPECT)
    return frozenset(flags)


def contended(look: Conditions) -> bool:
    return look.others is not None and look.others >= BUSY_OTHERS


def throttled(look: Conditions, max_clock_mhz: float | None) -> bool:
    if look.throttle:
        return True
    if look.clock_mhz is None or not max_clock_mhz:
        return False
    return look.clock_mhz < SLOW_CLOCK * max_clock_mhz
