"""The sums of the levels of a tile and its bounds in one reading, written in vectors of LLVM (`vector_code`)."""

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

_SUMS = types.UniTuple(types.int64, 4)  # of the first level and the second, the largest and the smallest magnitude


def _sums(tile: Any, second: Any, *, squares: bool = False) -> Callable[..., Any]:
    """What generates the sums of a tile of a type. Its arguments are those of `two_levels`."""
    wide = tile.dtype.bitwidth == 64
    word = I64 if wide else I32
    # The upper half of a float64 has its sign, its exponent and 20 bits: bounds in lanes of 32 bits cost half as much.
    halves = 2 * LANES if wide else LANES

    def term(builder: Any, pattern: Any) -> Any:
        if wide:
            return builder.bitcast(pattern, vector_of(F64))
        value = builder.fpext(builder.bitcast(pattern, vector_of(F32)), vector_of(F64))
        return builder.fmul(value, value) if squares else value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        begin = builder.bitcast(array.data, I8.as_pointer())
        kept = in_all(builder, arguments[1])
        anchor = in_all(builder, arguments[2])
        first, rests = Running(builder, I64, 0), Running(builder, I64, 0)
        most, least = Running(builder, I32, 0, halves), Running(builder, I32, -1, halves)
        stride = LANES * tile.dtype.bitwidth // 8
        with cgutils.for_range(builder, builder.sdiv(array.nitems, ir.Constant(I64, LANES))) as loop:
            at = builder.gep(begin, [builder.mul(loop.index, ir.Constant(I64, stride))])
            ask_for(builder, builder.gep(at, [ir.Constant(I64, AHEAD_BYTES)]))
            kind = vector_of(ir.IntType(tile.dtype.bitwidth))
            loaded = builder.load(builder.bitcast(at, kind.as_pointer()), align=tile.dtype.bitwidth // 8)
            pattern = builder.and_(loaded, kept)
            # Twice the pattern is the magnitude without its sign, and that of a zero less 1 the largest there is.
            doubled = builder.add(pattern, pattern)
            less = builder.add(doubled, repeated(word, -1))
            most.take(">", builder.bitcast(doubled, vector_of(I32, halves)))
            least.take("<", builder.bitcast(less, vector_of(I32, halves)))
            value = term(builder, pattern)
            anchored = builder.fadd(value, anchor)
            first.add(anchored)
            if second is not types.none:
                rest = builder.fsub(value, builder.fsub(anchored, anchor))
                rests.add(builder.fadd(rest, in_all(builder, arguments[3])))
        largest, smallest = most.value(), least.value()
        if wide:
            upper = ir.Constant(vector_of(I32), [*range(1, halves, 2)])  # in the order of bytes of x86 and Arm
            largest = builder.shuffle_vector(largest, largest, upper)
            smallest = builder.shuffle_vector(smallest, smallest, upper)
        totals = [of_all(builder, "add", running.value()) for running in (first, rests)]
        totals += [of_all(builder, "umax", largest), of_all(builder, "umin", smallest)]
        return context.make_tuple(builder, signature.return_type, totals)

    return generate


@intrinsic
def one_level(context: Any, tile: Any, keep: Any, anchor: Any, second: Any) -> Any:
    """Do what `two_levels` does for the one level of `anchor`; `second` is None and its sum 0."""
    return _SUMS(tile, keep, anchor, second), _sums(tile, second)


@intrinsic
def two_levels(context: Any, tile: Any, keep: Any, anchor: Any, second: Any) -> Any:
    """Sums of patterns of bits at the level of `anchor` and at that of `second`, for what the first does not hold;
    then bounds of the tile: twice the largest magnitude, as a pattern, and twice the smallest but zero, less 1. Of
    float64 (int64) the bounds are the upper 32 bits of these. Patterns of float32 are int32; `keep` is a mask."""
    return _SUMS(tile, keep, anchor, second), _sums(tile, second)


@intrinsic
def two_levels_of_squares(context: Any, tile: Any, keep: Any, anchor: Any, second: Any) -> Any:
    """Do what `two_levels` does for the squares of float32; the bounds are those of the elements."""
    return _SUMS(tile, keep, anchor, second), _sums(tile, second, squares=True)


@intrinsic
def take_two_levels(context: Any, rest: Any, count: Any, anchor: Any, second: Any) -> Any:
    """Sums of patterns of rest[:count], float64, at the level of `anchor` and at that of `second`; what these do not
    hold stays in `rest`. `count` is a multiple of LANES."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        anchors = [in_all(builder, argument) for argument in arguments[2:]]
        sums = [Running(builder, I64, 0), Running(builder, I64, 0)]
        with cgutils.for_range(builder, builder.sdiv(arguments[1], ir.Constant(I64, LANES))) as loop:
            at = builder.gep(array.data, [builder.mul(loop.index, ir.Constant(I64, LANES))])
            at = builder.bitcast(at, vector_of(F64).as_pointer())
            value = builder.load(at, align=8)
            for level, total in zip(anchors, sums, strict=True):
                anchored = builder.fadd(value, level)
                total.add(anchored)
                value = builder.fsub(value, builder.fsub(anchored, level))
            builder.store(value, at, align=8)
        totals = [of_all(builder, "add", total.value()) for total in sums]
        return context.make_tuple(builder, signature.return_type, totals)

    return types.UniTuple(types.int64, 2)(rest, types.int64, anchor, second), generate


COPIES = 4
"""Rows of a table by turns, so that equal numbers one after another do not wait for each other's sums."""

WIDE = 16
"""Elements of which the levels are computed at a time. They are stored one by one, and more than `LANES` need fewer
instructions before."""


@intrinsic
def scatter_levels(context: Any, elements: Any, numbers: Any, table: Any, anchors: Any) -> Any:
    """table[numbers[i], i % COPIES, l] += the pattern of element i at level l; `anchors` are those of the two or four
    levels, the highest first. The elements are float32 or float64, so many that WIDE divides their number; `table` has
    the shape (rows, COPIES, levels), int64."""
    levels = len(anchors)
    row = vector_of(I64, levels)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, places, sums = (
            context.make_array(kind)(context, builder, argument)
            for kind, argument in zip(signature.args[:3], arguments[:3], strict=True)
        )
        single = signature.args[0].dtype.bitwidth == 32
        kind = vector_of(F32 if single else F64, WIDE)
        wide = vector_of(F64, WIDE)
        anchored = [in_all(builder, builder.extract_value(arguments[3], level), WIDE) for level in range(levels)]
        with cgutils.for_range(builder, builder.udiv(values.nitems, ir.Constant(I64, WIDE))) as loop:
            at = builder.mul(loop.index, ir.Constant(I64, WIDE))
            rest = builder.load(builder.bitcast(builder.gep(values.data, [at]), kind.as_pointer()), align=4)
            rest = builder.fpext(rest, wide) if single else rest
            columns = []
            for anchor in anchored:
                sum_ = builder.fadd(rest, anchor)
                columns.append(builder.bitcast(sum_, vector_of(I64, WIDE)))
                rest = builder.fsub(rest, builder.fsub(sum_, anchor))
            for lane, added in enumerate(_transposed(builder, columns)):
                number = builder.load(builder.gep(places.data, [builder.add(at, ir.Constant(I64, lane))]))
                place = builder.mul(builder.zext(number, I64), ir.Constant(I64, COPIES))
                place = builder.add(place, ir.Constant(I64, lane % COPIES))
                here = builder.gep(builder.bitcast(sums.data, row.as_pointer()), [place])
                builder.store(builder.add(builder.load(here, align=8), added), here, align=8)
        return context.get_dummy_value()

    return types.void(elements, numbers, table, anchors), generate


def _transposed(builder: Any, columns: list[Any]) -> list[Any]:
    """The WIDE rows of two or four columns, as a processor interleaves them."""

    def mixed(left: Any, right: Any, lanes: list[int]) -> Any:
        return builder.shuffle_vector(left, right, ir.Constant(vector_of(I32, len(lanes)), lanes))

    even = [place for lane in range(0, WIDE, 2) for place in (lane, WIDE + lane)]
    odd = [place + 1 for place in even]
    pairs = [
        (mixed(left, right, even), mixed(left, right, odd))
        for left, right in zip(columns[::2], columns[1::2], strict=True)
    ]
    rows = []
    for lane in range(WIDE):
        upper, lower = pairs[0][lane % 2], pairs[-1][lane % 2]
        first = lane // 2 * 2
        below = [WIDE + first, WIDE + first + 1] if len(pairs) == 2 else []
        rows.append(mixed(upper, lower, [first, first + 1, *below]))
    return rows
