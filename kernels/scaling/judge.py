"""The figures of a point, from the samples of all ranks, and whether they can be believed."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from warpfold.kernels.bench.compare import Timed, ratio
from warpfold.kernels.bench.summary import Summary, summarise
from warpfold.kernels.ops import Value
from warpfold.kernels.scaling.axes import Carrier, Method, Scaling
from warpfold.kernels.scaling.local_ranks import Timing
from warpfold.kernels.scaling.records import ArrayRecord, RankRecord
from warpfold.kernels.scaling.study import ArrayCase
from warpfold.kernels.studies.outcome import Outcome


@dataclass(frozen=True, slots=True)
class TimedRuns:
    """The measurements of one array: `timings[rank][run]`, `calls` in seconds, the value, whether its bits are those
    that one rank gets (None where that need not be so), and what carried the sums."""

    timings: Sequence[Sequence[Timing]]
    calls: Sequence[float]
    value: Value
    same_bits: bool | None
    carrier: Carrier | None = None


@dataclass(frozen=True, slots=True)
class Phases:
    """Seconds of each run: until the slowest rank had reduced its part; in the all-reduce, by the rank that came last
    and so waited least; and until the slowest rank had the sum."""

    local: Summary
    communication: Summary
    total: Summary


def phases_of(timings: Sequence[Sequence[Timing]]) -> Phases:
    """The phases of `timings[rank][run]`: ranks begin a run together."""
    runs = list(zip(*timings, strict=True))
    return Phases(
        local=summarise([max(timing.local for timing in run) for run in runs]),
        communication=summarise([min(timing.communication for timing in run) for run in runs]),
        total=summarise([max(timing.total for timing in run) for run in runs]),
    )


def judged(case: ArrayCase, runs: TimedRuns, itemsize: int, alone: Summary | None) -> ArrayRecord:
    """The point of `case`. `alone` is the total time of one rank on `case.baseline_n` elements; for a point of one rank
    its own, None where it could not be measured."""
    phases = phases_of(runs.timings)
    total = phases.total
    if case.ranks == 1:
        alone = total
    speedup = None if alone is None else ratio(_timed(alone), _timed(total))
    # In weak scaling the ranks do `ranks` times as much.
    work = case.ranks if case.scaling is Scaling.WEAK else 1
    interval = None if speedup is None else speedup.interval
    times = work * speedup.value if speedup is not None else None
    return ArrayRecord(
        scaling=case.scaling,
        method=case.method,
        mode=case.mode,
        algorithm=case.algorithm,
        carrier=runs.carrier,
        ranks=case.ranks,
        n=case.n,
        outcome=Outcome.MEASURED,
        samples=total.samples,
        local_ms=phases.local.median * 1e3,
        communication_ms=phases.communication.median * 1e3 if case.ranks > 1 else 0.0,
        total_ms=total.median * 1e3,
        host_ms=statistics.median(runs.calls) * 1e3,
        baseline_ms=None if alone is None else alone.median * 1e3,
        speedup=times,
        efficiency=None if times is None else times / case.ranks,
        speedup_low=None if interval is None else work * interval.low,
        speedup_high=None if interval is None else work * interval.high,
        gb_per_s=case.n * itemsize / total.median / 1e9,
        value=runs.value,
        hex=runs.value.hex() if isinstance(runs.value, float) else None,
        same_bits=runs.same_bits,
        suspect=suspicion(case, phases, times, None if interval is None else work * interval.low, runs.same_bits),
        times=tuple(_rank(rank, timings) for rank, timings in enumerate(runs.timings)),
    )


def suspicion(
    case: ArrayCase, phases: Phases, speedup: float | None, low: float | None, same_bits: bool | None
) -> str | None:
    """Why a point is not to be believed, or None. `low` is the lower end of the speed-up's interval."""
    doubts = []
    if same_bits is False and case.method is Method.EXACT:
        doubts.append("the exact sum has other bits than one rank's: a run did not do its work")
    if phases.communication.median < 0 or phases.local.median < 0 or phases.total.median < phases.local.median:
        doubts.append(
            "a time is negative, or the whole shorter than its part: the clock was read before the work was done, as a "
            "host's clock is that does not wait for the device"
        )
    if case.ranks > 1 and speedup is not None and speedup > case.ranks:
        scatter = (
            "; it is within what the scatter of the samples explains"
            if low is not None and low <= case.ranks
            else "; beyond the samples' scatter: the baseline was slowed down, or work not done or not waited for"
        )
        doubts.append(f"{case.ranks} ranks cannot be {speedup:.4g} times as fast as one{scatter}")
    return "; ".join(doubts) or None


def _timed(summary: Summary) -> Timed:
    return Timed(summary.median, summary.interval)


def _rank(rank: int, timings: Sequence[Timing]) -> RankRecord:
    return RankRecord(
        rank=rank,
        local_ms=statistics.median(timing.local for timing in timings) * 1e3,
        communication_ms=statistics.median(timing.communication for timing in timings) * 1e3,
        total_ms=statistics.median(timing.total for timing in timings) * 1e3,
    )
