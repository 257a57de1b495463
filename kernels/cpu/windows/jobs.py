"""Jobs of threads that stand by: to add the pieces of an array that no other thread takes (`claimed.py`)."""

from functools import cache
from typing import Any

import numba
import numpy as np

from warpfold.kernels.cpu.windows.claimed import add_claimed32, add_claimed64
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
"""Addresses of the working space, in the order of the parameters of `add_narrow` or `add_float64`."""
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
def _add_words(job: Any, bits: Any, words: Any) -> None:
    """Add what no other thread takes of float32 or, with room for `words`, of 16-bit formats."""
    limbs = _carray(_pointer(load(job + LIMBS_AT * WORD), np.int64), LIMBS)
    rest = _carray(_pointer(load(job + SPACE * WORD), np.float64), TILE32)
    spare = _carray(_pointer(load(job + (SPACE + 1) * WORD), np.int32), TILE32)
    room, control, clock = load(job + BITS * WORD), load(job + CONTROL * WORD), job + CLOCK * WORD
    keep, half = np.int32(load(job + KEEP * WORD)), load(job + HALF * WORD) != 0
    squares, origin = load(job + SQUARES * WORD) != 0, load(job + ORIGIN * WORD)
    flags, count = add_claimed32(bits, room, control, clock, half, keep, squares, origin, limbs, rest, spare, words)
    store(job + FLAGS * WORD, flags)
    store(job + COUNT * WORD, count)


def _add32(job):  # type: ignore[no-untyped-def]
    _add_words(job, _carray(_pointer(load(job + BITS * WORD), np.int32), load(job + ELEMENTS * WORD)), None)


def _add16(job):  # type: ignore[no-untyped-def]
    bits = _carray(_pointer(load(job + BITS * WORD), np.int16), load(job + ELEMENTS * WORD))
    words = _carray(_pointer(load(job + (SPACE + 2) * WORD), np.int32), NARROW)
    _add_words(job, bits, words)


def _add64(job):  # type: ignore[no-untyped-def]
    bits = _carray(_pointer(load(job + BITS * WORD), np.int64), load(job + ELEMENTS * WORD))
    limbs = _carray(_pointer(load(job + LIMBS_AT * WORD), np.int64), LIMBS)
    rest = _carray(_pointer(load(job + SPACE * WORD), np.float64), TILE64)
    other = _carray(_pointer(load(job + (SPACE + 1) * WORD), np.float64), TILE64)
    spare = _carray(_pointer(load(job + (SPACE + 2) * WORD), np.int64), TILE64)
    sums = _carray(_pointer(load(job + (SPACE + 3) * WORD), np.uint64), FIELDS64)
    counts = _carray(_pointer(load(job + (SPACE + 4) * WORD), np.int16), FIELDS64)
    keep, room, control = load(job + KEEP * WORD), load(job + BITS * WORD), load(job + CONTROL * WORD)
    squares, origin = load(job + SQUARES * WORD) != 0, load(job + ORIGIN * WORD)
    clock, fields = job + CLOCK * WORD, (sums, counts)
    flags, count = add_claimed64(bits, room, control, clock, keep, squares, origin, limbs, rest, other, spare, fields)
    store(job + FLAGS * WORD, flags)
    store(job + COUNT * WORD, count)


_FUNCTIONS = {2: _add16, 4: _add32, 8: _add64}


@cache
def compiled(itemsize: int) -> Any:
    """The function of jobs that add elements of so many bytes, compiled or loaded; its address is `.address`."""
    return callback(_FUNCTIONS[itemsize], _types.void(_types.int64))
