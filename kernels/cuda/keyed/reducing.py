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

from warpfold.kernels.backend import Progress, Stages
from warpfold.kernels.catalog import STATES_REFUSED, keyed_backends, refused_by_key
from warpfold.kernels.cores import usable_cores
from warpfold.kernels.cpu.folds.nans import is_nan
from warpfold.kernels.cpu.grouped.selecting import Keys
from warpfold.kernels.cpu.keyed.keys import KeyTable, sorted_order
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.stopwatch import Stopwatch
from warpfold.kernels.cuda.keyed.sample import Reach
from warpfold.kernels.cuda.keyed.sums import KeyedSums
from warpfold.kernels.cuda.staging.nans import NanCounter
from warpfold.kernels.cuda.staging.stager import Stager
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.extras import required
from warpfold.kernels.grouping import Index
from warpfold.kernels.keyed import (
    Aggregation,
    GroupColumn,
    GroupPlan,
    GroupTable,
    KeyedPart,
    KeyedRows,
    KeyedSource,
    WholeColumns,
    check_groups,
    column_of,
    whole_numbers,
)
from warpfold.kernels.ops import Finish, NanPolicy

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
    def reach(self) -> Reach | None:
        """How far keys reach, where that is known."""
        return None if self.table is None else Reach(0, self.table.count + 1)


@dataclass(frozen=True, slots=True)
class _Groups:
    """The sums of a column: the keys of its groups, and how many elements each has."""

    sums: KeyedSums
    keys: NDArray[Any]
    counts: Index
    omitted: Index | None


def group_by(gpu: Gpu, stager: Stager, source: KeyedSource, plan: GroupPlan, progress: Progress | None) -> GroupTable:
    """Reduce the rows of each group, which must fit into the GPU's memory. To be called while `gpu.active()`.

    Raises InvalidInput naming "backend" for an op or a dtype that no GPU reduces by key, or for states, "max_groups" or
    "nan_policy"; what reading raises; OutOfMemory and CudaError.
    """
    if plan.states:
        raise InvalidInput(STATES_REFUSED, "backend")
    for asked in plan.aggregations:
        if "cuda" not in keyed_backends(asked.op, source.dtypes[asked.column]):
            raise InvalidInput(refused_by_key(asked.op, source.dtypes[asked.column]), "backend")
    began, preparation = time.perf_counter(), gpu.preparation
    before_ms = preparation.total_ms
    if source.whole is not None:
        rows = _bring(gpu, stager, source, source.whole, plan)
    else:
        rows = _read(source, plan, progress)
    new_ms = preparation.total_ms
    for _ in range(2):  # again where kernels were compiled or loaded between the launches, which is no time of theirs
        stopwatch = Stopwatch(gpu.stream)
        with stopwatch:
            groups = [_add(gpu, rows, column, plan) for column in rows.columns]
        kernel_ms = stopwatch.total_ms()
        if preparation.total_ms == new_ms:
            break
        new_ms = preparation.total_ms
    made = _Table(source, plan, rows, groups)
    stopwatch = Stopwatch(gpu.stream)
    with stopwatch:
        columns = [made.column(asked) for asked in plan.aggregations]
    kernel_ms += stopwatch.total_ms()
    if progress is not None:
        progress(rows.rows, rows.rows)
    prepare_ms = preparation.total_ms - before_ms
    total_ms = (time.perf_counter() - began) * 1e3
    keys, sizes, order = made.keys, made.sizes, made.order
    take = required("pyarrow", "tables").array(order)
    stages = Stages(rows.stages.read_s, rows.stages.decode_s, rows.stages.copy_s, kernel_ms / 1e3)
    return GroupTable(
        key_names=source.key_names,
        keys=tuple(array.take(take) for array in keys),
        sizes=sizes[order],
        columns=tuple(column.taken(order) for column in columns),
        dropped=rows.rows - int(sizes.sum()),
        load_ms=max(0.0, total_ms - kernel_ms - prepare_ms),
        kernel_ms=kernel_ms,
        prepare_ms=prepare_ms,
        stages=stages,
        kernel=groups[0].sums.strategy,
    )


def _add(gpu: Gpu, rows: _OnGpu, column: _Column, plan: GroupPlan) -> _Groups:
    omit = plan.nan_policy is NanPolicy.OMIT and column.dtype.is_float
    sums = KeyedSums(
        gpu, column.keys, rows.key, column.elements, column.dtype, omit_nan=omit, reach=rows.reach
    )  # fmt: skip
    sums.add()
    groups = sums.groups()
    omitted = None if groups.omitted is None else groups.omitted.get().astype(np.int64)
    return _Groups(sums, groups.keys.get(), groups.counts.get().astype(np.int64), omitted)


class _Table:
    """The groups of all columns, in one order, and where each of them stands among those of a column."""

    def __init__(self, source: KeyedSource, plan: GroupPlan, rows: _OnGpu, groups: list[_Groups]) -> None:
        self._source, self._plan, self._rows, self._groups = source, plan, rows, groups
        first = groups[0]
        if rows.table is None:
            check_groups(first.keys.size, plan)
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
        found: Index = firsts.get().astype(np.int64)
        return found

    def column(self, asked: Aggregation) -> GroupColumn:
        """The values of an aggregation, in the order of the groups."""
        groups, dtype = self._groups[asked.column], self._rows.columns[asked.column].dtype
        counts = self._spread(groups, groups.counts)
        if asked.op.extreme is not None:
            values = self._extremes(asked, groups, dtype)
        elif dtype.is_float or asked.op.finish is Finish.MEAN:
            values = groups.sums.values(mean=asked.op.finish is Finish.MEAN).get().astype(np.float64)
            values = self._spread(groups, values)
        else:
            values = self._spread(groups, _put_together(*groups.sums.values()))
        return column_of(asked, dtype, values, counts, self._plan.min_count)

    def _extremes(self, asked: Aggregation, groups: _Groups, dtype: DType) -> NDArray[Any]:
        orders = Keys(asked.op, groups.sums.held, omit=self._plan.nan_policy is NanPolicy.OMIT)
        found = groups.sums.least(*orders.numbers()).get().astype(orders.word)
        with np.errstate(invalid="ignore"):
            elements = orders.elements(self._spread(groups, found))
            return elements.astype(np.float64 if dtype.is_float else dtype.numpy)

    def _spread(self, groups: _Groups, values: NDArray[Any]) -> NDArray[Any]:
        """What groups of a column have, for all groups; 0 for those without elements there."""
        if self._rows.table is None:
            return values
        spread = np.zeros(self._numbers.size + 1, values.dtype)
        spread[groups.keys] = values
        return spread[1:]


def _put_together(low: Any, high: Any) -> NDArray[Any]:
    """Integers of 128 bits from their lower and upper words."""
    lower, upper = low.get(), high.get()
    signed = lower.view(np.int64)
    if (upper == signed >> 63).all():
        return np.asarray(signed)
    return whole_numbers([int(a) + (int(b) << 64) for a, b in zip(lower.tolist(), upper.tolist(), strict=True)])


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
            counter.add(elements, 0)
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
        check_groups(table.count, plan)
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
