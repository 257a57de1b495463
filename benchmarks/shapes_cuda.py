"""Measures exact sums, or by `--op` means and products, of many values on a GPU: `python -m benchmarks.shapes_cuda`.

A row is one shape of the same elements. In each round the contenders run one after the other: the exact values, a loop
that only reads and writes the same bytes, `torch.sum`, `cupy.sum`, and of segments CUB's segmented reduction. Medians
of device time by events are compared. A few values of each shape are checked against exact sums of their elements.
`--variants` also measures other launch shapes than those of `kernels/cuda/grouped/shapes.py`. `--out` writes all as
JSON.
"""

import argparse
import json
import statistics
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shapes_cuda_peers import peers_of
from warpfold.kernels.cuda.bench.reader import SHAPES as READERS
from warpfold.kernels.cuda.bench.reader import reading, reading_and_writing
from warpfold.kernels.cuda.compile import compile_unit
from warpfold.kernels.cuda.exact.finishing import Finishing
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.device import describe
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.recorded import Prepared, RecordingGpu
from warpfold.kernels.cuda.grouped import ColumnsLayout, FinishedValues, Layout, OffsetsLayout, Rounding, RowsLayout
from warpfold.kernels.cuda.grouped.shapes import (
    SHAPES,
    ColumnsShape,
    GroupedShapes,
    PartsShape,
    RowsShape,
    SpanShape,
    StreamShape,
    families,
    lanes_of,
    unit_of,
)
from warpfold.kernels.cuda.staging.generator import fill
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.generate import plan
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import OPS, Terms
from warpfold.kernels.source import GeneratedSource

ROUNDS = 5
LENGTHS = (2, 8, 32, 128, 1024, 1 << 14, 1 << 20, 1 << 26)
MEANS = (4, 16, 64, 256, 1024, 4096)
WHAT = ("axis1", "axis0", "segments")
ENDS = {
    "sum": (SumKind.VALUES, Finishing.SUM),
    "mean": (SumKind.VALUES, Finishing.MEAN),
    "dot": (SumKind.PRODUCTS, Finishing.SUM),
}


@dataclass(frozen=True, slots=True)
class GpuShapeRow:
    """Milliseconds of device time. `ratio` is `read_ms` over `exact_ms`; a peer that is not there is None. `right` says
    whether the values that were looked at were correctly rounded, `wide` how many values no window held."""

    dtype: str
    shape: str
    variant: str
    kernel: str
    exact_ms: float
    read_ms: float
    ratio: float
    torch_ms: float | None
    cupy_ms: float | None
    cub_ms: float | None
    right: bool
    wide: int


class Bench:
    """The elements, and what is measured on them."""

    def __init__(self, gpu: Gpu, dtype: str, count: int, op: str = "sum") -> None:
        import cupy

        self.gpu, self.dtype, self.count, self.op = gpu, DTYPES[dtype], count, op
        self.arrays = [cupy.empty(count, dtype=self.dtype.numpy) for _ in range(OPS[op].sources)]
        for seed, array in enumerate(self.arrays, 1):
            fill(gpu, plan(GeneratedSource("normal", count, seed, self.dtype)), array, 0)
        self.array = self.arrays[0]
        self._scratch = cupy.empty(count * self.dtype.itemsize // 16 * 4, dtype=np.uint32)
        gpu.stream.synchronize()
        self._readers = [reading(gpu, self.array, shape).start for shape in READERS]
        times = self.times(self._readers)
        self._best = self._readers[times.index(min(times))]

    def times(self, contenders: Sequence[Callable[[], object]]) -> list[float]:
        """Medians in milliseconds."""
        import cupy

        for contender in contenders:
            contender()
        spans: list[list[tuple[Any, Any]]] = [[] for _ in contenders]
        for _ in range(ROUNDS):
            for contender, taken in zip(contenders, spans, strict=True):
                start, stop = cupy.cuda.Event(), cupy.cuda.Event()
                start.record(self.gpu.stream)
                contender()
                stop.record(self.gpu.stream)
                taken.append((start, stop))
        self.gpu.stream.synchronize()
        return [statistics.median(cupy.cuda.get_elapsed_time(*span) for span in taken) for taken in spans]

    def readers(self, read: int, written: int) -> list[Callable[[], object]]:
        """Loops that read so many bytes and write so many; the faster one counts."""
        if read == self.array.nbytes and written * 4096 <= read:
            return [self._best]
        # bytes beside the elements, such as offsets, are read as elements again
        ratio = max(1, round(read / written))
        part = self.array[: min(read, self.array.nbytes) // self.dtype.itemsize]
        loops: list[Callable[[], object]] = [reading_and_writing(self.gpu, part, self._scratch, ratio).start]
        if read > self.array.nbytes:
            more = self.array[: (read - self.array.nbytes) // self.dtype.itemsize]
            loops.append(reading_and_writing(self.gpu, more, self._scratch, ratio).start)
        both = loops

        def run() -> None:
            for loop in both:
                loop()

        return [run]

    def prepared(self, layout: Layout, shapes: GroupedShapes) -> tuple[FinishedValues, Prepared]:
        recorder = RecordingGpu(self.gpu)
        kind, finishing = ENDS[self.op]
        array, *other = (each[: layout.total] for each in self.arrays)
        sums = FinishedValues(
            recorder, array, layout, self.dtype, kind, Rounding(finishing),
            shapes=shapes if kind is SumKind.VALUES else None, other=other[0] if other else None,
        )  # fmt: skip
        with recorder.recording() as launches:
            sums.start()
        return sums, Prepared(self.gpu, launches)

    def right(self, sums: FinishedValues, members: Callable[[Any, int], Any]) -> bool:
        """Whether some values are those of their elements."""
        count = int(sums.values.size)
        for number in {0, count // 2 + count // 7, count - 1}:
            some = [np.ascontiguousarray(members(array, number).get()) for array in self.arrays]
            if not some[0].size:
                continue
            products = len(some) == 2
            state = ExactState.of_products(*some) if products else ExactState.empty(Terms.VALUES).add(some[0])
            wanted = value_of(OPS[self.op], [state], self.dtype.name)
            if float(sums.values[number].get()).hex() != float(wanted).hex():
                return False
        return True

    def row(
        self, label: str, layout: Layout, variants: Mapping[str, GroupedShapes], members: Callable[[Any, int], Any],
        peers: Mapping[str, Callable[[], object]],
    ) -> Iterator[GpuShapeRow]:  # fmt: skip
        """A shape by all variants; the peers only once."""
        read = layout.total * self.dtype.itemsize * len(self.arrays)
        read += layout.offsets.nbytes if isinstance(layout, OffsetsLayout) else 0
        first = True
        for variant, shapes in variants.items():
            try:
                sums, prepared = self.prepared(layout, shapes)
                readers = self.readers(read, int(sums.values.nbytes))
                names = list(peers) if first else []
                sums.values.view(np.uint8).fill(0xFF)
                times = self.times([prepared.start, *readers, *(peers[name] for name in names)])
                by = dict(zip(names, times[1 + len(readers) :], strict=True))
                exact_ms, read_ms = times[0], min(times[1 : 1 + len(readers)])
                wide = sums.finish()
                right = self.right(sums, members)
                yield GpuShapeRow(
                    self.dtype.name, label, variant, sums.kernel, exact_ms, read_ms, read_ms / exact_ms,
                    by.get("torch"), by.get("cupy"), by.get("cub"), right, wide,
                )  # fmt: skip
                first = False
            except Exception:  # one that fails leaves the others
                print(f"{label} {variant}: {traceback.format_exc()}", flush=True)


def _only(shapes: GroupedShapes, shape: RowsShape) -> GroupedShapes:
    return replace(shapes, rows=(shape,))


def row_variants(dtype: str, length: int, *, more: bool) -> dict[str, GroupedShapes]:
    """The launch shapes to be tried for rows."""
    shapes = SHAPES[dtype, SumKind.VALUES]
    variants = {"": shapes}
    if not more:
        return variants
    reads = length * DTYPES[dtype].itemsize // 16
    if length == 2:
        return variants | {f"pairs {flight}": replace(shapes, pairs=flight) for flight in (2, 8)}
    if reads <= 256:
        for lanes in (1, 2, 4, 8, 16, 32):
            flight = max(1, reads // lanes)
            if lanes * flight != max(reads, lanes) or lanes > reads or flight > 8:
                continue
            for rows in (1, 2, 4, 8):
                if rows * flight in (4, 8):
                    for threads in (128, 256):
                        variants[f"{lanes} lanes {rows} rows {threads}"] = _only(
                            shapes, RowsShape(lanes, rows, flight, threads)
                        )
    if reads >= 64:
        for flight in (4, 8):
            for threads in (128, 256):
                long = SpanShape(32, 1, vectors=True, flight=flight, threads=threads)
                variants[f"spans {flight} {threads}"] = replace(shapes, rows=(), many=long, few=long)
                for enough in (16, 64) if length > 1 << 14 else ():
                    parts = PartsShape(flight, enough=enough, threads=threads)
                    variants[f"parts {flight} {threads} × {enough}"] = replace(shapes, parts=parts)
    return variants


def column_variants(dtype: str, *, more: bool) -> dict[str, GroupedShapes]:
    """The launch shapes to be tried for columns."""
    shapes = SHAPES[dtype, SumKind.VALUES]
    variants = {"": shapes}
    if more:
        for flight in (4, 8, 12, 16):
            for threads, blocks in ((256, 264), (256, 528), (256, 1056), (128, 1056), (128, 4224)):
                columns = ColumnsShape(flight, threads, blocks)
                variants[f"flight {flight} {threads} × {blocks}"] = replace(shapes, columns=columns)
        for threads in (64, 256):
            variants[f"short {threads}"] = replace(shapes, short_columns=threads)
        variants["short none"] = replace(shapes, short_columns=0)
    return variants


def segment_variants(dtype: str, mean: int, *, more: bool) -> dict[str, GroupedShapes]:
    """The launch shapes to be tried for segments."""
    shapes = SHAPES[dtype, SumKind.VALUES]
    variants = {"": shapes}
    if not more:
        return variants
    variants["spans"] = replace(shapes, streams=())
    lanes = lanes_of(DTYPES[dtype])
    ends = min(5, -(-32 * 4 * lanes * 6 // (5 * mean * 32)))
    for blocks, waves in ((5, 1), (6, 1), (6, 4), (7, 4)):
        shape = StreamShape(4, ends, *((8, 2) if mean < 32 else (32, 4)), blocks=blocks, waves=waves)
        variants[f"stream {ends} {blocks} × {waves}"] = replace(shapes, streams=((1 << 20, shape),))
    if mean >= 256:
        for threads in (32, 64, 128):  # a block keeps its place on a multiprocessor until its longest segment ends
            for flight in (4, 8):
                long = SpanShape(32, 1, vectors=False, flight=flight, threads=threads)
                variants[f"spans {flight} {threads}"] = replace(shapes, streams=(), anywhere=((float("inf"), long),))
    return variants


def lengths_of(mean: int, total: int, random: np.random.Generator) -> Any:
    """Random lengths of segments, geometric, of `total` elements together; mean 0: one giant among many small ones."""
    if not mean:
        small = random.geometric(1 / 16, total // 64)
        return np.concatenate([small[: small.size // 2], [total // 2], small[small.size // 2 :]])
    drawn = random.geometric(1 / mean, int(total / mean * 1.2) + 100)
    return drawn[np.cumsum(drawn) <= total]


def _row(length: int, array: Any, number: int) -> Any:
    return array[number * length : (number + 1) * length]


def _column(width: int, array: Any, number: int) -> Any:
    return array[number::width]


def rows_of(
    bench: Bench, *, more: bool, peers: bool, what: Sequence[str], lengths: Sequence[int]
) -> Iterator[GpuShapeRow]:
    """All shapes of one dtype; those along axes have so many columns."""
    import cupy

    count, dtype = bench.count, bench.dtype.name
    for length in [length for length in lengths if length <= count]:
        rows = count // length
        if "axis1" in what:
            layout: Layout = RowsLayout(rows, length, count)
            yield from bench.row(
                f"{rows} × {length}, axis 1", layout, row_variants(dtype, length, more=more),
                partial(_row, length), peers_of(bench.gpu, bench.array, layout) if peers else {},
            )  # fmt: skip
        if "axis0" in what:
            layout = ColumnsLayout(length, rows)
            yield from bench.row(
                f"{rows} × {length}, axis 0", layout, column_variants(dtype, more=more),
                partial(_column, length), peers_of(bench.gpu, bench.array, layout) if peers else {},
            )  # fmt: skip
        cupy.get_default_memory_pool().free_all_blocks()
    random = np.random.default_rng(1)
    for mean in MEANS if "segments" in what else ():
        yield from _segments(bench, mean, lengths_of(mean, count // 4, random), more=more, peers=peers)
    if "segments" in what:
        yield from _segments(bench, 0, lengths_of(0, count // 4, random), more=more, peers=peers)


def _segments(bench: Bench, mean: int, lengths: Any, *, more: bool, peers: bool) -> Iterator[GpuShapeRow]:
    edges = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    layout = OffsetsLayout.of(edges)
    label = f"{lengths.size} segments of {mean}" if mean else f"{lengths.size} segments, one giant"
    yield from bench.row(
        label, layout, segment_variants(bench.dtype.name, mean or 32, more=more),
        lambda array, k: array[edges[k] : edges[k + 1]], peers_of(bench.gpu, bench.array, layout) if peers else {},
    )  # fmt: skip


def compile_ahead(arch: str, dtypes: Sequence[str], *, more: bool, lengths: Sequence[int]) -> None:
    """Compile what all variants may launch, on all processors."""
    names: dict[str, None] = {}
    for dtype in dtypes:
        variants = [column_variants(dtype, more=more), *(row_variants(dtype, length, more=more) for length in lengths)]
        variants += [segment_variants(dtype, mean, more=more) for mean in MEANS]
        for shapes in (shapes for variant in variants for shapes in variant.values()):
            names |= dict.fromkeys(
                name for family in families(DTYPES[dtype], SumKind.VALUES, shapes) for name in family
            )
    with ProcessPoolExecutor(usable_cores(), mp_context=get_context("spawn")) as pool:
        list(pool.map(_compiled, names, [arch] * len(names)))


def _compiled(name: str, arch: str) -> None:
    compile_unit(unit_of(name), arch)


def table(made: Sequence[GpuShapeRow]) -> str:
    """The best variant of each shape beside the one that is chosen, as lines."""
    lines = [
        "dtype    shape                              read_ms exact_ms ratio  best ratio  torch  cupy   cub  kernel"
    ]
    for label in dict.fromkeys((row.dtype, row.shape) for row in made):
        rows = [row for row in made if (row.dtype, row.shape) == label]
        best, chosen = max(rows, key=lambda row: row.ratio), rows[0]
        peers = " ".join(
            "     –" if ms is None else f"{ms:6.2f}" for ms in (chosen.torch_ms, chosen.cupy_ms, chosen.cub_ms)
        )
        wrong = "" if all(row.right for row in rows) else f" WRONG {[row.variant for row in rows if not row.right]}"
        wide = f" wide {chosen.wide}" if chosen.wide else ""
        lines.append(
            f"{chosen.dtype:8} {chosen.shape:34} {chosen.read_ms:7.3f} {chosen.exact_ms:8.3f} {chosen.ratio:5.3f}  "
            f"{best.ratio:9.3f} {peers} {chosen.kernel}; {best.variant or 'as chosen'}{wide}{wrong}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact sums along axes and by segments on a GPU.")
    parser.add_argument("--out", type=Path, help="a file for all rows as JSON")
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"), default=("float32", "float64"))
    parser.add_argument("--what", nargs="+", choices=WHAT, default=WHAT)
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS, help="columns of the arrays along axes")
    parser.add_argument("--log2", type=int, default=30, help="how many elements of float32, of float64 half as many")
    parser.add_argument("--op", choices=tuple(ENDS), default="sum", help="what is made of each value's elements")
    parser.add_argument("--variants", action="store_true", help="other launch shapes, too")
    parser.add_argument("--no-peers", action="store_true", help="leave torch, CuPy and CUB, which add up, out")
    parser.add_argument("--compile-only", metavar="ARCH", help="compile for an architecture, and end")
    chosen = parser.parse_args()
    if chosen.compile_only:
        compile_ahead(chosen.compile_only, chosen.dtypes, more=chosen.variants, lengths=chosen.lengths)
        return
    if chosen.op != "sum" and chosen.variants:
        parser.error("--variants are those of sums")
    gpu = Gpu(0)
    compile_ahead(gpu.arch, chosen.dtypes, more=chosen.variants, lengths=chosen.lengths)
    made: list[GpuShapeRow] = []
    began = time.perf_counter()
    for dtype in chosen.dtypes:
        with gpu.active():
            bench = Bench(gpu, dtype, 1 << chosen.log2 - (dtype == "float64"), chosen.op)
            shown = {"more": chosen.variants, "peers": chosen.op == "sum" and not chosen.no_peers}
            for row in rows_of(bench, **shown, what=chosen.what, lengths=chosen.lengths):
                made.append(row)
                print(
                    f"{time.perf_counter() - began:5.1f} s {row.dtype} {row.shape:34} {row.variant:30} {row.ratio:.3f} "
                    f"{row.exact_ms:.3f} {row.right} {row.wide} {row.kernel}", flush=True,
                )  # fmt: skip
                if chosen.out is not None:
                    text = {"device": describe(gpu).name, "rows": [asdict(row) for row in made]}
                    chosen.out.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
            del bench
            import cupy

            cupy.get_default_memory_pool().free_all_blocks()
    print(table(made), flush=True)


if __name__ == "__main__":
    main()
