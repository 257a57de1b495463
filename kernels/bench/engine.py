"""Runs the cases of a benchmark one after the other. An error fails its own case and no other."""

import gc
import hashlib
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.bench.axes import Axes, Cache, Case
from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.bench.check import (
    Reference,
    ShapedReference,
    reference_of,
    relative_error,
    relative_error_of_shape,
)
from warpfold.kernels.bench.flags import Flag, flags_of
from warpfold.kernels.bench.measurement import Measured, measure
from warpfold.kernels.bench.stopping import Rule
from warpfold.kernels.bench.target import BenchmarkTarget, Loaded, LoadedShape
from warpfold.kernels.bench.workload import Runnable
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import CudaError, KernelError
from warpfold.kernels.ops import Value, op_named
from warpfold.kernels.source import Source
from warpfold.kernels.studies.outcome import Outcome, outcome_of
from warpfold.kernels.studies.shapes import CaseShape

T = TypeVar("T")

_VALUES = 8
"""Runs whose values are compared with each other."""

_VALUES_S = 2.0
"""After so long, two runs must do."""


@dataclass(frozen=True, slots=True)
class Point:
    """One case and its outcome.

    `reason` says why it was skipped or failed. `relative_error` compares `value` with the exact one, where there is
    one; by shape there is no `value`, and the largest of all errors counts. `distinct_values` counts the different
    results of 8 runs on the same data: 1 where it is deterministic.
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
    seed: int = 0,
    done: Collection[Case] = (),
    begin: Callable[[Case], None] = lambda case: None,
) -> Iterator[Point]:
    """Yield a point a case, but for those in `done`, in the order of `axes.cases()`. `begin` is called with each case
    first. The
    lengths and keys of shapes follow from `seed`.

    After a CudaError nothing more can be measured in this process: the point is yielded as failed, and then the error
    is raised.
    """
    bench = _Bench(target, rule, source_of, seed)
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


def _runs(run: Callable[[], None], value: Callable[[], T], mark: Callable[[T], str]) -> tuple[T, int]:
    """The value of the first of several runs, and how many different ones they gave: one if a strategy always gives the
    same. Of the others only marks are kept, because the values of a shape may be large."""
    started = time.monotonic()
    run()
    first = value()
    marks = [mark(first)]
    while len(marks) < 2 or (len(marks) < _VALUES and time.monotonic() - started < _VALUES_S):
        run()
        marks.append(mark(value()))
    return first, len(set(marks))


def _digest(values: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()


@dataclass(frozen=True, slots=True)
class _Checked:
    """A workload that gave right values: the first of them, its error, and how many different ones there were."""

    workload: Runnable
    value: Value | None
    error: float | None
    distinct: int


class _Bench:
    """Keeps the data of the latest dtype and size, or shape, on the device, because the next case mostly wants the
    same."""

    def __init__(self, target: BenchmarkTarget, rule: Rule, source_of: SourceOf, seed: int) -> None:
        self._target = target
        self._rule = rule
        self._source_of = source_of
        self._seed = seed
        self._ceiling: Ceiling | None = None
        self._key: tuple[str, int, CaseShape | None] | None = None
        self._loaded: Loaded | KernelError | None = None
        self._shaped: LoadedShape | None = None
        self._references: dict[str, Reference | None] = {}
        self._references_of_shape: dict[str, ShapedReference] = {}

    def point(self, case: Case) -> Point:
        target = self._target
        checked = self._checked(case) if case.shape is None else self._checked_shape(case)
        measured = measure(target.timer, target.observer, checked.workload, case.cache, self._rule)
        cold = case.cache is Cache.COLD
        ceiling = self._ceiling
        if ceiling is None or ceiling.bounds(measured.read_bytes, cold=cold):
            # A ceiling that is not trusted yet is measured again, which takes seconds: only for points with a share.
            ceiling = self._ceiling = target.ceiling
        flags = flags_of(
            summary=measured.device,
            ending=measured.ending,
            read_bytes=measured.read_bytes,
            cold=cold,
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
            value=checked.value,
            relative_error=checked.error,
            distinct_values=checked.distinct,
            ceiling=ceiling,
        )

    def _checked(self, case: Case) -> _Checked:
        self._load(case)
        loaded, dtype = self._loaded, dtype_named(case.dtype)
        assert loaded is not None
        assert not isinstance(loaded, KernelError)
        workload = loaded.workload(case.op, case.strategy)
        if case.op not in self._references:
            self._references[case.op] = reference_of(loaded, case.op, dtype, case.n)
        reference = self._references[case.op]
        value, distinct = _runs(workload.run, workload.value, repr)
        error = None if reference is None else relative_error(op_named(case.op), dtype, value, reference)
        return _Checked(workload, value, error, distinct)

    def _checked_shape(self, case: Case) -> _Checked:
        self._load(case)
        loaded, dtype = self._shaped, dtype_named(case.dtype)
        assert loaded is not None
        workload = loaded.workload(case.op, case.strategy)
        if case.op not in self._references_of_shape:
            self._references_of_shape[case.op] = ShapedReference.of(loaded, case.op, dtype)
        values, distinct = _runs(workload.run, workload.values, _digest)
        error = relative_error_of_shape(op_named(case.op), dtype, values, self._references_of_shape[case.op])
        return _Checked(workload, None, error, distinct)

    def _load(self, case: Case) -> None:
        """Have the data of a case on the device. Raises the error that the first case on the same data met."""
        key = (case.dtype, case.n, case.shape)
        if key != self._key:
            self._key, self._loaded, self._shaped = key, None, None
            self._references.clear()
            self._references_of_shape.clear()
            gc.collect()  # the largest arrays of a benchmark fill the device: give back the old one first
            try:
                source = self._source_of(case.dtype, case.n)
                if case.shape is None:
                    self._loaded = self._target.load(source)
                else:
                    self._shaped = self._target.load_shape(source, case.shape, self._seed)
            except KernelError as error:
                self._loaded = error
        if isinstance(self._loaded, KernelError):
            raise self._loaded
