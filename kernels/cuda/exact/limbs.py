"""The total of an exact sum in the GPU's memory, and how much may still be added to it."""

import numpy as np

from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.exact.total import MOST_ADDED, carried, limbs_of


class Limbs:
    """The limbs of a total of `kind`, zero at first: `array`, a CuPy array of int64 on the current device."""

    def __init__(self, kind: SumKind) -> None:
        import cupy

        self.kind = kind
        self.array = cupy.zeros(limbs_of(kind), dtype=np.int64)
        self._added = 0

    def make_room(self, added: int) -> None:
        """To be called before a launch that may add so many numbers below 2**32 to one limb: resolves the carries where
        a limb could overflow, which waits for the work before."""
        if self._added + added > MOST_ADDED:
            self.array.set(carried(self.kind, self.array.get()))
            self._added = 1
        self._added += added
