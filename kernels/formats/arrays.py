"""Arrays in files, whatever their format: the first bytes of a file tell it."""

from typing import BinaryIO

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.conventions import Conventions
from warpfold.kernels.formats.hdf5 import open_hdf5
from warpfold.kernels.formats.hyperslab import Range, hyperslab
from warpfold.kernels.formats.npz import open_npz
from warpfold.kernels.formats.signature import Format, format_of
from warpfold.kernels.formats.zarr_ import open_zarr
from warpfold.kernels.formats.zipped import zipped_zarr
from warpfold.kernels.npy import read_head
from warpfold.kernels.places.arrays import array_at
from warpfold.kernels.sequential import Elements


def open_array_file(
    file: BinaryIO, name: str | None = None, ranges: tuple[Range, ...] = (), conventions: Conventions | None = None
) -> Elements:
    """The selected elements of an array in `file`: of the one called `name`, or of the only one.

    `file` must stay open while elements are read. Raises InvalidInput, whose field is "array", "select" or "stored"
    where one of these is at fault, and Unavailable where a package is not installed.
    """
    match format_of(file):
        case Format.NPZ:
            tree = zipped_zarr(file)
            if tree is not None:
                return open_zarr(tree, name, ranges, conventions or Conventions())
            return open_npz(file, name, ranges)
        case Format.HDF5:
            return open_hdf5(file, name, ranges, conventions or Conventions())
        case Format.NPY | None:
            pass
        case Format.NETCDF3:
            raise InvalidInput("is a NetCDF-3 file, which is not read: `nccopy -k nc4` makes a NetCDF-4 file of it")
        case table:
            raise InvalidInput(f"is a table ({table.value}): a source of type table reduces a column of it")
    if name is not None:
        raise InvalidInput("is a .npy file, whose only array has no name", "array")
    head = read_head(file)
    size = file.seek(0, 2) - head.offset
    if size < head.data_bytes:
        raise InvalidInput(
            f"is truncated: its header promises {head.data_bytes} bytes of data, {max(0, size)} are there"
        )
    return array_at(file, head, hyperslab(ranges, head.shape))
