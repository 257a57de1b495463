"""Exact sums of floats, compiled: they compute what `kernels.exact.portable` defines, at the speed of the memory.
`levels` explains the method. Importing this package loads Numba, so it is imported only where elements are added.
"""

from warpfold.kernels.cpu.windows.float32 import NARROW, add_float32, add_float32_products, add_narrow, widen
from warpfold.kernels.cpu.windows.float64 import FIELDS64, add_float64, add_float64_products
from warpfold.kernels.cpu.windows.levels import LIMBS, MAX_ELEMENTS, TILE32, TILE64

__all__ = [
    "FIELDS64",
    "LIMBS",
    "MAX_ELEMENTS",
    "NARROW",
    "TILE32",
    "TILE64",
    "add_float32",
    "add_float32_products",
    "add_float64",
    "add_float64_products",
    "add_narrow",
    "widen",
]
