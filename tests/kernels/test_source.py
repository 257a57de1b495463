import gc
from pathlib import Path

import numpy as np
import pytest

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.npy import open_array, read_head
from warpfold.kernels.source import ArraySource, GeneratedSource, HeldArrays, extents_of, in_memory


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


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<i8", "?", "<u2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_file_gives_the_bytes_that_reading_its_map_gives(tmp_path: Path, dtype: str, order: str) -> None:
    array = np.arange(1200).reshape(30, 40).astype(dtype)
    np.save(tmp_path / "x.npy", np.asarray(array, order="C" if order == "C" else "F"))
    with (tmp_path / "x.npy").open("rb") as file:
        source = open_array(file, read_head(file))
    for start, stop in ((0, 1200), (0, 1), (1199, 1200), (7, 977)):
        out = np.full((stop - start) * source.dtype.itemsize, 0xFF, np.uint8)
        source.read_into(start, out)
        assert out.tobytes() == source.read(start, stop).tobytes() == ArraySource(array).read(start, stop).tobytes()


def test_a_file_that_became_shorter_is_refused_not_read_beyond(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(1000))
    with (tmp_path / "x.npy").open("r+b") as file:
        source = open_array(file, read_head(file))
        file.truncate(4000)
    with pytest.raises(InvalidInput, match="became shorter"):
        source.read_into(0, np.empty(8000, np.uint8))


def test_generated_elements_are_given_as_bytes_too() -> None:
    source = GeneratedSource("normal", 1000, 7, DTYPES["bfloat16"])
    out = np.empty(2 * 990, np.uint8)
    source.read_into(10, out)
    assert out.tobytes() == source.read(10, 1000).tobytes()


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_source_gives_its_file_back_when_nobody_needs_it(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(10))
    before = _descriptors()
    for _ in range(20):
        with (tmp_path / "x.npy").open("rb") as file:
            open_array(file, read_head(file)).read(0, 10)
    gc.collect()
    assert _descriptors() <= before


@pytest.mark.parametrize("dtype", ["float64", "int8", "bool"])
def test_held_arrays_are_read_as_one_array_across_their_ends(dtype: str) -> None:
    whole = (np.random.default_rng(2).standard_normal(60) * 3).astype(dtype)
    held = HeldArrays(DTYPES[dtype], [whole[:7], whole[7:7], whole[7:40], whole[40:]])
    assert held.count == 60
    assert in_memory(held)
    assert held.whole().tolist() == whole.tolist()
    for start, stop in [(0, 60), (6, 8), (7, 40), (39, 60), (5, 5)]:
        assert held.read(start, stop).tolist() == whole[start:stop].tolist()


def test_held_arrays_lie_where_each_of_them_lies() -> None:
    arrays = [np.arange(3.0), np.empty(0), np.arange(5.0)]
    extents = extents_of(HeldArrays(DTYPES["float64"], arrays))
    assert extents is not None
    lying = [(extent.location.descriptor, extent.location.offset, extent.count) for extent in extents]
    assert lying == [(-1, arrays[0].ctypes.data, 3), (-1, arrays[2].ctypes.data, 5)]
    for unlike in (np.arange(6.0)[::2], np.arange(3.0).astype(">f8")):
        assert extents_of(HeldArrays(DTYPES["float64"], [np.ones(1), unlike])) is None, "they are copied by NumPy"
