"""Measures how fast the elements of a file reach the device that adds them: `python -m benchmarks.feed`.

Both backends sum `.npy` files in the page cache, beside the programs that a user writes by hand: NumPy on the map,
CuPy on the map, threads that copy the map into pinned buffers, and KvikIO where it is installed. Each of them begins
with a file that is not open, because mapping the pages of a file is a part of reading it; only the row of a map whose
pages are in place does without, and shows what the memory gives. Then the backends sum Parquet, Zarr, CSV, a folder of
`.npy` files, one that is not in the page cache and one of a web server, beside what the libraries of the formats, `dd`
and bare sockets take to read them. A figure is GB/s of the file in the best of several runs, because it shows what the
machine can do; all take turns on the same file. The speed of the bus is that of one copy from pinned memory. `--out`
writes the figures with their provenance as JSON.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.feed_formats import Case, cases
from benchmarks.provenance import of_host
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import dtype_of
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.formats.npy import open_array, read_head
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.open import open_backend
from warpfold.kernels.source import ArraySource, FileBytes, FileSource
from warpfold.kernels.sources.mapped import survive_cuts

SIZES = (200_000_000, 2 << 30, 8 << 30)
DTYPES = ("float32", "float64")
ROUNDS = 5
PIECE = 1 << 24
"""The bytes that a thread reads or copies at a time, in the programs by hand."""
BUFFER = 1 << 19
"""The bytes of a buffer that stays in the second-level cache."""

BUS, OURS_CUDA, OURS_CPU = "pinned memory to the GPU", "warpfold, slot cuda", "warpfold, slot cpu"

Way = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Row:
    """The GB/s of one way to feed, on one file. `ratio` is to the way that `to` names."""

    reader: str
    file: str
    dtype: str
    bytes: int
    gb_per_s: float
    ratio: float
    to: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, nargs="*", default=list(SIZES), help="sizes of the files")
    parser.add_argument(
        "--formats-bytes", type=int, default=1 << 30, help="bytes of elements in other files; 0 for none"
    )
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each way runs")
    parser.add_argument("--folder", type=Path, help="where to write the files; a temporary folder by default")
    parser.add_argument("--out", type=Path, help="also write the figures here, as JSON")
    arguments = parser.parse_args()
    survive_cuts()  # as the processes that run jobs do, which therefore read maps of many files
    load, cpu, gpu = os.getloadavg()[0], CpuBackend(), _gpu()
    rows = []
    for dtype in arguments.dtypes:
        for nbytes in arguments.bytes:
            with written(arguments.folder, dtype, nbytes) as path:
                rows += measure(path, dtype, nbytes, (cpu, gpu), arguments.rounds)
    if arguments.formats_bytes:
        slots: dict[str, Backend] = {"cpu": cpu} if gpu is None else {"cpu": cpu, "cuda": gpu}
        with tempfile.TemporaryDirectory(dir=arguments.folder) as inside:
            for case in cases(Path(inside), arguments.formats_bytes, slots):
                rows += (of_case := measure_case(case, arguments.rounds))
                rates = ", ".join(f"{row.reader} {row.gb_per_s:.2f} GB/s ({row.ratio:.2f})" for row in of_case)
                print(f"{case.name}: {rates}", file=sys.stderr, flush=True)
    _show(rows)
    if arguments.out:
        devices = {"gpu": None if gpu is None else {"name": gpu.device.name, **dict(gpu.device.versions)}}
        made = {**of_host(cpu.device, load), **devices, "rows": [asdict(row) for row in rows]}
        arguments.out.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


def measure(path: Path, dtype: str, nbytes: int, slots: tuple[Backend, Backend | None], rounds: int) -> list[Row]:
    """Measure every way to feed on one file, in turns; `slots` are those of the CPU and, if there is one, of a GPU."""
    ways = _ways(path, *slots)
    seconds = _best(ways, rounds)
    rows = []
    for name, spent in seconds.items():
        to = BUS if name in _ACROSS else _READ
        rows.append(Row(name, ".npy", dtype, nbytes, nbytes / spent / 1e9, seconds[to] / spent, to))
    return rows


def measure_case(case: Case, rounds: int) -> list[Row]:
    """Measure every way to read another file, in turns."""
    seconds = _best(case.ways, rounds, case.before)
    return [
        Row(name, case.name, "float64", case.bytes, case.bytes / spent / 1e9, seconds[case.to] / spent, case.to)
        for name, spent in seconds.items()
    ]


def _best(ways: Mapping[str, Way], rounds: int, before: Way = lambda: None) -> dict[str, float]:
    """The seconds of the best run of each way. All take turns."""
    seconds: dict[str, float] = {}
    for _ in range(rounds):
        for name, run in ways.items():
            before()
            began = time.perf_counter()
            run()
            seconds[name] = min(seconds.get(name, float("inf")), time.perf_counter() - began)
    return seconds


_READ = "threads that map the file and read it"
_IN_PLACE = "threads that read a map that is in place"
_INTO_CACHES = "threads that read the file into buffers"
_BY_READS = "warpfold, slot cpu, by reads in place of the map"
_BY_HAND = "threads that copy the map into pinned buffers"
_CUPY = "cupy.asarray of the map, sum"
_KVIKIO = "kvikio into the GPU's memory, sum"
_ACROSS = frozenset({BUS, OURS_CUDA, _BY_HAND, _CUPY, _KVIKIO})


def _ways(path: Path, cpu: Backend, gpu: Backend | None) -> Mapping[str, Way]:
    in_place = opened(path).array
    ways: dict[str, Way] = {
        _READ: lambda: _read(opened(path).array),
        _IN_PLACE: lambda: _read(in_place),
        _INTO_CACHES: lambda: _read_into_buffers(path),
        "numpy.sum of the map": lambda: np.sum(opened(path).array),
        OURS_CPU: lambda: cpu.reduce(opened(path), "sum"),
        _BY_READS: lambda: cpu.reduce(_by_reads(path), "sum"),
    }
    if gpu is not None:
        ways |= _across(path, gpu)
    return ways


def opened(path: Path) -> ArraySource:
    """The elements of a `.npy` file, newly mapped."""
    with path.open("rb") as file:
        return open_array(file, read_head(file))


def _by_reads(path: Path) -> FileSource:
    """The elements of a `.npy` file without a map."""
    with path.open("rb") as file:
        head = read_head(file)
        return FileSource(dtype_of(head.dtype), prod(head.shape), FileBytes(file.fileno(), head.offset), 0)


def _across(path: Path, gpu: Backend) -> Mapping[str, Way]:
    import cupy

    array = opened(path).array
    ways: dict[str, Way] = {
        BUS: bus(array.nbytes),
        OURS_CUDA: lambda: gpu.reduce(opened(path), "sum"),
        _CUPY: lambda: float(cupy.asarray(opened(path).array).sum()),
        _BY_HAND: _by_hand(path),
    }
    with suppress(ImportError):  # it is not installed, or one of its libraries is not
        ways[_KVIKIO] = _by_kvikio(path, array)
    return ways


def _read(array: Any) -> object:
    """The largest byte, which takes the least arithmetic that reads everything."""
    flat = array.reshape(-1).view(np.uint8)
    with ThreadPoolExecutor(usable_cores()) as pool:
        return max(pool.map(lambda at: int(flat[at : at + PIECE].max()), range(0, flat.size, PIECE)))


def _read_into_buffers(path: Path) -> object:
    """The largest byte, of parts that each thread reads into a buffer which stays in its cache."""
    own, size = threading.local(), path.stat().st_size

    def largest(file: int, start: int) -> int:
        if not hasattr(own, "buffer"):
            own.buffer = np.empty(BUFFER, np.uint8)
        most = 0
        for at in range(start, min(start + PIECE, size), BUFFER):
            most = max(most, int(own.buffer[: os.preadv(file, [own.buffer], at)].max()))
        return most

    with path.open("rb") as file, ThreadPoolExecutor(usable_cores()) as pool:
        return max(pool.map(partial(largest, file.fileno()), range(0, size, PIECE)))


def bus(nbytes: int) -> Way:
    """Copy so many bytes from pinned memory to the GPU."""
    import cupy

    size = min(nbytes, 1 << 28)
    pinned, device = cupy.cuda.alloc_pinned_memory(size), cupy.empty(size, cupy.uint8)

    def copy() -> None:
        for at in range(0, nbytes, size):
            stream = cupy.cuda.get_current_stream()
            device.data.copy_from_host_async(pinned.ptr, min(size, nbytes - at), stream)
        cupy.cuda.get_current_stream().synchronize()

    return copy


def _by_hand(path: Path) -> Way:
    """The program of a careful user: each thread has a pinned buffer and a stream, copies a piece of the map and sends
    it; the whole is added at the end."""
    import cupy

    threads = usable_cores()
    lanes = [(cupy.cuda.alloc_pinned_memory(PIECE), cupy.cuda.Stream(non_blocking=True)) for _ in range(threads)]

    def run() -> object:
        array = opened(path).array
        flat = array.reshape(-1).view(np.uint8)
        out = cupy.empty(flat.size, cupy.uint8)
        cupy.cuda.get_current_stream().synchronize()

        def send(lane: int) -> None:
            memory, stream = lanes[lane]
            pinned = np.frombuffer(memory, np.uint8, PIECE)
            for at in range(lane * PIECE, flat.size, threads * PIECE):
                piece = flat[at : at + PIECE]
                stream.synchronize()
                pinned[: piece.size] = piece
                out[at : at + piece.size].data.copy_from_host_async(pinned.ctypes.data, piece.size, stream)
            stream.synchronize()

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(send, range(threads)))
        return float(out.view(array.dtype).sum())

    return run


def _by_kvikio(path: Path, array: Any) -> Way:
    import cupy
    import kvikio
    import kvikio.defaults

    kvikio.defaults.set({"num_threads": usable_cores()})

    def run() -> object:
        out = cupy.empty(array.size, array.dtype)
        with kvikio.CuFile(path, "r") as file:
            file.read(out, file_offset=path.stat().st_size - array.nbytes)
        return float(out.sum())

    return run


@contextmanager
def written(folder: Path | None, dtype: str, nbytes: int) -> Iterator[Path]:
    """A `.npy` file of random numbers in the page cache, gone afterwards."""
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        path = Path(inside) / f"{dtype}.npy"
        block = np.random.default_rng(1).random(1 << 22).astype(dtype)
        head = {"descr": block.dtype.str, "fortran_order": False, "shape": (nbytes // block.itemsize,)}
        # Uploads and `numpy.save` write by calls, too. The system keeps a file that is written through a map in small
        # pages, and mapping those takes longer.
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, head)
            for at in range(0, nbytes, block.nbytes):
                file.write(block.data.cast("B")[: nbytes - at])
        yield path


def _gpu() -> Backend | None:
    try:
        return open_backend("cuda:0")
    except Unavailable:
        return None


def _show(rows: list[Row]) -> None:
    table = Table("file", "way", "dtype", "GiB", "GB/s", "ratio", "to", title="From a file to its sum")
    for row in rows:
        gib, speed, ratio = f"{row.bytes / (1 << 30):.2f}", f"{row.gb_per_s:.2f}", f"{row.ratio:.2f}"
        table.add_row(row.file, row.reader, row.dtype, gib, speed, ratio, row.to)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
