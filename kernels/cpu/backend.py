"""The CPU as a backend."""

import platform
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from warpfold.kernels.backend import Device, GroupedReduction, Progress, Reduction
from warpfold.kernels.catalog import resolve, resolve_grouped
from warpfold.kernels.cpu.grouped.reducing import Grouped, compile_for, multiply_groups, reduce_groups
from warpfold.kernels.cpu.interpreted import MANY, SMALL
from warpfold.kernels.cpu.keyed import reducing as keyed
from warpfold.kernels.cpu.keyed.merging import merge_tables
from warpfold.kernels.cpu.memory import cache_bytes
from warpfold.kernels.cpu.strategies import cpu_strategies
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.lowering.many_values import takes_meanings
from warpfold.kernels.lowering.nulls import group_with_nulls
from warpfold.kernels.lowering.reducing import group_meant, is_meant, reduce_meant
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.machine.jit import is_marked, mark_compiled
from warpfold.kernels.machine.preparation import of_process
from warpfold.kernels.ops import NanPolicy, NullPolicy, op_named
from warpfold.kernels.ops.operands import Operands, check_states, operands
from warpfold.kernels.parts.grouping import Grouping
from warpfold.kernels.parts.keyed import GroupPlan, GroupTable, KeyedSource
from warpfold.kernels.parts.merging import MergePlan, StatesTable
from warpfold.kernels.source import GeneratedSource, bytes_at, generator_of
from warpfold.kernels.sources.sequential import Elements, likely_count
from warpfold.kernels.strategy import AUTO, EXACT


class CpuBackend:
    """All cores of this machine. A reduction compiles the functions that it calls, or loads them from Numba's cache:
    compiling takes seconds the first time, and loading takes well under a second.

    With `at_once` small sources are added up by NumPy and Python (`kernels.cpu.interpreted`) until some process of this
    machine has compiled what they need.
    """

    def __init__(self, cache_size: int | None = None, *, at_once: bool = False) -> None:
        """`cache_size` is the size of the last cache in bytes; None asks the system."""
        self._device = _this_machine(cache_size or cache_bytes())
        self._preparation = of_process()
        self._ready: set[Hashable] = set()
        self._at_once = at_once

    def warm(self) -> None:
        """Load the commonest path, normals and sums of float32 and float64, where it is compiled."""
        for name in ("float32", "float64"):
            self.reduce(GeneratedSource("normal", count=1, seed=0, dtype=DTYPES[name]), "sum")

    @property
    def device(self) -> Device:
        return self._device

    def reduce(
        self,
        source: Elements,
        op: str,
        *,
        strategy: str = AUTO,
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Elements | None = None,
    ) -> Reduction:
        """Reduce all elements of `source`, with those of `other` for an op of two.

        Raises InvalidInput (an unknown op or strategy, an op the strategy does not compute, a second source or ddof
        that the op does not take, an undefined value, a NaN where the policy is RAISE) or OutOfMemory.
        """
        if is_meant(source, other):
            run = partial(self.reduce, strategy=strategy, nan_policy=nan_policy, progress=progress)
            return reduce_meant(op_named(op), source, other, nan_policy, run, ddof=ddof)
        row = op_named(op)
        taken = operands(row, source, other, ddof)
        chosen = resolve(row, source.dtype, strategy, "cpu", taken.other_dtype)
        before_ms = self._preparation.total_ms
        made, small = cpu_strategies()[chosen], row.adds and cpu_strategies()[chosen].interprets and _is_small(taken)
        sources = [each for each in (taken.source, taken.other) if each is not None]
        key: tuple[Any, ...] = (chosen, row.name, *map(_reader, sources))
        # Files are added up by the functions of arrays in memory, which are compiled ahead.
        mark = f"{(*key[:2], *((dtype, *generator) for dtype, _, *generator in key[2:]))}"
        prepare = partial(made.prepare, taken, row)
        compiled = taken.source.count == 0 or self._prepared(key, prepare, small=small, marks=[mark])
        reduction = made.reduce(taken, row, nan_policy, progress, compiled=compiled)
        return replace(reduction, prepare_ms=self._preparation.total_ms - before_ms)

    @takes_meanings
    def reduce_groups(
        self,
        source: Elements,
        shape: tuple[int, ...],
        grouping: Grouping,
        op: str,
        *,
        strategy: str = AUTO,
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Elements | None = None,
        states: bool = False,
    ) -> GroupedReduction:
        """Reduce the elements of `source`, an array of `shape` in C order, to the values of `grouping`, and with
        `states` give their exact states.

        Raises as `reduce`, and InvalidInput naming "axis", "segments.offsets.…" or "states".
        """
        row = op_named(op)
        asked = Grouped(operands(row, source, other, ddof), shape, grouping)
        chosen = resolve_grouped(row, source.dtype, strategy)
        if states:
            check_states(row)
        if chosen != EXACT:
            return multiply_groups(asked, row, nan_policy, progress)
        before_ms = self._preparation.total_ms
        key = ("groups", row.name, states, *(dtype.name for dtype in asked.dtypes))
        small = row.adds and _is_small(asked.operands) and prod(grouping.result_shape(shape)) <= MANY
        compiled = self._prepared(key, partial(compile_for, asked, row, states=states), small=small)
        reduction = reduce_groups(asked, row, nan_policy, progress, states=states, compiled=compiled)
        return replace(reduction, prepare_ms=self._preparation.total_ms - before_ms)

    def group_by(self, source: KeyedSource, plan: GroupPlan, progress: Progress | None = None) -> GroupTable:
        """Reduce the rows of each group.

        Raises InvalidInput naming "max_groups" or "nan_policy", what reading of the source raises, and OutOfMemory.
        """
        if any(source.meanings):
            return group_meant(lambda rows, plain: self.group_by(rows, plain, progress), source, plan)
        if plan.null_policy is NullPolicy.PROPAGATE:
            return group_with_nulls(lambda rows, wider: self.group_by(rows, wider, progress), source, plan)
        before_ms = self._preparation.total_ms
        marks = [str(each) for each in keyed.needs(source, plan)]
        small = source.likely <= SMALL
        compiled = self._prepared(tuple(marks), partial(keyed.compile_for, source, plan), small=small, marks=marks)
        table = keyed.group_by(source, plan, progress, compiled=compiled)
        return replace(table, prepare_ms=self._preparation.total_ms - before_ms)

    def merge_tables(
        self, tables: Sequence[StatesTable], plan: MergePlan, progress: Progress | None = None
    ) -> GroupTable:
        """Add up the states of equal keys in all tables, and round each sum once.

        Raises InvalidInput naming the field of a table or "max_groups", what reading raises, and OutOfMemory.
        """
        before_ms = self._preparation.total_ms
        table = merge_tables(tables, plan, progress)
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

    def close(self) -> None:
        """Do nothing: the CPU holds nothing that has to be released."""


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
