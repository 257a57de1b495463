"""Floats of 8 bits: every one of their 256 bit patterns, from every format that holds bytes, against fractions."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from pydantic import ValidationError

from tests.support.array_files import ARRAY, opened, refused
from warpfold.client.arrays import as_numpy
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import round_ratio
from warpfold.kernels.formats.contents import contents_of
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.sources.sequential import SequentialSource

h5py: Any = pytest.importorskip("h5py")
zarr: Any = pytest.importorskip("zarr")

FORMATS = {"e4m3fn": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
BITS = {"e4m3fn": (4, 3, 7), "e5m2": (5, 2, 15)}


def decoded(name: str, pattern: int) -> Fraction | None:
    """The value of a pattern by the definition of its format; None of one that is not finite."""
    exponents, fractions, bias = BITS[name]
    exponent, fraction = (pattern & 127) >> fractions, pattern & ((1 << fractions) - 1)
    if exponent == (1 << exponents) - 1 and (name == "e5m2" or fraction == (1 << fractions) - 1):
        return None
    top = Fraction(1 if exponent else 0) + Fraction(fraction, 1 << fractions)
    return (-1 if pattern & 128 else 1) * top * Fraction(2) ** (max(exponent, 1) - bias)


@pytest.fixture(scope="module")
def cpu() -> CpuBackend:
    return CpuBackend()


def _hdf5(path: Path, array: Any) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=array.view(np.uint8), chunks=(2, 5))


def _zarr(path: Path, array: Any) -> None:
    zarr.create_array(path, data=array.view(np.uint8), chunks=(2, 5))


WRITERS: dict[str, Callable[[Path, Any], None]] = {
    "x.npy": np.save,  # '<f1', or raw bytes
    "u.npy": lambda path, array: np.save(path, array.view(np.uint8)),
    "x.npz": lambda path, array: np.savez_compressed(path, a=array.view(np.uint8)),
    "x.h5": _hdf5,
    "x.zarr": _zarr,
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("file", WRITERS)
def test_every_finite_pattern_is_widened_exactly(data_root: Path, cpu: CpuBackend, name: str, file: str) -> None:
    finite = {pattern: value for pattern in range(256) if (value := decoded(name, pattern)) is not None}
    kept = [pattern for pattern in finite if pattern & 128 == 0 or pattern % 3][: 4 * (len(finite) // 5)]
    array = np.array(kept[: len(kept) // 4 * 4], np.uint8).reshape(4, -1)
    WRITERS[file](data_root / file, array.view(FORMATS[name]))
    true = [finite[int(pattern)] for pattern in array.ravel()]
    source = opened(data_root, file, float8=name)
    assert source.dtype is DTYPES["float32"]
    result = cpu.reduce(source, "sum")
    total = sum(true, Fraction())
    assert result.value == round_ratio(total.numerator, total.denominator, 0, DTYPES["float32"])
    assert (result.dtype, result.count) == ("float32", array.size)
    assert cpu.reduce(opened(data_root, file, float8=name), "max").value == float(max(true))
    rows = cpu.reduce_groups(opened(data_root, file, float8=name), array.shape, AlongAxes((1,)), "sum").listed()
    wanted = [sum(true[at : at + array.shape[1]], Fraction()) for at in range(0, array.size, array.shape[1])]
    assert list(rows) == [round_ratio(row.numerator, row.denominator, 0, DTYPES["float32"]) for row in wanted]


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_not_finite_stays_so(data_root: Path, cpu: CpuBackend, name: str) -> None:
    np.save(data_root / "x.npy", np.arange(256, dtype=np.uint8))
    assert repr(cpu.reduce(opened(data_root, "x.npy", float8=name), "sum").value) == "nan"
    np.save(data_root / "x.npy", np.array([0x7C, 0x00], np.uint8))
    assert cpu.reduce(opened(data_root, "x.npy", float8=name), "max").value == (384.0 if name == "e4m3fn" else np.inf)


def test_a_file_tells_e5m2_and_needs_a_word_for_e4m3fn(data_root: Path, cpu: CpuBackend) -> None:
    np.save(data_root / "x.npy", np.array([1.5, -0.25], ml_dtypes.float8_e5m2))
    assert cpu.reduce(opened(data_root, "x.npy"), "sum").value == 1.25
    assert "and no bytes that are floats" in refused(data_root, "x.npy", "source.float8", float8="e4m3fn")
    with (data_root / "x.npy").open("rb") as file:
        (array,) = contents_of(file, TextOptions())
    assert (array.dtype, array.reduced_as) == ("float8_e5m2", "float32")
    np.save(data_root / "y.npy", np.array([1.5, -0.25], ml_dtypes.float8_e4m3fn))
    assert "float8 says which floats" in refused(data_root, "y.npy", "source.float8")
    np.save(data_root / "z.npy", np.ones(3, np.int16))
    assert "holds int16" in refused(data_root, "z.npy", "source.float8", float8="e5m2")
    with pytest.raises(ValidationError, match="e4m3fn"):
        ARRAY.validate_python({"type": "array", "path": "x.npy", "float8": "e3m4"})


@pytest.mark.parametrize("name", FORMATS)
def test_the_client_widens_arrays_in_memory(name: str) -> None:
    array = as_numpy(np.array([1.5, -0.25], FORMATS[name]))
    assert (array.dtype.name, array.tolist()) == ("float32", [1.5, -0.25])


@pytest.mark.parametrize("in_sections", [False, True])
def test_bytes_of_a_stored_member_that_changed_are_no_floats(data_root: Path, in_sections: bool) -> None:
    file = data_root / "s.npz"
    np.savez(file, a=np.arange(100, dtype=np.uint8))
    damaged = file.read_bytes().replace(bytes(range(100)), bytes([1, *range(1, 100)]))
    source = opened(data_root, "s.npz", float8="e5m2")
    assert isinstance(source, SequentialSource)
    assert sum(piece.size for piece in source.make()) == 100
    file.write_bytes(damaged)
    source = opened(data_root, "s.npz", float8="e5m2")
    assert isinstance(source, SequentialSource)
    assert source.sections is not None
    with pytest.raises(InvalidInput, match=r"'s\.npz' is damaged: the checksum of 'a' is not that of its bytes"):
        [list(section.make()) for section in source.sections()] if in_sections else list(source.make())
