"""Floats of every width are added by calls of one form: what adds their patterns, what masks them, and working space.

Patterns of float32 and float64 are added as they are, and those of 16 bits are made patterns of float32 first.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.windows.float32 import NARROW, add_float32, add_float32_products, add_narrow
from warpfold.kernels.cpu.windows.float64 import FIELDS64, add_float64, add_float64_products
from warpfold.kernels.cpu.windows.levels import TILE32, TILE64
from warpfold.kernels.machine.jit import overload

_ADDING = {2: add_narrow, 4: add_float32, 8: add_float64}
_ADDING_PRODUCTS = {4: add_float32_products, 8: add_float64_products}


def adding(itemsize: int) -> Any:
    """The compiled function that adds patterns of so many bytes."""
    return _ADDING[itemsize]


def adding_products(itemsize: int) -> Any:
    """The compiled function that adds the products of pairs of patterns of so many bytes."""
    return _ADDING_PRODUCTS[itemsize]


def mask_of(itemsize: int, *, magnitudes: bool) -> Any:
    """What masks the words of patterns of so many bytes: with `magnitudes` they lose their signs."""
    word = np.int64 if itemsize == 8 else np.int32
    return word(np.iinfo(word).max if magnitudes else -1)


def working_space(itemsize: int, *, half: bool = False) -> tuple[Any, ...]:
    """What the function of `adding` takes last, for one thread. `half` says whether patterns of 16 bits are those of
    float16."""
    if itemsize == 8:
        fields = np.zeros(FIELDS64, np.uint64), np.zeros(FIELDS64, np.int16)
        return np.empty(TILE64), np.empty(TILE64), np.empty(TILE64, np.int64), fields
    space = np.empty(TILE32), np.empty(TILE32, np.int32)
    return space if itemsize == 4 else (*space, np.empty(NARROW, np.int32), half)


def arrays_of(space: tuple[Any, ...]) -> list[NDArray[Any]]:
    """The arrays of a working space, one after another."""
    parts = (part if isinstance(part, tuple) else (part,) for part in space)
    return [array for part in parts for array in part if isinstance(array, np.ndarray)]


def space_of_products(itemsize: int, fraction: int) -> tuple[Any, ...]:
    """What the function of `adding_products` takes last, for one thread. `fraction` are the bits behind the points of
    both significands."""
    if itemsize == 8:
        return np.empty(TILE64), np.empty(TILE64), np.empty(TILE64, np.int64), np.empty(TILE64, np.int64)
    return np.empty(TILE32), np.empty(TILE32, np.int32), np.empty(TILE32, np.int32), fraction


def add_patterns(bits: Any, keep: Any, squares: Any, origin: Any, limbs: Any, space: Any) -> Any:
    """Compiled code calls the function for the width of `bits` for it."""
    raise NotImplementedError


@overload(add_patterns)
def _add_patterns(bits, keep, squares, origin, limbs, space):  # type: ignore[no-untyped-def]
    add = adding(bits.dtype.bitwidth // 8)

    def add_all(bits, keep, squares, origin, limbs, space):  # type: ignore[no-untyped-def]
        return add(bits, keep, squares, origin, limbs, *space)

    return add_all
