"""Measures exact sums of squares and deviations of many values on a GPU: `python -m benchmarks.moments_cuda`.

A row is one shape of the same normally distributed elements: rows, columns, or segments of random lengths. Beside the
exact sum, the sum of squares and the deviation stand a loop that only reads the elements, and of rows and columns
`torch.linalg.vector_norm` and `torch.var`. Times are medians of device time by events. Two values of each shape are
checked against exact sums of their elements. `--out` writes all as JSON.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.engines import gpu as exact
from warpfold.kernels.cuda.bench.reader import SHAPES as READERS
from warpfold.kernels.cuda.bench.reader import read_unit, reading
from warpfold.kernels.cuda.compile import compile_unit
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.gpu.device import describe
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.recorded import Prepared, RecordingGpu
from warpfold.kernels.cuda.grouped import FinishedValues, OffsetsLayout, Rounding
from warpfold.kernels.cuda.grouped.shapes import SHAPES, families, unit_of
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact import ExactState, deviation
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import Terms

ROUNDS = 7
LENGTHS = (2, 3, 4, 7, 8, 16, 32, 33, 100, 101, 256, 1000, 1001, 4096, 16_384, 100_000, 1_000_000)
MEANS = (4, 16, 64, 256, 1024, 4096)
"""Elements of a segment, whose lengths are geometric."""


@dataclass(frozen=True, slots=True)
class MomentsRow:
    """Milliseconds of device time. `right` says whether the deviations that were looked at were correctly rounded."""

    dtype: str
    rows: int
    columns: int
    layout: str
    read_ms: float
    sum_ms: float
    squares_ms: float
    deviation_ms: float
    torch_norm_ms: float | None
    torch_var_ms: float | None
    right: bool

    def line(self) -> str:
        times = (self.sum_ms, self.squares_ms, self.deviation_ms, self.torch_norm_ms, self.torch_var_ms)
        shown = "".join("               –" if ms is None else f"{ms:9.3f} ({self.read_ms / ms:4.2f})" for ms in times)
        wrong = "" if self.right else " WRONG"
        return f"{self.dtype:8} {self.rows:>10} × {self.columns:<8}{self.layout:9}{self.read_ms:7.3f} {shown}{wrong}"


def compile_ahead(arch: str, dtypes: Sequence[str]) -> None:
    """Compile what may be launched, on all processors."""
    units = [read_unit()]
    for (name, kind), shapes in SHAPES.items():
        if name in dtypes:
            units += [unit_of(kernel) for family in families(DTYPES[name], kind, shapes) for kernel in family]
    with ProcessPoolExecutor(usable_cores(), mp_context=get_context("spawn")) as pool:
        list(pool.map(compile_unit, units, [arch] * len(units)))


def times(contenders: list[Callable[[], object]], torch: Any) -> list[float]:
    """Medians in milliseconds, of rounds in which each contender runs once."""
    for contender in contenders:
        contender()
    spans: list[list[float]] = [[] for _ in contenders]
    for _ in range(ROUNDS):
        for contender, taken in zip(contenders, spans, strict=True):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            contender()
            stop.record()
            stop.synchronize()
            taken.append(start.elapsed_time(stop))
    return [statistics.median(taken) for taken in spans]


def right(values: Any, members: Sequence[Any]) -> bool:
    """Whether the first and the last deviation are those of their `members`, tensors."""
    for at in (0, -1):
        array = np.ascontiguousarray(members[at].cpu().numpy())
        states = ExactState.empty(Terms.VALUES).add(array), ExactState.empty(Terms.PRODUCTS).add(array)
        if float(values[at]).hex() != float(deviation(*states, 0, DTYPES[array.dtype.name])).hex():
            return False
    return True


def measured(gpu: Gpu, dtype: str, count: int, torch: Any) -> Iterator[MomentsRow]:
    """The rows of one dtype."""
    import cupy

    elements = torch.randn(count, device="cuda", dtype=getattr(torch, dtype))
    with gpu.active():
        readers = [reading(gpu, cupy.from_dlpack(elements), shape).start for shape in READERS]
        loops = [partial(_on, gpu, reader, torch) for reader in readers]
    for length in LENGTHS:
        x = elements[: count // length * length].view(-1, length)
        for axis in (1, 0) if length <= 1 << 14 else (1,):
            calls = (
                partial(exact.sum, x, axis=axis),
                partial(exact.sum_squares, x, axis=axis),
                partial(exact.std, x, axis=axis),
                partial(torch.linalg.vector_norm, x, dim=axis),
                partial(torch.var, x, dim=axis, correction=0),
            )
            *read, total, squares, spread, norm, var = times([*loops, *calls], torch)
            ends = (x[0], x[-1]) if axis == 1 else (x[:, 0], x[:, -1])
            yield MomentsRow(
                dtype, count // length, length, "rows" if axis == 1 else "columns", min(read), total, squares, spread,
                norm, var, right(exact.std(x, axis=axis), ends),
            )  # fmt: skip
    for mean in MEANS:
        yield _segments(gpu, elements, mean, loops, torch)


def _segments(gpu: Gpu, elements: Any, mean: int, loops: Sequence[Callable[[], object]], torch: Any) -> MomentsRow:
    """The row of segments of `mean` elements on average."""
    import cupy

    lengths = np.random.default_rng(mean).geometric(1 / mean, 2 * elements.numel() // mean + 64)
    edges = np.concatenate([[0], np.cumsum(lengths)])
    edges = edges[edges <= elements.numel()].astype(np.int64)
    dtype = DTYPES[str(elements.dtype).removeprefix("torch.")]
    with gpu.active():
        x, layout = cupy.from_dlpack(elements)[: int(edges[-1])], OffsetsLayout.of(edges)
        recorder, starts = RecordingGpu(gpu), []
        for op in (FINISHED_OPS[name] for name in ("sum", "sum_squares", "std")):
            made = FinishedValues(recorder, x, layout, dtype, op.kind, Rounding(op.finish))
            with recorder.recording() as launches:
                made.start()
            starts.append(Prepared(gpu, launches).start)
        calls = [partial(_on, gpu, start, torch) for start in starts]
        *read, total, squares, deviation_ms = times([*loops, *calls], torch)
        made.finish()
        gpu.stream.synchronize()
        spread = torch.from_dlpack(made.values)
    ends = (elements[edges[0] : edges[1]], elements[edges[-2] : edges[-1]])
    return MomentsRow(
        dtype.name, layout.count, mean, "segments", min(read), total, squares, deviation_ms, None, None,
        right(spread, ends),
    )  # fmt: skip


def _on(gpu: Gpu, start: Callable[[], object], torch: Any) -> None:
    """A launch on the stream of the GPU, between what PyTorch has on its own."""
    own, others = torch.cuda.ExternalStream(gpu.stream.ptr), torch.cuda.current_stream()
    own.wait_stream(others)
    with gpu.active():
        start()
    others.wait_stream(own)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact sums of squares and deviations of many values on a GPU.")
    parser.add_argument("--out", type=Path, help="a file for all rows as JSON")
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"), default=("float32", "float64"))
    parser.add_argument("--count", type=int, default=100_000_000, help="how many elements")
    chosen = parser.parse_args()
    import torch

    gpu = Gpu(0)
    compile_ahead(gpu.arch, chosen.dtypes)
    heads = ("sum", "squares", "std", "torch norm", "torch var")
    print(f"{'dtype':8} {'shape':27} {'read':>7} {''.join(f'{head:>16}' for head in heads)}")
    rows: list[MomentsRow] = []
    for dtype in chosen.dtypes:
        for row in measured(gpu, dtype, chosen.count, torch):
            rows.append(row)
            print(row.line(), flush=True)
    if chosen.out is not None:
        text = {"device": describe(gpu).name, "rows": [asdict(row) for row in rows]}
        chosen.out.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
