"""How sources are cut into pieces."""

import numpy as np

from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.staging.stager import COPIED_BYTES, MADE_BYTES, piece_size
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.source import ArraySource, GeneratedSource


def test_a_piece_has_a_fixed_number_of_bytes() -> None:
    assert piece_size(ArraySource(np.empty(3, np.float64))) * 8 == COPIED_BYTES
    for dtype in DTYPES.values():
        assert piece_size(GeneratedSource("zeros", 10, 0, dtype)) * dtype.itemsize == MADE_BYTES


def test_elements_travel_as_what_cupy_can_hold() -> None:
    for dtype in DTYPES.values():
        assert carrier(dtype).itemsize == dtype.itemsize
        assert carrier(dtype).kind in "fiub"
