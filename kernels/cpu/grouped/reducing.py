"""Reduces to many values: the elements are read once, part by part on all cores, and folded to what they belong to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Arrays
from warpfold.kernels.aggregates.by_name import aggregate_of
from warpfold.kernels.aggregates.patterns import is_nan
from warpfold.kernels.backend import LISTED, GroupedReduction, Progress, Stages
from warpfold.kernels.cpu.grouped.fold import AggregatedGroups, GroupedPart, Omitted
from warpfold.kernels.cpu.grouped.sums import AggregatedSums, FloatSums
from warpfold.kernels.cpu.memory import require
from warpfold.kernels.cpu.passes import select
from warpfold.kernels.cpu.pieces import ARRAY_PIECE, MADE_PIECE, Piece, reads
from warpfold.kernels.cpu.stream import stream
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.machine.preparation import working_s
from warpfold.kernels.ops import NanPolicy, Op, Terms, Value
from warpfold.kernels.ops.empties import defined
from warpfold.kernels.ops.operands import Operands, check_counts
from warpfold.kernels.parts.grouping import AlongAxes, AxisWalk, Columns, Grouping, Rows, Walk, walk_of
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import SequentialSource, decoded_ahead_s, gathered, side_by_side
from warpfold.kernels.strategy import EXACT

NUMPY = "numpy"


@dataclass(frozen=True, slots=True)
class Grouped:
    """Operands that are reduced to many values: `source` and the other source are read as arrays of `shape`."""

    operands: Operands
    shape: tuple[int, ...]
    grouping: Grouping

    @property
    def dtypes(self) -> tuple[DType, ...]:
        first, second = self.operands.source.dtype, self.operands.other_dtype
        return (first,) if second is None else (first, second)


def reduce_groups(
    asked: Grouped,
    op: Op,
    nan_policy: NanPolicy,
    progress: Progress | None,
    *,
    states: bool = False,
    compiled: bool = True,
) -> GroupedReduction:
    """Reduce exactly; with `states` the result has the exact state of every value, too. Sums need no compiler unless
    they are to be `compiled`. The product of floats has no exact fold; `multiply_groups` computes it.

    Raises InvalidInput naming "axis", "segments.offsets.…" or "source", and for a NaN where the policy is RAISE;
    OutOfMemory where the states of all values do not fit.
    """
    result_shape = asked.grouping.result_shape(asked.shape)
    outputs, listed = prod(result_shape), op.listed or 1
    sources, turned = _as_read(asked, op)
    if op.selects and outputs == 1 and isinstance(asked.grouping, AlongAxes):
        return select(sources[0], op, nan_policy, progress).grouped(op, sources[0].dtype, result_shape, "ranks")
    walk = walk_of(asked.grouping, asked.shape, reversed_axes=turned)
    dtypes = asked.dtypes
    counts = asked.grouping.counts(asked.shape)
    pieces = _Pieces(sources, walk)
    if op.adds and dtypes[0].is_float:
        held = (2 if op.terms is Terms.MOMENTS else 1) * pieces.threads() * outputs
        axis = "axis" if isinstance(asked.grouping, AlongAxes) else "segments"
        require(held * _STATE_BYTES, f"{axis} asks for {outputs:,} values at a time, which")
    rounded = np.zeros(outputs)
    make = partial(_Taking, asked, op, nan_policy, outputs, rounded, turned=turned, keep=states, compiled=compiled)
    streamed = stream(pieces, make, progress)
    began = working_s()
    counts = counts - streamed.fold.omitted_counts()
    kept = streamed.fold.states(counts) if states else ()
    made = streamed.fold.values(counts)
    counts = counts if listed == 1 else np.repeat(counts, listed)
    values = defined(op, dtypes[0], made, counts, asked.operands.ddof)
    if turned:
        order = np.arange(outputs).reshape(result_shape[::-1]).transpose().reshape(-1)  # axes were read in reverse
        order = (order[:, None] * listed + np.arange(listed)).reshape(-1)
        values = values[order] if isinstance(values, np.ndarray) else tuple(values[number] for number in order)
        counts = counts[order]
        kept = tuple(column.taken(order) for column in kept)
    finished_s = working_s() - began
    return GroupedReduction(
        values=values,
        shape=op.shape_of(result_shape),
        dtype=asked.operands.result_dtype(op),
        counts=counts if counts.size > LISTED else tuple(counts.tolist()),
        op=op.name,
        strategy=EXACT,
        kernel=_kernel(walk, op, dtypes),
        correctly_rounded=True,
        load_ms=streamed.load_ms,
        kernel_ms=streamed.kernel_ms + finished_s * 1e3,
        stages=replace(streamed.stages, reduce_s=(streamed.stages.reduce_s or 0.0) + finished_s),
        states=tuple(kept),
    )


_STATE_BYTES = 136 * 8
_TALL = 1 << 10
_SHORT_ROW = 16
_LARGEST_PIECE = 1 << 24
_SAMPLE = 32


def _kernel(walk: Walk, op: Op, dtypes: Sequence[DType]) -> str:
    if not isinstance(walk, AxisWalk):
        return "segments"
    if walk.in_rows:
        return "rows" if walk.run <= ARRAY_PIECE else "long_rows"
    plain = op.terms in (Terms.VALUES, Terms.MOMENTS) and dtypes[0].is_float
    return "columns" if plain and walk.tall_block else "turned_columns"


def _as_read(asked: Grouped, op: Op) -> tuple[tuple[Any, ...], bool]:
    """The sources in the order in which they are best read, and whether their axes are reversed: arrays in Fortran
    order are read as they lie in memory."""
    taken = asked.operands
    count = prod(asked.shape)
    sources = [taken.source] if taken.other is None else list(taken.both)
    sources = [gathered(source) if source.count is None else source for source in sources]
    if len(sources) == 2 and sources[0].count is not None and sources[1].count is not None:
        check_counts(op, sources[0].count, sources[1].count)
    if sources[0].count != count:
        raise InvalidInput(f"{sources[0].count:,} elements do not fit the shape {asked.shape}", "source")
    if isinstance(asked.grouping, AlongAxes) and all(_fortran(source, asked.shape) for source in sources):
        arrays = [source for source in sources if isinstance(source, ArraySource)]
        return tuple(ArraySource(source.array.T, source.file) for source in arrays), True
    return tuple(sources), False


def _fortran(source: object, shape: Sequence[int]) -> bool:
    if not isinstance(source, ArraySource) or source.array.shape != tuple(shape):
        return False
    return bool(source.array.flags.f_contiguous) and not source.array.flags.c_contiguous


@dataclass(frozen=True, slots=True)
class _Pieces:
    """One source or two, read along a walk."""

    sources: tuple[Any, ...]
    walk: Walk

    @property
    def likely(self) -> int:
        return self.walk.count

    @property
    def reads(self) -> bool:
        return any(map(reads, self.sources))

    @property
    def ahead_s(self) -> float | None:
        return decoded_ahead_s(self.sources) if self._in_order() else None

    def _size(self) -> int:
        if not all(isinstance(source, ArraySource) for source in self.sources):
            return MADE_PIECE
        if isinstance(self.walk, AxisWalk) and not self.walk.in_rows:  # tall pieces touch a column's limbs less often
            return max(ARRAY_PIECE, min(self.walk.run * _TALL, _LARGEST_PIECE))
        if (
            isinstance(self.walk, AxisWalk) and self.walk.run < _SHORT_ROW
        ):  # small pieces keep the indices of values in a cache
            return max(1, ARRAY_PIECE // 8)
        return ARRAY_PIECE

    def _in_order(self) -> bool:
        return any(isinstance(source, SequentialSource) for source in self.sources)

    def threads(self) -> int:
        if self._in_order():
            return usable_cores()
        return min(usable_cores(), -(-self.walk.count // self._size()))

    def begin(self) -> Iterator[Piece[GroupedPart]]:
        if self._in_order():
            start = 0
            for arrays in side_by_side(self.sources, self.walk.even(self._size())):
                stop = start + arrays[0].size
                yield Piece(start, stop, partial(self._part, start, stop, arrays))
                start = stop
            return
        for start, stop in self.walk.cuts(self._size()):
            yield Piece(start, stop, partial(self._read, start, stop))

    def _read(self, start: int, stop: int) -> GroupedPart:
        return self._part(start, stop, tuple(source.read(start, stop) for source in self.sources))

    def _part(self, start: int, stop: int, arrays: Arrays) -> GroupedPart:
        return GroupedPart(tuple(np.ascontiguousarray(array) for array in arrays), self.walk.parts(start, stop))


class _Taking:
    """A fold that refuses or replaces NaNs before another fold takes the elements."""

    def __init__(
        self,
        asked: Grouped,
        op: Op,
        nan_policy: NanPolicy,
        outputs: int,
        rounded: NDArray[np.float64],
        *,
        turned: bool,
        keep: bool,
        compiled: bool,
    ) -> None:
        self._asked = asked
        self._turned = turned
        dtypes = asked.dtypes
        floats = dtypes[0].is_float
        self._refuse = floats and nan_policy is NanPolicy.RAISE
        self._omitted = Omitted(outputs, dtypes) if floats and nan_policy is NanPolicy.OMIT else None
        # Sums take a number that changes nothing for a NaN. Aggregates leave NaNs out by themselves.
        self._neutral = (-0.0, 0.0) if op.adds else ()
        self._fold = _fold(asked, op, nan_policy, outputs, rounded, keep=keep, compiled=compiled)

    def add(self, start: int, part: GroupedPart) -> None:
        replaced = False
        if self._refuse:
            self._check(start, part)
        if self._omitted is not None:
            part, replaced = self._omitted.replaced(part, self._neutral[: len(part.arrays)])
        if isinstance(self._fold, FloatSums):
            self._fold.add(start, part, replaced=replaced)
        else:
            self._fold.add(start, part)

    def _check(self, start: int, part: GroupedPart) -> None:
        for array, dtype, what in zip(part.arrays, self._asked.dtypes, ("element", "other element"), strict=False):
            nans = is_nan(array, dtype)
            if nans.any():
                at = start + int(nans.argmax())
                if self._turned:
                    shape = self._asked.shape
                    at = int(np.ravel_multi_index(np.unravel_index(at, shape[::-1])[::-1], shape))
                raise InvalidInput(f"{what} {at} is NaN, and nan_policy is raise", "nan_policy")

    def merge(self, other: "_Taking") -> None:
        self._fold.merge(other._fold)
        if self._omitted is not None and other._omitted is not None:
            self._omitted.counts += other._omitted.counts

    def omitted_counts(self) -> Any:
        return 0 if self._omitted is None else self._omitted.counts

    def states(self, counts: NDArray[np.int64]) -> tuple[StateColumn, ...]:
        return tuple(self._fold.states(counts))

    def values(self, counts: NDArray[np.int64]) -> Sequence[Value] | NDArray[Any]:
        values: Sequence[Value] | NDArray[Any] = self._fold.values(counts)
        return values


def _fold(
    asked: Grouped,
    op: Op,
    nan_policy: NanPolicy,
    outputs: int,
    rounded: NDArray[np.float64],
    *,
    keep: bool = False,
    compiled: bool = True,
) -> Any:
    """An empty fold of `op`. With `keep` the fold can give the states of its values."""
    dtypes = asked.dtypes
    if op.adds and compiled and dtypes[0].is_float:
        return FloatSums(op, dtypes, asked.operands.ddof, rounded, keep=keep)
    if op.adds:
        return AggregatedSums(op, dtypes, asked.operands.ddof, outputs, compiled=compiled)
    return AggregatedGroups(aggregate_of(op, dtypes[0], omit=nan_policy is NanPolicy.OMIT), outputs)


def multiply_groups(asked: Grouped, op: Op, nan_policy: NanPolicy, progress: Progress | None) -> GroupedReduction:
    """Multiply floats as NumPy does, rounding at every step, with the whole array in memory. Raises as
    `reduce_groups`."""
    began = working_s()
    source, dtype = gathered(asked.operands.source), asked.operands.source.dtype
    require(source.count * (2 * dtype.itemsize + 2), f"strategy {NUMPY} on {source.count:,} elements")
    result_shape = asked.grouping.result_shape(asked.shape)
    array = np.ascontiguousarray(source.read(0, source.count))
    loaded = working_s()
    missing = is_nan(array, dtype)
    if nan_policy is NanPolicy.RAISE and missing.any():
        raise InvalidInput(f"element {int(missing.argmax())} is NaN, and nan_policy is raise", "nan_policy")
    if nan_policy is not NanPolicy.OMIT:
        missing[:] = False
    factors = np.where(missing, np.ones(1, dtype.numpy), array)
    with np.errstate(all="ignore"):
        if isinstance(asked.grouping, AlongAxes):
            axes = asked.grouping.reduced(len(asked.shape))
            products = np.multiply.reduce(factors.reshape(asked.shape), axis=axes)
            left_out = missing.reshape(asked.shape).sum(axis=axes)
        else:
            bounds = asked.grouping.bounds(source.count).tolist()
            parts = [slice(*pair) for pair in pairwise(bounds)]
            products = np.array([np.multiply.reduce(factors[part]) for part in parts], dtype.numpy)
            left_out = np.array([missing[part].sum() for part in parts], np.int64)
    ended = working_s()
    if progress is not None:
        progress(source.count, source.count)
    counts = asked.grouping.counts(asked.shape) - np.asarray(left_out, np.int64).reshape(-1)
    return GroupedReduction(
        values=tuple(np.asarray(products).astype(np.float64).reshape(-1).tolist()),
        shape=result_shape,
        dtype=asked.operands.result_dtype(op),
        counts=tuple(counts.tolist()),
        op=op.name,
        strategy=NUMPY,
        kernel=NUMPY,
        correctly_rounded=False,
        load_ms=(loaded - began) * 1e3,
        kernel_ms=(ended - loaded) * 1e3,
        stages=Stages(read_s=loaded - began, reduce_s=ended - loaded),
    )


def compile_for(asked: Grouped, op: Op, *, states: bool = False) -> None:
    """Compile or load every function that reductions like this one call, by reducing a few elements in every layout."""
    arrays = tuple(np.ones(_SAMPLE, np.int8).astype(dtype.numpy) for dtype in asked.dtypes)
    zeros, edges = np.zeros(1, np.int64), np.array([0, 1], np.int64)
    layouts: list[Rows | Columns] = [Rows(edges, zeros, zeros, 1, whole) for whole in (True, False)]
    layouts += [Columns(0, 1, width, zeros, zeros, 1, False) for width in (1, _SAMPLE)]
    for together in (*([layout] for layout in layouts), layouts):
        counts = np.full(_SAMPLE, 2 * len(together))
        folds = [_fold(asked, op, NanPolicy.PROPAGATE, _SAMPLE, np.zeros(_SAMPLE), keep=states) for _ in range(2)]
        for fold in folds:
            fold.add(0, GroupedPart(arrays, together))
        folds[0].merge(folds[1])
        if states:
            folds[0].states(counts)
        folds[0].values(counts)
