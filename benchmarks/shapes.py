"""Measures exact sums along axes and by segments on this machine's CPU: `python -m benchmarks.shapes`.

A row is one shape; the contenders run in turn, several times, in this one process, and medians are compared: the
exact sums, `numpy.sum` along the same axis (of segments `numpy.add.reduceat`), and `math.fsum` of a value's elements,
which is timed on some of the values. No shape has more values than a result holds. `--out` writes the table as JSON.
"""

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.provenance import of_host
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.source import ArraySource, GeneratedSource

ROUNDS = 5
MOST = 10_000
SHAPES: tuple[tuple[tuple[int, int], int], ...] = (
    ((MOST, 8), 1),
    ((MOST, 128), 1),
    ((MOST, 1 << 11), 1),
    ((256, 1 << 16), 1),
    ((4, 1 << 22), 1),
    ((1 << 11, MOST), 0),
    ((1 << 14, 1 << 10), 0),
    ((1 << 19, 32), 0),
    ((1 << 21, 8), 0),
)
MEANS = (4, 64, 1024)
FSUM_VALUES = 64


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """Speeds in GB/s of input, and how many times as fast the exact sums are as the others."""

    dtype: str
    shape: str
    kernel: str
    exact: float
    numpy: float
    fsum: float
    per_numpy: float
    per_fsum: float


def measure(backend: CpuBackend, dtype: str, array: NDArray[Any], grouping: Grouping, label: str) -> ShapeRow:
    """One shape, by all contenders in turn."""
    source = ArraySource(array)
    reduction = backend.reduce_groups(source, array.shape, grouping, "sum")
    groups = _members(array, grouping)
    some = [group.astype(np.float64) for group in groups[:: max(1, len(groups) // FSUM_VALUES)]]
    share = sum(group.size for group in some) * array.itemsize
    contenders: list[Callable[[], object]] = [
        lambda: backend.reduce_groups(source, array.shape, grouping, "sum"),
        _numpy(array, grouping),
        lambda: [math.fsum(group) for group in some],
    ]
    times: list[list[float]] = [[] for _ in contenders]
    for _ in range(ROUNDS):
        for taken, run in zip(times, contenders, strict=True):
            began = time.perf_counter()
            run()
            taken.append(time.perf_counter() - began)
    exact, plain, fsum = (
        nbytes / statistics.median(taken) / 1e9
        for nbytes, taken in zip((array.nbytes, array.nbytes, share), times, strict=True)
    )
    return ShapeRow(dtype, label, reduction.kernel, exact, plain, fsum, exact / plain, exact / fsum)


def _numpy(array: NDArray[Any], grouping: Grouping) -> Callable[[], object]:
    if isinstance(grouping, AlongAxes):
        return lambda: np.sum(array, axis=grouping.axes)
    starts = grouping.bounds(array.size)[:-1]
    return lambda: np.add.reduceat(array, starts)


def _members(array: NDArray[Any], grouping: Grouping) -> Sequence[NDArray[Any]]:
    if isinstance(grouping, AlongAxes):
        return list(array if grouping.axes == (1,) else array.T)
    return np.split(array, grouping.bounds(array.size)[1:-1])


def rows(dtype: str) -> list[ShapeRow]:
    """All shapes of a dtype."""
    backend = CpuBackend()
    made = []
    for shape, axis in SHAPES:
        array = GeneratedSource("normal", math.prod(shape), 1, DTYPES[dtype]).read(0, math.prod(shape)).reshape(shape)
        made.append(measure(backend, dtype, array, AlongAxes((axis,)), f"{shape[0]} × {shape[1]}, axis {axis}"))
    rng = np.random.default_rng(1)
    for mean in MEANS:
        offsets = np.concatenate([[0], np.cumsum(rng.geometric(1 / mean, MOST))])
        array = GeneratedSource("normal", int(offsets[-1]), 1, DTYPES[dtype]).read(0, int(offsets[-1]))
        made.append(measure(backend, dtype, array, Segments(tuple(offsets.tolist())), f"{MOST} segments of {mean}"))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact sums along axes and by segments on the CPU.")
    parser.add_argument("--out", type=Path, help="a file for the table as JSON")
    parser.add_argument("--dtype", choices=("float32", "float64"), help="one dtype alone")
    chosen = parser.parse_args()
    dtypes = (chosen.dtype,) if chosen.dtype else ("float32", "float64")
    made = [row for dtype in dtypes for row in rows(dtype)]
    table = Table(title=f"Exact sums by shape, GB/s; {usable_cores()} cores, load {os.getloadavg()[0]:.1f}")
    for name in ("dtype", "shape", "kernel", "exact", "numpy", "fsum", "÷ numpy", "÷ fsum"):
        table.add_column(name, justify="left" if name in ("dtype", "shape", "kernel") else "right")
    for row in made:
        texts = (f"{number:.2f}" for number in (row.exact, row.numpy, row.fsum, row.per_numpy, row.per_fsum))
        table.add_row(row.dtype, row.shape, row.kernel, *texts)
    Console(width=120).print(table)
    if chosen.out is not None:
        device = CpuBackend().device
        document = {"provenance": of_host(device, os.getloadavg()[0]), "rows": [asdict(row) for row in made]}
        chosen.out.write_text(json.dumps(document, indent=1, default=str) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
