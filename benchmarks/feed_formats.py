"""The files and the peers of `benchmarks.feed` that are no `.npy` in the page cache: formats that are decoded, a
folder of files, a cold file, a file of a web server, and an object of a bucket.

Each file is reduced by every slot in turns with the way that its own library reads it, which is what a ratio is to.
"""

import io
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import zarr
from numpy.typing import NDArray

from benchmarks import places
from warpfold.contract.folders import Folders
from warpfold.contract.sources.array import ArrayFileSource
from warpfold.contract.sources.files import FilesSource
from warpfold.contract.sources.path import PathSource
from warpfold.contract.sources.table import TableSource
from warpfold.kernels.driver import Backend
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.places.place import Places
from warpfold.kernels.sources.file_checks import intact

Way = Callable[[], object]

_NPZ = "numpy.load, sum"

_FILES = 64
"""Files of a folder that is one array."""

_STORED_BYTES = 1 << 26
"""The elements of an object of moto's S3 server, which is made for tests, and is slow."""


@dataclass(frozen=True, slots=True)
class Case:
    """A file of some format: the ways to read it, the one that ratios are to, and what is done before each run."""

    name: str
    bytes: int
    ways: Mapping[str, Way]
    to: str
    before: Way = lambda: None


def cases(folder: Path, nbytes: int, slots: Mapping[str, Backend]) -> Iterator[Case]:
    """A case of `nbytes` of float64 for each format, one after another: each file is gone when the next is made."""
    here = Folders((folder.resolve(),), folder)
    numbers = np.random.default_rng(1).normal(100.0, 15.0, nbytes // 8)
    for compression in ("zstd", "none"):
        path = folder / "x.parquet"
        pyarrow.parquet.write_table(pa.table({"x": numbers}), path, compression=compression)
        peers: dict[str, Way] = {
            "pyarrow's scan": partial(_scan, path),
            "pandas.read_parquet, sum": partial(_pandas, path),
        }
        source = TableSource(type="table", path=path.name)
        yield Case(f"Parquet {compression}", nbytes, peers | _ours(source, here, slots), "pyarrow's scan")
        path.unlink()
    array = zarr.create_array(folder / "x.zarr", shape=numbers.shape, chunks=(1 << 20,), dtype="f8")
    array[:] = numbers
    ways: dict[str, Way] = {"zarr-python's read": partial(_zarr, folder / "x.zarr")}
    ours = _ours(ArrayFileSource(type="array", path="x.zarr"), here, slots)
    yield Case("Zarr zstd", nbytes, ways | ours, "zarr-python's read")
    shutil.rmtree(folder / "x.zarr")
    text = folder / "x.csv"
    few = numbers[: numbers.size // 4]
    for digits, column in (("4 places", few.round(4)), ("all digits", few)):
        pyarrow.csv.write_csv(pa.table({"key": np.arange(few.size), "x": column}), text)
        ways = {"pyarrow.csv.read_csv": partial(_csv, text)}
        if find_spec("polars") is not None:
            ways["polars.scan_csv, sum"] = partial(_polars, text)
        ours = _ours(TableSource(type="table", path=text.name, column="x"), here, slots)
        yield Case(f"CSV, 1 of 2 columns, {digits}", text.stat().st_size, ways | ours, "pyarrow.csv.read_csv")
        text.unlink()
    folder_of_files = folder / "many"
    folder_of_files.mkdir()
    for number, part in enumerate(np.array_split(numbers, _FILES)):
        np.save(folder_of_files / f"{number}.npy", part)
    ways = {"numpy.load by threads, max": partial(_loaded, folder_of_files)}
    ours = _ours(FilesSource(type="files", glob="many/*.npy"), here, slots)
    yield Case(f"{_FILES} .npy files", nbytes, ways | ours, "numpy.load by threads, max")
    shutil.rmtree(folder_of_files)
    yield _stored_member(folder, numbers, here, slots)
    (folder / "x.npz").unlink()
    np.save(folder / "x.npy", numbers)
    del numbers
    with _cold(folder / "x.npy") as (forget, direct):
        ours = _ours(PathSource(type="path", path="x.npy"), here, slots)
        yield Case("cold .npy", nbytes, {"dd with direct I/O": direct} | ours, "dd with direct I/O", forget)
    with places.server(folder) as port:
        for name, slot in slots.items():
            read = places.ways(folder, port, slot, "x.npy")
            chosen = {places.SOCKETS: read[places.SOCKETS], f"warpfold, slot {name}": read[places.BY_URL]}
            yield Case(".npy of a web server", nbytes, chosen, places.SOCKETS)
    if find_spec("moto") is not None:
        packed = io.BytesIO()
        np.save(packed, np.load(folder / "x.npy", mmap_mode="r")[: _STORED_BYTES // 8])
        with places.bucket(packed.getvalue()) as stored:
            folders = Folders((), folder, Places((stored.place,)))
            ours = _ours(PathSource(type="path", path=stored.url), folders, slots)
            yield Case(".npy of moto's S3", packed.tell(), {places.SOCKETS: stored.sockets} | ours, places.SOCKETS)
    (folder / "x.npy").unlink()


def _stored_member(folder: Path, numbers: NDArray[np.float64], here: Folders, slots: Mapping[str, Backend]) -> Case:
    path = folder / "x.npz"
    np.savez(path, x=numbers)
    ours = _ours(ArrayFileSource(type="array", path=path.name), here, slots)
    return Case("uncompressed .npz", numbers.nbytes, {_NPZ: partial(_archived, path)} | ours, _NPZ)


def _ours(
    source: TableSource | ArrayFileSource | PathSource | FilesSource, folders: Folders, slots: Mapping[str, Backend]
) -> dict[str, Way]:
    """How each slot adds up a source, which is opened anew each time."""

    def reduced(slot: Backend) -> object:
        opened = source.open(folders)
        with intact([("", opened)]):
            return slot.reduce(opened, "sum").value

    return {f"warpfold, slot {name}": partial(reduced, slot) for name, slot in slots.items()}


def _scan(path: Path) -> object:
    return sum(batch.num_rows for batch in pyarrow.dataset.dataset(path).scanner(columns=["x"]).to_batches())


def _pandas(path: Path) -> object:
    return pandas.read_parquet(path, columns=["x"])["x"].sum()


def _zarr(path: Path) -> object:
    with zarr.config.set({"threading.max_workers": usable_cores()}):
        return zarr.open_array(path, mode="r")[:]


def _archived(path: Path) -> object:
    with np.load(path) as archive:
        return archive["x"].sum()


def _loaded(folder: Path) -> object:
    with ThreadPoolExecutor(usable_cores()) as pool:
        return max(pool.map(lambda path: float(np.load(path).max()), folder.iterdir()))


def _polars(path: Path) -> object:
    import polars

    return polars.scan_csv(path).select(polars.col("x").sum()).collect().item()


def _csv(path: Path) -> object:
    return pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(include_columns=["x"])).num_rows


@contextmanager
def _cold(path: Path) -> Iterator[tuple[Way, Way]]:
    """What has the page cache forget the file, and what reads the file past it."""
    with path.open("rb") as file:
        os.fsync(file.fileno())

        def forget() -> None:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

        def direct() -> None:
            command: Sequence[str] = ("dd", f"if={path}", "of=/dev/null", "bs=16M", "iflag=direct", "status=none")
            subprocess.run(command, check=True)

        yield forget, direct
