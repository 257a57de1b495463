import numpy as np
import pytest

from warpfold.kernels.source import ArraySource


@pytest.mark.parametrize("dtype", ["<f4", ">f4", ">i8", "?"])
def test_elements_are_read_in_order_of_rows_and_native_bytes(dtype: str) -> None:
    array = np.arange(12).reshape(3, 4).astype(dtype)
    for of in (array, array.T, array[::-1, ::2]):
        source = ArraySource(of)
        read = source.read(1, source.count)
        assert read.dtype.isnative
        assert read.tolist() == of.flatten().tolist()[1:]


def test_every_true_is_read_as_the_byte_1_whatever_a_file_holds() -> None:
    source = ArraySource(np.array([0, 1, 2, 255, 0], dtype=np.uint8).view(bool))
    assert source.read(0, 5).view(np.uint8).tolist() == [0, 1, 1, 1, 0]
