"""Arrays in files of every format, in part and whole; files that are damaged or mean harm."""

import gc
import os
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from tests.support.array_files import ARRAY, SELECTED, elements, opened, refused, zipped
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.formats import hdf5_chunks, npz
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import SequentialSource

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")


def _numpy(save: Callable[[Any, NDArray[Any]], None]) -> Callable[[Path, NDArray[Any]], None]:
    def write(path: Path, array: NDArray[Any]) -> None:
        with path.open("wb") as file:
            save(file, array)

    return write


def _hdf5(**how: Any) -> Callable[[Path, NDArray[Any]], None]:
    def write(path: Path, array: NDArray[Any]) -> None:
        with h5py.File(path, "w", userblock_size=how.get("userblock", 0)) as file:
            file.create_dataset("a", data=array, **{name: value for name, value in how.items() if name != "userblock"})

    return write


WRITERS: dict[str, Callable[[Path, NDArray[Any]], None]] = {
    "npy": _numpy(np.save),
    "npy_fortran": _numpy(lambda file, array: np.save(file, np.asfortranarray(array))),
    "npz": _numpy(lambda file, array: np.savez(file, a=array)),
    "npz_compressed": _numpy(lambda file, array: np.savez_compressed(file, a=array)),
    "npz_compressed_fortran": _numpy(lambda file, array: np.savez_compressed(file, a=np.asfortranarray(array))),
    "hdf5": _hdf5(),
    "hdf5_userblock": _hdf5(userblock=1024),
    "hdf5_chunked": _hdf5(chunks=(2, 3, 2)),
    "hdf5_compressed": _hdf5(chunks=(3, 2, 5), compression="gzip", shuffle=True),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<f2", "<i8", ">u2", "|b1"])
def test_every_format_gives_the_elements_that_numpy_selects(
    data_root: Path, writer: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npz, "_BLOCK_BYTES", 100)
    array = (np.random.default_rng(3).standard_normal((7, 4, 5)) * 100).astype(dtype)
    WRITERS[writer](data_root / "x", array)
    for select, slices in SELECTED:
        got = elements(data_root, "x", select=select)
        assert got.dtype == np.dtype(dtype).newbyteorder("=")
        assert got.tobytes() == np.ascontiguousarray(array[slices]).astype(got.dtype).tobytes()


@pytest.mark.parametrize("writer", WRITERS)
def test_the_sum_is_that_of_fractions_and_integers_beyond_a_float_are_kept(data_root: Path, writer: str) -> None:
    backend = CpuBackend()
    numbers = np.array([2**53 + 1, -(2**63), 2**63 - 1, 7, -5, 0], np.int64).reshape(1, 2, 3)
    WRITERS[writer](data_root / "x", np.tile(numbers, (7, 2, 2)))
    assert backend.reduce(opened(data_root, "x"), "sum").value == 28 * sum(map(int, numbers.ravel()))
    floats = np.random.default_rng(5).standard_normal((7, 4, 5)) * 10.0 ** np.arange(-9, 11, 4)
    WRITERS[writer](data_root / "y", floats)
    want = float(sum(map(Fraction, floats.ravel().tolist())))
    assert backend.reduce(opened(data_root, "y"), "sum").value == want


@pytest.mark.parametrize("writer", ["npy", "npz", "hdf5", "hdf5_userblock"])
def test_what_needs_no_decoding_is_read_at_its_place_in_the_file(data_root: Path, writer: str) -> None:
    array = np.arange(60.0).reshape(3, 4, 5)
    WRITERS[writer](data_root / "x", array)
    for select, slices in SELECTED[:2]:
        source = opened(data_root, "x", select=select)
        assert isinstance(source, ArraySource)
        assert source.file is not None
        out = np.empty(array[slices].size * 8, np.uint8)
        source.file.read_into(0, out)
        assert out.view(np.float64).tolist() == array[slices].ravel().tolist()


def test_an_archive_of_several_arrays_needs_a_name_and_offers_near_ones(data_root: Path) -> None:
    np.savez(data_root / "x.npz", temperature=np.ones(3), pressure=np.zeros(2))
    assert elements(data_root, "x.npz", array="pressure").tolist() == [0, 0]
    assert "'temperature', 'pressure'" in refused(data_root, "x.npz", "source.array")
    assert "did you mean 'temperature'?" in refused(data_root, "x.npz", "source.array", array="temperatur")
    np.save(data_root / "x.npy", np.ones(3))
    assert "whose only array has no name" in refused(data_root, "x.npy", "source.array", array="a")


def test_a_dataset_is_found_by_its_path_and_by_links_within_its_file(data_root: Path) -> None:
    with h5py.File(data_root / "x.h5", "w") as file:
        file.create_dataset("run/1/temp", data=np.arange(3))
        file.create_dataset("run/2/temp", data=np.arange(4))
        file["latest"] = h5py.SoftLink("/run/2")
        file["loop"] = h5py.SoftLink("/loop")
        file["words"] = ["a", "b"]
        file["scalar"] = 3.0
    assert elements(data_root, "x.h5", array="run/1/temp").tolist() == [0, 1, 2]
    assert elements(data_root, "x.h5", array="/latest/temp").tolist() == [0, 1, 2, 3]
    assert "'run/1/temp', 'run/2/temp'" in refused(data_root, "x.h5", "source.array")
    assert "did you mean 'run/1/temp'" in refused(data_root, "x.h5", "source.array", array="run/1/tem")
    for name in ("loop", "words", "scalar", "run"):
        refused(data_root, "x.h5", "source.array", array=name)


def test_no_dataset_leads_to_another_file_of_the_server(data_root: Path) -> None:
    secret = data_root.parent / "secret"
    secret.write_bytes(bytes(range(64)))
    with h5py.File(data_root.parent / "other.h5", "w") as other:
        other["a"] = np.arange(3)
    with h5py.File(data_root / "x.h5", "w") as file:
        file["link"] = h5py.ExternalLink(str(data_root.parent / "other.h5"), "/a")
        file.create_dataset("outside", (64,), "u1", external=[(str(secret), 0, 64)])
        layout = h5py.VirtualLayout((3,), "i8")
        layout[:] = h5py.VirtualSource(str(data_root.parent / "other.h5"), "a", (3,))
        file.create_virtual_dataset("virtual", layout)
    assert "not followed" in refused(data_root, "x.h5", "source.array", array="link")
    for name in ("outside", "virtual"):
        assert "in other files" in refused(data_root, "x.h5", "source.array", array=name)


def test_values_that_stand_for_none_are_nulls_and_packed_ones_are_unpacked(data_root: Path) -> None:
    with h5py.File(data_root / "x.nc", "w") as file:
        file["t"] = np.array([1, -999, 3, -999], np.int16)
        file["t"].attrs["_FillValue"] = np.array([-999], np.int16)
        file["f"] = np.array([1.5, np.nan])
        file["f"].attrs["_FillValue"] = np.array([np.nan])
        file["p"] = np.array([1, 2], np.int16)
        file["p"].attrs["scale_factor"] = 0.01
    source = opened(data_root, "x.nc", array="t")
    result = CpuBackend().reduce(source, "sum")
    assert isinstance(source, SequentialSource)
    assert (result.value, result.count, source.tally.nulls) == (4, 2, 2)
    assert elements(data_root, "x.nc", array="t", stored=True).tolist() == [1, -999, 3, -999]
    assert "at index 1" in refused(data_root, "x.nc", array="t", null_policy="raise")
    assert elements(data_root, "x.nc", array="f").size == 2
    assert CpuBackend().reduce(opened(data_root, "x.nc", array="p"), "sum").value == 0.03
    assert elements(data_root, "x.nc", array="p", stored=True).tolist() == [1, 2]


def _cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


@pytest.mark.parametrize("name", ["x.npz", "packed.npz", "x.h5", "chunked.h5"])
def test_a_truncated_file_is_refused(data_root: Path, name: str) -> None:
    array = np.random.default_rng(1).standard_normal(5000)
    np.savez(data_root / "x.npz", a=array)
    np.savez_compressed(data_root / "packed.npz", a=array)
    _hdf5()(data_root / "x.h5", array)
    _hdf5(chunks=(500,))(data_root / "chunked.h5", array)
    for size in (20_000, 3000, 60, 9):
        _cut(data_root / name, size)
        refused(data_root, name)


def test_an_archive_whose_member_claims_more_than_it_holds_is_refused(data_root: Path) -> None:
    np.save(data_root / "a.npy", np.empty(0))
    head = (data_root / "a.npy").read_bytes().replace(b"(0,), }   ", b"(10**9,), }"[:0] + b"(9000,), }")
    for name, compression in (("stored", zipfile.ZIP_STORED), ("packed", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(data_root / f"{name}.npz", "w", compression) as archive:
            archive.writestr("a.npy", head[: head.index(b"\n") + 1] + bytes(10))
        assert "truncated" in refused(data_root, f"{name}.npz")


def test_a_changed_byte_of_a_compressed_member_is_noticed(data_root: Path) -> None:
    np.savez_compressed(data_root / "x.npz", a=np.random.default_rng(1).integers(0, 99, 10_000))
    content = bytearray((data_root / "x.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (data_root / "x.npz").write_bytes(content)
    assert "damaged" in refused(data_root, "x.npz")


@pytest.mark.parametrize("find", [bytes.find, bytes.rfind])
def test_a_changed_byte_of_a_name_in_an_archive_is_noticed(data_root: Path, find: Callable[..., int]) -> None:
    """A name stands before its member, and once more in the directory at the end."""
    np.savez_compressed(data_root / "x.npz", été=np.ones(3))
    content = (data_root / "x.npz").read_bytes()
    at = find(content, "été".encode())
    (data_root / "x.npz").write_bytes(content[:at] + b"\xff" + content[at + 1 :])
    assert "is not a whole" in refused(data_root, "x.npz")


def test_a_bomb_is_decoded_in_bounded_memory_or_refused(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "MOST_REORDERED_BYTES", 1 << 16)
    np.savez_compressed(data_root / "bomb.npz", a=np.zeros((1 << 10, 1 << 11)))
    source = opened(data_root, "bomb.npz")
    assert isinstance(source, SequentialSource)
    assert max(piece.nbytes for piece in source.make()) <= 1 << 23
    np.savez_compressed(data_root / "turned.npz", a=np.asfortranarray(np.zeros((99, 99))))
    assert "store it in C order" in refused(data_root, "turned.npz")


@pytest.mark.parametrize("path", ["../secret.npy", "link.npy", "folder/x.npy", "pipe", "none.npy", "."])
def test_paths_are_held_to_the_data_roots(data_root: Path, path: str) -> None:
    np.save(data_root.parent / "secret.npy", np.ones(3))
    (data_root / "link.npy").symlink_to(data_root.parent / "secret.npy")
    (data_root / "folder").symlink_to(data_root.parent)
    os.mkfifo(data_root / "pipe")
    refused(data_root, path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"CDF\x01" + bytes(99), "is a NetCDF-3 file"),
        (b"PAR1" + bytes(99), "is a table (Parquet)"),
        (b"", "is not a whole .npy file"),
        (b"a,b\n1,2\n", "is not a whole .npy file"),
        (b"PK\x03\x04" + bytes(99), "is not a whole zip archive"),
        (b"\x89HDF\r\n\x1a\n" + bytes(99), "is not a whole HDF5 file"),
    ],
)
def test_what_is_no_array_is_refused(data_root: Path, content: bytes, message: str) -> None:
    (data_root / "x").write_bytes(content)
    assert message in refused(data_root, "x")


@pytest.mark.parametrize(
    "options", [{"select": [{"step": 0}]}, {"select": ["0:3"]}, {"select": [1.5]}, {"array": ""}, {"axis": 1}]
)
def test_options_that_mean_nothing_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ARRAY.validate_python({"type": "array", "path": "x", **options})


def test_a_package_that_is_not_installed_is_named_with_its_extra(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hdf5()(data_root / "x.h5", np.ones(3))
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(
        Unavailable, match=r"h5py is not installed on the machine that ran this; `pip install '.\[arrays\]'`"
    ):
        opened(data_root, "x.h5")


def test_files_are_closed_with_their_sources(data_root: Path) -> None:
    _hdf5(chunks=(2,))(data_root / "x.h5", np.ones(5))
    np.savez_compressed(data_root / "x.npz", a=np.ones(5))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in ("x.h5", "x.npz") * 5:
        assert elements(data_root, name).sum() == 5
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_compressed_member_is_read_a_part_at_a_time_however_long_it_is(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npz, "MOST_DIRECTORY_BYTES", 1 << 16)
    monkeypatch.setattr(npz, "_BLOCK_BYTES", 1 << 15)
    array = np.random.default_rng(8).standard_normal((100, 300))
    np.savez_compressed(data_root / "x.npz", a=np.asfortranarray(array))
    assert elements(data_root, "x.npz").tobytes() == array.tobytes()
    zarr.create_array(data_root / "z", data=array, chunks=(100, 300), compressors=None)
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        zipped(data_root / "z", data_root / "z.zip", compression=compression)
        assert elements(data_root, "z.zip").tobytes() == array.tobytes()


def test_a_chunk_of_hdf5_that_is_too_large_to_decode_is_refused(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hdf5_chunks, "MOST_CHUNK_BYTES", 1000)
    with h5py.File(data_root / "x.h5", "w") as file:
        file.create_dataset("packed", data=np.zeros(200), chunks=(200,), compression="gzip")
        file.create_dataset("plain", data=np.arange(200.0), chunks=(200,))
    assert "in chunks of 1,600 bytes, and at most 1,000" in refused(data_root, "x.h5", array="packed")
    assert elements(data_root, "x.h5", array="plain").sum() == 19900
