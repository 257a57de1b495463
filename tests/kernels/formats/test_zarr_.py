"""Arrays in Zarr hierarchies, as folders and as zip archives, and hierarchies that mean harm."""

import asyncio
import base64
import json
import os
import struct
import threading
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.array_files import SELECTED, elements, opened, refused, zipped
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.formats import zarr_, zarr_codecs
from warpfold.kernels.formats.folder import Folder
from warpfold.kernels.sources.sequential import Section, SequentialSource

zarr = pytest.importorskip("zarr")


def _zarr(**how: Any) -> Callable[[Path, NDArray[Any]], None]:
    def write(path: Path, array: NDArray[Any]) -> None:
        stored = zarr.create_array(str(path), shape=array.shape, dtype=array.dtype, overwrite=True, **how)
        stored[...] = array

    return write


ZARRS = {
    "version 2": _zarr(zarr_format=2, chunks=(3, 2, 4)),
    "version 2, in Fortran order": _zarr(zarr_format=2, chunks=(7, 4, 5), order="F"),
    "version 3": _zarr(zarr_format=3, chunks=(2, 2, 2)),
    "version 3, sharded": _zarr(zarr_format=3, chunks=(2, 2, 2), shards=(4, 4, 4)),
    "version 3, uncompressed": _zarr(zarr_format=3, chunks=(3, 3, 3), compressors=None),
}


@pytest.mark.parametrize("how", ZARRS)
@pytest.mark.parametrize("dtype", ["<f8", "<f4", ">i8", "|b1"])
def test_a_zarr_array_gives_the_elements_that_numpy_selects(data_root: Path, how: str, dtype: str) -> None:
    array = (np.random.default_rng(3).standard_normal((7, 4, 5)) * 100).astype(dtype)
    ZARRS[how](data_root / "x.zarr", array)
    for select, slices in SELECTED:
        assert elements(data_root, "x.zarr", select=select).tolist() == array[slices].ravel().tolist()


def test_a_block_is_read_and_decoded_by_the_thread_that_asks_for_it(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(5).standard_normal(600)
    _zarr(chunks=(50,))(data_root / "x.zarr", numbers)
    monkeypatch.setattr(zarr_, "BLOCK_BYTES", 800)
    readers = set()
    read = Folder.read

    def noted(self: Folder, name: str, *how: Any) -> bytes | None:
        readers.add(threading.current_thread())
        return read(self, name, *how)

    source = opened(data_root, "x.zarr")
    assert isinstance(source, SequentialSource)
    assert source.sections is not None
    sections = list(source.sections())
    assert len(sections) == 6
    monkeypatch.setattr(Folder, "read", noted)
    pool = set()

    def make(section: Section) -> NDArray[Any]:
        pool.add(threading.current_thread())
        return np.concatenate(list(section.make()))

    with ThreadPoolExecutor(2) as threads:
        parts = list(threads.map(make, sections))
    assert np.concatenate(parts).tolist() == numbers.tolist()
    assert readers <= pool


def test_a_zarr_array_is_read_where_an_event_loop_runs(data_root: Path) -> None:
    _zarr(chunks=(2,))(data_root / "x.zarr", np.arange(6.0))

    async def reduced() -> Any:
        return elements(data_root, "x.zarr").tolist()

    assert asyncio.run(reduced()) == list(range(6))


@pytest.mark.parametrize("version", [2, 3])
def test_a_zarr_hierarchy_has_arrays_by_their_paths_and_nulls(data_root: Path, version: Literal[2, 3]) -> None:
    group = zarr.open_group(str(data_root / "x.zarr"), mode="w", zarr_format=version)
    temp = group.create_array("run/temp", shape=(4,), dtype="f8", chunks=(2,))
    temp[...] = [1.0, -999.0, 3.0, 5.0]
    fill = -999.0 if version == 2 else base64.b64encode(struct.pack("<d", -999.0)).decode()
    temp.attrs["_FillValue"] = fill
    group.create_array("other", shape=(6,), dtype="i4", chunks=(2,), fill_value=7)[:2] = 1
    source = opened(data_root, "x.zarr", array="run/temp")
    result = CpuBackend().reduce(source, "sum")
    assert isinstance(source, SequentialSource)
    assert (result.value, result.count, source.tally.nulls) == (9.0, 3, 1)
    assert elements(data_root, "x.zarr", array="other").tolist() == [1, 1, 7, 7, 7, 7]
    assert "'other', 'run/temp'" in refused(data_root, "x.zarr", "source.array")
    assert "did you mean 'run/temp'" in refused(data_root, "x.zarr", "source.array", array="run/tem")
    temp.attrs["_FillValue"] = "none"
    assert "_FillValue 'none'" in refused(data_root, "x.zarr", "source.stored", array="run/temp")


def test_no_chunk_of_zarr_leads_elsewhere_or_runs_anything(data_root: Path) -> None:
    _zarr(zarr_format=2, chunks=(2,), compressors=None)(data_root / "x.zarr", np.arange(4.0))
    secret = data_root.parent / "secret"
    secret.write_bytes(bytes(16))
    chunk = data_root / "x.zarr" / "1"
    chunk.unlink()
    chunk.symlink_to(secret)
    refused(data_root, "x.zarr")
    chunk.unlink()
    os.mkfifo(chunk)
    assert "not a regular file" in refused(data_root, "x.zarr")
    chunk.unlink()
    metadata = json.loads((data_root / "x.zarr" / ".zarray").read_text())
    for changed, message in (
        ({"filters": [{"id": "pickle"}]}, "encoded by 'pickle'"),
        ({"chunks": [1 << 40], "shape": [1 << 41]}, "at most 134,217,728 are decoded at a time"),
        ({"dtype": "|O", "filters": None}, "is not a Zarr hierarchy that can be read"),
        ({"shape": "many"}, "is not a Zarr hierarchy that can be read"),
    ):
        (data_root / "x.zarr" / ".zarray").write_text(json.dumps({**metadata, **changed}))
        assert message in refused(data_root, "x.zarr")
    (data_root / "x.zarr" / ".zarray").unlink()
    assert "is a folder, but not a Zarr hierarchy" in refused(data_root, "x.zarr")


@pytest.mark.parametrize("top", ["", "ocean.zarr/"])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zarr_hierarchy_in_a_zip_archive_is_read_as_its_folder_is(
    data_root: Path, top: str, compression: int
) -> None:
    array = np.random.default_rng(6).standard_normal((30, 40))
    for version in (2, 3):
        group = zarr.open_group(data_root / f"v{version}", mode="w", zarr_format=version)
        group.create_array("run/temp", data=array, chunks=(7, 11))
        group.create_array("run/salt", data=array, chunks=(8, 8), **({"shards": (16, 16)} if version == 3 else {}))
        zipped(data_root / f"v{version}", data_root / "x.zip", top, compression)
        for name in ("run/temp", "run/salt"):
            got = elements(data_root, "x.zip", array=name, select=[{"start": 3}])
            assert got.tobytes() == array[3:].tobytes()
        assert "did you mean 'run/salt' or" in refused(data_root, "x.zip", "source.array", array="run/sat")


def test_members_of_a_zip_archive_are_held_to_the_limits_of_files(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarr.create_array(data_root / "a", data=np.zeros(100_000), chunks=(100_000,), compressors=None)
    zipped(data_root / "a", data_root / "x.zip", compression=zipfile.ZIP_DEFLATED)
    monkeypatch.setattr(zarr_, "MOST_CHUNK_BYTES", 100_000)
    assert "are decoded at a time" in refused(data_root, "x.zip")
    monkeypatch.setattr(zarr_codecs, "MOST_METADATA_BYTES", 10)
    assert "at most 10 are read at a time" in refused(data_root, "x.zip")
    (data_root / "x.zip").write_bytes((data_root / "x.zip").read_bytes()[:-30])
    assert "is not a whole zip archive" in refused(data_root, "x.zip")
