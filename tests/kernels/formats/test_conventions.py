"""Attributes of HDF5, NetCDF-4 and Zarr arrays that say which elements are missing, and which are unsigned."""

import base64
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.array_files import elements, opened, refused
from warpfold.contract.sources.roots import open_folder
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.formats.contents import contents_of_folder
from warpfold.kernels.formats.conventions import check_means_itself
from warpfold.kernels.lowering.nulls import truths_of
from warpfold.kernels.sources.sequential import SequentialSource, gathered

h5py: Any = pytest.importorskip("h5py")
zarr: Any = pytest.importorskip("zarr")

BASE64 = base64.b64encode(struct.pack("<d", -999.99)).decode()


def _hdf5(path: Path, array: NDArray[Any], attributes: dict[str, Any], **how: Any) -> None:
    with h5py.File(path, "w") as file:
        stored = file.create_dataset("x", data=array, **how)
        stored.attrs.update(attributes)


def _zarr(version: int) -> Callable[[Path, NDArray[Any], dict[str, Any]], None]:
    def write(path: Path, array: NDArray[Any], attributes: dict[str, Any]) -> None:
        stored = zarr.create_array(path, data=array, chunks=(2,), zarr_format=version)
        stored.attrs.update({name: _as_json(value) for name, value in attributes.items()})

    return write


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


FORMATS: dict[str, Callable[[Path, NDArray[Any], dict[str, Any]], None]] = {
    "contiguous": _hdf5,
    "compressed": lambda path, array, attributes: _hdf5(path, array, attributes, chunks=(2,), compression="gzip"),
    "zarr 2": _zarr(2),
    "zarr 3": _zarr(3),
}

f4, f8 = np.float32, np.float64

FILLS: dict[str, tuple[str, list[Any], dict[str, Any], list[Any]]] = {
    "a double beside float32": ("f4", [1, 2, -999.99], {"_FillValue": np.array([-999.99])}, [1, 2]),
    "a double 1e20 beside float32": ("f4", [1, 1e20], {"missing_value": 1e20}, [1]),
    "a float32 beside doubles": ("f8", [1, float(f4(-999.99))], {"_FillValue": f4(-999.99)}, [1]),
    "a float32 that no double is": ("f8", [1, -999.99], {"_FillValue": f4(-999.99)}, [1, -999.99]),
    "a double of an integer": ("i2", [1, -999, 3], {"_FillValue": f8(-999)}, [1, 3]),
    "a wider integer": ("i1", [1, -9, 3], {"_FillValue": np.int64(-9)}, [1, 3]),
    "an integer beside floats": ("f4", [1, -9, 3], {"missing_value": np.int32(-9)}, [1, 3]),
    "beyond the integers": ("i2", [1, -1, 32767], {"_FillValue": 1e10}, [1, -1, 32767]),
    "beyond the floats": ("f4", [1, np.inf], {"_FillValue": 1e300}, [1, np.inf]),
    "a fraction beside integers": ("i2", [1, -999], {"_FillValue": -999.5}, [1, -999]),
    "NaN beside integers": ("i4", [1, 0, -(1 << 31)], {"_FillValue": np.nan}, [1, 0, -(1 << 31)]),
    "-1 beside unsigned integers": ("u1", [1, 255], {"_FillValue": np.int8(-1)}, [1, 255]),
    "a vector": ("f4", [1, -9, -99, 5], {"missing_value": np.array([-9.0, -99.0])}, [1, 5]),
    "a vector, one of which is no element": ("i2", [1, -9, 5], {"missing_value": np.array([-9.0, 1e9])}, [1, 5]),
    "two attributes": ("i2", [1, -9, -99, 5], {"_FillValue": np.int16(-9), "missing_value": -99.0}, [1, 5]),
    "a word": ("f4", [1, -9, 5], {"missing_value": b"-9"}, [1, 5]),
    "a word of a float beside integers": ("i4", [1, -9, 5], {"missing_value": b"-9.0"}, [1, 5]),
    "the word NaN beside integers": ("i4", [1, -9], {"_FillValue": b"NaN"}, [1, -9]),
    "the word inf": ("f8", [1, np.inf], {"_FillValue": b"Infinity"}, [1]),
    "base64": ("f4", [1, -999.99, 5], {"_FillValue": BASE64}, [1, 5]),
    "the other byte order": (">i4", [1, -9, 5], {"_FillValue": np.array(-9, ">i2")}, [1, 5]),
    "nothing": ("i2", [1, 2], {"missing_value": np.zeros(0)}, [1, 2]),
}

UNSIGNED: dict[str, tuple[str, list[Any], dict[str, Any], list[Any]]] = {
    "bytes": ("i1", [0, -1], {"_Unsigned": b"true"}, [0, 255]),
    "shorts": ("i2", [-1, 5], {"_Unsigned": b"true"}, [65535, 5]),
    "the other byte order": (">i4", [-2, 5], {"_Unsigned": "true"}, [(1 << 32) - 2, 5]),
    "long integers": ("i8", [-1, 5], {"_Unsigned": "True"}, [(1 << 64) - 1, 5]),
    "false": ("i1", [0, -1], {"_Unsigned": b"false"}, [0, -1]),
    "true of unsigned ones": ("u1", [0, 255], {"_Unsigned": b"true"}, [0, 255]),
    "false of unsigned ones": ("u1", [0, 255, 254], {"_Unsigned": b"false", "_FillValue": np.uint8(254)}, [0, -1]),
    "floats": ("f4", [0, -1], {"_Unsigned": b"true"}, [0, -1]),
    "with a signed fill": ("i1", [0, -1, -2], {"_Unsigned": b"true", "_FillValue": np.int8(-1)}, [0, 254]),
    "with an unsigned fill": ("i1", [0, -1, -2], {"_Unsigned": b"true", "_FillValue": np.int16(255)}, [0, 254]),
    "with a fill of doubles": ("i1", [0, -1, -2], {"_Unsigned": b"true", "missing_value": 255.0}, [0, 254]),
    "with a signed range": (
        "i1",
        [0, -1, -2],
        {"_Unsigned": b"true", "valid_range": np.array([0, -2], "i1")},
        [0, 254],
    ),
    "with an unsigned range": ("i1", [0, -1, -2], {"_Unsigned": b"true", "valid_max": np.int16(254)}, [0, 254]),
}

RANGES: dict[str, tuple[str, list[Any], dict[str, Any], list[Any]]] = {
    "both ends": ("f4", [280, 99999, -5], {"valid_min": f4(180), "valid_max": f4(330)}, [280]),
    "the ends are valid": ("i2", [0, 1, 5, 6], {"valid_range": np.array([1, 5], "i2")}, [1, 5]),
    "a least one": ("i4", [-1, 0, 7], {"valid_min": np.int32(0)}, [0, 7]),
    "a greatest one": ("u1", [1, 200, 255], {"valid_max": np.uint8(200)}, [1, 200]),
    "doubles beside float32": ("f4", [0.1, 0.2], {"valid_max": 0.1}, [0.1]),
    "doubles of integers": ("i2", [0, 1, 5, 6], {"valid_range": np.array([1.0, 5.0])}, [1, 5]),
    "one end beyond the integers": ("u1", [0, 9, 255], {"valid_range": np.array([-1, 9], "i2")}, [0, 9]),
    "infinite ends": ("i2", [-5, 5], {"valid_range": np.array([-np.inf, np.inf])}, [-5, 5]),
    "NaN as an end": ("f8", [-5, 5], {"valid_min": np.nan, "valid_max": 4.0}, [-5]),
    "NaN as an element": ("f8", [np.nan, 5], {"valid_max": 4.0}, [np.nan]),
    "a range and its own ends": ("i1", [1, 9], {"valid_range": np.array([0, 5], "i1"), "valid_max": np.int8(5)}, [1]),
    "a fill, too": ("i1", [1, 3, 9], {"valid_max": np.int8(5), "_FillValue": np.int8(3)}, [1]),
    "a word": ("i1", [1, 9], {"valid_max": b"5"}, [1]),
}


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize(
    "case", [*FILLS.values(), *UNSIGNED.values(), *RANGES.values()], ids=[*FILLS, *UNSIGNED, *RANGES]
)
def test_elements_are_values_nulls_or_unsigned_as_attributes_say(
    data_root: Path, how: str, case: tuple[str, list[Any], dict[str, Any], list[Any]]
) -> None:
    dtype, stored, attributes, wanted = case
    FORMATS[how](data_root / "x", np.array(stored, dtype), attributes)
    kept = elements(data_root, "x")
    assert [str(element) for element in kept.tolist()] == [str(np.array(each, kept.dtype).item()) for each in wanted]
    source = opened(data_root, "x")
    gathered(source)
    left_out = source.tally.nulls if isinstance(source, SequentialSource) else 0
    assert left_out == len(stored) - len(wanted)
    assert str(elements(data_root, "x", stored=True).tolist()) == str(np.array(stored, dtype).tolist())


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a word that is no number": ("f4", {"_FillValue": b"none"}, "_FillValue 'none', which is no number"),
    "two numbers in a word": ("f4", {"missing_value": b"-9, -99"}, "which is no number"),
    "Python's digits": ("i4", {"missing_value": b"1_000"}, "which is no number"),
    "a float of several integers": ("i8", {"_FillValue": 2.0**63}, "may stand for one of several integers"),
    "neither signed nor unsigned": (
        "i1",
        {"_Unsigned": b"maybe"},
        "_Unsigned 'maybe', which is neither true nor false",
    ),
    "one end of a range": ("f4", {"valid_range": np.array([1.0])}, "valid_range '1.0', which is not two numbers"),
    "a range in words": ("f4", {"valid_range": b"0 to 5"}, "valid_range '0 to 5', which is no number"),
    "two least ones": ("f4", {"valid_min": np.array([1.0, 2.0])}, "valid_min '1.0, 2.0', which is not one number"),
    "ends that contradict": ("i2", {"valid_range": np.array([0, 5]), "valid_min": 2}, "its valid_range says otherwise"),
    "an empty range": ("i2", {"valid_min": 5, "valid_max": 1}, "by which no element is valid"),
    "all below the range": ("u1", {"valid_min": 300}, "by which no element is valid"),
    "half an integer": ("i2", {"valid_max": 2.5}, "valid_max '2.5', which is no integer"),
    "a scale of nothing": ("i2", {"scale_factor": 0.0}, "by which all elements are one value"),
    "a scale of NaN": ("i2", {"scale_factor": np.nan}, "which is not finite"),
    "two offsets": ("i2", {"add_offset": np.array([1.0, 2.0])}, "which is not one number"),
    "a packed range of floats": ("i2", {"scale_factor": 0.5, "valid_max": 2.0}, "bounds packed or unpacked values"),
    "a packed range of doubles": ("f4", {"scale_factor": 0.5, "valid_max": 2.0}, "bounds packed or unpacked values"),
}


@pytest.mark.parametrize("how", ["contiguous", "zarr 3"])
@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_an_attribute_whose_meaning_is_not_certain_is_refused_by_its_name(
    data_root: Path, how: str, case: tuple[str, dict[str, Any], str]
) -> None:
    dtype, attributes, why = case
    if how == "zarr 3" and why == "which is not finite":
        attributes = {"scale_factor": "NaN"}
    FORMATS[how](data_root / "x", np.array([1, 2], dtype), attributes)
    message = refused(data_root, "x", "source.stored")
    assert why in message
    assert "set stored to reduce the elements as they are stored" in message
    assert elements(data_root, "x", stored=True).tolist() == [1, 2]


def _unwritten(path: Path, dtype: str, *, made_by: str = "_NCProperties", **how: Any) -> None:
    with h5py.File(path, "w") as file:
        if made_by == "_NCProperties":
            file.attrs["_NCProperties"] = np.bytes_("version=2,netcdf=4.9.2,hdf5=1.14.6")
        stored = file.create_dataset("u", (6,), dtype, chunks=(3,), maxshape=(None,), **how)
        stored[:3] = [1, 2, 3]
        if made_by == "scales":
            file.create_dataset("time", data=np.arange(6)).make_scale("time")
            stored.dims[0].attach_scale(file["time"])


DEFAULTS = {
    "i2": -32767, "u2": 65535, "i4": -2147483647, "u4": 4294967295, "i8": -9223372036854775806,
    "u8": 18446744073709551614, "f4": 9.969209968386869e36, "f8": 9.969209968386869e36, ">f4": 9.969209968386869e36,
}  # fmt: skip


@pytest.mark.parametrize("made_by", ["_NCProperties", "scales"])
@pytest.mark.parametrize("dtype", DEFAULTS)
def test_records_of_netcdf_that_were_never_written_are_nulls(data_root: Path, dtype: str, made_by: str) -> None:
    _unwritten(data_root / "x.nc", dtype, fillvalue=DEFAULTS[dtype], made_by=made_by)
    source = opened(data_root, "x.nc", array="u")
    assert isinstance(source, SequentialSource)
    result = CpuBackend().reduce(source, "sum")
    assert (result.value, result.count, source.tally.nulls) == (6, 3, 3)


@pytest.mark.parametrize(
    ("dtype", "how", "left"),
    [
        ("i1", {"fillvalue": -127}, [1, 2, 3, -127, -127, -127]),
        ("u1", {"fillvalue": 255}, [1, 2, 3, 255, 255, 255]),
        ("i2", {"fillvalue": -32767, "made_by": "h5py"}, [1, 2, 3, -32767, -32767, -32767]),
        ("f4", {"fillvalue": -1.0}, [1, 2, 3, -1, -1, -1]),
    ],
    ids=["bytes have no default", "unsigned bytes", "no netCDF library made it", "a fill value of its own"],
)
def test_other_elements_that_were_never_written_are_the_fill_value(
    data_root: Path, dtype: str, how: dict[str, Any], left: list[float]
) -> None:
    _unwritten(data_root / "x.h5", dtype, **how)
    assert elements(data_root, "x.h5", array="u").tolist() == left


def test_a_fill_value_of_the_array_stands_in_place_of_netcdfs_own(data_root: Path) -> None:
    _unwritten(data_root / "x.nc", "i2", fillvalue=-32767)
    with h5py.File(data_root / "x.nc", "a") as file:
        file["u"].attrs["_FillValue"] = np.int16(2)
    assert elements(data_root, "x.nc").tolist() == [1, 3, -32767, -32767, -32767]


@pytest.mark.parametrize("version", [2, 3])
def test_times_of_zarr_are_times_and_their_nats_nulls(data_root: Path, version: int) -> None:
    instants = np.array(["2020-01-01", "NaT", "2020-01-03"], "M8[ms]")
    zarr.create_array(data_root / "t", data=instants, zarr_format=version)
    source = opened(data_root, "t")
    assert isinstance(source, SequentialSource)
    result = CpuBackend().reduce(source, "mean")
    assert result.time is not None
    assert (result.time.iso, source.tally.nulls) == ("2020-01-02T00:00:00.000", 1)
    zarr.create_array(data_root / "d", data=np.array([5, "NaT"], "m8[s]"), zarr_format=version)
    assert CpuBackend().reduce(opened(data_root, "d"), "sum").dtype == "duration[s]"
    (array,) = contents_of_folder(open_folder("t", (data_root,), "source.path"))
    assert (array.dtype, array.reduced_as) == ("datetime64[ms]", "timestamp")


@pytest.mark.parametrize("attributes", [{"units": "days since 2000-01-01"}, {"dtype": "timedelta64[ns]"}])
@pytest.mark.parametrize("how", FORMATS)
def test_integers_that_count_time_stay_integers_and_nat_is_a_null(
    data_root: Path, how: str, attributes: dict[str, Any]
) -> None:
    FORMATS[how](data_root / "x", np.array([7, -(1 << 63), 9]), attributes)
    assert elements(data_root, "x").tolist() == [7, 9]
    FORMATS[how](data_root / "y", np.array([7, -(1 << 63), 9]), {"units": "m"})
    assert elements(data_root, "y").tolist() == [7, -(1 << 63), 9]


def test_the_fill_value_of_zarr_2_is_missing_where_xarray_wrote_it(data_root: Path) -> None:
    for name, dimensions in {"x": {"_ARRAY_DIMENSIONS": ["t"]}, "plain": {}}.items():
        stored = zarr.create_array(data_root / name, shape=(3,), dtype="i2", fill_value=-9, zarr_format=2)
        stored[:] = [1, -9, 3]
        stored.attrs.update(dimensions)
    assert elements(data_root, "x").tolist() == [1, 3]
    assert elements(data_root, "plain").tolist() == [1, -9, 3]
    zarr.open_array(data_root / "x").attrs["_FillValue"] = 3
    assert "its fill value is -9, and readers take either" in refused(data_root, "x", "source.stored")


def test_nulls_propagate_and_are_refused_by_every_rule(data_root: Path) -> None:
    _hdf5(data_root / "x", np.array([1, -1, 3], "i1"), {"_Unsigned": "true", "valid_max": np.int16(200)})
    source = opened(data_root, "x", null_policy="propagate")
    truths = gathered(truths_of(source))
    assert truths.read(0, 3).tolist() == [False, True, False]
    assert "a null in 'x', at index 1" in refused(data_root, "x", null_policy="raise")


OBJECTS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "a fill value": ("f4", [1, -9], {"_FillValue": f4(-9)}),
    "a fill value of another dtype": ("i2", [1, -9], {"missing_value": -9.0}),
    "a word": ("i2", [1, -9], {"missing_value": "-9"}),
    "a word that is no number": ("i2", [1, -9], {"missing_value": "none"}),
    "a valid range": ("i2", [1, -9], {"valid_min": np.int16(0)}),
    "unsigned": ("i1", [1, -9], {"_Unsigned": "true"}),
    "scaled": ("i2", [1, -9], {"scale_factor": 0.5}),
    "with an offset": ("f8", [1, -9], {"add_offset": 0.5}),
}


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize("case", OBJECTS.values(), ids=OBJECTS)
def test_an_object_whose_elements_are_not_its_values_is_refused(
    data_root: Path, how: str, case: tuple[str, list[Any], dict[str, Any]]
) -> None:
    dtype, stored, attributes = case
    FORMATS[how](data_root / "x", np.array(stored, dtype), attributes)
    array = zarr.open_array(data_root / "x") if how.startswith("zarr") else h5py.File(data_root / "x")["x"]
    with pytest.raises(ValueError, match=next(iter(attributes))) as caught:
        check_means_itself(array, np.asarray(array))
    assert "pass the Path of its file, or its elements as an array" in str(caught.value)
    check_means_itself(array[:], array[:])


def test_an_object_whose_attributes_change_nothing_is_taken(data_root: Path) -> None:
    _hdf5(data_root / "x", np.array([1, 2], "i2"), {"_FillValue": np.int16(-9), "scale_factor": 1.0, "units": "K"})
    with h5py.File(data_root / "x") as file:
        check_means_itself(file["x"], file["x"][:])
    _unwritten(data_root / "u.nc", "f4", fillvalue=DEFAULTS["f4"])
    with h5py.File(data_root / "u.nc") as file, pytest.raises(ValueError, match="a fill value, by which"):
        check_means_itself(file["u"], file["u"][:])
