"""The sums of the levels of a tile and its bounds in one reading, written in vectors of LLVM.

Compilers vectorise a loop at the width of its widest type, and would take the bounds, which are 32-bit comparisons, at
half of a register. A vector of LLVM becomes whatever registers a processor has: AVX-512, two of AVX2, four of Neon.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils as untyped_builders
from numba.core import types as untyped_types

from warpfold.kernels.jit import intrinsic

cgutils: Any = untyped_builders
types: Any = untyped_types

LANES = 8
"""Elements at a time: a tile has a multiple of so many."""

_AHEAD_BYTES = 2048
"""How far ahead of the additions memory is asked for. A page of 4 KiB ends the reach of the hardware's own streams."""

_I8, _I32, _I64, _F32, _F64 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
_SUMS = types.UniTuple(types.int64, 4)  # of the first level and the second, the largest and the smallest magnitude


def _vector(element: Any, lanes: int = LANES) -> Any:
    return ir.VectorType(element, lanes)


def _all(element: Any, value: int, lanes: int = LANES) -> Any:
    return ir.Constant(_vector(element, lanes), [value] * lanes)


def _in_all(builder: Any, value: Any, lanes: int = LANES) -> Any:
    """The vector that has `value` in every lane."""
    kind = _vector(value.type, lanes)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, first, _all(_I32, 0, lanes))


def _of_all(builder: Any, name: str, vector: Any) -> Any:
    """The sum (add), largest (umax) or smallest (umin) of the lanes of a vector, as 64 bits."""
    element = vector.type.element
    kind = ir.FunctionType(element, [vector.type])
    name = f"llvm.vector.reduce.{name}.v{vector.type.count}i{element.width}"
    value = builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [vector])
    return value if element == _I64 else builder.zext(value, _I64)


def _ask_for(builder: Any, pointer: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, _I32, _I32, _I32])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(fetch, [pointer, *(ir.Constant(_I32, flag) for flag in (0, 3, 1))])  # to read, keep close, data


class _Running:
    """Vectors that a loop changes."""

    def __init__(self, builder: Any, element: Any, value: int, lanes: int = LANES) -> None:
        self._builder = builder
        self._place = cgutils.alloca_once_value(builder, _all(element, value, lanes))

    def value(self) -> Any:
        return self._builder.load(self._place)

    def add(self, vector: Any) -> None:
        self._builder.store(self._builder.add(self.value(), self._builder.bitcast(vector, _vector(_I64))), self._place)

    def take(self, order: str, vector: Any) -> None:
        """Keep the larger (>) or the smaller (<) of each lane, as unsigned numbers."""
        old = self.value()
        chosen = self._builder.select(self._builder.icmp_unsigned(order, vector, old), vector, old)
        self._builder.store(chosen, self._place)


def _sums(tile: Any, shift: Any, second: Any, *, squares: bool = False) -> Callable[..., Any]:
    """What generates the sums of a tile of a type. Its arguments are those of `two_levels`."""
    wide = tile.dtype.bitwidth == 64
    narrow = tile.dtype.bitwidth == 16
    assert narrow == (shift is not types.none)
    word = _I64 if wide else _I32
    # The upper half of a float64 has its sign, its exponent and 20 bits: bounds in lanes of 32 bits cost half as much.
    halves = 2 * LANES if wide else LANES

    def placed(builder: Any, loaded: Any, moved: Any, kept: Any) -> Any:
        if narrow:
            loaded = builder.shl(builder.sext(loaded, _vector(_I32)), moved)
        return builder.and_(loaded, kept)

    def term(builder: Any, pattern: Any) -> Any:
        if wide:
            return builder.bitcast(pattern, _vector(_F64))
        value = builder.fpext(builder.bitcast(pattern, _vector(_F32)), _vector(_F64))
        return builder.fmul(value, value) if squares else value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        begin = builder.bitcast(array.data, _I8.as_pointer())
        moved = (
            _in_all(builder, builder.and_(builder.trunc(arguments[1], _I32), ir.Constant(_I32, 31))) if narrow else 0
        )
        kept = _in_all(builder, arguments[2])
        anchor = _in_all(builder, arguments[3])
        first, rests = _Running(builder, _I64, 0), _Running(builder, _I64, 0)
        most, least = _Running(builder, _I32, 0, halves), _Running(builder, _I32, -1, halves)
        stride = LANES * tile.dtype.bitwidth // 8
        with cgutils.for_range(builder, builder.sdiv(array.nitems, ir.Constant(_I64, LANES))) as loop:
            at = builder.gep(begin, [builder.mul(loop.index, ir.Constant(_I64, stride))])
            _ask_for(builder, builder.gep(at, [ir.Constant(_I64, _AHEAD_BYTES)]))
            kind = _vector(ir.IntType(tile.dtype.bitwidth))
            loaded = builder.load(builder.bitcast(at, kind.as_pointer()), align=tile.dtype.bitwidth // 8)
            pattern = placed(builder, loaded, moved, kept)
            # Twice the pattern is the magnitude without its sign, and that of a zero less 1 the largest there is.
            doubled = builder.add(pattern, pattern)
            less = builder.add(doubled, _all(word, -1))
            most.take(">", builder.bitcast(doubled, _vector(_I32, halves)))
            least.take("<", builder.bitcast(less, _vector(_I32, halves)))
            value = term(builder, pattern)
            anchored = builder.fadd(value, anchor)
            first.add(anchored)
            if second is not types.none:
                rest = builder.fsub(value, builder.fsub(anchored, anchor))
                rests.add(builder.fadd(rest, _in_all(builder, arguments[4])))
        largest, smallest = most.value(), least.value()
        if wide:
            upper = ir.Constant(_vector(_I32), [*range(1, halves, 2)])  # in the order of bytes of x86 and Arm
            largest = builder.shuffle_vector(largest, largest, upper)
            smallest = builder.shuffle_vector(smallest, smallest, upper)
        totals = [_of_all(builder, "add", running.value()) for running in (first, rests)]
        totals += [_of_all(builder, "umax", largest), _of_all(builder, "umin", smallest)]
        return context.make_tuple(builder, signature.return_type, totals)

    return generate


@intrinsic
def one_level(context: Any, tile: Any, shift: Any, keep: Any, anchor: Any, second: Any) -> Any:
    """Do what `two_levels` does for the one level of `anchor`; `second` is None and its sum 0."""
    return _SUMS(tile, shift, keep, anchor, second), _sums(tile, shift, second)


@intrinsic
def two_levels(context: Any, tile: Any, shift: Any, keep: Any, anchor: Any, second: Any) -> Any:
    """Sums of patterns of bits at the level of `anchor` and at that of `second`, for what the first does not hold;
    then bounds of the tile: twice the largest magnitude, as a pattern, and twice the smallest but zero, less 1. Of
    float64 (int64) the bounds are the upper 32 bits of these. Elements of 32 bits (int32) have `shift` None, those of
    16 bits (int16) are shifted by it into a float32's place; `keep` is a mask of the pattern, of its width."""
    return _SUMS(tile, shift, keep, anchor, second), _sums(tile, shift, second)


@intrinsic
def two_levels_of_squares(context: Any, tile: Any, shift: Any, keep: Any, anchor: Any, second: Any) -> Any:
    """Do what `two_levels` does for the squares of elements of up to 32 bits; the bounds are those of the elements."""
    return _SUMS(tile, shift, keep, anchor, second), _sums(tile, shift, second, squares=True)


@intrinsic
def take_two_levels(context: Any, rest: Any, count: Any, anchor: Any, second: Any) -> Any:
    """Sums of patterns of rest[:count], float64, at the level of `anchor` and at that of `second`; what these do not
    hold stays in `rest`. `count` is a multiple of LANES."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        anchors = [_in_all(builder, argument) for argument in arguments[2:]]
        sums = [_Running(builder, _I64, 0), _Running(builder, _I64, 0)]
        with cgutils.for_range(builder, builder.sdiv(arguments[1], ir.Constant(_I64, LANES))) as loop:
            at = builder.gep(array.data, [builder.mul(loop.index, ir.Constant(_I64, LANES))])
            at = builder.bitcast(at, _vector(_F64).as_pointer())
            value = builder.load(at, align=8)
            for level, total in zip(anchors, sums, strict=True):
                anchored = builder.fadd(value, level)
                total.add(anchored)
                value = builder.fsub(value, builder.fsub(anchored, level))
            builder.store(value, at, align=8)
        totals = [_of_all(builder, "add", total.value()) for total in sums]
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
    row = _vector(_I64, levels)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, places, sums = (
            context.make_array(kind)(context, builder, argument)
            for kind, argument in zip(signature.args[:3], arguments[:3], strict=True)
        )
        single = signature.args[0].dtype.bitwidth == 32
        kind = _vector(_F32 if single else _F64, WIDE)
        wide = _vector(_F64, WIDE)
        anchored = [_in_all(builder, builder.extract_value(arguments[3], level), WIDE) for level in range(levels)]
        with cgutils.for_range(builder, builder.udiv(values.nitems, ir.Constant(_I64, WIDE))) as loop:
            at = builder.mul(loop.index, ir.Constant(_I64, WIDE))
            rest = builder.load(builder.bitcast(builder.gep(values.data, [at]), kind.as_pointer()), align=4)
            rest = builder.fpext(rest, wide) if single else rest
            columns = []
            for anchor in anchored:
                sum_ = builder.fadd(rest, anchor)
                columns.append(builder.bitcast(sum_, _vector(_I64, WIDE)))
                rest = builder.fsub(rest, builder.fsub(sum_, anchor))
            for lane, added in enumerate(_transposed(builder, columns)):
                number = builder.load(builder.gep(places.data, [builder.add(at, ir.Constant(_I64, lane))]))
                place = builder.mul(builder.zext(number, _I64), ir.Constant(_I64, COPIES))
                place = builder.add(place, ir.Constant(_I64, lane % COPIES))
                here = builder.gep(builder.bitcast(sums.data, row.as_pointer()), [place])
                builder.store(builder.add(builder.load(here, align=8), added), here, align=8)
        return context.get_dummy_value()

    return types.void(elements, numbers, table, anchors), generate


def _transposed(builder: Any, columns: list[Any]) -> list[Any]:
    """The WIDE rows of two or four columns, as a processor interleaves them."""

    def mixed(left: Any, right: Any, lanes: list[int]) -> Any:
        return builder.shuffle_vector(left, right, ir.Constant(_vector(_I32, len(lanes)), lanes))

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
