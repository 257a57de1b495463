"""Measures one workload: a warm-up, samples until the rule says stop, and the time that the host sees."""

import time
from dataclasses import dataclass
from typing import Protocol

from warpfold.kernels.bench.axes import Cache
from warpfold.kernels.bench.conditions import Conditions, Observer
from warpfold.kernels.bench.stopping import Ending, Rule, Spread, ending
from warpfold.kernels.bench.summary import Summary, summarise
from warpfold.kernels.bench.workload import Runnable

_WARM_RUNS = 3
_WARM_S = 0.05  # an idle GPU needs some of it to raise its clocks
_BATCH_S = 0.02  # between two looks at the rule
_BATCH_RUNS = 50  # commands that wait on a blocked stream must fit into its queue
_HOST_RUNS = 200
_HOST_SHARE = 0.2  # the share of the time limit for the times that the host sees


@dataclass(frozen=True, slots=True)
class Replay:
    """A run recorded once and replayed many times by the device itself: seconds and kernels of one run."""

    seconds: float
    launches: int


class Timer(Protocol):
    """The clocks of one device. Times are in seconds; `resolution_s` is the step of the clock of device time."""

    @property
    def resolution_s(self) -> float: ...

    def method(self, workload: Runnable) -> str:
        """How device time of this workload is taken, in a few words."""
        ...

    def device(self, workload: Runnable, cache: Cache, runs: int) -> list[float]:
        """Time on the device of each of `runs` runs, with the cache as asked before each."""
        ...

    def host(self, workload: Runnable, runs: int) -> list[float]:
        """Time from the call until the device is done, of each of `runs` runs, hot."""
        ...

    def issue(self, workload: Runnable, runs: int) -> float:
        """Time a run when `runs` of them are called one after the other and only the last is waited for, hot."""
        ...

    def replay(self, workload: Runnable) -> Replay | None:
        """Time of a run when the host takes no part, hot; None where the device cannot replay this workload."""
        ...


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of one workload.

    `device` is the time on the device, `host` the time until the host knows that the result is ready, and `issue_s` the
    time of a run when runs are called back to back. `replay` is the time without the host. `looks` are the conditions
    before and after.
    """

    device: Summary
    ending: Ending
    method: str
    read_bytes: int
    host: Summary
    issue_s: float
    replay: Replay | None
    looks: tuple[Conditions, Conditions]


def measure(timer: Timer, observer: Observer, workload: Runnable, cache: Cache, rule: Rule) -> Measured:
    """Measure `workload` until `rule` says stop. Raises what the workload raises."""
    warm_up(timer, workload)
    before = observer.before()
    started = time.monotonic()
    spread, samples, runs, end = Spread(), list[float](), 1, None
    while end is None:
        begun = time.monotonic()
        batch = timer.device(workload, cache, runs)
        samples += batch
        for sample in batch:
            spread.add(sample)
        end = ending(rule, spread, time.monotonic() - started)
        took = (time.monotonic() - begun) / runs
        runs = max(1, min(_BATCH_RUNS, int(_BATCH_S / took), rule.max_samples - spread.count))
    after = observer.after()
    summary = summarise(samples)
    host_runs = max(3, min(_HOST_RUNS, int(_HOST_SHARE * rule.time_limit_s / summary.median / 2)))
    return Measured(
        device=summary,
        ending=end,
        method=timer.method(workload),
        read_bytes=workload.read_bytes,
        host=summarise(timer.host(workload, host_runs)),
        issue_s=timer.issue(workload, host_runs),
        replay=timer.replay(workload),
        looks=(before, after),
    )


def warm_up(timer: Timer, workload: Runnable) -> None:
    """Run until everything is loaded, allocated and at speed."""
    started = time.monotonic()
    runs = 0
    while runs < 1 or (time.monotonic() - started < _WARM_S):
        timer.host(workload, _WARM_RUNS)
        runs += _WARM_RUNS
