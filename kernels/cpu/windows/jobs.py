"""Jobs of threads that stand by: to add the pieces of an array that no other thread takes (`claimed.py`)."""

from functools import cache
from typing import Any

import numba
import numpy as np

from warpfold.kernels.cpu.windows.claimed import add_claimed
from warpfold.kernels.cpu.windows.float32 import NARROW
from warpfold.kernels.cpu.windows.float64 import FIELDS64
from warpfold.kernels.cpu.windows.levels import LIMBS, TILE32, TILE64
from warpfold.kernels.cpu.windows.standing import FUNCTION, OWN
from warpfold.kernels.machine.jit import callback, intrinsic, jit
from warpfold.kernels.machine.machine_code import WORD, load, store

# The words of a job behind those that every job has.
CONTROL, BITS, ELEMENTS = OWN, OWN + 1, OWN + 2
"""Addresses: of the words of the claims, and of the elements or of room for a piece of a file; how many there are."""
KEEP, HALF = OWN + 3, OWN + 4
"""The mask of words, and whether elements are float16."""
SQUARES, ORIGIN, LIMBS_AT = OWN + 5, OWN + 6, OWN + 7
"""Whether squares are added, the origin of the sum, and the address of its limbs."""
SPACE = OWN + 8
"""Addresses of the arrays of the working space (`adding.working_space`)."""
CLOCK = SPACE + 5
FLAGS, COUNT = CLOCK + 2, CLOCK + 3
"""The flags of the elements that were added, and how many these are."""
WORDS = COUNT + 1

__all__ = ["FUNCTION", "compiled"]

_compiler: Any = numba
_carray, _types = _compiler.carray, _compiler.types


@intrinsic
def _pointer(context: Any, address: Any, dtype: Any) -> Any:
    """The address as a pointer to elements of a NumPy dtype."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return _types.CPointer(dtype.instance_type)(_types.int64, dtype), generate


@jit
def _array(job: Any, place: Any, dtype: Any, size: Any) -> Any:
    """The elements whose address is a word of the job."""
    return _carray(_pointer(load(job + place * WORD), dtype), size)


@jit
def _add(job: Any, bits: Any, keep: Any, space: Any) -> None:
    """Add what no other thread takes."""
    limbs = _array(job, LIMBS_AT, np.int64, LIMBS)
    room, control, clock = load(job + BITS * WORD), load(job + CONTROL * WORD), job + CLOCK * WORD
    squares, origin = load(job + SQUARES * WORD) != 0, load(job + ORIGIN * WORD)
    flags, count = add_claimed(bits, room, control, clock, keep, squares, origin, limbs, space)
    store(job + FLAGS * WORD, flags)
    store(job + COUNT * WORD, count)


def _add16(job):  # type: ignore[no-untyped-def]
    bits = _array(job, BITS, np.int16, load(job + ELEMENTS * WORD))
    rest, spare = _array(job, SPACE, np.float64, TILE32), _array(job, SPACE + 1, np.int32, TILE32)
    words, half = _array(job, SPACE + 2, np.int32, NARROW), load(job + HALF * WORD) != 0
    _add(job, bits, np.int32(load(job + KEEP * WORD)), (rest, spare, words, half))


def _add32(job):  # type: ignore[no-untyped-def]
    bits = _array(job, BITS, np.int32, load(job + ELEMENTS * WORD))
    space = _array(job, SPACE, np.float64, TILE32), _array(job, SPACE + 1, np.int32, TILE32)
    _add(job, bits, np.int32(load(job + KEEP * WORD)), space)


def _add64(job):  # type: ignore[no-untyped-def]
    bits = _array(job, BITS, np.int64, load(job + ELEMENTS * WORD))
    rest, other = _array(job, SPACE, np.float64, TILE64), _array(job, SPACE + 1, np.float64, TILE64)
    spare, sums = _array(job, SPACE + 2, np.int64, TILE64), _array(job, SPACE + 3, np.uint64, FIELDS64)
    counts = _array(job, SPACE + 4, np.int16, FIELDS64)
    _add(job, bits, load(job + KEEP * WORD), (rest, other, spare, (sums, counts)))


_FUNCTIONS = {2: _add16, 4: _add32, 8: _add64}


@cache
def compiled(itemsize: int) -> Any:
    """The function of jobs that add elements of so many bytes, compiled or loaded; its address is `.address`."""
    return callback(_FUNCTIONS[itemsize], _types.void(_types.int64))
