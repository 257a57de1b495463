"""What generates LLVM's instructions on vectors, for the loops that are written in them (`vectors`, `row_vectors`).

Compilers vectorise a loop at the width of its widest type, and would take the bounds, which are 32-bit comparisons, at
half of a register. A vector of LLVM becomes whatever registers a processor has: AVX-512, two of AVX2, four of Neon.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils as untyped_builders
from numba.core import types as untyped_types

cgutils: Any = untyped_builders
types: Any = untyped_types

LANES = 8
"""Elements at a time: a tile has a multiple of so many."""

AHEAD_BYTES = 2048
"""How far ahead of the additions memory is asked for. A page of 4 KiB ends the reach of the hardware's own streams."""

I8, I32, I64, F32, F64 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()


def vector_of(element: Any, lanes: int = LANES) -> Any:
    return ir.VectorType(element, lanes)


def repeated(element: Any, value: int, lanes: int = LANES) -> Any:
    return ir.Constant(vector_of(element, lanes), [value] * lanes)


def in_all(builder: Any, value: Any, lanes: int = LANES) -> Any:
    """The vector that has `value` in every lane."""
    kind = vector_of(value.type, lanes)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, first, repeated(I32, 0, lanes))


def of_all(builder: Any, name: str, vector: Any) -> Any:
    """The sum (add), largest (umax) or smallest (umin) of the lanes of a vector, as 64 bits."""
    element = vector.type.element
    kind = ir.FunctionType(element, [vector.type])
    name = f"llvm.vector.reduce.{name}.v{vector.type.count}i{element.width}"
    value = builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [vector])
    return value if element == I64 else builder.zext(value, I64)


def ask_for(builder: Any, pointer: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, I32, I32, I32])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(fetch, [pointer, *(ir.Constant(I32, flag) for flag in (0, 3, 1))])  # to read, keep close, data


class Running:
    """Vectors that a loop changes."""

    def __init__(self, builder: Any, element: Any, value: int, lanes: int = LANES) -> None:
        self._builder = builder
        self._place = cgutils.alloca_once_value(builder, repeated(element, value, lanes))

    def value(self) -> Any:
        return self._builder.load(self._place)

    def add(self, vector: Any) -> None:
        """Add the patterns of a vector, as 64-bit integers."""
        self._builder.store(self._builder.add(self.value(), self._builder.bitcast(vector, vector_of(I64))), self._place)

    def put(self, vector: Any) -> None:
        """Set all lanes."""
        self._builder.store(vector, self._place)

    def take(self, order: str, vector: Any) -> None:
        """Keep the larger (>) or the smaller (<) of each lane, as unsigned numbers."""
        old = self.value()
        chosen = self._builder.select(self._builder.icmp_unsigned(order, vector, old), vector, old)
        self._builder.store(chosen, self._place)
