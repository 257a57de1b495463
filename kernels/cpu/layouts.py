"""How the compiled sums read floats of up to 32 bits: each as the pattern of a float32."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from warpfold.kernels.dtypes import DTYPES, DType

Read = tuple[int | None, np.int32, int]
"""What `kernels.cpu.windows` takes: the shift, the mask, how many bits a significand has behind the point."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a pattern becomes that of a float32.

    As a signed integer shifted by `shift` and masked by `keep`, a pattern is that of a float32 with the same sign and
    fields. Its value is 2**−`scale` times the element's, because exponents of float16 have another bias.
    """

    shift: int | None  # None costs nothing once compiled
    keep: int
    fraction: int
    scale: int

    def read(self, *, magnitudes: bool = False) -> Read:
        """As the compiled sums take it; with `magnitudes` the sign is masked too."""
        return self.shift, np.int32(self.keep & 0x7FFFFFFF if magnitudes else self.keep), self.fraction


def _layout(dtype: DType) -> Layout:
    """The layout of a float dtype whose fields are no wider than float32's."""
    single = DTYPES["float32"]
    shift = single.precision - dtype.precision
    exponent_bits = 8 * dtype.itemsize - dtype.precision
    # The shift leaves copies of the sign between it and the exponent field, where float32 has more exponent bits.
    copies = (1 << (8 - exponent_bits)) - 1
    keep = ~(copies << (single.precision - 1 + exponent_bits))
    return Layout(shift or None, keep, dtype.precision - 1, single.max_exponent - dtype.max_exponent)


LAYOUTS: Mapping[DType, Layout] = MappingProxyType(
    {row: _layout(row) for row in DTYPES.values() if row.is_float and row.itemsize <= 4}
)
