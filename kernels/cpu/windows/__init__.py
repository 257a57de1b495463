"""Exact sums of floats, compiled: they compute what `kernels.exact.portable` defines, at the speed of the memory.
`levels` explains the method. Importing this package loads Numba, so it is imported only where elements are added.
"""

from warpfold.kernels.cpu.windows.float32 import widen
from warpfold.kernels.cpu.windows.levels import LIMBS, MAX_ELEMENTS, TILE32, TILE64

__all__ = [
    "LIMBS",
    "MAX_ELEMENTS",
    "TILE32",
    "TILE64",
    "widen",
]
