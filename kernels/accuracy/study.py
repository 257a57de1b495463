"""Runs the cases of a study one after the other. An error fails its own case and no other."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from warpfold.kernels.accuracy.arithmetic import arithmetic_of
from warpfold.kernels.accuracy.arrays import Arrays, SourceOf
from warpfold.kernels.accuracy.axes import AccuracyAxes
from warpfold.kernels.accuracy.bounds import Bound, bound_of
from warpfold.kernels.accuracy.errors import distance, relative, written
from warpfold.kernels.accuracy.exactly import Truth, to_float, ulp
from warpfold.kernels.accuracy.executors import Compute, Executor, Executors
from warpfold.kernels.accuracy.methods import method_named
from warpfold.kernels.accuracy.point import AccuracyCase, AccuracyFigures, BoundVerdict, StudiedCase
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import CudaError
from warpfold.kernels.lowering.conversion import narrowed_number
from warpfold.kernels.studies.outcome import Outcome, outcome_of


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often each case is computed: `permutations` random orders, and `runs` ≥ 1 of the given one."""

    permutations: int = 8
    runs: int = 3


def run(
    backend: Backend,
    axes: AccuracyAxes,
    source_of: SourceOf,
    repeats: Repeats,
    *,
    known: Mapping[AccuracyCase, StudiedCase] = MappingProxyType({}),
    begin: Callable[[AccuracyCase], None] = lambda case: None,
) -> Iterator[StudiedCase]:
    """Yield each case with its outcome, in the order of `axes.cases()`. Cases that are `known` come as they are; before
    any other is computed, `begin` is called with it.

    After a CudaError nothing more can be computed in this process: the point is yielded as failed, and then the error
    is raised.
    """
    study = _Study(backend, source_of, repeats)
    for case in axes.cases():
        if case in known:
            yield known[case]
            continue
        begin(case)
        broken: CudaError | None = None
        try:
            point = StudiedCase(case, Outcome.MEASURED, measured=study.measure(case))
        except Exception as error:  # a peer's library may raise anything, and the other cases go on
            point = StudiedCase(case, *outcome_of(error))
            broken = error if isinstance(error, CudaError) else None
        yield point
        if broken is not None:
            raise broken


class _Study:
    """Keeps the arrays of the latest (distribution, dtype, n), because the next case mostly wants the same."""

    def __init__(self, backend: Backend, source_of: SourceOf, repeats: Repeats) -> None:
        self._places, self._source_of, self._repeats = Executors(backend), source_of, repeats
        self._key: tuple[str, str, int] | None = None
        self._arrays: Arrays | None = None

    def measure(self, case: AccuracyCase) -> AccuracyFigures:
        place = self._places.of(method_named(case.method))
        arrays = self._load(case)
        truth = arrays.truth(case.op)
        with place.active():
            value, repeatable, elapsed_ms = self._runs(place.computing(case, arrays.operands(case.op)))
            distinct = self._distinct(place, case, arrays)
        reference = arrays.reference(case.op)
        absolute = distance(value, truth.value)
        bound = _bound(case, self._places.slot, truth, value)
        verdict = BoundVerdict.NOT_APPLICABLE
        if bound.value is not None:
            held = absolute is not None and absolute <= bound.value
            verdict = BoundVerdict.HELD if held else BoundVerdict.EXCEEDED
        return AccuracyFigures(
            value=value,
            exact=truth.wide,
            correctly_rounded=value == truth.rounded,
            absolute_error=written(absolute, value),
            relative_error=relative(absolute, truth.value, value),
            ulps=written(None if absolute is None else absolute / ulp(truth.value, truth.dtype), value),
            condition=truth.condition,
            bound=None if bound.value is None else to_float(bound.value),
            bound_formula=bound.formula,
            bound_verdict=verdict,
            bound_reason=bound.reason,
            permutations=self._repeats.permutations,
            distinct_results=distinct,
            runs=self._repeats.runs,
            repeatable=repeatable,
            reference=reference,
            reference_error=abs(value - reference),
            rounded_reference_error=abs(value - narrowed_number(reference, truth.dtype)),
            reference_own_error=written(distance(reference, truth.value), reference),
            how=place.how(case),
            elapsed_ms=elapsed_ms,
        )

    def _load(self, case: AccuracyCase) -> Arrays:
        key = (case.distribution, case.dtype, case.n)
        if self._key != key or self._arrays is None:
            self._key, self._arrays = key, None  # first give back, then ask
            self._arrays = Arrays(self._source_of(*key))
        return self._arrays

    def _runs(self, compute: Compute) -> tuple[float, bool | None, float]:
        """The value, whether it was the same in every run (None after one), the milliseconds of the quickest run."""
        values, quickest = [], math.inf
        for _ in range(self._repeats.runs):
            began = time.perf_counter()
            values.append(compute())
            quickest = min(quickest, time.perf_counter() - began)
        repeatable = len({value.hex() for value in values}) == 1 if len(values) > 1 else None
        return values[0], repeatable, quickest * 1e3

    def _distinct(self, place: Executor, case: AccuracyCase, arrays: Arrays) -> int | None:
        """How many different results the random orders gave; None for no orders."""
        orders = (arrays.permuted(case.op, number) for number in range(self._repeats.permutations))
        return len({place.computing(case, operands)().hex() for operands in orders}) or None


def _bound(case: AccuracyCase, slot: str, truth: Truth, value: float) -> Bound:
    bound = bound_of(case.op, arithmetic_of(case, slot), truth)
    if not math.isfinite(value):
        return Bound(None, bound.formula, "the result is not finite: a partial result left the range")
    return bound
