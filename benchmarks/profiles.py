"""Measures what the kernels of a sum take of a GPU, and how well they use it: `python -m benchmarks.profiles`.

It profiles every strategy of ours on float32, as launched, with counters where `ncu` is on PATH. `--out` writes all
points as JSON; `--from` prints the table of such a file instead.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.provenance import of_script
from warpfold.kernels.bench.axes import Axes, Cache
from warpfold.kernels.cuda.gpu.device import describe
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.profile.run import profile
from warpfold.kernels.cuda.strategies.registry import own_strategies
from warpfold.kernels.cuda.strategies.rows import FAST
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.strategy import EXACT

SIZES = (1_000_000, 1 << 28)
COLUMNS = (
    "strategy",
    "n",
    "kernel",
    "registers",
    "shared bytes",
    "threads",
    "blocks",
    "blocks an SM",
    "occupancy",
    "waves",
    "µs",
    "% of DRAM's peak",
    "warp efficiency",
    "achieved occupancy",
)


def strategies() -> tuple[str, ...]:
    """The strategies, the exact and the fast strategy first."""
    return (EXACT, FAST, *(name for name in own_strategies() if name != FAST))


def measure(gpu: Gpu, *, counters: bool) -> dict[str, Any]:
    """Measure every point, in the form in which it is written."""
    axes = Axes(strategies(), ("sum",), ("float32",), SIZES, (Cache.COLD,))
    points = []
    for record in profile(axes, gpu, gpu.arch, counters=counters):
        points.append(asdict(record))
        print(f"\r\x1b[K{len(points)}/{len(axes)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {
        **of_script("benchmarks.profiles"),
        "device": asdict(describe(gpu)),
        "points": points,
    }


def table(points: Sequence[dict[str, Any]]) -> str:
    """A Markdown table with a line for each kernel."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|---:|---|" + "---:|" * (len(COLUMNS) - 3)]
    for point in points:
        for kernel in point["kernels"]:
            cells = (f"`{point['strategy']}`", f"{point['n']:,}", f"`{kernel['name'].partition('<')[0]}`")
            lines.append("| " + " | ".join((*cells, *_figures(kernel))) + " |")
        if point["outcome"] != "measured":
            lines.append(f"| `{point['strategy']}` | {point['n']:,} | {point['outcome']}: {point['reason']} |")
    return "\n".join(lines)


def _figures(kernel: dict[str, Any]) -> tuple[str, ...]:
    counters = kernel["counters"] or {}
    shared = kernel["static_shared"] + kernel["dynamic_shared"]
    return (
        *(f"{number:,}" for number in (kernel["registers"], shared, kernel["threads"], kernel["blocks"])),
        str(kernel["blocks_per_multiprocessor"]),
        f"{kernel['occupancy_percent']:.0f} %",
        f"{kernel['waves']:.3f}",
        *(
            "–" if counters.get(name) is None else f"{counters[name]:.1f}"
            for name in ("duration_us", "dram_percent", "warp_efficiency_percent", "achieved_occupancy_percent")
        ),
    )


def main() -> int:
    """Measure or read the points, print them, and return the exit code, which is 2 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write every point here, as JSON")
    parser.add_argument("--from", type=Path, dest="source", help="print the table of this file")
    parser.add_argument("--no-counters", action="store_true", help="do not run ncu")
    arguments = parser.parse_args()
    if arguments.source is not None:
        profiled = json.loads(arguments.source.read_text())
    else:
        try:
            gpu = Gpu(0)
        except Unavailable as error:
            print(error, file=sys.stderr)
            return 2
        profiled = measure(gpu, counters=not arguments.no_counters)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(profiled, indent=1, ensure_ascii=False) + "\n")
    print(f"{profiled['device']['name']}, {profiled['when']}\n")
    print(table(profiled["points"]))
    for reason in dict.fromkeys(point["counters_unavailable"] for point in profiled["points"]):
        if reason:
            print(f"\nno counters: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
