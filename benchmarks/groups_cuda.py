"""Measures exact sums by key on a GPU: `python -m benchmarks.groups_cuda`.

A row is one number of groups of the same rows: random keys and values that lie on the GPU. Each time is from there to
the rounded sums and the counts of all groups, with the look at a sample and whatever the host decides in between.
Peers run beside: `torch.index_add_`, and CUB's radix sort of pairs and reduction by key; of sorted keys CUB's reduction
alone. Medians of device time by events are compared. Some groups of each row are checked against exact sums of their
elements. `--variants` also measures other launch shapes than those of `kernels/cuda/keyed/shapes.py`. `--out` writes
all as JSON.
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

from benchmarks.groups_peers import peers_of
from warpfold.kernels.cuda.compile import Unit, compile_unit
from warpfold.kernels.cuda.exact import ExactAccumulator, SumKind
from warpfold.kernels.cuda.gpu.device import describe
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.keyed.shapes import (
    SHAPES,
    FewShape,
    KeyedShapes,
    KeyStreamShape,
    PartShape,
    few_kernel,
    part_kernel,
    runs_kernel,
    sample_kernel,
    sizes_kernel,
    starts_kernel,
    stream_kernels,
    sums_kernel,
    unit_of,
    values_kernel,
)
from warpfold.kernels.cuda.keyed.sums import KeyedSums
from warpfold.kernels.cuda.staging.generator import fill
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.generate import plan
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import OPS
from warpfold.kernels.source import GeneratedSource

ROUNDS = 5
GROUPS = (2, 100, 1000, 10_000, 1_000_000, 100_000_000)
CHECKED = 2
TARGETS = {2: 1.3, 100: 1.3, 1000: 1.3, 10_000: 3.0, 1_000_000: 5.0, 100_000_000: 20.0}


@dataclass(frozen=True, slots=True)
class GpuGroupsRow:
    """Milliseconds of device time; a peer that is not there is None. `kernels` has the times of the launches in their
    order. `right` says whether the groups that were looked at were correctly rounded."""

    key: str
    dtype: str
    data: str
    groups: int
    sorted_keys: bool
    variant: str
    strategy: str
    levels: int
    exact_ms: float
    torch_ms: float | None
    cub_ms: float | None
    right: bool
    kernels: tuple[tuple[str, float], ...]


class TimingGpu:
    """A GPU whose launches are timed one by one."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self.spans: list[tuple[str, Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gpu, name)

    def kernel(self, unit: Unit, name: str) -> Any:
        import cupy

        kernel = self._gpu.kernel(unit, name)

        def launch(*args: Any) -> None:
            start, stop = cupy.cuda.Event(), cupy.cuda.Event()
            start.record(self._gpu.stream)
            kernel(*args)
            stop.record(self._gpu.stream)
            self.spans.append((name.split("<", maxsplit=1)[0], start, stop))

        return launch

    def times(self) -> tuple[tuple[str, float], ...]:
        import cupy

        self._gpu.stream.synchronize()
        return tuple((name, round(cupy.cuda.get_elapsed_time(*span), 3)) for name, *span in self.spans)


def median_ms(gpu: Gpu, run: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median of device time, after one run that is not counted."""
    import cupy

    run()
    taken: list[float] = []
    for _ in range(rounds):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record(gpu.stream)
        run()
        stop.record(gpu.stream)
        stop.synchronize()
        taken.append(float(cupy.cuda.get_elapsed_time(start, stop)))
    return statistics.median(taken)


class GroupsBench:
    """The rows, and what is measured on them."""

    def __init__(self, gpu: Gpu, dtype: str, data: str, count: int) -> None:
        import cupy

        self.gpu, self.dtype, self.data, self.count = gpu, DTYPES[dtype], data, count
        self.values = cupy.empty(count, dtype=self.dtype.numpy)
        fill(gpu, plan(GeneratedSource("normal", count, 1, self.dtype)), self.values, 0)
        if data == "exp":
            self.values = cupy.exp(6 * self.values).astype(self.dtype.numpy)
        if data == "whole":  # numbers of 16 bits
            self.values = cupy.random.RandomState(3).randint(0, 1 << 16, count).astype(self.dtype.numpy)
        self.keys: Any = None
        self.key = ""

    def make_keys(self, key: str, groups: int, *, in_order: bool) -> None:
        import cupy

        self.keys = None
        random = cupy.random.RandomState(7)
        self.keys = random.randint(0, groups, self.count, dtype=np.int32)
        if in_order:
            self.keys.sort()
        if key == "int64":
            self.keys = self.keys.astype(np.int64)
        self.key = key
        cupy.get_default_memory_pool().free_all_blocks()
        self.gpu.stream.synchronize()

    def run(self, gpu: Any, shapes: KeyedShapes) -> tuple[KeyedSums, Any]:
        sums = KeyedSums(gpu, self.keys, DTYPES[self.key], self.values, self.dtype, shapes=shapes)
        sums.add()
        return sums, sums.values() if sums.strategy in ("sorted", "stream") else sums.dense()

    def right(self, sums: KeyedSums, *, whole: bool = True) -> bool:
        """Whether some groups have the values of their elements."""
        groups, values = sums.groups(), sums.values()
        size = int(groups.keys.size)
        for number in np.linspace(0, size - 1, CHECKED).astype(int).tolist():
            members = self.values[self.keys == self.keys.dtype.type(int(groups.keys[number]))]
            exact = ExactAccumulator(self.gpu, self.dtype, SumKind.VALUES)
            exact.add(members)
            wanted = float(value_of(OPS["sum"], exact.states(), self.dtype.name))
            if float(values[number].get()).hex() != wanted.hex() or int(groups.counts[number]) != int(members.size):
                print("wrong:", number, float(values[number].get()).hex(), wanted.hex(), int(groups.counts[number]),
                      int(members.size), flush=True)  # fmt: skip
                return False
        return not whole or int(groups.counts.sum(dtype=np.int64)) == self.count

    def rows(
        self, groups: int, variants: Mapping[str, KeyedShapes], peers: Mapping[str, Callable[[], object]], *,
        in_order: bool,
    ) -> Iterator[GpuGroupsRow]:  # fmt: skip
        """A number of groups by all variants; the peers only once."""
        first = True
        for variant, shapes in variants.items():
            try:
                times = {name: median_ms(self.gpu, peer, 2) for name, peer in peers.items()} if first else {}
                exact_ms = median_ms(self.gpu, partial(self.run, self.gpu, shapes))
                timing = TimingGpu(self.gpu)
                sums, _ = self.run(timing, shapes)
                yield GpuGroupsRow(
                    self.key, self.dtype.name, self.data, groups, in_order, variant, sums.strategy, sums.levels,
                    exact_ms, times.get("torch"), times.get("cub"), self.right(sums), timing.times(),
                )  # fmt: skip
                first = False
            except Exception:  # one that fails leaves the others
                print(f"{groups} {variant}: {traceback.format_exc()}", flush=True)


def variants_of(groups: int, *, in_order: bool, more: bool) -> dict[str, KeyedShapes]:
    """The launch shapes to be tried."""
    variants = {"": SHAPES}
    if not more:
        return variants
    if in_order:
        variants["runs"] = replace(SHAPES, longest_streamed=0)
        for stream in (
            KeyStreamShape(2, 256, 4), KeyStreamShape(2, 320, 3), KeyStreamShape(2, 448, 2), KeyStreamShape(4, 256, 2),
            KeyStreamShape(4, 192, 2), KeyStreamShape(2, 192, 5), KeyStreamShape(2, 384, 3), KeyStreamShape(2, 512, 2),
        ):  # fmt: skip
            variants[f"stream {stream.reads} {stream.threads} {stream.blocks}"] = replace(
                SHAPES, stream=stream, longest_streamed=1 << 60
            )
    elif groups <= 10_000:
        for copies in (0, 2, 3, 4):
            if groups <= 1000 and groups > 2:
                variants[f"copies {1 << copies}"] = replace(SHAPES, most_copies=copies)
        for shape in (FewShape(1, 1024, 1), FewShape(4, 1024, 1), FewShape(2, 512, 2), FewShape(2, 768, 1)):
            variants[f"few {shape.reads} {shape.threads} {shape.blocks}"] = replace(SHAPES, few=(shape,) * 3)
        if groups == 10_000:
            variants["buckets"] = replace(SHAPES, few=(FewShape(2, 1024, 4),) * 3)
    else:
        for part in (PartShape(8, 512, 2), PartShape(16, 512, 2), PartShape(8, 1024, 1), PartShape(12, 256, 4)):
            variants[f"part {part.rows} {part.threads} {part.blocks}"] = replace(SHAPES, part=part)
        for sums in (PartShape(8, 768, 1), PartShape(4, 1024, 1)):
            variants[f"sums {sums.rows} {sums.threads} {sums.blocks}"] = replace(SHAPES, sums=(sums,) * 3)
        variants["bits 13"] = replace(SHAPES, bucket_bits=(13, 12, 12), sums=(PartShape(8, 512, 2),) * 3)
    return variants


def kernels_of(keys: Sequence[str], dtypes: Sequence[str], *, more: bool) -> list[str]:
    """The kernels that will be launched."""
    names = [starts_kernel()]
    for name in keys:
        key = DTYPES[name]
        names.append(sizes_kernel(key, SHAPES.size_threads))
        for value in dtypes:
            dtype = DTYPES[value]
            levels = (2, 3) if value == "float64" else (1, 3)
            names += [sample_kernel(key, dtype), *(values_kernel(dtype, dtype, some) for some in levels)]
            for groups, in_order in ((2, False), (1000, False), (10_000, False), (10**6, False), (2, True)):
                for shapes in variants_of(groups, in_order=in_order, more=more and value == "float32").values():
                    names += [few_kernel(key, dtype, some, shapes.few[some - 1]) for some in levels]
                    names += [runs_kernel(key, dtype, some, shapes.runs_of(key, some)) for some in levels]
                    names += [
                        part_kernel(which, dtype, shapes.part_of(which, dtype)) for which in (key, DTYPES["uint32"])
                    ]
                    planes = 2 if value == "float64" else 1
                    names += stream_kernels(key, dtype, planes, shapes, mean=False)
                    names += [sums_kernel(dtype, some, shapes.sums[some - 1]) for some in levels]
    return list(dict.fromkeys(names))


def compile_ahead(arch: str, names: Sequence[str]) -> None:
    """Compile all kernels on all cores."""
    with ProcessPoolExecutor(usable_cores(), mp_context=get_context("spawn")) as pool:
        for name, future in [(name, pool.submit(partial(compile_unit, unit_of(name), arch))) for name in names]:
            try:
                future.result()
            except Exception as error:
                print(f"{name}: {str(error)[:300]}", flush=True)


def table(rows: Sequence[GpuGroupsRow]) -> str:
    """The best variant of each, beside the peers."""
    lines = [
        f"{'keys':6}{'dtype':9}{'data':7}{'groups':>11}{'sorted':>7}{'exact':>9}{'best':>9}{'torch':>9}{'cub':>9}{'target':>8}"
    ]
    asked = dict.fromkeys((row.key, row.dtype, row.data, row.groups, row.sorted_keys) for row in rows)
    for which in asked:
        of = [row for row in rows if (row.key, row.dtype, row.data, row.groups, row.sorted_keys) == which]
        best, chosen = min(of, key=lambda row: row.exact_ms), of[0]
        peers = "".join("        –" if ms is None else f"{ms:9.3f}" for ms in (chosen.torch_ms, chosen.cub_ms))
        right = "" if all(row.right for row in of) else "  WRONG"
        lines.append(
            f"{chosen.key:6}{chosen.dtype:9}{chosen.data:7}{chosen.groups:11,}{chosen.sorted_keys!s:>7}{chosen.exact_ms:9.3f}"
            f"{best.exact_ms:9.3f}{peers}{TARGETS.get(chosen.groups, 20.0):8.1f} {chosen.strategy}; "
            f"{best.variant or 'as chosen'}{right}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact sums by key on a GPU.")
    parser.add_argument("--out", type=Path, help="a file for all rows as JSON")
    parser.add_argument("--keys", nargs="+", choices=("int32", "int64"), default=("int32", "int64"))
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"), default=("float32", "float64"))
    parser.add_argument("--data", nargs="+", choices=("normal", "exp", "whole"), default=("normal",))
    parser.add_argument("--groups", nargs="+", type=int, default=GROUPS)
    parser.add_argument("--order", nargs="+", choices=("random", "sorted"), default=("random", "sorted"))
    parser.add_argument("--log2", type=int, default=28, help="how many rows of float32, of float64 half as many")
    parser.add_argument("--variants", action="store_true", help="other launch shapes, too")
    parser.add_argument("--no-peers", action="store_true", help="leave torch and CUB out")
    parser.add_argument("--compile-only", metavar="ARCH", help="compile for an architecture, and end")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no row after so long")
    chosen = parser.parse_args()
    names = kernels_of(chosen.keys, chosen.dtypes, more=chosen.variants)
    if chosen.compile_only:
        compile_ahead(chosen.compile_only, names)
        return
    gpu = Gpu(0)
    began = time.perf_counter()
    compile_ahead(gpu.arch, names)
    print(f"compiled {len(names)} kernels in {time.perf_counter() - began:.1f} s", flush=True)
    made: list[GpuGroupsRow] = []
    began = time.perf_counter()
    for dtype, data in ((dtype, data) for dtype in chosen.dtypes for data in chosen.data):
        with gpu.active():
            import cupy

            bench = GroupsBench(gpu, dtype, data, 1 << chosen.log2 - (dtype == "float64"))
            cases = ((key, order, groups) for key in chosen.keys for order in chosen.order for groups in chosen.groups)
            for key, order, groups in cases:
                if time.perf_counter() - began > chosen.seconds:
                    break
                in_order = order == "sorted"
                bench.make_keys(key, groups, in_order=in_order)
                peers = {} if chosen.no_peers else peers_of(bench, groups, in_order=in_order)
                more = chosen.variants and key == "int32" and dtype == "float32" and data == "normal"
                for row in bench.rows(
                    groups, variants_of(groups, in_order=in_order, more=more), peers, in_order=in_order
                ):
                    made.append(row)
                    parts = " ".join(f"{name} {ms}" for name, ms in row.kernels)
                    print(
                        f"{time.perf_counter() - began:5.1f} s {key} {dtype} {data} {groups} {order} {row.variant!r} "
                        f"{row.exact_ms:.3f} {row.right} {row.strategy} levels {row.levels}: {parts}", flush=True,
                    )  # fmt: skip
                    if chosen.out is not None:
                        text = {"device": describe(gpu).name, "rows": [asdict(row) for row in made]}
                        chosen.out.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
                del peers
            del bench
            cupy.get_default_memory_pool().free_all_blocks()
    print(table(made), flush=True)


if __name__ == "__main__":
    main()
