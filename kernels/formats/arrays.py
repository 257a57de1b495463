"""Arrays in files of any format. The first bytes of a file tell its format."""

from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import part_dtype
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.conventions import Conventions, lowered
from warpfold.kernels.formats.hdf5 import dimensions_of_hdf5, open_hdf5
from warpfold.kernels.formats.hyperslab import Range, hyperslab
from warpfold.kernels.formats.npy import read_head
from warpfold.kernels.formats.npz import open_npz
from warpfold.kernels.formats.signature import Format, readable_format
from warpfold.kernels.formats.zarr_ import dimensions_of_zarr, open_zarr
from warpfold.kernels.formats.zipped import zipped_zarr
from warpfold.kernels.lowering.complexes import complex_numbers
from warpfold.kernels.lowering.float8 import check_format, widened
from warpfold.kernels.lowering.times import integers_of, times_of_dtype
from warpfold.kernels.places.arrays import array_at, complex_at
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import Elements, shape_of


def open_array_file(
    file: BinaryIO,
    name: str | None = None,
    ranges: tuple[Range, ...] = (),
    conventions: Conventions | None = None,
    float8: str | None = None,
) -> Elements:
    """The selected elements of an array in `file`: of the array called `name`, or of the only array. With `float8` its
    bytes are floats of that format.

    `file` must stay open while elements are read. Raises InvalidInput, which names the field "array", "select",
    "stored" or "float8" where that field is at fault, and Unavailable where a package is not installed.
    """
    match readable_format(file):
        case Format.NPZ:
            tree = zipped_zarr(file)
            if tree is not None:
                return as_float8(open_zarr(tree, name, ranges, conventions or Conventions()), float8)
            return as_float8(open_npz(file, name, ranges), float8)
        case Format.HDF5:
            return as_float8(open_hdf5(file, name, ranges, conventions or Conventions()), float8)
        case Format.NPY | None:
            pass
        case table:
            raise InvalidInput(f"is a table ({table.value}): a source of type table reduces a column of it")
    if name is not None:
        raise InvalidInput("is a .npy file, whose only array has no name", "array")
    return _npy(file, ranges, conventions or Conventions(), float8)


def dimensions_in(file: BinaryIO, name: str | None) -> tuple[str, ...]:
    """The names of the dimensions of an array in `file`, empty where a dimension has none. Raises InvalidInput naming
    "axis" where the format has no names, and as `open_array_file`."""
    kind = readable_format(file)
    if kind is Format.HDF5:
        return dimensions_of_hdf5(file, name)
    tree = zipped_zarr(file) if kind is Format.NPZ else None
    if tree is None:
        raise InvalidInput("is of a format without names of dimensions: name the number of an axis", "axis")
    return dimensions_of_zarr(tree, name)


def elements_of(array: NDArray[Any], conventions: Conventions) -> Elements:
    """The elements of an array in memory, as those of the .npy file that it would be saved as. Raises InvalidInput."""
    if (parts := part_dtype(array.dtype)) is not None:
        flat = ArraySource(np.ascontiguousarray(array).reshape(-1).view(parts))
        return complex_numbers(str(array.dtype.newbyteorder("=")), flat, array.shape)
    if times_of_dtype(array.dtype) is None:
        return ArraySource(array)
    lowering = conventions.lowering("the array", {}, array.dtype)
    return lowered(ArraySource(array.view(integers_of(array.dtype))), lowering, array.shape)


def _npy(file: BinaryIO, ranges: tuple[Range, ...], conventions: Conventions, float8: str | None) -> Elements:
    head = read_head(file, wider=True)
    size = file.seek(0, 2) - head.offset
    if size < head.data_bytes:
        raise InvalidInput(
            f"is truncated: its header promises {head.data_bytes} bytes of data, {max(0, size)} are there"
        )
    if (wide := check_format(head.dtype, float8)) is not None:
        stored = replace(head, dtype=np.dtype(np.uint8))
        return widened(array_at(file, stored, hyperslab(ranges, head.shape)), wide)
    if (parts := part_dtype(head.dtype)) is not None:
        return complex_at(file, head, parts, hyperslab(ranges, head.shape))
    selected = hyperslab(ranges, head.shape)
    if times_of_dtype(head.dtype) is None:
        return array_at(file, head, selected)
    integers = array_at(file, replace(head, dtype=integers_of(head.dtype)), selected)
    return lowered(integers, conventions.lowering("the array", {}, head.dtype), shape_of(integers))


def as_float8(elements: Elements, float8: str | None) -> Elements:
    """The elements. Where `float8` names a format, their bytes are floats of that format. Raises InvalidInput."""
    wide = None if float8 is None else check_format(elements.dtype.numpy, float8)
    return elements if wide is None else widened(elements, wide)
