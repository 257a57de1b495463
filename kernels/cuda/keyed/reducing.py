"""Reduces by key on a GPU: rows are brought there as a whole, and each column is added up group by group.

Integer keys of a column without nulls go there as they are. All others (strings, several keys, nulls) are numbered on
the host, part by part in their order, and their numbers go there.
"""

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import is_nan
from warpfold.kernels.backend import Progress, Stages
from warpfold.kernels.catalog import keyed_backends, refused_by_key
from warpfold.kernels.cpu.keyed.keys import KeyTable, sorted_order
from warpfold.kernels.cpu.keyed.reducing import described_states
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.stopwatch import Stopwatch
from warpfold.kernels.cuda.keyed.columns import KeyedColumn
from warpfold.kernels.cuda.staging.nans import NanCounter
from warpfold.kernels.cuda.staging.stager import Stager
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.machine.extras import required
from warpfold.kernels.machine.preparation import prepared_ms
from warpfold.kernels.ops import NanPolicy
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import (
    GroupPlan,
    GroupTable,
    KeyedPart,
    KeyedRows,
    KeyedSource,
    WholeColumns,
    check_groups,
)

_NUMBER = DTYPES["int32"]


@dataclass(frozen=True, slots=True)
class _Column:
    """The elements of a column on the GPU, and the keys of their rows: 0 where an element is missing."""

    keys: Any
    elements: Any
    dtype: DType


@dataclass(frozen=True, slots=True)
class _OnGpu:
    """All rows on the GPU. Keys are those of the rows, or numbers from 1 on of which `table` has the keys; 0 is a row
    that is dropped. `sizes` and `firsts` go by number."""

    key: DType
    columns: tuple[_Column, ...]
    rows: int
    stages: Stages
    table: KeyTable | None = None
    sizes: Index | None = None
    firsts: Index | None = None

    @property
    def numbered(self) -> int | None:
        """How many numbers there are, where keys are numbers."""
        return None if self.table is None else self.table.count


def check_reducible(source: KeyedSource, plan: GroupPlan) -> None:
    """Raise InvalidInput naming "backend" for an op of a dtype that no GPU reduces by key."""
    for asked in plan.aggregations:
        if "cuda" not in keyed_backends(asked.op, source.dtypes[asked.column]):
            raise InvalidInput(refused_by_key(asked.op, source.dtypes[asked.column]), "backend")


def group_by(gpu: Gpu, stager: Stager, source: KeyedSource, plan: GroupPlan, progress: Progress | None) -> GroupTable:
    """Reduce the rows of each group, which must fit into the GPU's memory. To be called while `gpu.active()`.

    Raises InvalidInput naming "backend" for an op or a dtype that no GPU reduces by key, "max_groups" or "nan_policy";
    what reading raises; OutOfMemory and CudaError.
    """
    check_reducible(source, plan)
    began, preparation = time.perf_counter(), gpu.preparation
    before_ms = prepared_ms(preparation)
    if source.whole is not None:
        rows = _bring(gpu, stager, source, source.whole, plan)
    else:
        rows = _read(source, plan, progress)
    asked = [[each.op for each in plan.aggregations if each.column == number] for number in range(len(source.dtypes))]
    new_ms = preparation.total_ms
    for _ in range(2):  # again where kernels were compiled or loaded between the launches, which is no time of theirs
        stopwatch = Stopwatch(gpu.stream)
        with stopwatch:
            groups = [
                KeyedColumn(gpu, column.keys, rows.key, column.elements, column.dtype, plan, ops, rows.numbered)
                for column, ops in zip(rows.columns, asked, strict=True)
            ]
        kernel_ms = stopwatch.total_ms()
        if preparation.total_ms == new_ms:
            break
        new_ms = preparation.total_ms
    made = _Table(source, plan, rows, groups[0])
    stopwatch = Stopwatch(gpu.stream)
    with stopwatch:
        columns = [groups[asked.column].column(asked) for asked in plan.aggregations]
    kernel_ms += stopwatch.total_ms()
    if progress is not None:
        progress(rows.rows, rows.rows)
    prepare_ms = prepared_ms(preparation) - before_ms
    total_ms = (time.perf_counter() - began) * 1e3
    keys, sizes, order = made.keys, made.sizes, made.order
    take = required("pyarrow", "tables").array(order)
    dropped = rows.rows - int(sizes.sum())
    stages = Stages(rows.stages.read_s, rows.stages.decode_s, rows.stages.copy_s, kernel_ms / 1e3)
    return GroupTable(
        key_names=source.key_names,
        keys=tuple(array.take(take) for array in keys),
        sizes=sizes[order],
        columns=tuple(column.taken(order) for column in columns),
        dropped=dropped,
        load_ms=max(0.0, total_ms - kernel_ms - prepare_ms),
        kernel_ms=kernel_ms,
        prepare_ms=prepare_ms,
        stages=stages,
        described=described_states(source, plan, dropped) if plan.states else None,
        kernel=groups[0].sums.strategy,
    )


class _Table:
    """The groups of all columns, in one order."""

    def __init__(self, source: KeyedSource, plan: GroupPlan, rows: _OnGpu, first: KeyedColumn) -> None:
        self._rows = rows
        if rows.table is None:
            check_groups(first.keys.size, plan.max_groups)
            self._numbers = first.keys
            self.keys = [_keys_of(first.keys, source.key_types[0])]
            self.sizes = first.counts if first.omitted is None else first.counts + first.omitted
        else:
            assert rows.sizes is not None, "numbers come with sizes"
            self._numbers = np.arange(1, rows.table.count + 1)
            self.keys = rows.table.keys()
            self.sizes = rows.sizes[1 : rows.table.count + 1]
        self.order = sorted_order(self.keys) if plan.sort else np.argsort(self._firsts(), kind="stable")

    def _firsts(self) -> Index:
        if self._rows.firsts is not None:
            return self._rows.firsts[1 : self._numbers.size + 1]
        import cupy

        keys = self._rows.columns[0].keys
        _, firsts = cupy.unique(keys.view(np.uint8) if keys.dtype == bool else keys, return_index=True)
        rows: Index = firsts.get().astype(np.int64)
        return rows


def _keys_of(keys: NDArray[Any], kind: Any) -> Any:
    pyarrow = required("pyarrow", "tables")
    if pyarrow.types.is_boolean(kind):
        return pyarrow.array(keys.astype(bool))
    return pyarrow.array(keys.astype(kind.to_pandas_dtype()), kind)


# Rows that are there by position


def _bring(gpu: Gpu, stager: Stager, source: KeyedSource, whole: WholeColumns, plan: GroupPlan) -> _OnGpu:
    keys = stager.whole(whole.key, None)
    gpu.stream.synchronize()
    stages = [stager.stages(0.0)]
    columns = []
    for name, column in zip(source.column_names, whole.columns, strict=True):
        elements = stager.whole(column, None)
        gpu.stream.synchronize()
        stages.append(stager.stages(0.0))
        if plan.nan_policy is NanPolicy.RAISE and column.dtype.is_float and elements.size:
            counter = NanCounter(gpu, column.dtype)
            counter.add(elements, whole.first)
            counter.refuse("row", f" of {name!r}")
        columns.append(_Column(keys, elements, column.dtype))
    return _OnGpu(whole.key.dtype, tuple(columns), int(keys.size), _summed(stages))


def _summed(stages: list[Stages]) -> Stages:
    def total(name: str) -> float | None:
        taken = [seconds for part in stages if (seconds := getattr(part, name)) is not None]
        return sum(taken) if taken else None

    return Stages(read_s=total("read_s"), decode_s=total("decode_s"), copy_s=total("copy_s"))


# Rows that are read part by part


def _read(source: KeyedSource, plan: GroupPlan, progress: Progress | None) -> _OnGpu:
    import cupy

    began = time.perf_counter()
    table = KeyTable(source.key_types, keep_nulls=plan.keep_nulls)
    sizes, firsts = np.zeros(1, np.int64), np.zeros(1, np.int64)
    shared: list[Any] = []
    keys: list[list[Any]] = [[] for _ in source.dtypes]
    elements: list[list[Any]] = [[] for _ in source.dtypes]
    rows = 0
    for part in _ahead(source.begin()):
        ids = table.number(part.keys)
        check_groups(table.count, plan.max_groups)
        counted = np.bincount(ids, minlength=table.count + 1)
        known = sizes.size
        sizes = np.concatenate([sizes, np.zeros(counted.size - known, np.int64)]) + counted
        if not plan.sort and counted.size > known:
            new, at = np.unique(ids, return_index=True)
            firsts = np.concatenate([firsts, np.zeros(counted.size - known, np.int64)])
            firsts[new[new >= known]] = part.start + at[new >= known]
        shared.append(cupy.asarray(ids))
        for number, (cells, dtype) in enumerate(zip(part.columns, source.dtypes, strict=True)):
            name = source.column_names[number]
            if plan.nan_policy is NanPolicy.RAISE and dtype.is_float:
                _refuse_nans(part.start, cells.elements, cells.missing, ids, dtype, name)
            present = ids if cells.missing is None else np.where(cells.missing, np.int32(0), ids)
            keys[number].append(shared[-1] if present is ids else cupy.asarray(present))
            elements[number].append(cupy.asarray(cells.elements))
        rows += ids.size
        if progress is not None:
            progress(rows, max(rows, source.likely))
    columns = tuple(
        _Column(_joined(keys[number], _NUMBER), _joined(elements[number], dtype), dtype)
        for number, dtype in enumerate(source.dtypes)
    )
    stages = Stages(decode_s=time.perf_counter() - began)
    return _OnGpu(_NUMBER, columns, rows, stages, table, sizes, None if plan.sort else firsts)


def _joined(arrays: list[Any], dtype: DType) -> Any:
    import cupy

    return cupy.concatenate(arrays) if arrays else cupy.empty(0, dtype=dtype.numpy)


def _refuse_nans(  # noqa: PLR0917
    start: int, array: NDArray[Any], missing: NDArray[np.bool_] | None, ids: NDArray[np.int32], dtype: DType, name: str
) -> None:
    nans = is_nan(array, dtype) & (ids > 0)
    nans = nans if missing is None else nans & ~missing
    if nans.any():
        row = start + int(nans.argmax())
        raise InvalidInput(f"row {row} of {name!r} is NaN, and nan_policy is raise", "nan_policy")


def _ahead(parts: Iterator[KeyedPart]) -> Iterator[KeyedRows]:
    """The rows of all parts in order; threads read the next ones meanwhile."""
    threads = usable_cores()
    with ThreadPoolExecutor(threads, "rows") as pool:
        waiting: deque[Future[KeyedRows]] = deque()
        for part in parts:
            waiting.append(pool.submit(part.read))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
