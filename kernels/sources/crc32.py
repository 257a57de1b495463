"""CRC-32 by carry-less products where the processor has them, and else by zlib, which takes several times as long.

`pclmulqdq` multiplies polynomials whose coefficients are 0 and 1. A lane of sixteen bytes moves 64 bytes on by two such
products, and is added to the sixteen bytes that stand there: the remainder, which is the checksum, stays the same. Four
lanes move at a time, until one is left for zlib (Gopal et al., "Fast CRC Computation for Generic Polynomials Using
PCLMULQDQ Instruction", Intel 2009).
"""

import zlib
from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir
from numba import core
from numpy.typing import NDArray

from warpfold.kernels.machine.jit import intrinsic, jit

_types: Any = numba.types
_cgutils: Any = core.cgutils
_config: Any = core.config
_I8, _I64 = ir.IntType(8), ir.IntType(64)
_LANE = ir.VectorType(_I64, 2)
_LANES = 4
_BLOCK = 64
_BY_64 = (0x154442BD4, 0x1C6E41596)
_BY_16 = (0x1751997D0, 0x0CCAA009E)
"""What the two halves of a lane are multiplied by to move so many bytes on: powers of x modulo the polynomial of
CRC-32, whose highest coefficient is bit 0."""
_NO_BYTES = 0xFFFFFFFF
"""The argument with which zlib begins with the remainder 0."""


def crc32(data: NDArray[np.uint8], crc: int = 0) -> int:
    """What `zlib.crc32(data, crc)` returns, for contiguous bytes."""
    blocks = data.size // _BLOCK
    if not blocks or not _has_products():
        return zlib.crc32(data.data, crc)
    left = np.empty(2, np.uint64)
    _fold(data.ctypes.data, blocks - 1, crc ^ _NO_BYTES, left.ctypes.data)
    return zlib.crc32(left.tobytes() + data[blocks * _BLOCK :].tobytes(), _NO_BYTES)


@cache
def _has_products() -> bool:
    """Whether the machine code that Numba makes may use the instruction."""
    return _config.CPU_NAME is None and bool(binding.get_host_cpu_features().get("pclmul"))


@jit
def _fold(address: Any, blocks: Any, remainder: Any, left: Any) -> None:
    """Write to `left` sixteen bytes that have the same remainder as those at `address`, which are one block of 64 and
    `blocks` more, behind others whose remainder is `remainder`."""
    _fold_lanes(address, blocks, remainder, left)


@intrinsic
def _fold_lanes(context: Any, address: Any, blocks: Any, remainder: Any, left: Any) -> Any:
    """All of `_fold`: between instructions of LLVM the lanes stay in registers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        multiply = _cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_LANE, [_LANE, _LANE, _I8]), "llvm.x86.pclmulqdq"
        )

        def loaded(place: Any) -> Any:
            value = builder.load(builder.gep(data, [place]))
            value.align = 1
            return value

        def moved(lane: Any, powers: tuple[int, int]) -> Any:
            by = ir.Constant(_LANE, powers)
            low, high = (builder.call(multiply, [lane, by, ir.Constant(_I8, halves)]) for halves in (0x00, 0x11))
            return builder.xor(low, high)

        start, count, before, to = arguments
        data = builder.inttoptr(start, _LANE.as_pointer())
        first = [loaded(ir.Constant(_I64, lane)) for lane in range(_LANES)]
        begun = builder.insert_element(ir.Constant(_LANE, (0, 0)), before, ir.Constant(_I64, 0))
        first[0] = builder.xor(first[0], begun)
        lanes = [_cgutils.alloca_once_value(builder, lane) for lane in first]
        with _cgutils.for_range(builder, count) as loop:
            at = builder.mul(builder.add(loop.index, ir.Constant(_I64, 1)), ir.Constant(_I64, _LANES))
            for number, lane in enumerate(lanes):
                here = loaded(builder.add(at, ir.Constant(_I64, number)))
                builder.store(builder.xor(moved(builder.load(lane), _BY_64), here), lane)
        last = builder.load(lanes[0])
        for lane in lanes[1:]:
            last = builder.xor(moved(last, _BY_16), builder.load(lane))
        builder.store(last, builder.inttoptr(to, _LANE.as_pointer())).align = 1
        return context.get_dummy_value()

    word = _types.int64
    return _types.void(word, word, word, word), generate
