"""Compares shapes of the ring through which files reach a GPU: `python -m benchmarks.ring`.

A `.npy` file in the page cache is summed by backends with rings of different shapes, in turns. A figure is GB/s of the
file in the best of several runs; a ratio is to one copy from pinned memory in the same run. The stages are those of the
best run. The first shape is the one that the service has; `--shape` adds one, such as `--shape lanes.most_threads=8`.
A copy from pinned memory goes before each run, so that all shapes find the caches alike. `--timeline` also shows when
the steps of the best run of lanes began and ended. `--out` writes the figures with their provenance as JSON.
"""

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.feed import bus, opened, written
from benchmarks.provenance import of_host
from warpfold.kernels.backend import Stages
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.staging.lanes import LaneShape
from warpfold.kernels.cuda.staging.parts import RingShape

ROUNDS = 7
SIZES = (200_000_000, 2 << 30, 8 << 30)
MIB = 1 << 20
LANES = LaneShape()
SHAPES = (
    RingShape(),
    RingShape(lanes=None),
    RingShape(lanes=replace(LANES, most_threads=13)),
    RingShape(lanes=replace(LANES, blocks=16)),
    RingShape(lanes=replace(LANES, blocks=32)),
    RingShape(lanes=replace(LANES, blocks=128)),
    RingShape(lanes=replace(LANES, parts=128)),
    RingShape(lanes=replace(LANES, parts=256)),
    RingShape(lanes=replace(LANES, part_bytes=MIB // 8, parts=384)),
    RingShape(lanes=replace(LANES, part_bytes=MIB // 2, parts=96)),
    RingShape(lanes=replace(LANES, part_bytes=MIB, parts=48)),
)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Milliseconds from the opening of a file to the steps of its reduction by lanes: when the first thread began to
    read, and the last of all threads; when the first part was read, and the last; and when the sum was there."""

    first_begun: float
    all_begun: float
    first_read: float
    last_read: float
    summed: float

    @classmethod
    def of(cls, began_ns: int, ended_ns: int, moments: NDArray[np.int64], threads: int) -> Self:
        begun, read = moments.T
        # A thread claims one part after another, so that the first parts are the first ones of all threads.
        steps = (begun.min(), begun[:threads].max(), read.min(), read.max(), ended_ns)
        return cls(*((int(step) - began_ns) / 1e6 for step in steps))


@dataclass(frozen=True, slots=True)
class Row:
    """The best run of one shape on one file; `ratio` is to the bus."""

    shape: RingShape
    bytes: int
    gb_per_s: float
    ratio: float
    stages: Stages
    timeline: Timeline | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, nargs="+", default=list(SIZES), help="sizes of the files")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--shape", type=_shape, action="append", default=[], help="another shape, as name=value,…")
    parser.add_argument("--only", action="store_true", help="only the shape of the service and those of --shape")
    parser.add_argument("--timeline", action="store_true", help="also show when the steps of the best runs were")
    parser.add_argument("--folder", type=Path, help="where to write the files; a temporary folder by default")
    parser.add_argument("--out", type=Path, help="also write the figures here, as JSON")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    shapes = [*(SHAPES[:1] if arguments.only else SHAPES), *arguments.shape]
    backends = {shape: CudaBackend(0, ring=shape) for shape in dict.fromkeys(shapes)}
    rows = []
    for nbytes in arguments.bytes:
        with written(arguments.folder, arguments.dtype, nbytes) as path:
            rows += measure(path, nbytes, backends)
    _show(rows)
    if arguments.timeline:
        _show_timelines(rows)
    if arguments.out:
        gpu = backends[shapes[0]].device
        devices = {"gpu": {"name": gpu.name, **dict(gpu.versions)}}
        made = {**of_host(CpuBackend().device, load), **devices, "rows": [asdict(row) for row in rows]}
        arguments.out.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Run:
    seconds: float
    stages: Stages
    timeline: Timeline | None


def measure(path: Path, nbytes: int, backends: dict[RingShape, CudaBackend]) -> list[Row]:
    """Measure all shapes on one file, in turns. Raises ValueError where two of them give different sums."""
    copy, bus_s = bus(nbytes), float("inf")
    best: dict[RingShape, _Run] = {}
    states = set()
    for number in range(ROUNDS):
        for shape, backend in backends.items():
            began = time.perf_counter()
            copy()
            bus_s = min(bus_s, time.perf_counter() - began)
            began_ns = time.perf_counter_ns()
            reduction = backend.reduce(opened(path), "sum")
            ended_ns = time.perf_counter_ns()
            states.add(reduction.state)
            taken = (ended_ns - began_ns) / 1e9
            # The first run makes the pinned memory and starts the threads.
            if number and reduction.stages is not None and (shape not in best or taken < best[shape].seconds):
                best[shape] = _Run(taken, reduction.stages, _timeline(shape, backend, began_ns, ended_ns))
    if len(states) > 1:
        raise ValueError(f"the shapes gave {len(states)} different sums")
    return [
        Row(shape, nbytes, nbytes / run.seconds / 1e9, bus_s / run.seconds, run.stages, run.timeline)
        for shape, run in best.items()
    ]


def _timeline(shape: RingShape, backend: CudaBackend, began_ns: int, ended_ns: int) -> Timeline | None:
    moments = backend.moments()
    if shape.lanes is None or not moments.size:
        return None
    return Timeline.of(began_ns, ended_ns, moments, shape.lanes.threads())


def _shape(text: str) -> RingShape:
    named = {name: int(value) for name, value in (part.split("=", 1) for part in text.split(","))}
    lanes = {name.removeprefix("lanes."): value for name, value in named.items() if name.startswith("lanes.")}
    others: dict[str, Any] = {name: value for name, value in named.items() if not name.startswith("lanes.")}
    return replace(RingShape(), lanes=replace(LANES, **lanes), **others)


def _words(shape: RingShape) -> str:
    """The fields in which a shape differs from that of the service."""
    usual, own = _fields(RingShape()), _fields(shape)
    return ", ".join(f"{name} {value:,}" for name, value in own.items() if value != usual.get(name)) or "as it is"


def _fields(shape: RingShape) -> dict[str, int]:
    """The fields of a shape and of its lanes; `lanes` is 0 where it has none."""
    own = asdict(shape)
    lanes = own.pop("lanes")
    return {**own, "lanes": 0} if lanes is None else {**own, **{f"lanes.{name}": lanes[name] for name in lanes}}


def _show(rows: list[Row]) -> None:
    table = Table(
        "shape", "GiB", "GB/s", "of the bus", "read ms", "copy ms", "reduce ms", title="From a file to its sum"
    )
    for row in rows:
        stages = (row.stages.read_s, row.stages.copy_s, row.stages.reduce_s)
        milliseconds = ("–" if seconds is None else f"{seconds * 1e3:.2f}" for seconds in stages)
        gib = f"{row.bytes / (1 << 30):.2f}"
        table.add_row(_words(row.shape), gib, f"{row.gb_per_s:.1f}", f"{row.ratio:.2f}", *milliseconds)
    Console(width=130).print(table)


def _show_timelines(rows: list[Row]) -> None:
    names = [field.name.replace("_", " ") for field in fields(Timeline)]
    table = Table("shape", "GiB", *names, title="Milliseconds from the opening of the file, in the best run")
    for row in rows:
        if row.timeline is not None:
            steps = (f"{step:.2f}" for step in asdict(row.timeline).values())
            table.add_row(_words(row.shape), f"{row.bytes / (1 << 30):.2f}", *steps)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
