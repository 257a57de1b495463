"""Arrays of h5py and zarr-python, and what they say beside their attributes."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.conventions.lowering import Lowering
from warpfold.kernels.formats.conventions.rules import NAMES, Conventions

_OF_NETCDF = ("DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates")


def lowering_of_hdf5(conventions: Conventions, dataset: Any, path: str) -> Lowering:
    """What the elements of a dataset of h5py stand for. A netCDF library has made it where the file names one, or where
    it has dimensions. Raises as `Conventions.lowering`."""
    attributes = dataset.attrs
    netcdf = "_NCProperties" in dataset.file.attrs or any(name in attributes for name in _OF_NETCDF)
    return conventions.lowering(path, attributes, dataset.dtype, netcdf=netcdf)


def lowering_of_zarr(conventions: Conventions, array: Any, path: str) -> Lowering:
    """What the elements of an array of zarr-python stand for. In version 2 xarray keeps `_FillValue` as the fill value
    of the array. Raises as `Conventions.lowering`."""
    attributes: Mapping[str, Any] = dict(array.attrs)
    of_xarray = array.metadata.zarr_format == 2 and "_ARRAY_DIMENSIONS" in attributes
    return conventions.lowering(path, attributes, array.dtype, fill=array.fill_value if of_xarray else None)


def check_means_itself(data: Any, array: NDArray[Any]) -> None:
    """Raise InvalidInput where `data`, an array of h5py or zarr-python whose elements are `array`, says that they are
    not its values."""
    kind = type(data)
    library = kind.__module__.partition(".")[0]
    if (library, kind.__name__) not in (("h5py", "Dataset"), ("zarr", "Array")) or array.dtype.kind not in "biufc":
        return
    path = str(data.name or "").strip("/")
    lowering_of = lowering_of_hdf5 if library == "h5py" else lowering_of_zarr
    why = ""
    try:
        lowering = lowering_of(Conventions(), data, path)
    except InvalidInput as error:
        why = str(error).partition(";")[0]
    else:
        changed = lowering.read_as is not None or lowering.meaning is not None
        if changed or lowering.nulls_in(array.astype(array.dtype.newbyteorder("="), copy=False)).any():
            named = ", ".join(name for name in NAMES if name in data.attrs) or "a fill value"
            why = f"has {named}, by which its elements are not its values"
    if library == "zarr" and data.fill_value is None and data.nchunks_initialized < data.nchunks:
        why = "lacks chunks, and no fill value says what was there"
    if why:
        raise InvalidInput(
            f"the {library} array {path!r} {why}: pass the Path of its file, or its elements as an array"
        )
