"""Complex numbers in HDF5, NetCDF-4 and Zarr files: both parts are those of fractions, however the file is laid out."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.array_files import zipped
from tests.support.leases import lease_on
from tests.support.places.web import folders_of, web_server
from warpfold.contract.jobs import result_of
from warpfold.contract.sources.roots import open_folder
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import round_ratio, round_sqrt
from warpfold.kernels.formats.contents import contents_of, contents_of_folder
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.worker.execute import Kernels

h5py: Any = pytest.importorskip("h5py")
zarr: Any = pytest.importorskip("zarr")

PARTS = {"complex64": "float32", "complex128": "float64"}

Write = Callable[[Path, NDArray[Any]], None]


def _hdf5(**how: Any) -> Write:
    def write(path: Path, array: NDArray[Any]) -> None:
        with h5py.File(path, "w") as file:
            file.create_dataset("z", data=array, **how)

    return write


def _zarr(**how: Any) -> Write:
    def write(path: Path, array: NDArray[Any]) -> None:
        folder = path.with_suffix(".zarr") if path.suffix == ".zip" else path
        stored = zarr.create_array(str(folder), shape=array.shape, dtype=array.dtype, overwrite=True, **how)
        stored[...] = array
        if path.suffix == ".zip":
            zipped(folder, path)

    return write


WRITERS: dict[str, tuple[str, Write]] = {
    "contiguous": ("z.h5", _hdf5()),
    "chunked": ("z.nc", _hdf5(chunks=(3, 2))),
    "compressed": ("z.hdf5", _hdf5(chunks=(2, 5), compression="gzip", shuffle=True)),
    "zarr 2": ("z2", _zarr(zarr_format=2, chunks=(2, 3))),
    "zarr 3": ("z3", _zarr(zarr_format=3, chunks=(3, 4))),
    "zarr 3, sharded": ("z3s", _zarr(zarr_format=3, chunks=(1, 2), shards=(2, 4))),
    "zarr in a zip archive": ("z3.zip", _zarr(zarr_format=3, chunks=(4, 6))),
}


@pytest.fixture(scope="module")
def run(ran: Callable[..., Any]) -> Callable[..., Any]:
    def result(name: str, op: str, **spec: Any) -> Any:
        options = spec.pop("source", {})
        return ran({"kind": "reduce", "op": op, "source": {"type": "array", "path": name, **options}, **spec})

    return result


def numbers(dtype: str, shape: tuple[int, ...] = (4, 6)) -> Any:
    """Complex numbers whose sums cancel: floats would lose most digits."""
    random = np.random.default_rng(11)
    parts = random.standard_normal((2, *shape)) * 10.0 ** random.integers(-9, 9, (2, *shape))
    return (parts[0] + 1j * parts[1]).astype(dtype)


def rounded(true: Fraction, dtype: str) -> float:
    return round_ratio(true.numerator, true.denominator, 0, DTYPES[dtype])


def exactly(array: Any) -> list[tuple[Fraction, Fraction]]:
    return [(Fraction(float(each.real)), Fraction(float(each.imag))) for each in array.ravel()]


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("part", ["whole", "selected"])
def test_every_op_is_that_of_fractions(root: Path, run: Callable[..., Any], dtype: str, writer: str, part: str) -> None:
    (name, write), array, real = WRITERS[writer], numbers(dtype), PARTS[dtype]
    write(root / name, array)
    source: dict[str, Any] = {}
    if part == "selected":
        source = {"select": [{"start": 1, "stop": 4, "step": 2}, {"start": 2}]}
        array = array[1:4:2, 2:]
    true = exactly(array)
    sums = [sum((each[which] for each in true), Fraction()) for which in (0, 1)]
    for op, divisor in {"sum": 1, "mean": array.size}.items():
        result = run(name, op, source=source)
        wanted = complex(*(rounded(each / divisor, real) for each in sums))
        assert (result.value, result.dtype, result.count) == (wanted, dtype, array.size)
        assert result.correctly_rounded
    square = sum((re * re + im * im for re, im in true), Fraction())
    result = run(name, "sum_squares", source=source)
    assert (result.value, result.dtype, result.count) == (rounded(square, real), real, array.size)
    assert run(name, "norm2", source=source).value == round_sqrt(square.numerator, square.denominator, 0, DTYPES[real])
    result = run(name, "dot", source=source, other={"type": "array", "path": name, **source})
    products = [sum((a * a - b * b for a, b in true), Fraction()), sum((2 * a * b for a, b in true), Fraction())]
    assert (result.value, result.dtype) == (complex(*(rounded(each, real) for each in products)), dtype)


@pytest.mark.parametrize("writer", ["contiguous", "chunked", "zarr 2"])
def test_the_other_byte_order_has_the_same_sum(root: Path, run: Callable[..., Any], writer: str) -> None:
    name, write = WRITERS[writer]
    array = numbers("complex128")
    write(root / name, array.astype(">c16"))
    true = exactly(array)
    wanted = complex(*(rounded(sum((each[which] for each in true), Fraction()), "float64") for which in (0, 1)))
    assert run(name, "sum").value == wanted


@pytest.mark.parametrize(
    ("name", "write"),
    [("long.hdf5", _hdf5(chunks=(500, 5), compression="gzip", shuffle=True)), ("long", _zarr(chunks=(500, 5)))],
    ids=["compressed", "zarr"],
)
def test_a_long_array_is_decoded_in_parts_to_the_same_value(
    root: Path, run: Callable[..., Any], name: str, write: Write
) -> None:
    once = numbers("complex64", (1000, 5))
    write(root / name, np.tile(once, (60, 1)))
    true = exactly(once)
    wanted = complex(*(rounded(60 * sum((each[which] for each in true), Fraction()), "float32") for which in (0, 1)))
    result = run(name, "sum")
    assert (result.value, result.count) == (wanted, 300_000)


def test_a_nan_in_one_part_is_that_part_alone_and_no_elements_have_the_sum_zero(
    root: Path, run: Callable[..., Any]
) -> None:
    WRITERS["zarr 3"][1](root / "nan", np.array([[complex(1, np.nan)], [2j]]))
    assert repr(run("nan", "sum").value) == "(1+nanj)"
    with pytest.raises(InvalidInput, match="an element is NaN") as caught:
        run("nan", "sum", nan_policy="raise")
    assert caught.value.field == "nan_policy"
    empty = {"select": [{"start": 1, "stop": 1}]}
    assert run("nan", "sum", source=empty).value == 0j


def test_fill_values_of_complex_numbers_are_refused_unless_they_are_nan(root: Path, run: Callable[..., Any]) -> None:
    with h5py.File(root / "filled.h5", "w") as file:
        stored = file.create_dataset("z", data=np.array([1 + 2j, -9 - 9j]))
        stored.attrs["_FillValue"] = -9 - 9j
        file.create_dataset("nan", data=np.array([1 + 2j, 3])).attrs["_FillValue"] = complex(np.nan, np.nan)
    with pytest.raises(InvalidInput, match="'z' with the attribute _FillValue, and missing complex") as caught:
        run("filled.h5", "sum", source={"array": "z"})
    assert caught.value.field == "source.stored"
    assert run("filled.h5", "sum", source={"array": "z", "stored": True}).value == -8 - 7j
    assert run("filled.h5", "sum", source={"array": "nan"}).value == 4 + 2j
    stored = zarr.create_array(str(root / "filled.zarr"), data=np.array([1 + 2j, -9 - 9j]), overwrite=True)
    stored.attrs["_FillValue"] = [-9.0, -9.0]
    with pytest.raises(InvalidInput, match="missing complex numbers are not recognised so far"):
        run("filled.zarr", "sum")


def test_what_is_no_complex64_or_complex128_is_refused_by_name(root: Path, run: Callable[..., Any]) -> None:
    with h5py.File(root / "long.h5", "w") as file:
        file.create_dataset("wide", data=np.array([1 + 2j], np.clongdouble))
        file.create_dataset("records", data=np.array([(1.0, 2.0)], [("a", "f8"), ("b", "f8")]))
    with pytest.raises(InvalidInput, match="'wide', which is not an array of numbers: dtype complex256") as caught:
        run("long.h5", "sum", source={"array": "wide"})
    assert caught.value.field == "source.array"
    with pytest.raises(InvalidInput, match="'records', which is not an array of numbers"):
        run("long.h5", "sum", source={"array": "records"})
    WRITERS["contiguous"][1](root / "z.h5", numbers("complex64"))
    with pytest.raises(InvalidInput, match="no bytes that are floats of the format e5m2") as caught:
        run("z.h5", "sum", source={"float8": "e5m2"})
    assert caught.value.field == "source.float8"
    with pytest.raises(InvalidInput, match="takes no complex64 so far"):
        run("z.h5", "max")


def test_a_truncated_file_is_refused(root: Path, run: Callable[..., Any]) -> None:
    WRITERS["contiguous"][1](root / "cut.h5", numbers("complex128", (40, 50)))
    whole = (root / "cut.h5").read_bytes()
    (root / "cut.h5").write_bytes(whole[: len(whole) - 64])
    with pytest.raises(InvalidInput, match=r"cut\.h5"):
        run("cut.h5", "sum")


@pytest.mark.parametrize("writer", ["contiguous", "compressed"])
def test_a_file_of_a_web_server_has_the_same_value(root: Path, run: Callable[..., Any], writer: str) -> None:
    name, write = WRITERS[writer]
    write(root / name, numbers("complex64", (300, 7)))
    here = run(name, "mean").value
    with web_server() as web:
        web.files["z.h5"] = (root / name).read_bytes()
        kernels = Kernels("cpu", "here:cpu", folders_of(web.place()))
        spec = {"kind": "reduce", "op": "mean", "source": {"type": "array", "path": web.url("z.h5")}}
        result: Any = result_of(json.dumps(kernels.run(lease_on(json.dumps(spec)), lambda _: None).result))
    assert (result.value, result.count) == (here, 2100)


def test_a_look_offers_complex_numbers(root: Path) -> None:
    WRITERS["chunked"][1](root / "look.h5", numbers("complex64"))
    with (root / "look.h5").open("rb") as file:
        (array,) = contents_of(file, TextOptions())
    assert (array.name, array.dtype, array.reduced_as) == ("z", "complex64", "complex64")
    WRITERS["zarr 3"][1](root / "look", numbers("complex128"))
    (array,) = contents_of_folder(open_folder("look", (root,), "source.path"))
    assert (array.dtype, array.reduced_as) == ("complex128", "complex128")
