"""Neighbouring columns of several rows, added up in one reading, written in vectors of LLVM (`vector_code`).

The memory takes most of the time. So each row is asked for ahead, and several rows are read at a time: a sum is then
loaded and stored once for all of them. Five rows at a time were faster than four, six and eight.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from warpfold.kernels.cpu.windows.vector_code import (
    AHEAD_BYTES,
    F32,
    F64,
    I8,
    I32,
    I64,
    LANES,
    Running,
    ask_for,
    cgutils,
    in_all,
    of_all,
    repeated,
    types,
    vector_of,
)
from warpfold.kernels.machine.jit import intrinsic

COLUMNS = 2 * LANES
"""Columns at a time: what is left behind a multiple of so many is not read."""

_TOGETHER = (5, 2, 1)
"""Rows at a time, as long as there are so many."""

_NEAR = 1 << 12
"""Of rows up to so many elements from one to the next, the rows that are read next are asked for; of others the columns
that are."""

_BOUNDS = types.UniTuple(types.int64, 2)
_PATTERNS = types.UniTuple(types.uint64, 2)


def _each_place(
    builder: Any, words: Any, start: Any, rows: Any, stride: Any, count: Any, add: Callable[[Any, list[Any]], None]
) -> None:
    """Call `add` for every COLUMNS of `count` columns: it has their number, and the pointers to them in each of the
    rows that are read together. Of all `rows`, from words[start] on, every one is read once."""
    itemsize, done = words.data.type.pointee.width // 8, ir.Constant(I64, 0)
    near = builder.icmp_signed("<=", stride, ir.Constant(I64, _NEAR))
    for together in _TOGETHER:
        next_rows = builder.mul(stride, ir.Constant(I64, together * itemsize))
        reach = builder.select(near, next_rows, ir.Constant(I64, AHEAD_BYTES))
        left = builder.sub(rows, done)
        groups = builder.sdiv(left, ir.Constant(I64, together))
        with cgutils.for_range(builder, groups) as group:
            row = builder.add(done, builder.mul(group.index, ir.Constant(I64, together)))
            begins = [
                builder.gep(
                    words.data,
                    [builder.add(start, builder.mul(stride, builder.add(row, ir.Constant(I64, number))))],
                )
                for number in range(together)
            ]
            with cgutils.for_range(builder, builder.sdiv(count, ir.Constant(I64, COLUMNS))) as loop:
                column = builder.mul(loop.index, ir.Constant(I64, COLUMNS))
                here = [builder.gep(begin, [column]) for begin in begins]
                for pointer in here:
                    ahead = builder.gep(builder.bitcast(pointer, I8.as_pointer()), [reach])
                    for line in range(0, COLUMNS * itemsize, 64):
                        ask_for(builder, builder.gep(ahead, [ir.Constant(I64, line)]))
                add(column, here)
        done = builder.add(done, builder.mul(groups, ir.Constant(I64, together)))


def _arrays(context: Any, builder: Any, signature: Any, arguments: Any, *places: int) -> list[Any]:
    return [context.make_array(signature.args[at])(context, builder, arguments[at]) for at in places]


@intrinsic
def add_rows_in_levels(
    context: Any, words: Any, start: Any, rows: Any, stride: Any, count: Any, keep: Any, first: Any, second: Any,
    sums: Any, others: Any,
) -> Any:  # fmt: skip
    """Add the patterns of `count` elements of each of `rows` rows at the level of the anchor `first` to sums[:count],
    and at that of `second` to others[:count] (uint64). The rows are `stride` apart, from words[start] on: patterns of
    float64 (int64) or float32 (int32), masked by `keep`, of their width. Returns the bits in which a pattern of the
    first level differs from its anchor's, and those of what the levels leave."""
    wide = words.dtype.bitwidth == 64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, start, rows, stride, count, keep, *anchors, _, _ = arguments
        elements, *levels = _arrays(context, builder, signature, arguments, 0, 8, 9)
        kept = in_all(builder, keep)
        upper, lower = (in_all(builder, anchor) for anchor in anchors)
        binade, integers = builder.bitcast(upper, vector_of(I64)), vector_of(I64)
        outside, rest = Running(builder, I64, 0), Running(builder, I64, 0)

        def element(pointer: Any, lane: int) -> Any:
            kind = vector_of(I64 if wide else I32)
            at = builder.bitcast(builder.gep(pointer, [ir.Constant(I64, lane)]), kind.as_pointer())
            pattern = builder.and_(builder.load(at, align=8 if wide else 4), kept)
            if wide:
                return builder.bitcast(pattern, vector_of(F64))
            return builder.fpext(builder.bitcast(pattern, vector_of(F32)), vector_of(F64))

        def add(column: Any, pointers: list[Any]) -> None:
            for lane in range(0, COLUMNS, LANES):
                here = builder.add(column, ir.Constant(I64, lane))
                places = [builder.bitcast(builder.gep(level.data, [here]), integers.as_pointer()) for level in levels]
                high, low = (builder.load(place, align=8) for place in places)
                for pointer in pointers:
                    value = element(pointer, lane)
                    anchored = builder.fadd(value, upper)
                    left = builder.fsub(value, builder.fsub(anchored, upper))
                    below = builder.fadd(left, lower)
                    left = builder.bitcast(builder.fsub(left, builder.fsub(below, lower)), integers)
                    pattern = builder.bitcast(anchored, integers)
                    high, low = builder.add(high, pattern), builder.add(low, builder.bitcast(below, integers))
                    outside.put(builder.or_(outside.value(), builder.xor(pattern, binade)))
                    rest.put(builder.or_(rest.value(), left))
                for place, sum_ in zip(places, (high, low), strict=True):
                    builder.store(sum_, place, align=8)

        _each_place(builder, elements, start, rows, stride, count, add)
        patterns = [of_all(builder, "or", bits.value()) for bits in (outside, rest)]
        return context.make_tuple(builder, signature.return_type, patterns)

    index = types.int64
    return _PATTERNS(words, index, index, index, index, keep, first, second, sums, others), generate


@intrinsic
def add_rows_plainly(
    context: Any, words: Any, start: Any, rows: Any, stride: Any, count: Any, keep: Any, plain: Any
) -> Any:
    """Add `count` elements of each of `rows` rows of float32 to plain[:count] (float64), as `add_rows_in_levels` reads
    them. Returns twice the pattern of the largest magnitude, and twice that of the smallest but zero, less 1."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, start, rows, stride, count, keep, _ = arguments
        elements, plain = _arrays(context, builder, signature, arguments, 0, 6)
        kept = in_all(builder, keep, COLUMNS)
        most, least = Running(builder, I32, 0, COLUMNS), Running(builder, I32, -1, COLUMNS)
        halves = [ir.Constant(vector_of(I32), [*range(begin, begin + LANES)]) for begin in range(0, COLUMNS, LANES)]

        def add(column: Any, pointers: list[Any]) -> None:
            places = [
                builder.bitcast(
                    builder.gep(plain.data, [builder.add(column, ir.Constant(I64, lane))]),
                    vector_of(F64).as_pointer(),
                )
                for lane in range(0, COLUMNS, LANES)
            ]
            sums = [builder.load(place, align=8) for place in places]
            for pointer in pointers:
                at = builder.bitcast(pointer, vector_of(I32, COLUMNS).as_pointer())
                pattern = builder.and_(builder.load(at, align=4), kept)
                doubled = builder.add(pattern, pattern)
                most.take(">", doubled)
                least.take("<", builder.add(doubled, repeated(I32, -1, COLUMNS)))
                singles = builder.bitcast(pattern, vector_of(F32, COLUMNS))
                for number, half in enumerate(halves):
                    some = builder.fpext(builder.shuffle_vector(singles, singles, half), vector_of(F64))
                    sums[number] = builder.fadd(sums[number], some)
            for place, sum_ in zip(places, sums, strict=True):
                builder.store(sum_, place, align=8)

        _each_place(builder, elements, start, rows, stride, count, add)
        bounds = [of_all(builder, "umax", most.value()), of_all(builder, "umin", least.value())]
        return context.make_tuple(builder, signature.return_type, bounds)

    index = types.int64
    return _BOUNDS(words, index, index, index, index, types.int32, plain), generate
