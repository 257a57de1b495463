"""Runs the cases of a benchmark one after the other. An error fails its own case and no other."""

import gc
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from warpfold.kernels.bench.axes import Axes, Cache, Case
from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.bench.check import Reference, reference_of, relative_error
from warpfold.kernels.bench.flags import Flag, flags_of
from warpfold.kernels.bench.measurement import Measured, measure
from warpfold.kernels.bench.stopping import Rule
from warpfold.kernels.bench.target import BenchmarkTarget, Loaded
from warpfold.kernels.bench.workload import Workload
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import CudaError, KernelError
from warpfold.kernels.ops import Value, op_named
from warpfold.kernels.outcome import Outcome, outcome_of
from warpfold.kernels.source import Source

_VALUES = 8
"""Runs whose values are compared with each other."""

_VALUES_S = 2.0
"""After so long, two runs must do."""


@dataclass(frozen=True, slots=True)
class Point:
    """One case and its outcome.

    `reason` says why it was skipped or failed. `relative_error` compares `value` with the exact one, where there is
    one; `distinct_values` counts the different results of 8 runs on the same data: 1 where it is deterministic.
    `ceiling` is the one that its flags were judged by.
    """

    case: Case
    outcome: Outcome
    reason: str | None = None
    measured: Measured | None = None
    flags: frozenset[Flag] = frozenset()
    value: Value | None = None
    relative_error: float | None = None
    distinct_values: int | None = None
    ceiling: Ceiling | None = None


SourceOf = Callable[[str, int], Source]
"""The data of (dtype, n)."""


def run(
    target: BenchmarkTarget,
    axes: Axes,
    rule: Rule,
    source_of: SourceOf,
    *,
    done: Collection[Case] = (),
    begin: Callable[[Case], None] = lambda case: None,
) -> Iterator[Point]:
    """Yield a point a case, but for those in `done`, in the order of `axes.cases()`. `begin` is called with each case
    first.

    After a CudaError nothing more can be measured in this process: the point is yielded as failed, and then the error
    is raised.
    """
    bench = _Bench(target, rule, source_of)
    for case in axes.cases():
        if case in done:
            continue
        begin(case)
        broken: CudaError | None = None
        try:
            with target.active():
                point = bench.point(case)
        except Exception as error:  # a peer's library may raise anything, and the other cases go on
            point = Point(case, *outcome_of(error))
            broken = error if isinstance(error, CudaError) else None
        yield point
        if broken is not None:
            raise broken


def _values(workload: Workload) -> list[Value]:
    """The values of several runs, which show whether a strategy always gives the same value."""
    started = time.monotonic()
    values: list[Value] = []
    while len(values) < 2 or (len(values) < _VALUES and time.monotonic() - started < _VALUES_S):
        workload.run()
        values.append(workload.value())
    return values


class _Bench:
    """Keeps the data of the latest (dtype, n) on the device, because the next case mostly wants the same."""

    def __init__(self, target: BenchmarkTarget, rule: Rule, source_of: SourceOf) -> None:
        self._target = target
        self._rule = rule
        self._source_of = source_of
        self._key: tuple[str, int] | None = None
        self._loaded: Loaded | KernelError | None = None
        self._references: dict[str, Reference | None] = {}

    def point(self, case: Case) -> Point:
        loaded, target = self._data(case), self._target
        workload = loaded.workload(case.op, case.strategy)
        dtype = dtype_named(case.dtype)
        if case.op not in self._references:
            self._references[case.op] = reference_of(loaded, case.op, dtype, case.n)
        reference = self._references[case.op]
        values = _values(workload)
        error = None if reference is None else relative_error(op_named(case.op), dtype, values[0], reference)
        measured = measure(target.timer, target.observer, workload, case.cache, self._rule)
        ceiling = target.ceiling
        flags = flags_of(
            summary=measured.device,
            ending=measured.ending,
            read_bytes=measured.read_bytes,
            cold=case.cache is Cache.COLD,
            resolution_s=target.timer.resolution_s,
            ceiling=ceiling,
            looks=measured.looks,
            max_clock_mhz=target.observer.max_clock_mhz,
        )
        return Point(
            case,
            Outcome.MEASURED,
            measured=measured,
            flags=flags,
            value=values[0],
            relative_error=error,
            distinct_values=len({repr(value) for value in values}),
            ceiling=ceiling,
        )

    def _data(self, case: Case) -> Loaded:
        key = (case.dtype, case.n)
        if key != self._key:
            self._key, self._loaded = key, None
            self._references.clear()
            gc.collect()  # the largest arrays of a benchmark fill the device: give back the old one first
            try:
                self._loaded = self._target.load(self._source_of(*key))
            except KernelError as error:
                self._loaded = error
        if isinstance(self._loaded, KernelError):
            raise self._loaded
        assert self._loaded is not None
        return self._loaded
