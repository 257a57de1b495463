"""The CPU as a backend."""

import platform
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import psutil

from warpfold.kernels.backend import Device, GroupedReduction, Progress, Reduction
from warpfold.kernels.catalog import resolve, resolve_grouped
from warpfold.kernels.cpu.grouped.reducing import Grouped, compile_for, multiply_groups, reduce_groups
from warpfold.kernels.cpu.interpreted import MANY, SMALL
from warpfold.kernels.cpu.keyed import reducing as keyed
from warpfold.kernels.cpu.memory import cache_bytes
from warpfold.kernels.cpu.passes import FEW
from warpfold.kernels.cpu.strategies.exact import ExactCpuStrategy
from warpfold.kernels.cpu.strategies.numpy_ import NumpyStrategy
from warpfold.kernels.cpu.strategies.rows import EXACT_ROW, NUMPY_ROW
from warpfold.kernels.cpu.strategy import CpuStrategy
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.machine.jit import is_marked, mark_compiled
from warpfold.kernels.machine.preparation import of_process
from warpfold.kernels.ops.operands import Operands, check_states, operands
from warpfold.kernels.parts.keyed import GroupTable
from warpfold.kernels.query import Answer, ByKey, Moving, Query, Shaped, Whole
from warpfold.kernels.source import GeneratedSource, bytes_at, generator_of
from warpfold.kernels.sources.sequential import Elements, likely_count
from warpfold.kernels.strategy import EXACT

_MADE: tuple[CpuStrategy, ...] = (ExactCpuStrategy.of(EXACT_ROW, interprets=True), NumpyStrategy.of(NUMPY_ROW))

CPU_STRATEGIES: Mapping[str, CpuStrategy] = MappingProxyType({strategy.name: strategy for strategy in _MADE})


class CpuBackend(Backend):
    """All cores of this machine. A reduction compiles the functions that it calls, or loads them from Numba's cache:
    compiling takes seconds the first time, and loading takes well under a second.

    With `at_once` small sources are added up by NumPy and Python (`kernels.cpu.interpreted`) until some process of this
    machine has compiled what they need.
    """

    def __init__(self, cache_size: int | None = None, *, at_once: bool = False) -> None:
        """`cache_size` is the size of the last cache in bytes; None asks the system."""
        self.device = _this_machine(cache_size or cache_bytes())
        self._preparation = of_process()
        self._ready: set[Hashable] = set()
        self._at_once = at_once

    def warm(self) -> None:
        """Load the commonest path, normals and sums of float32 and float64, where it is compiled."""
        for name in ("float32", "float64"):
            self.reduce(GeneratedSource("normal", count=1, seed=0, dtype=DTYPES[name]), "sum")

    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        """As `Backend.aggregate`."""
        answer: Any
        match query:
            case Whole():
                answer = self._whole(query, progress)
            case Shaped():
                answer = self._shaped(query, progress)
            case Moving():
                answer = self._moving(query, progress)
            case ByKey():
                answer = self._by_key(query, progress)
        return cast(Answer, answer)

    def _whole(self, query: Whole, progress: Progress | None) -> Reduction:
        op = query.op
        taken = operands(op, query.source, query.other, query.ddof)
        chosen = resolve(op, query.source.dtype, query.strategy, "cpu", taken.other_dtype)
        before_ms = self._preparation.total_ms
        made = CPU_STRATEGIES[chosen]
        small = made.interprets and (
            (op.adds and _is_small(taken)) or (op.selects and likely_count(taken.source) <= FEW)
        )
        key: tuple[Any, ...] = (chosen, op.name, *map(_reader, query.sources))
        known = taken.source.count == 0 or key in self._ready
        compiled = known or self._prepared(key, partial(made.prepare, taken, op), small=small, marks=[_mark(key)])
        reduction = made.reduce(taken, op, query.nan_policy, progress, compiled=compiled)
        return replace(reduction, prepare_ms=self._preparation.total_ms - before_ms)

    def _shaped(self, query: Shaped, progress: Progress | None) -> GroupedReduction:
        op, states = query.op, query.states
        asked = Grouped(operands(op, query.source, query.other, query.ddof), query.shape, query.grouping)
        chosen = resolve_grouped(op, query.source.dtype, query.strategy)
        if states:
            check_states(op)
        if chosen != EXACT:
            return multiply_groups(asked, op, query.nan_policy, progress)
        before_ms = self._preparation.total_ms
        key = ("groups", op.name, states, *(dtype.name for dtype in asked.dtypes))
        small = op.adds and _is_small(asked.operands) and prod(query.grouping.result_shape(query.shape)) <= MANY
        compiled = self._prepared(key, partial(compile_for, asked, op, states=states), small=small)
        reduction = reduce_groups(asked, op, query.nan_policy, progress, states=states, compiled=compiled)
        return replace(reduction, prepare_ms=self._preparation.total_ms - before_ms)

    def _moving(self, query: Moving, progress: Progress | None) -> GroupedReduction:
        from warpfold.kernels.cpu.rolling.reducing import roll  # it imports Numba

        before_ms = self._preparation.total_ms
        reduction = roll(query, progress)
        return replace(reduction, prepare_ms=self._preparation.total_ms - before_ms)

    def _by_key(self, query: ByKey, progress: Progress | None) -> GroupTable:
        source, plan, before_ms = query.source, query.plan, self._preparation.total_ms
        marks = [str(each) for each in keyed.needs(source, plan)]
        small = source.likely <= SMALL
        compiled = self._prepared(tuple(marks), partial(keyed.compile_for, source, plan), small=small, marks=marks)
        table = keyed.group_by(source, plan, progress, compiled=compiled)
        return replace(table, prepare_ms=self._preparation.total_ms - before_ms)

    def _prepared(self, key: Hashable, prepare: Callable[[], None], *, small: bool, marks: Sequence[str] = ()) -> bool:
        """Have `prepare` compile or load every function that a reduction calls, unless a reduction with that `key` was
        prepared before. Returns False where some of its `marks` say that it is not compiled so far, and the reduction
        is too `small` to wait."""
        marks = marks or [f"{key}"]
        if key in self._ready:
            return True
        if small and self._at_once and not all(map(is_marked, marks)):
            return False
        with self._preparation:
            prepare()
        self._ready.add(key)
        for mark in marks:
            mark_compiled(mark)
        return True


def _is_small(taken: Operands) -> bool:
    """Whether NumPy adds up the sources in a moment."""
    return likely_count(taken.source) <= SMALL


def _reader(source: Elements) -> tuple[Any, ...]:
    """The properties of `source` that decide which compiled functions read it."""
    made = generator_of(source)
    return (
        source.dtype,
        bytes_at(source) is not None,
        *(() if made is None else (made[0].distribution, *sorted(made[0].parameters))),
    )


def _mark(key: tuple[Any, ...]) -> str:
    """The mark of the functions of a key. Files are added up by those of arrays in memory, which are compiled ahead."""
    return f"{(*key[:2], *((dtype, *generator) for dtype, _, *generator in key[2:]))}"


def _this_machine(cache_size: int) -> Device:
    import numba

    versions = (("python", platform.python_version()), ("numpy", np.__version__), ("numba", numba.__version__))
    return Device(
        backend="cpu",
        name=_processor_name(),
        index=0,
        memory_bytes=int(psutil.virtual_memory().total),
        cores=usable_cores(),
        compute_capability=None,
        uuid=None,
        versions=versions,
        cache_bytes=cache_size,
    )


def _processor_name() -> str:
    """The processor's model as the kernel names it, else the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
