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


def _layout(name: str, shift: int | None, keep: int = -1, scale: int = 0) -> tuple[DType, Layout]:
    return DTYPES[name], Layout(shift, keep, DTYPES[name].precision - 1, scale)


LAYOUTS: Mapping[DType, Layout] = MappingProxyType(
    dict(
        [
            # The shifted sign of a float16 fills the bits 28 … 31, of which the last is float32's sign.
            _layout("float16", 13, keep=~0x70000000, scale=127 - 15),
            _layout("bfloat16", 16),
            _layout("float32", None),
        ]
    )
)
