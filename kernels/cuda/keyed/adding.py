"""How rows are added up by key: the launches of each strategy, of which the shape of the rows chooses one; and how each
group is rounded once (include/keyed_finish.cuh)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import WARP
from warpfold.kernels.cuda.keyed.sample import Reach
from warpfold.kernels.cuda.keyed.shapes import (
    COARSE_BITS,
    LISTED_THREADS,
    MOST_BUCKETS,
    MOST_FINE,
    MOST_LISTED,
    MOST_SPAN,
    START_THREADS,
    WORDS,
    KeyedShapes,
    few_kernel,
    group_bytes,
    integers_kernel,
    listed_kernels,
    part_kernel,
    runs_kernel,
    sizes_kernel,
    starts_kernel,
    sums_kernel,
    unit_of,
    values_kernel,
)
from warpfold.kernels.dtypes import DTYPES, DType

_THREADS = 256
"""Threads of a block that rounds values."""

CODE = DTYPES["uint32"]
MISSED, LISTED, NEGATIVE_ZEROS, SPECIALS, UNSORTED, NOTES = range(6)
"""The fields that kernels note, as `Note` in include/keyed_sums.cuh has them."""


@dataclass(frozen=True, slots=True)
class KeyedState:
    """The groups in the GPU's memory (include/keyed_sums.cuh): `words` has for each the words of its sums, then uint32
    for counts, for how many NaNs were left out, for flags, and the notes."""

    words: Any
    listed: Any
    elements: Any
    levels: int
    range: int

    @classmethod
    def of(cls, levels: int, groups: int) -> "KeyedState":
        import cupy

        size = groups * 2 * (levels + 1) + (groups + 1) // 2 * 3 + NOTES
        return cls(
            cupy.zeros(size, dtype=np.uint64),  # cleared by one launch
            cupy.empty(MOST_LISTED, dtype=np.uint32),
            cupy.empty(MOST_LISTED, dtype=np.float64),
            levels,
            groups,
        )

    @property
    def sums(self) -> Any:
        return self.words[: self._sums]

    @property
    def counts(self) -> Any:
        return self._small(0, self.range)

    @property
    def absent(self) -> Any:
        return self._small(self.range, 2 * self.range)

    @property
    def flags(self) -> Any:
        return self._small(2 * self.range, 3 * self.range)

    @property
    def notes(self) -> Any:
        return self._small(3 * self.range, 3 * self.range + NOTES)

    @property
    def _sums(self) -> int:
        return 2 * (self.levels + 1) * self.range

    def _small(self, start: int, stop: int) -> Any:
        return self.words[self._sums :].view(np.uint32)[start:stop]

    @property
    def args(self) -> tuple[Any, ...]:
        """Addresses take less of the host's time than slices do."""
        start = int(self.words.data.ptr)
        small = start + 8 * self._sums
        arrays = (start, *(small + 4 * self.range * place for place in range(4)))
        return (
            *map(np.uint64, arrays), self.listed, self.elements, np.uint32(MOST_LISTED), np.uint64(self.range),
        )  # fmt: skip


@dataclass(slots=True)
class KeyedAdder:
    """Rows on the GPU, and what was chosen for them: how far the keys reach, and the levels of the elements."""

    gpu: Gpu
    shapes: KeyedShapes
    keys: Any
    key: DType
    values: Any
    dtype: DType
    omit_nan: bool
    reach: Reach = field(default_factory=lambda: Reach(0, 1))
    levels: int = 1
    unit: int = 0

    @property
    def count(self) -> int:
        return int(self.values.size)

    def most_range(self) -> int:
        """How far keys may reach."""
        return min(MOST_FINE, self.gpu.shared_per_block // 4) << self._bits()

    def _bits(self) -> int:
        """A bucket has two to the power of this many groups."""
        room = self.gpu.shared_per_block // group_bytes(self.levels)
        return min(self.shapes.bucket_bits[self.levels - 1], room.bit_length() - 1)

    def add(self, state: KeyedState) -> str:
        """Add all rows to `state`; returns what the strategy is called."""
        blocks = self.shapes.few[self.levels - 1].blocks
        room = self.gpu.shared_per_block // blocks - 1024 * (blocks - 1)
        if self.reach.sorted and self.reach.range * self.shapes.shortest_runs <= self.count:
            return self._add_runs(state)
        if self.reach.range * group_bytes(self.levels) <= room:
            return self._add_few(state, room)
        return self._add_buckets(state)

    def _add_few(self, state: KeyedState, room: int) -> str:
        shape, groups = self.shapes.few[self.levels - 1], self.reach.range
        copies = max(
            bits for bits in range(self.shapes.most_copies + 1) if (groups << bits) * group_bytes(self.levels) <= room
        )
        tile = 4 * shape.reads * shape.threads
        span = self._span(self.gpu.multiprocessors * shape.blocks, tile)
        self._run(
            few_kernel(self.key, self.dtype, self.levels, shape), -(-self.count // span), shape.threads,
            (self.keys, self.values, np.uint64(self.count), np.uint64(span), pattern(self.reach.least),
             np.uint32(copies), np.int32(self.unit), np.uint32(self.omit_nan), *state.args),
            (groups << copies) * group_bytes(self.levels),
        )  # fmt: skip
        return f"shared_memory_{1 << copies}_copies" if copies else "shared_memory"

    def _add_runs(self, state: KeyedState) -> str:
        shape = self.shapes.runs_of(self.key, self.levels)
        warps = self.gpu.multiprocessors * shape.blocks * shape.threads // WARP
        span = self._span(warps, 4 * WARP)
        self._run(
            runs_kernel(self.key, self.dtype, self.levels, shape), -(-self.count * WARP // (span * shape.threads)),
            shape.threads,
            (self.keys, self.values, np.uint64(self.count), np.uint64(span), pattern(self.reach.least),
             np.int32(self.unit), np.uint32(self.omit_nan), *state.args),
        )  # fmt: skip
        return "runs"

    def _span(self, blocks: int, tile: int) -> int:
        """Elements of a block, of which there are about so many."""
        return max(tile, min(-(-self.count // (blocks * tile)) * tile, MOST_SPAN // tile * tile))

    def _add_buckets(self, state: KeyedState) -> str:
        import cupy

        shapes, reach = self.shapes, self.reach
        bits = self._bits()
        buckets = (reach.range - 1 >> bits) + 1
        part, code = shapes.part_of(self.key, self.dtype), (pattern(reach.least), np.uint64(reach.range))
        second, coarse = shapes.part_of(CODE, self.dtype), (buckets - 1 >> COARSE_BITS) + 1
        words = cupy.zeros(3 * buckets + 2 * coarse + 2, dtype=np.uint32)
        sizes, starts, cursors = (
            words[:buckets],
            words[buckets : 2 * buckets + 1],
            words[2 * buckets + 1 : 3 * buckets + 1],
        )
        coarse_cursors, tiles = words[3 * buckets + 1 : 3 * buckets + 1 + coarse], words[3 * buckets + 1 + coarse :]
        threads = shapes.size_threads
        span = self._span(self.gpu.multiprocessors * shapes.size_blocks, 16 * threads)
        self._run(
            sizes_kernel(self.key, threads), -(-self.count // span), threads,
            (self.keys, np.uint64(self.count), np.uint64(span), *code, np.uint32(bits), np.uint32(buckets), sizes,
             state.notes),
            4 * buckets,
        )  # fmt: skip
        self._run(
            starts_kernel(), 1, START_THREADS,
            (sizes, np.uint32(buckets), np.uint32(COARSE_BITS), np.uint32(second.tile), starts, cursors, coarse_cursors,
             tiles),
        )  # fmt: skip
        codes, elements = cupy.empty(self.count, dtype=np.uint32), cupy.empty_like(self.values)
        none = np.uint64(0)
        size = np.uint64(self.count)
        sort = (np.uint32(coarse), np.uint32(COARSE_BITS), np.uint32(buckets))
        once = buckets <= MOST_BUCKETS
        first_bits = bits if once else bits + COARSE_BITS
        self._run(
            part_kernel(self.key, self.dtype, part), -(-self.count // part.tile), part.threads,
            (self.keys, self.values, size, *code, none, none, *sort, np.uint32(first_bits), np.uint32(0xFFFFFFFF),
             cursors if once else coarse_cursors, codes, elements),
            part.shared(self.dtype.itemsize),
        )  # fmt: skip
        if not once:
            source, codes = codes, cupy.empty_like(codes)
            values, elements = elements, cupy.empty_like(elements)
            self._run(
                part_kernel(CODE, self.dtype, second), -(-self.count // second.tile) + coarse, second.threads,
                (source, values, size, np.int64(0), np.uint64(reach.range), tiles, starts, *sort, np.uint32(bits),
                 np.uint32((1 << COARSE_BITS) - 1), cursors, codes, elements),
                second.shared(self.dtype.itemsize),
            )  # fmt: skip
        each = shapes.sums[self.levels - 1]
        span = self._span(self.gpu.multiprocessors * each.blocks, each.tile)
        self._run(
            sums_kernel(self.dtype, self.levels, each), -(-self.count // span), each.threads,
            (codes, elements, starts, np.uint32(buckets), np.uint32(bits), np.uint64(span), np.int32(self.unit),
             np.uint32(self.omit_nan), *state.args),
            group_bytes(self.levels) << bits,
        )  # fmt: skip
        return f"{buckets}_buckets" if once else f"{coarse}_by_{1 << COARSE_BITS}_buckets"

    def _run(self, name: str, grid: int, block: int, args: tuple[Any, ...], shared: int = 0) -> None:
        self.gpu.kernel(unit_of(name), name)(grid, block, args, shared)


def pattern(number: int) -> np.int64:
    """A key as the int64 of the same bits."""
    return np.uint64(number % (1 << 64)).view(np.int64)


def rounded(rows: KeyedAdder, state: KeyedState, other: Any, *, mean: bool) -> Any:
    """The sums or means that the levels hold, one of each code. `other` says which groups have elements other than −0,
    or is None where no element is −0."""
    import cupy

    result = rows.dtype if rows.dtype.is_float else DTYPES["float64"]
    values = cupy.empty(state.range, dtype=result.numpy)
    where = np.uint64(0) if other is None else other
    args = (np.int32(rows.unit), np.uint32(mean), where, values, *state.args)
    _run(rows, values_kernel(rows.dtype, result, rows.levels), _blocks(rows, state), _THREADS, args)
    return values


def integers(rows: KeyedAdder, state: KeyedState) -> tuple[Any, Any]:
    """The sums of integers: the lower words (uint64) and the upper ones (int64)."""
    import cupy

    low, high = cupy.empty(state.range, np.uint64), cupy.empty(state.range, np.int64)
    _run(rows, integers_kernel(rows.dtype, rows.levels), _blocks(rows, state), _THREADS, (low, high, *state.args))
    return low, high


def add_listed(rows: KeyedAdder, state: KeyedState, count: int, values: Any, *, mean: bool) -> None:
    """Round the groups of the `count` listed elements again, with these."""
    import cupy

    if not count:
        return
    groups, places = np.unique(state.listed[:count].get(), return_inverse=True)
    totals = cupy.zeros(groups.size * WORDS, dtype=np.uint64)
    add, finish = listed_kernels(rows.dtype, rows.levels)
    _run(
        rows, add, -(-count // LISTED_THREADS), LISTED_THREADS,
        (state.elements, cupy.asarray(places.reshape(-1).astype(np.uint32)), np.uint32(count), totals),
    )  # fmt: skip
    _run(
        rows, finish, -(-groups.size // LISTED_THREADS), LISTED_THREADS,
        (np.int32(rows.unit), np.uint32(mean), cupy.asarray(groups), np.uint32(groups.size), totals, values,
         *state.args),
    )  # fmt: skip


def _blocks(rows: KeyedAdder, state: KeyedState) -> int:
    return int(min(-(-state.range // _THREADS), 32 * rows.gpu.multiprocessors))


def _run(rows: KeyedAdder, name: str, grid: int, block: int, args: tuple[Any, ...]) -> None:
    rows.gpu.kernel(unit_of(name), name)(grid, block, args)
