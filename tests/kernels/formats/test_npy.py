import io
from typing import Any

import numpy as np
import pytest
from numpy.lib import format as npy

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.npy import head_of, read_head
from warpfold.kernels.formats.npy_head import is_npy


def headed(shape: Any, descr: str = "<f8") -> bytes:
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize("name", DTYPES)
def test_the_head_that_is_written_is_read_again(name: str) -> None:
    dtype = DTYPES[name]
    written = head_of(dtype.numpy, 3)
    head = read_head(io.BytesIO(written + bytes(3 * dtype.itemsize)))
    assert (head.shape, head.offset, head.data_bytes) == ((3,), len(written), 3 * dtype.itemsize)


@pytest.mark.parametrize("shape", [(1 << 40,), (0, 1 << 40), (1,) * 64])
def test_a_shape_that_numpy_can_hold_is_taken(shape: tuple[int, ...]) -> None:
    assert read_head(io.BytesIO(headed(shape))).shape == shape


@pytest.mark.parametrize("shape", [(-1,), (-2, -3), (True,), (1,) * 65, (1 << 60,), (1 << 62, 0), (10**100, 0)])
def test_a_shape_that_numpy_cannot_hold_is_refused_before_anything_is_mapped(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="impossible shape"):
        read_head(io.BytesIO(headed(shape)))


def test_a_npy_file_is_told_by_its_first_bytes() -> None:
    assert is_npy(headed((3,)))
    assert not is_npy(np.arange(3.0).tobytes())
    assert not is_npy(b"")
