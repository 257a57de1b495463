"""Measures how fast exact sums are on a GPU, beside CUB and CuPy on the same data: `python -m benchmarks.exact_cuda`.

Large arrays: GB/s of input, the median of several groups of launches between two events; the array is far larger than
the caches, so that every launch reads it from memory, and the contenders take turns. The ratios are to CUB's plain sum
of the same array (for dot, to the fastest plain read of as many bytes, for there is no peer). Small arrays: device time
of one reduction, launches replayed from a graph over buffers that together exceed the caches. `--out` writes all
figures with their provenance as JSON, `--tables FILE` prints the tables of such a file.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.provenance import provenance
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.bench.target import CudaTarget
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.exact import ExactAccumulator, SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.generator import fill
from warpfold.kernels.cuda.strategies.registry import baselines
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import KernelError, Unavailable
from warpfold.kernels.generate import plan
from warpfold.kernels.ops import OPS
from warpfold.kernels.source import GeneratedSource

GROUPS, LAUNCHES = 9, 5
SLOW_S = 0.01  # what takes longer is measured once
REPLAYS, RUNS = 15, 48
SMALL = (10**3, 10**4, 10**5, 10**6, 10**7)
ROTATED_BYTES = 1 << 28
DATA: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("normal", "normal", {}),
    ("uniform", "uniform", {}),
    ("mixed", "mixed", {}),
    ("lognormal(3)", "lognormal", {"sigma": 3.0}),
    ("lognormal(6)", "lognormal", {"sigma": 6.0}),
    ("sorted", "lognormal", {"sigma": 6.0}),
    ("90 % zeros", "normal", {}),
    ("pathological", "pathological", {}),
    ("all exponents", "all_exponents", {}),
)
TARGETS: dict[str, tuple[float, float]] = {
    "float16": (0.97, 0.85),
    "bfloat16": (0.97, 0.85),
    "float32": (0.99, 0.90),
    "float64": (0.97, 0.70),
}
"""The least ratio of the exact sum's speed to CUB's, on most data and on data of all exponents."""

Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Large:
    """Speeds in GB/s of input. The speed of a peer that is missing, or does not take the dtype, is None."""

    dtype: str
    data: str
    n: int
    cub: float | None
    cub_gpu_to_gpu: float | None
    cupy_sum: float | None
    cupy_var: float | None
    exact_sum: float
    exact_sum_squares: float
    exact_moments: float
    exact_dot: float

    def met(self) -> bool | None:
        """Whether the exact sum reaches its target."""
        return (
            None if self.cub is None else self.exact_sum / self.cub >= TARGETS[self.dtype][self.data == "all exponents"]
        )


@dataclass(frozen=True, slots=True)
class Small:
    """The device time of a reduction, in microseconds."""

    dtype: str
    n: int
    cub: float | None
    exact_sum: float
    exact_sum_squares: float
    exact_moments: float


def seconds(gpu: Gpu, run: Run, launches: int) -> float:
    """The seconds of one run, averaged over a group of launches. They are queued while a launch before them runs."""
    import cupy

    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    run()
    start.record(gpu.stream)
    for _ in range(launches):
        run()
    stop.record(gpu.stream)
    stop.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3 / launches


def speeds(gpu: Gpu, contenders: dict[str, tuple[int, Run]]) -> dict[str, float]:
    """The median GB/s of each pair of bytes read and run."""
    times = {name: [seconds(gpu, run, 1)] for name, (_, run) in contenders.items()}
    fast = {name: run for name, (_, run) in contenders.items() if times[name][0] < SLOW_S}
    times |= {name: [] for name in fast}
    for _ in range(GROUPS):
        for name, run in fast.items():
            times[name].append(seconds(gpu, run, LAUNCHES))
    return {name: contenders[name][0] / statistics.median(taken) / 1e9 for name, taken in times.items()}


def peer(gpu: Gpu, name: str, dtype: DType, array: Any) -> Run | None:
    """A run of a peer's sum, or None where the peer is missing or does not take the dtype."""
    row = baselines()[name]
    if ("sum", dtype.name) not in row.claims:
        return None
    try:
        return row.bind(gpu, OPS["sum"], dtype, array).run
    except KernelError:
        return None  # the catalogue says why


def made(gpu: Gpu, dtype: DType, data: str, n: int) -> Any:
    """The data as a CuPy array."""
    import cupy

    distribution, parameters = next(row[1:] for row in DATA if row[0] == data)
    array = cupy.empty(n, dtype=carrier(dtype))
    fill(gpu, plan(GeneratedSource(distribution, n, 1, dtype, parameters)), array, 0)
    if data == "90 % zeros":
        chosen = cupy.empty(n, dtype=cupy.uint8)
        uniform = GeneratedSource("uniform", n, 2, DTYPES["uint8"], {"low": 0, "high": 9})
        fill(gpu, plan(uniform), chosen, 0)
        array *= (chosen == 0).astype(array.dtype)  # bits of bfloat16 are kept or become +0, as values of the others
    if data == "sorted":
        array.sort()
    return array


def large(gpu: Gpu, dtype: DType, data: str, n: int) -> Large:
    """Measure one row of the first table."""
    import cupy

    array = made(gpu, dtype, data, n)
    nbytes, half = int(array.nbytes), n // 2
    values = ExactAccumulator(gpu, dtype, SumKind.VALUES)
    squares = ExactAccumulator(gpu, dtype, SumKind.SQUARES)
    moments, dot = (ExactAccumulator(gpu, dtype, kind) for kind in (SumKind.MOMENTS, SumKind.PRODUCTS))
    contenders: dict[str, tuple[int, Run]] = {
        "exact_sum": (nbytes, lambda: values.add(array)),
        "exact_sum_squares": (nbytes, lambda: squares.add(array)),
        "exact_moments": (nbytes, lambda: moments.add(array)),
        "exact_dot": (nbytes, lambda: dot.add(array[:half], array[half : 2 * half])),
    }
    for name in ("cub", "cub_gpu_to_gpu"):
        run = peer(gpu, name, dtype, array)
        if run is not None:
            contenders[name] = (nbytes, run)
    if dtype.name in ("float32", "float64"):
        contenders["cupy_sum"] = (nbytes, lambda: cupy.sum(array))
        contenders["cupy_var"] = (nbytes, lambda: cupy.var(array))
    rates = speeds(gpu, contenders)
    return Large(
        dtype=dtype.name,
        data=data,
        n=n,
        cub=rates.get("cub"),
        cub_gpu_to_gpu=rates.get("cub_gpu_to_gpu"),
        cupy_sum=rates.get("cupy_sum"),
        cupy_var=rates.get("cupy_var"),
        exact_sum=rates["exact_sum"],
        exact_sum_squares=rates["exact_sum_squares"],
        exact_moments=rates["exact_moments"],
        exact_dot=rates["exact_dot"],
    )


def replayed(gpu: Gpu, runs: Sequence[Run]) -> float:
    """The median microseconds of one of `runs`, which are captured together in a graph."""
    import cupy

    gpu.stream.begin_capture()
    for run in runs:
        run()
    graph = gpu.stream.end_capture()
    graph.launch(gpu.stream)
    times = []
    for _ in range(REPLAYS):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record(gpu.stream)
        graph.launch(gpu.stream)
        stop.record(gpu.stream)
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) * 1e3 / len(runs))
    return float(statistics.median(times))


def small(gpu: Gpu, dtype: DType, n: int) -> Small:
    """Measure one row of the second table."""
    room = -(-n // 128) * 128
    count = max(1, min(RUNS, ROTATED_BYTES // (room * dtype.itemsize)))
    array = made(gpu, dtype, "normal", room * count)
    parts = [array[k * room : k * room + n] for k in range(count)]
    bound = [peer(gpu, "cub", dtype, part) for part in parts]

    def exact(added: ExactAccumulator) -> float:
        added.add(parts[0])  # loaded before it is captured
        return replayed(gpu, [lambda part=part: added.add(part) for part in parts])  # type: ignore[misc]

    return Small(
        dtype=dtype.name,
        n=n,
        cub=replayed(gpu, [run for run in bound if run is not None]) if all(bound) else None,
        exact_sum=exact(ExactAccumulator(gpu, dtype, SumKind.VALUES)),
        exact_sum_squares=exact(ExactAccumulator(gpu, dtype, SumKind.SQUARES)),
        exact_moments=exact(ExactAccumulator(gpu, dtype, SumKind.MOMENTS)),
    )


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose figures are aligned to the right."""
    lines = [head, ["---", "---", *["---:"] * (len(head) - 2)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def large_table(rows: Sequence[Large], ceiling: float) -> str:
    """A table of the GB/s of CUB and of the exact sum, and of the other speeds as ratios."""

    def over(speed: float, base: float | None) -> str:
        return "–" if base is None else f"{speed / base:.2f}"

    head = ("dtype", "data", "CUB GB/s", "exact GB/s", "sum / CUB", "sum_squares / CUB", "var / CUB", "dot / read")
    cells = [
        (
            *(row.dtype, row.data, "–" if row.cub is None else f"{row.cub:.0f}", f"{row.exact_sum:.0f}"),
            "–" if row.cub is None else f"{row.exact_sum / row.cub:.3f}",
            *(over(speed, row.cub) for speed in (row.exact_sum_squares, row.exact_moments)),
            over(row.exact_dot, ceiling),
            *(over(row.exact_sum, peer) for peer in (row.cub_gpu_to_gpu, row.cupy_sum)),
            over(row.exact_moments, row.cupy_var),
            {None: "", True: "met", False: "missed"}[row.met()],
        )
        for row in rows
    ]
    return markdown((*head, "sum / gpu_to_gpu", "sum / cupy.sum", "var / cupy.var", "target"), cells)


def small_table(rows: Sequence[Small]) -> str:
    """A table of microseconds."""
    cells = [
        (
            *(row.dtype, f"{row.n:,}", "–" if row.cub is None else f"{row.cub:.2f}"),
            *(f"{time:.2f}" for time in (row.exact_sum, row.exact_sum_squares, row.exact_moments)),
        )
        for row in rows
    ]
    return markdown(("dtype", "n", "CUB", "sum", "sum_squares", "var"), cells)


def shown(figures: dict[str, Any]) -> str:
    """Both tables of a file of figures."""
    ceiling = figures["provenance"]["ceiling_gbps"]
    larges, smalls = [Large(**row) for row in figures["large"]], [Small(**row) for row in figures["small"]]
    return f"{large_table(larges, ceiling)}\n\n{small_table(smalls)}\n\nplain read {ceiling:.0f} GB/s"


def main() -> int:
    """Measure or read the figures, print them, and return the exit code, which is 2 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=4.0, help="size of a large array, GiB")
    parser.add_argument("--dtypes", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--out", type=Path, help="also write the figures here, as JSON")
    parser.add_argument("--tables", type=Path, help="measure nothing, show the figures of this file")
    arguments = parser.parse_args()
    if arguments.tables:
        print(shown(json.loads(arguments.tables.read_text(encoding="utf-8"))))
        return 0
    try:
        backend = CudaBackend(0)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 2
    host, console = CpuBackend(), Console(width=150, stderr=True)
    figures: dict[str, Any] = {"provenance": provenance(backend, CudaTarget(backend), host.device)}
    larges, smalls = [], []
    with backend.gpu.active():
        import cupy

        for name in arguments.dtypes:
            dtype = DTYPES[name]
            smalls += [small(backend.gpu, dtype, n) for n in SMALL]
            for data, distribution, _ in DATA:
                if name == "float16" and distribution in ("mixed", "pathological", "lognormal"):
                    continue  # beyond its range
                larges.append(large(backend.gpu, dtype, data, int(arguments.gib * 2**30) // dtype.itemsize))
                cupy.get_default_memory_pool().free_all_blocks()
                console.log(f"{name}, {data}: {larges[-1].exact_sum:.0f} GB/s")
            figures |= {"large": [asdict(row) for row in larges], "small": [asdict(row) for row in smalls]}
            if arguments.out:
                arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(shown(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
