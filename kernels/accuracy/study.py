"""Runs the cases of a study one after the other; what goes wrong with one of them stays with it."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.accuracy.arithmetic import arithmetic_of
from kernels.accuracy.arrays import Arrays, SourceOf
from kernels.accuracy.axes import Axes
from kernels.accuracy.bounds import Bound, bound_of
from kernels.accuracy.errors import distance, relative, written
from kernels.accuracy.exactly import Truth, to_float, ulp
from kernels.accuracy.looped import how, looped
from kernels.accuracy.methods import Method, method_named
from kernels.accuracy.point import Case, Measured, Point, Verdict
from kernels.backend import Backend
from kernels.bench.engine import Outcome
from kernels.bench.rig import Rig, open_rig
from kernels.dtypes import DType, dtype_named
from kernels.errors import CudaError, InvalidInput, KernelError, OutOfMemory, Unavailable
from kernels.source import ArraySource


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often each case is computed: `permutations` random orders, and `runs` ≥ 1 of the given one."""

    permutations: int = 8
    runs: int = 3


def run(
    backend: Backend,
    axes: Axes,
    source_of: SourceOf,
    repeats: Repeats,
    *,
    known: Mapping[Case, Point] = MappingProxyType({}),
    begin: Callable[[Case], None] = lambda case: None,
) -> Iterator[Point]:
    """Yield a point a case, in the order of `axes.cases()`: those that are `known` as they are, of the others `begin`
    is told each case before it is computed.

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
            point = Point(case, Outcome.MEASURED, measured=study.measure(case))
        except (InvalidInput, Unavailable, OutOfMemory, MemoryError) as error:
            point = Point(case, Outcome.SKIPPED, _sentence(error))
        except CudaError as error:
            broken, point = error, Point(case, Outcome.FAILED, _sentence(error))
        except KernelError as error:
            point = Point(case, Outcome.FAILED, _sentence(error))
        except Exception as error:  # a peer's library may raise anything, and the other cases go on
            point = Point(case, Outcome.FAILED, f"{type(error).__name__}: {_sentence(error)}")
        yield point
        if broken is not None:
            raise broken


def _sentence(error: BaseException) -> str:
    return str(error).strip() or type(error).__name__


Compute = Callable[[], float]


class _Study:
    """Keeps the arrays of the latest (distribution, dtype, n), because the next case mostly wants the same."""

    def __init__(self, backend: Backend, source_of: SourceOf, repeats: Repeats) -> None:
        self._slot = backend.device.backend
        self._rigs: dict[str, Rig] = {self._slot: open_rig(backend)}
        self._backends: dict[str, Backend] = {self._slot: backend}
        self._source_of, self._repeats = source_of, repeats
        self._key: tuple[str, str, int] | None = None
        self._arrays: Arrays | None = None

    def measure(self, case: Case) -> Measured:
        method = method_named(case.method)
        place = self._place(method)
        arrays = self._load(case)
        truth = arrays.truth(case.op)
        with self._active(place):
            value, repeatable, elapsed_ms = self._runs(case, method, place, arrays)
            distinct = self._distinct(case, method, place, arrays)
        reference = arrays.reference(case.op)
        absolute = distance(value, truth.value)
        bound = _bound(case, self._slot, truth, value)
        verdict = Verdict.NOT_APPLICABLE
        if bound.value is not None:
            held = absolute is not None and absolute <= bound.value
            verdict = Verdict.HELD if held else Verdict.EXCEEDED
        return Measured(
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
            rounded_reference_error=abs(value - _narrowed(reference, truth.dtype)),
            reference_own_error=written(distance(reference, truth.value), reference),
            how=self._how(case, method, place),
            elapsed_ms=elapsed_ms,
        )

    def _place(self, method: Method) -> str:
        """The backend that `method` runs on: the slot's, or its host. Raises Unavailable where that has no such."""
        if self._slot in method.backends:
            return self._slot
        if "cpu" in method.backends:
            return "cpu"
        raise Unavailable(f"{method.name} runs on {' and '.join(method.backends)}, and this slot is of {self._slot}")

    def _rig(self, place: str) -> Rig:
        if place not in self._rigs:
            from kernels.cpu.backend import CpuBackend

            self._backends[place] = CpuBackend()
            self._rigs[place] = open_rig(self._backends[place])
        return self._rigs[place]

    def _active(self, place: str) -> AbstractContextManager[None]:
        return nullcontext() if place == "cpu" else self._rig(place).active()

    def _load(self, case: Case) -> Arrays:
        key = (case.distribution, case.dtype, case.n)
        if self._key != key or self._arrays is None:
            self._key, self._arrays = key, None  # first give back, then ask
            self._arrays = Arrays(self._source_of(*key))
        return self._arrays

    def _runs(self, case: Case, method: Method, place: str, arrays: Arrays) -> tuple[float, bool | None, float]:
        """The value, whether it was the same in every run (None after one), the milliseconds of the quickest run."""
        compute = self._computing(case, method, place, arrays.operands(case.op))
        values, quickest = [], math.inf
        for _ in range(self._repeats.runs):
            began = time.perf_counter()
            values.append(compute())
            quickest = min(quickest, time.perf_counter() - began)
        repeatable = len({value.hex() for value in values}) == 1 if len(values) > 1 else None
        return values[0], repeatable, quickest * 1e3

    def _distinct(self, case: Case, method: Method, place: str, arrays: Arrays) -> int | None:
        """How many different results the random orders gave; None for no orders."""
        found = set()
        for number in range(self._repeats.permutations):
            operands = arrays.permuted(case.op, number)
            found.add(self._computing(case, method, place, operands)().hex())
        return len(found) or None

    def _computing(self, case: Case, method: Method, place: str, operands: tuple[NDArray[Any], ...]) -> Compute:
        """What computes the case on `operands` again and again."""
        if method.strategy is None:
            return lambda: looped(method.name, case.op, operands, dtype_named(case.dtype))
        strategy, rig, sources = method.strategy, self._rig(place), [ArraySource(array) for array in operands]
        if len(sources) == 2:
            backend = self._backends[place]
            first, other = sources
            return lambda: float(backend.reduce(first, case.op, strategy=strategy, other=other).value)
        subject = rig.load(sources[0]).subject(case.op, strategy)

        def compute() -> float:
            subject.run()
            return float(subject.value())

        return compute

    def _how(self, case: Case, method: Method, place: str) -> str:
        if method.strategy is None:
            return how(method.name, dtype_named(case.dtype))
        return f"strategy {method.strategy} on {self._rig(place).device.name}"


def _narrowed(value: float, dtype: DType) -> float:
    with np.errstate(over="ignore"):
        return float(np.float64(value).astype(dtype.numpy))


def _bound(case: Case, slot: str, truth: Truth, value: float) -> Bound:
    bound = bound_of(case.op, arithmetic_of(case, slot), truth)
    if not math.isfinite(value):
        return Bound(None, bound.formula, "the result is not finite: a partial result left the range")
    return bound
